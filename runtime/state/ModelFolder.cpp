//===- ModelFolder.cpp - folders of models as Hugging Face has them ----------===//

#include "runtime/state/ModelFolder.h"
#include "runtime/state/Safetensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace fs = std::filesystem;

namespace tessera {

static constexpr std::string_view indexName = "model.safetensors.index.json", singleName = "model.safetensors";

static Result<ModelFiles> readIndex(const std::string &folder) {
  const std::string path = folder + "/" + std::string(indexName);
  TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> text, readWholeFile(path));
  const auto index = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto found = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || found == index.end() || !found->is_object() || found->empty())
    return TESSERA_ERROR(DataLoss, "'" + path + "' is not an index of weights: it has no object 'weight_map'");
  ModelFiles files;
  for (const auto &[tensor, file] : found->items()) {
    if (!file.is_string() || file.get_ref<const std::string &>().find('/') != std::string::npos)
      return TESSERA_ERROR(DataLoss, fmt::format("'{}': '{}' is in no file of the folder", path, tensor));
    files[file.get<std::string>()].insert(tensor);
  }
  std::error_code error;
  for (const auto &[file, tensors] : files)
    if (!fs::exists(fs::path(folder) / file, error))
      return TESSERA_ERROR(NotFound, fmt::format("'{}/{}', which '{}' names, is not there", folder, file, path));
  return files;
}

Result<ModelFiles> findModelFiles(const std::string &folder) {
  std::error_code error;
  if (fs::exists(folder + "/" + std::string(singleName), error)) // as transformers prefers it
    return ModelFiles{{std::string(singleName), {}}};
  if (fs::exists(folder + "/" + std::string(indexName), error))
    return readIndex(folder);
  ModelFiles files;
  bool isPickled = false;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".safetensors")
      files[name];
    isPickled |= name.starts_with("pytorch_model") && name.find(".bin") != std::string::npos;
  }
  if (error)
    return TESSERA_ERROR(IoError, "cannot read folder '" + folder + "': " + error.message());
  if (files.empty())
    return TESSERA_ERROR(NotFound, "folder '" + folder + "' has no .safetensors file" +
                                       (isPickled ? ", but pickled weights, which are not read: save_pretrained of "
                                                    "transformers writes them as .safetensors"
                                                  : ""));
  return files;
}

/// Places the tensors one behind the other, and writes the header.
static void layOut(PlannedFile &file) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!file.metadata.empty())
    header["__metadata__"] = file.metadata;
  uint64_t offset = 0;
  for (PlannedTensor &tensor : file.tensors) {
    header[tensor.name] = {
        {"dtype", tensor.typeName}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.bytes}}};
    tensor.begin = offset;
    offset += tensor.bytes;
  }
  constexpr size_t alignment = 8; // as safetensors writes it
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + alignment - 1) / alignment * alignment, ' ');
  const uint64_t length = text.size();
  file.header.assign(reinterpret_cast<const char *>(&length), sizeof(length));
  file.header += text;
  for (PlannedTensor &tensor : file.tensors)
    tensor.begin += file.header.size();
  file.bytes = file.header.size() + offset;
}

static Result<PlannedFile> planFile(const ModelFolderOptions &options, const std::string &name) {
  TESSERA_ASSIGN_OR_RETURN(SafetensorsFile source, SafetensorsFile::open(options.like + "/" + name));
  PlannedFile file;
  file.name = name;
  file.metadata = source.metadata();
  file.metadata.emplace("format", "pt"); // transformers reads no file without
  for (const auto &[tensorName, entry] : source.tensors()) {
    PlannedTensor tensor{tensorName, entry.typeName,     entry.dtype, entry.shape,
                         0,          entry.bytes.size(), entry.bytes, entry.dtype};
    if (options.dtype && entry.dtype && isFloat(*entry.dtype)) {
      tensor.dtype = options.dtype;
      tensor.typeName = safetensorsName(*options.dtype);
      tensor.bytes = entry.elements * elementBytes(*options.dtype);
    }
    file.tensors.push_back(std::move(tensor));
  }
  return file;
}

