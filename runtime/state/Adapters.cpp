//===- Adapters.cpp - low-rank adapters: alone, or merged into their matrices --===//

#include "runtime/state/Adapters.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace tessera {

std::vector<Adapter> adaptersOf(const Artifact &artifact) {
  std::vector<Adapter> adapters;
  if (!artifact.package().adapters())
    return adapters;
  for (const artifact::Adapter *entry : *artifact.package().adapters())
    adapters.push_back({entry->parameter()->str(), entry->a()->str(), entry->b()->str(), entry->rank(),
                        entry->input_dim(), entry->scale()});
  return adapters;
}

std::set<std::string> namesOf(const std::vector<Adapter> &adapters) {
  std::set<std::string> names;
  for (const Adapter &adapter : adapters)
    names.insert({adapter.a, adapter.b});
  return names;
}

/// "h.0.attn.c_attn" of "h.0.attn.c_attn.lora_A.weight".
static std::string moduleOf(const Adapter &adapter) { return adapter.a.substr(0, adapter.a.rfind(".lora_A")); }

/// What PEFT needs to put the adapters where they belong.
static nlohmann::json adapterConfig(const std::vector<Adapter> &adapters, const std::set<std::string> &trained,
                                    const AdapterFolder &asFolder) {
  std::set<std::string> modules, saved;
  for (const Adapter &adapter : adapters)
    modules.insert(asFolder.map.inModel(moduleOf(adapter)));
  for (const std::string &name : trained)
    saved.insert(name.substr(0, name.rfind('.')));
  const Adapter &first = adapters.front();
  nlohmann::json config = {{"peft_type", "LORA"},
                           {"r", first.rank},
                           {"lora_alpha", first.scale * static_cast<double>(first.rank)},
                           {"lora_dropout", 0.0},
                           {"bias", "none"},
                           {"target_modules", modules},
                           {"fan_in_fan_out", first.inputDim == 0},
                           {"task_type", nullptr},
                           {"inference_mode", true},
                           {"modules_to_save", nullptr}};
  if (!asFolder.base.empty())
    config["base_model_name_or_path"] = asFolder.base;
  if (!saved.empty())
    config["modules_to_save"] = saved;
  return config;
}

Status exportAdapters(const std::string &folder, const std::vector<RankState> &ranks,
                      const std::vector<Adapter> &adapters, const AdapterFolder &asFolder, StateRole role) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return TESSERA_ERROR(IoError, "cannot create folder '" + folder + "': " + error.message());
  TESSERA_ASSIGN_OR_RETURN(auto tensors, gatherParameters(ranks, role));
  std::set<std::string> trained; // besides the adapters
  const std::set<std::string> parts = namesOf(adapters);
  for (SafetensorsTensor &tensor : tensors) {
    const std::string inModel = asFolder.map.inModel(tensor.name);
    if (parts.count(tensor.name) == 0)
      trained.insert(inModel);
    tensor.name = "base_model.model." + inModel;
  }
  std::map<std::string, std::string> meta = asFolder.metadata;
  meta.emplace("format", "pt");
  TESSERA_RETURN_IF_ERROR(writeSafetensors(folder + "/adapter_model.safetensors", tensors, meta).status());
  return writeFileAtomically(folder + "/adapter_config.json",
                             adapterConfig(adapters, trained, asFolder).dump(2) + "\n");
}

void AdapterProduct::addTo(std::span<double> values, int64_t first) const {
  const int64_t rank = adapter.rank, inputs = static_cast<int64_t>(a.size()) / rank,
                outputs = static_cast<int64_t>(b.size()) / rank;
  const int64_t columns = adapter.inputDim == 1 ? inputs : outputs;
#pragma omp parallel for
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    const int64_t row = (first + i) / columns, column = (first + i) % columns;
    const int64_t output = adapter.inputDim == 1 ? row : column, input = adapter.inputDim == 1 ? column : row;
    double sum = 0;
    for (int64_t k = 0; k < rank; ++k)
      sum += b[output * rank + k] * a[k * inputs + input];
    values[i] += adapter.scale * sum;
  }
}

namespace {
/// Elements of a small parameter that one process holds, on their way to the others.
struct HeldNumbers {
  std::string name;
  int64_t first = 0;
  std::vector<double> values;
};
} // namespace

static std::vector<uint8_t> bytesOf(const std::vector<double> &values) {
  const auto *begin = reinterpret_cast<const uint8_t *>(values.data());
  return {begin, begin + values.size() * sizeof(double)};
}

