//===- GemmCache.cpp - what was chosen for products that were timed ---------===//

#include "runtime/device/cuda/GemmCache.h"

#include "runtime/base/InputFile.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

namespace tessera::cuda {

using Json = nlohmann::ordered_json;

static constexpr int cacheVersion = 1;

Result<GemmCache> GemmCache::read(const std::string &path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return GemmCache();
  TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> text, readWholeFile(path));
  return parse({reinterpret_cast<const char *>(text.data()), text.size()}, path);
}

Result<GemmCache> GemmCache::parse(std::string_view text, const std::string &name) {
  auto bad = [&](const std::string &why) {
    return TESSERA_ERROR(DataLoss, "'" + name + "' is not a cache of products: " + why);
  };
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("version") || !json.contains("gpus") || !json["gpus"].is_object())
    return bad("not JSON with 'version' and 'gpus'");
  if (!json["version"].is_number_integer() || json["version"] != cacheVersion)
    return bad("its version is not " + std::to_string(cacheVersion));
  GemmCache cache;
  for (const auto &[gpu, products] : json["gpus"].items()) {
    if (!products.is_object())
      return bad("the products of '" + gpu + "' are no object");
    for (const auto &[product, chosen] : products.items()) {
      if (!chosen.is_string())
        return bad("the choice for '" + product + "' is no text");
      const std::string &choice = chosen.get_ref<const std::string &>();
      if (choice != together && choice != apart &&
          (choice.size() != 2 * algorithmBytes || choice.find_first_not_of("0123456789abcdef") != std::string::npos))
        return bad("the choice for '" + product + "' is not " + std::to_string(2 * algorithmBytes) +
                   " hexadecimal digits, 'together' or 'apart'");
      cache.put(gpu, product, choice);
    }
  }
  return cache;
}

std::string GemmCache::serialise() const {
  Json json = {{"version", cacheVersion}, {"gpus", Json::object()}};
  for (const auto &[gpu, products] : entries)
    for (const auto &[product, choice] : products)
      json["gpus"][gpu][product] = choice;
  return json.dump(1) + "\n";
}

Status GemmCache::write(const std::string &path) const {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty())
    std::filesystem::create_directories(folder, error);
  if (error)
    return systemError("create", folder.string(), error.value());
  Result<GemmCache> known = read(path);
  GemmCache all = known.isOk() ? *known : GemmCache();
  for (const auto &[gpu, products] : entries)
    for (const auto &[product, choice] : products)
      all.put(gpu, product, choice);
  return writeFileAtomically(path, all.serialise());
}

std::string GemmCache::find(const std::string &gpu, const std::string &product) const {
  auto products = entries.find(gpu);
  if (products == entries.end())
    return "";
  auto choice = products->second.find(product);
  return choice == products->second.end() ? "" : choice->second;
}

void GemmCache::put(const std::string &gpu, const std::string &product, const std::string &choice) {
  entries[gpu][product] = choice;
}

std::string toDigits(const void *bytes, size_t count) {
  std::string digits;
  for (size_t index = 0; index < count; ++index) {
    auto byte = static_cast<const uint8_t *>(bytes)[index];
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

std::string keyOf(const GemmProblem &problem) {
  auto matrix = [](const char *name, const MatrixLayout &layout) {
    return std::string(" ") + name + " " + std::to_string(layout.rows) + "x" + std::to_string(layout.columns) + "/" +
           std::to_string(layout.leading) + (layout.isTransposed ? "t" : "") + "+" + std::to_string(layout.batchStride);
  };
  std::string key = artifact::EnumNameDataType(problem.a);
  if (problem.b != problem.a)
    key += std::string(" x ") + artifact::EnumNameDataType(problem.b);
  if (!problem.scaling.isNone())
    key += std::string(" ") + artifact::EnumNameScaleMode(problem.scaling.a) + " x " +
           artifact::EnumNameScaleMode(problem.scaling.b) + (problem.scaling.accumulatesFast ? " fast" : "");
  key += std::string("-") + artifact::EnumNameDataType(problem.output) + " " +
         artifact::EnumNameEpilogue(problem.epilogue) + (problem.adds ? " adds" : "") +
         matrix("a", problem.layout.first) + matrix("b", problem.layout.second) + matrix("c", problem.layout.target) +
         " batch " + std::to_string(problem.layout.batch) + " aligned";
  for (uint32_t alignment : problem.alignments)
    key += " " + std::to_string(alignment);
  key += " workspace " + std::to_string(problem.workspace);
  return problem.multiprocessors == 0 ? key : key + " multiprocessors " + std::to_string(problem.multiprocessors);
}

Result<std::string> defaultGemmCache() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache == '/')
    return std::string(cache) + "/tessera/gemm.json";
  if (home && *home)
    return std::string(home) + "/.cache/tessera/gemm.json";
  return TESSERA_ERROR(InvalidArgument, "--autotune needs a file: neither XDG_CACHE_HOME nor HOME is set");
}

} // namespace tessera::cuda
