//===- Manifest.cpp - what a checkpoint consists of -----------------------------===//

#include "runtime/state/Manifest.h"

#include "runtime/base/File.h"
#include "runtime/base/InputFile.h"
#include "runtime/state/FieldReader.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

using Json = nlohmann::ordered_json;

static constexpr const char *formatName = "tessera-checkpoint";
/// 2: a segment may be a part of its parameter. What has no parts is written as 1.
static constexpr uint64_t formatVersion = 2;

static std::string dump(const Json &json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

/// The manifest's own hash: of its text without that field.
static std::string hashOf(const Json &json) {
  std::string text = dump(json);
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

static bool hasParts(const Manifest &manifest) {
  for (const ManifestUnit &unit : manifest.units)
    for (const ParameterSegment &segment : unit.segments)
      if (segment.part.count > 1)
        return true;
  return false;
}

std::string manifestToJson(const Manifest &manifest) {
  Json json = {{"format", formatName},
               {"version", hasParts(manifest) ? formatVersion : 1},
               {"step", manifest.info.step},
               {"data_position", manifest.info.dataPosition},
               {"seed", manifest.info.seed},
               {"skipped_steps", manifest.info.skippedSteps},
               {"skipped_in_a_row", manifest.info.skippedInARow}};
  json["mesh"] = Json::array();
  for (const Mesh::Axis &axis : manifest.info.mesh.axes)
    json["mesh"].push_back({{"name", axis.name}, {"size", axis.size}});
  json["extra"] = manifest.info.extra;
  json["units"] = Json::array();
  for (const ManifestUnit &unit : manifest.units) {
    Json segments = Json::array();
    for (const ParameterSegment &segment : unit.segments) {
      segments.push_back({{"name", segment.name}, {"shape", segment.shape}, {"offset", segment.offset}});
      if (segment.part.count > 1)
        segments.back()["part"] = {
            {"dim", segment.part.dim}, {"count", segment.part.count}, {"index", segment.part.index}};
    }
    json["units"].push_back({{"name", unit.unit},
                             {"role", toString(unit.kind)},
                             {"dtype", safetensorsName(unit.dtype)},
                             {"elements", unit.elements},
                             {"segments", std::move(segments)}});
  }
  json["files"] = Json::array();
  for (const ManifestFile &file : manifest.files) {
    Json pieces = Json::array();
    for (const ManifestPiece &piece : file.pieces)
      pieces.push_back({{"key", piece.key},
                        {"unit", piece.unit},
                        {"role", toString(piece.kind)},
                        {"begin", piece.begin},
                        {"end", piece.end}});
    json["files"].push_back({{"name", file.name},
                             {"bytes", file.bytes},
                             {"xxh3", fmt::format("{:016x}", file.hash)},
                             {"tensors", std::move(pieces)}});
  }
  json["manifest_xxh3"] = hashOf(json);
  return dump(json);
}

static StateKind readKind(const Json &object, FieldReader &fields) {
  if (auto kind = stateKindFromString(fields.text(object, "role")))
    return *kind;
  fields.fail("role");
  return {};
}

static ManifestUnit readUnit(const Json &json, FieldReader &fields) {
  ManifestUnit unit;
  unit.unit = fields.text(json, "name");
  unit.kind = readKind(json, fields);
  unit.elements = static_cast<int64_t>(fields.number(json, "elements"));
  if (auto dtype = dataTypeFromSafetensors(fields.text(json, "dtype")))
    unit.dtype = *dtype;
  else
    fields.fail("dtype");
  int64_t previousEnd = 0;
  for (const Json &item : fields.list(json, "segments")) {
    ParameterSegment segment;
    segment.name = fields.text(item, "name");
    segment.offset = static_cast<int64_t>(fields.number(item, "offset"));
    for (const Json &size : fields.list(item, "shape")) {
      if (size.is_number_unsigned() && size.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX))
        segment.shape.push_back(size.get<int64_t>());
      else
        fields.fail("shape");
    }
    if (auto part = item.find("part"); part != item.end())
      segment.part = {static_cast<int64_t>(fields.number(*part, "dim")),
                      static_cast<int64_t>(fields.number(*part, "count")),
                      static_cast<int64_t>(fields.number(*part, "index"))};
    auto elements = elementsOfPart(segment.shape, segment.part, 8);
    if (!elements || segment.offset < previousEnd || segment.offset > unit.elements ||
        *elements > unit.elements - segment.offset) {
      fields.fail("segments");
      break;
    }
    segment.elements = *elements;
    previousEnd = segment.end();
    unit.segments.push_back(std::move(segment));
  }
  return unit;
}

static ManifestFile readFile(const Json &json, FieldReader &fields) {
  ManifestFile file;
  file.name = fields.text(json, "name");
  if (file.name.empty() || file.name.find('/') != std::string::npos || file.name.front() == '.')
    fields.fail("files.name");
  file.bytes = fields.number(json, "bytes");
  std::string hash = fields.text(json, "xxh3");
  if (hash.size() == 16 && hash.find_first_not_of("0123456789abcdef") == std::string::npos)
    file.hash = std::stoull(hash, nullptr, 16);
  else
    fields.fail("xxh3");
  for (const Json &item : fields.list(json, "tensors")) {
    ManifestPiece piece;
    piece.key = fields.text(item, "key");
    piece.unit = fields.text(item, "unit");
    piece.kind = readKind(item, fields);
    piece.begin = static_cast<int64_t>(fields.number(item, "begin"));
    piece.end = static_cast<int64_t>(fields.number(item, "end"));
    if (piece.begin > piece.end)
      fields.fail("end");
    file.pieces.push_back(std::move(piece));
  }
  return file;
}

Result<Manifest> readManifest(const std::string &path) {
  TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> text, readWholeFile(path));
  return manifestFromJson(text, path);
}

