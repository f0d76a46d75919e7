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
static nlohmann::json adapterConfig(const std::vector<Adapter> &adapters, const std::set<std::string> &trained) {
  std::set<std::string> modules, saved;
  for (const Adapter &adapter : adapters)
    modules.insert(moduleOf(adapter));
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
  if (!saved.empty())
    config["modules_to_save"] = saved;
  return config;
}

Status exportAdapters(const std::string &folder, const std::vector<RankState> &ranks,
                      const std::vector<Adapter> &adapters, const std::map<std::string, std::string> &metadata,
                      StateRole role) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return TESSERA_ERROR(IoError, "cannot create folder '" + folder + "': " + error.message());
  TESSERA_ASSIGN_OR_RETURN(auto tensors, gatherParameters(ranks, role));
  std::set<std::string> trained; // besides the adapters
  const std::set<std::string> parts = namesOf(adapters);
  for (SafetensorsTensor &tensor : tensors) {
    if (parts.count(tensor.name) == 0)
      trained.insert(tensor.name);
    tensor.name.insert(0, "base_model.model.");
  }
  std::map<std::string, std::string> meta = metadata;
  meta.emplace("format", "pt");
  TESSERA_RETURN_IF_ERROR(writeSafetensors(folder + "/adapter_model.safetensors", tensors, meta).status());
  return writeFileAtomically(folder + "/adapter_config.json", adapterConfig(adapters, trained).dump(2) + "\n");
}

namespace {
/// The tensors of a model by name, whole, as numbers.
class Tensors {
public:
  explicit Tensors(const std::vector<SafetensorsTensor> &tensors) {
    for (const SafetensorsTensor &tensor : tensors)
      byName.emplace(tensor.name, &tensor);
  }

  Result<std::vector<double>> read(const std::string &name) const {
    const SafetensorsTensor &tensor = *byName.at(name);
    std::vector<double> values;
    for (const ByteSpan &piece : tensor.pieces) {
      const auto count = static_cast<int64_t>(piece.size() / elementBytes(tensor.dtype));
      const size_t before = values.size();
      values.resize(before + count);
      TESSERA_RETURN_IF_ERROR(
          convertElements(tensor.dtype, piece.data(), DataType::F64, values.data() + before, count));
    }
    return values;
  }

private:
  std::map<std::string, const SafetensorsTensor *> byName;
};
} // namespace

/// Adds scale * (b a) to the matrix `w` of shape [rows, columns]; where inputs are the rows, its transposition.
static void addProduct(const Adapter &adapter, const std::vector<double> &a, const std::vector<double> &b,
                       std::vector<double> &w) {
  const auto rank = static_cast<size_t>(adapter.rank);
  const size_t inputs = a.size() / rank, outputs = b.size() / rank;
  const size_t perInput = adapter.inputDim == 1 ? 1 : outputs, perOutput = adapter.inputDim == 1 ? inputs : 1;
#pragma omp parallel for
  for (size_t output = 0; output < outputs; ++output)
    for (size_t input = 0; input < inputs; ++input) {
      double sum = 0;
      for (size_t k = 0; k < rank; ++k)
        sum += b[output * rank + k] * a[k * inputs + input];
      w[output * perOutput + input * perInput] += adapter.scale * sum;
    }
}

Status exportMerged(const std::string &path, const std::vector<RankState> &ranks, const std::vector<Adapter> &adapters,
                    const std::map<std::string, std::string> &metadata, StateRole role) {
  TESSERA_ASSIGN_OR_RETURN(auto tensors, gatherModel(ranks, role));
  const Tensors all(tensors);
  std::vector<std::vector<uint8_t>> sums;
  sums.reserve(adapters.size());
  const std::set<std::string> parts = namesOf(adapters);
  for (const Adapter &adapter : adapters) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<double> a, all.read(adapter.a));
    TESSERA_ASSIGN_OR_RETURN(std::vector<double> b, all.read(adapter.b));
    TESSERA_ASSIGN_OR_RETURN(std::vector<double> w, all.read(adapter.parameter));
    addProduct(adapter, a, b, w);
    auto tensor = std::find_if(tensors.begin(), tensors.end(),
                               [&](const SafetensorsTensor &one) { return one.name == adapter.parameter; });
    std::vector<uint8_t> &bytes = sums.emplace_back(w.size() * elementBytes(tensor->dtype));
    if (tensor->dtype == DataType::F64) {
      std::memcpy(bytes.data(), w.data(), bytes.size());
    } else {
      const std::vector<float> narrow(w.begin(), w.end());
      TESSERA_RETURN_IF_ERROR(
          roundElements(narrow.data(), tensor->dtype, bytes.data(), static_cast<int64_t>(narrow.size())));
    }
    tensor->pieces = {bytes};
  }
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                               [&](const SafetensorsTensor &tensor) { return parts.count(tensor.name) > 0; }),
                tensors.end());
  return writeSafetensors(path, tensors, metadata).status();
}

} // namespace tessera
