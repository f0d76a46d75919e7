//===- TokenizedData.cpp - folders of "python -m tessera data" --------------===//

#include "runtime/data/TokenizedData.h"

#include "runtime/state/FieldReader.h"

#include <cmath>
#include <filesystem>

namespace fs = std::filesystem;

namespace tessera {

static constexpr uint64_t formatVersion = 1;
/// So that products of sizes stay below 2^63.
static constexpr uint64_t mostTokens = uint64_t{1} << 58, mostPositions = uint64_t{1} << 31;

static void readShards(const FieldReader::Json &json, FieldReader &fields, TokenizedData &data) {
  uint64_t total = 0;
  for (const auto &item : fields.list(json, "shards")) {
    TokenizedData::Shard shard{fields.text(item, "name"), fields.number(item, "tokens")};
    if (shard.name.empty() || shard.name.find('/') != std::string::npos || shard.name.front() == '.')
      fields.fail("shards.name");
    if (shard.tokens > mostTokens || (total += shard.tokens) > mostTokens)
      return fields.fail("shards.tokens");
    data.shards.push_back(std::move(shard));
  }
}

static void readSplits(const FieldReader::Json &json, FieldReader &fields, TokenizedData &data) {
  for (const auto &[name, item] : fields.object(json, "splits").items()) {
    if (name.empty() || name.find('/') != std::string::npos || name.front() == '.')
      fields.fail("splits");
    data.splits[name] = {fields.number(item, "rows"), fields.number(item, "pieces")};
    if (data.splits[name].rows > mostTokens || data.splits[name].pieces > mostTokens)
      fields.fail("splits." + name);
  }
}

static void readSources(const FieldReader::Json &json, FieldReader &fields, TokenizedData &data) {
  double total = 0;
  for (const auto &item : fields.list(json, "sources")) {
    const fs::path path = fields.text(item, "path");
    data.mixture.push_back({(fs::path(data.folder) / path).lexically_normal().string(), fields.real(item, "weight")});
    if (!(data.mixture.back().weight > 0) || !std::isfinite(total += data.mixture.back().weight))
      return fields.fail("sources.weight");
  }
  if (data.mixture.empty())
    fields.fail("sources");
  for (TokenizedData::Source &source : data.mixture)
    source.weight /= total;
}

Result<std::optional<TokenizedData>> TokenizedData::read(const std::string &folder) {
  const std::string path = (fs::path(folder) / "manifest.json").string();
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored))
    return std::optional<TokenizedData>();
  TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> text, readWholeFile(path));
  FieldReader::Json json = parseShallowJson(text);
  const FieldReader::Json *format = json.is_object() && json.contains("format") ? &json["format"] : nullptr;
  const bool isMixture = format && *format == "tessera-data-mixture";
  if (!isMixture && !(format && *format == "tessera-data")) {
    // A folder of texts may hold a text of this name; only `data build` writes .rows.
    if (!fs::exists(fs::path(folder) / "train.rows", ignored))
      return std::optional<TokenizedData>();
    return TESSERA_ERROR(DataLoss, "'" + path + "' is corrupted: it has no format \"tessera-data\"");
  }
  FieldReader fields;
  if (uint64_t version = fields.number(json, "version"); fields.problem.empty() && version != formatVersion)
    return TESSERA_ERROR(Unsupported, "'" + path + "' has version " + std::to_string(version) +
                                          ", this runtime reads " + std::to_string(formatVersion) +
                                          ": build the data with the Python package of the same version");
  TokenizedData data;
  data.folder = folder;
  if (isMixture) {
    readSources(json, fields, data);
  } else {
    data.sequence = fields.number(json, "sequence");
    if (data.sequence < 1 || data.sequence > mostPositions)
      fields.fail("sequence");
    data.packing = fields.text(json, "packing");
    if (data.packing != "best-fit" && data.packing != "windows" && data.packing != "none")
      fields.fail("packing");
    data.tokenBytes = static_cast<int>(fields.number(json, "token_bytes"));
    if (data.tokenBytes != 2 && data.tokenBytes != 4)
      fields.fail("token_bytes");
    data.largestToken = fields.number(json, "largest_token");
    data.paddingToken = fields.number(json, "padding_token");
    data.longestDocument = fields.number(fields.object(json, "counts"), "longest");
    readShards(json, fields, data);
    readSplits(json, fields, data);
  }
  if (!fields.problem.empty())
    return TESSERA_ERROR(DataLoss, "'" + path + "' is corrupted: " + fields.problem);
  return std::optional<TokenizedData>(std::move(data));
}

} // namespace tessera