bool isWithoutWeights(const std::string &folder) {
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".safetensors") || name == indexName || name.starts_with("pytorch_model"))
      return false;
  }
  return !error && fs::exists(fs::path(folder) / "config.json", error);
}

/// The type that the weights of a configuration have; none if it does not say.
static Result<std::optional<DataType>> typeOfConfiguration(const std::string &folder) {
  const std::string path = folder + "/config.json";
  TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> text, readWholeFile(path));
  const auto config = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object())
    return TESSERA_ERROR(DataLoss, "'" + path + "' is not a JSON object");
  for (const char *key : {"dtype", "torch_dtype"}) {
    const auto found = config.find(key);
    if (found == config.end() || found->is_null())
      continue;
    for (DataType dtype : {DataType::BF16, DataType::F16, DataType::F32, DataType::F64})
      if (*found == torchName(dtype) || *found == "torch." + torchName(dtype))
        return std::optional(dtype);
    return TESSERA_ERROR(Unsupported,
                         fmt::format("'{}' has the {} {}, which is not written; --export-dtype names another", path,
                                     key, found->dump()));
  }
  return std::optional<DataType>();
}

/// Files for all tensors, of names and sizes that save_pretrained of transformers would give them.
static Result<std::vector<PlannedFile>> planNewFiles(const ModelFolderOptions &options, const WeightMap &map,
                                                     const ModelTensors &parameters) {
  constexpr uint64_t most = 5'000'000'000; // bytes of a file with more than one tensor
  std::optional<DataType> dtype = options.dtype;
  if (!dtype) {
    TESSERA_ASSIGN_OR_RETURN(dtype, typeOfConfiguration(options.like));
  }
  std::map<std::string, PlannedTensor> tensors;
  for (const auto &[parameter, ofModel] : parameters)
    for (const WeightPiece &piece : map.stored(parameter, ofModel.shape).pieces) {
      PlannedTensor tensor;
      tensor.name = piece.tensor;
      tensor.dtype = dtype && isFloat(ofModel.dtype) ? *dtype : ofModel.dtype;
      tensor.typeName = safetensorsName(*tensor.dtype);
      tensor.shape = piece.shape;
      const std::optional<int64_t> elements = checkedElements(piece.shape);
      if (!elements)
        return TESSERA_ERROR(DataLoss, "the shape of '" + piece.tensor + "' has too many elements");
      tensor.bytes = static_cast<uint64_t>(*elements) * elementBytes(*tensor.dtype);
      tensors.emplace(tensor.name, tensor);
    }
  std::vector<PlannedFile> files;
  uint64_t bytes = 0;
  for (auto &[name, tensor] : tensors) {
    if (files.empty() || bytes + tensor.bytes > most) {
      files.emplace_back().metadata = {{"format", "pt"}};
      bytes = 0;
    }
    bytes += tensor.bytes;
    files.back().tensors.push_back(std::move(tensor));
  }
  for (size_t i = 0; i < files.size(); ++i)
    files[i].name = files.size() == 1 ? std::string(singleName)
                                      : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size());
  return files;
}

static Result<std::vector<PlannedFile>> planFiles(const ModelFolderOptions &options, const WeightMap &map,
                                                  const ModelTensors &parameters, bool &isIndexed) {
  if (isWithoutWeights(options.like)) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<PlannedFile> files, planNewFiles(options, map, parameters));
    isIndexed = files.size() > 1;
    return files;
  }
  TESSERA_ASSIGN_OR_RETURN(const ModelFiles found, findModelFiles(options.like));
  isIndexed = found.size() > 1 || !found.begin()->second.empty();
  std::vector<PlannedFile> files;
  for (const auto &[name, tensors] : found) {
    TESSERA_ASSIGN_OR_RETURN(PlannedFile file, planFile(options, name));
    files.push_back(std::move(file));
  }
  return files;
}

const std::vector<ModelFolderPlan::Place> &ModelFolderPlan::placesOf(const std::string &parameter) const {
  static const std::vector<Place> none;
  const auto found = places.find(parameter);
  return found == places.end() ? none : found->second;
}