/// What the views hold of the parameters with these names.
static Result<std::vector<HeldNumbers>> collectNumbers(const std::vector<RankState> &ranks,
                                                       const std::set<std::string> &names, StateRole role) {
  std::vector<HeldNumbers> held;
  for (const RankState &rank : ranks)
    for (const StateView &view : rank) {
      if (view.kind != role || !view.saves)
        continue;
      for (const ParameterSegment &segment : view.segments) {
        auto [begin, end] = overlap(view, segment);
        if (!names.count(segment.name))
          continue;
        TESSERA_RETURN_IF_ERROR(segment.forEachRun(begin, end, [&](const ElementRun &run) {
          held.push_back({segment.name, run.inParameter, std::vector<double>(run.count)});
          HeldNumbers &numbers = held.back();
          return convertElements(view.dtype, view.data + (run.inUnit - view.begin) * elementBytes(view.dtype),
                                 DataType::F64, numbers.values.data(), run.count);
        }));
      }
    }
  return held;
}

Result<std::vector<AdapterProduct>> gatherProducts(const Peers &peers, const std::vector<RankState> &ranks,
                                                   const std::vector<Adapter> &adapters, StateRole role) {
  auto held = collectNumbers(ranks, namesOf(adapters), role);
  nlohmann::json mine = nlohmann::json::array();
  for (const HeldNumbers &numbers : held.isOk() ? *held : std::vector<HeldNumbers>())
    mine.push_back({numbers.name, numbers.first, nlohmann::json::binary(bytesOf(numbers.values))});
  const std::vector<uint8_t> packed = nlohmann::json::to_cbor(mine);
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> parts,
                           agree(peers, held.status(), std::string(packed.begin(), packed.end())));
  std::map<std::string, std::vector<double>> whole;
  for (const std::string &part : parts) {
    const auto list = nlohmann::json::from_cbor(part, /*strict=*/true, /*allow_exceptions=*/false);
    if (!list.is_array())
      return TESSERA_ERROR(Internal, "a process sent no adapters");
    for (const auto &numbers : list) {
      const std::vector<uint8_t> &bytes = numbers[2].get_binary();
      std::vector<double> values(bytes.size() / sizeof(double));
      std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
      const auto first = numbers[1].get<size_t>();
      std::vector<double> &all = whole[numbers[0].get<std::string>()];
      all.resize(std::max(all.size(), first + values.size()));
      std::copy(values.begin(), values.end(), all.begin() + static_cast<std::ptrdiff_t>(first));
    }
  }
  std::vector<AdapterProduct> products;
  products.reserve(adapters.size());
  for (const Adapter &adapter : adapters)
    products.emplace_back(adapter, std::move(whole[adapter.a]), std::move(whole[adapter.b]));
  return products;
}

static Result<std::vector<double>> numbersOf(const SafetensorsTensor &tensor) {
  std::vector<double> values;
  for (const ByteSpan &piece : tensor.pieces) {
    const auto count = static_cast<int64_t>(piece.size() / elementBytes(tensor.dtype));
    const size_t before = values.size();
    values.resize(before + count);
    TESSERA_RETURN_IF_ERROR(convertElements(tensor.dtype, piece.data(), DataType::F64, values.data() + before, count));
  }
  return values;
}

Status exportMerged(const std::string &path, const std::vector<RankState> &ranks, const std::vector<Adapter> &adapters,
                    const std::map<std::string, std::string> &metadata, StateRole role) {
  TESSERA_ASSIGN_OR_RETURN(auto tensors, gatherModel(ranks, role));
  TESSERA_ASSIGN_OR_RETURN(auto products, gatherProducts({}, ranks, adapters, role));
  std::vector<std::vector<uint8_t>> sums;
  sums.reserve(adapters.size());
  const std::set<std::string> parts = namesOf(adapters);
  for (const AdapterProduct &product : products) {
    auto tensor = std::find_if(tensors.begin(), tensors.end(),
                               [&](const SafetensorsTensor &one) { return one.name == product.parameter(); });
    TESSERA_ASSIGN_OR_RETURN(std::vector<double> w, numbersOf(*tensor));
    product.addTo(w, 0);
    std::vector<uint8_t> &bytes = sums.emplace_back(w.size() * elementBytes(tensor->dtype));
    TESSERA_RETURN_IF_ERROR(
        convertElements(DataType::F64, w.data(), tensor->dtype, bytes.data(), static_cast<int64_t>(w.size())));
    tensor->pieces = {bytes};
  }
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                               [&](const SafetensorsTensor &tensor) { return parts.count(tensor.name) > 0; }),
                tensors.end());
  return writeSafetensors(path, tensors, metadata).status();
}

} // namespace tessera