Result<Manifest> manifestFromJson(ByteSpan bytes, const std::string &path) {
  Json json = parseShallowJson(bytes);
  FieldReader fields;
  if (!json.is_object())
    return TESSERA_ERROR(DataLoss, "'" + path + "' is not a checkpoint manifest: it is not a JSON object");
  if (fields.text(json, "format") != formatName)
    return TESSERA_ERROR(DataLoss, "'" + path + "' is not a checkpoint manifest");
  if (uint64_t version = fields.number(json, "version"); version < 1 || version > formatVersion)
    return TESSERA_ERROR(Unsupported, "'" + path + "' has version " + std::to_string(version) +
                                          ", this runtime reads 1 to " + std::to_string(formatVersion) +
                                          (version > formatVersion ? "; update tessera-run" : ""));
  Manifest manifest;
  manifest.info.step = fields.number(json, "step");
  manifest.info.dataPosition = fields.number(json, "data_position");
  manifest.info.seed = fields.number(json, "seed", UINT64_MAX);
  if (json.contains("skipped_steps")) {
    manifest.info.skippedSteps = fields.number(json, "skipped_steps");
    manifest.info.skippedInARow = fields.number(json, "skipped_in_a_row");
    if (manifest.info.skippedSteps > manifest.info.step || manifest.info.skippedInARow > manifest.info.skippedSteps)
      fields.fail("skipped_steps");
  }
  for (const Json &axis : fields.list(json, "mesh"))
    manifest.info.mesh.axes.push_back({fields.text(axis, "name"), static_cast<int64_t>(fields.number(axis, "size"))});
  if (auto extra = json.find("extra"); extra != json.end() && extra->is_object())
    for (const auto &[key, value] : extra->items())
      if (value.is_string())
        manifest.info.extra[key] = value.get<std::string>();
  for (const Json &unit : fields.list(json, "units"))
    manifest.units.push_back(readUnit(unit, fields));
  for (const Json &item : fields.list(json, "files"))
    manifest.files.push_back(readFile(item, fields));
  std::string hash = fields.text(json, "manifest_xxh3");
  json.erase("manifest_xxh3");
  if (fields.problem.empty() && hash != hashOf(json))
    fields.problem = "its content does not match its hash";
  if (!fields.problem.empty())
    return TESSERA_ERROR(DataLoss, "'" + path + "' is corrupted: " + fields.problem);
  return manifest;
}

} // namespace tessera