Result<ModelFolderPlan> ModelFolderPlan::make(const ModelFolderOptions &options, const WeightMap &map,
                                              const ModelTensors &parameters) {
  if (!map.refused().empty())
    return TESSERA_ERROR(Unsupported, "the program does not know the names of Hugging Face's files: " + map.refused());
  ModelFolderPlan plan;
  TESSERA_ASSIGN_OR_RETURN(plan.planned, planFiles(options, map, parameters, plan.isIndexed));
  std::map<std::string, std::pair<size_t, size_t>> where; // of a tensor: its file, and its place in it
  for (size_t file = 0; file < plan.planned.size(); ++file) {
    for (size_t i = 0; i < plan.planned[file].tensors.size(); ++i)
      where.emplace(plan.planned[file].tensors[i].name, std::pair(file, i));
    layOut(plan.planned[file]);
  }
  auto find = [&](const std::string &tensor) {
    for (const std::string &name : map.spellings(tensor))
      if (auto place = where.find(name); place != where.end())
        return place;
    return where.end();
  };
  std::vector<std::string> problems;
  auto complain = [&](std::string problem) { problems.push_back(std::move(problem)); };
  std::map<std::pair<size_t, size_t>, int64_t> covered; // elements of each tensor
  for (const auto &[parameter, ofModel] : parameters) {
    const std::vector<int64_t> &shape = ofModel.shape;
    StoredParameter stored = map.stored(parameter, shape);
    std::vector<WeightPiece> pieces;
    bool isOther = false;
    for (WeightPiece &piece : stored.pieces)
      if (find(piece.tensor) != where.end())
        pieces.push_back(std::move(piece));
    const size_t own = pieces.size(), wanted = stored.pieces.size();
    for (const std::string &other : stored.others)
      if (auto place = find(other); place != where.end()) {
        isOther = true;
        if (std::none_of(pieces.begin(), pieces.end(),
                         [&](const WeightPiece &piece) { return find(piece.tensor) == place; }))
          pieces.push_back(WeightPiece::whole(other, shape));
      }
    if (own != wanted && !(own == 0 && isOther)) {
      complain("it has no tensor for '" + parameter + "'");
      continue;
    }
    for (WeightPiece &piece : pieces) {
      const auto place = find(piece.tensor);
      const PlannedTensor &tensor = plan.planned[place->second.first].tensors[place->second.second];
      if (tensor.shape != piece.shape)
        complain(fmt::format("'{}' has shape {} there, expected {}", tensor.name, shapeToString(tensor.shape),
                             shapeToString(piece.shape)));
      else if (!tensor.dtype || isInteger(*tensor.dtype) != isInteger(ofModel.dtype))
        complain(fmt::format("'{}' is of type {} there", tensor.name, tensor.typeName));
      covered[place->second] += piece.elements();
      plan.places[parameter].push_back({std::move(piece), place->second.first, place->second.second});
    }
  }
  const std::set<std::string> unread(map.unread().begin(), map.unread().end());
  for (size_t file = 0; file < plan.planned.size(); ++file)
    for (size_t i = 0; i < plan.planned[file].tensors.size(); ++i) {
      const PlannedTensor &tensor = plan.planned[file].tensors[i];
      const auto elements = covered.find({file, i});
      if (elements == covered.end()) {
        plan.copied.emplace_back(file, i);
        if (!unread.count(tensor.name))
          plan.unknown.push_back(tensor.name);
      } else if (elements->second != checkedElements(tensor.shape)) {
        complain("the program has a part of '" + tensor.name + "' only");
      }
    }
  if (!problems.empty()) {
    constexpr size_t shown = 8;
    const auto end = problems.begin() + static_cast<std::ptrdiff_t>(std::min(problems.size(), shown));
    return TESSERA_ERROR(
        InvalidArgument,
        fmt::format("the folder '{}' is not one of this model: {}{}", options.like,
                    fmt::join(problems.begin(), end, "; "),
                    problems.size() > shown ? fmt::format("; and {} more", problems.size() - shown) : ""));
  }
  return plan;
}

} // namespace tessera
