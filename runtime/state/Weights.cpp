//===- Weights.cpp - parameters from files -------------------------------------===//

#include "runtime/state/Weights.h"
#include "runtime/base/Fingerprint.h"
#include "runtime/base/ZipFile.h"
#include "runtime/state/Init.h"
#include "runtime/state/Safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace fs = std::filesystem;

namespace tessera {

Status WeightSource::addSafetensors(const std::string &path) {
  TESSERA_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  for (const auto &[tensor, entry] : file.tensors()) {
    if (!entry.dtype)
      continue; // integers that programs do not have cannot be parameters
    if (!weights.emplace(tensor, WeightEntry{*entry.dtype, entry.shape, entry.bytes}).second)
      return TESSERA_ERROR(InvalidArgument,
                           fmt::format("tensor '{}' is in '{}' and in another file of '{}'", tensor, path, name));
  }
  return Status::ok();
}

Status WeightSource::addOnnx(const std::string &path) {
  others = true;
  return readOnnxInitializers(path, weights, storage);
}

Status WeightSource::addPt2(const std::string &path) {
  others = true;
  return readPt2Weights(path, weights, storage);
}

/// Whether a file that has another name begins as an ONNX model does (the number of its first field), and not as
/// safetensors, whose header follows eight bytes of length.
static bool isOnnx(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  uint8_t start[9];
  return file.isOk() && file->size() >= sizeof(start) && file->read(0, start, sizeof(start)).isOk() &&
         start[0] == 0x08 && start[8] != '{';
}

Result<std::unique_ptr<WeightSource>> WeightSource::open(const std::string &path) {
  std::unique_ptr<WeightSource> source(new WeightSource);
  source->name = path;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const bool isNamedSafetensors = fs::path(path).extension() == ".safetensors";
    if (fs::path(path).extension() == ".onnx" || (!isNamedSafetensors && isOnnx(path)))
      TESSERA_RETURN_IF_ERROR(source->addOnnx(path));
    else if (fs::path(path).extension() == ".pt2" || ZipFile::isZip(path))
      TESSERA_RETURN_IF_ERROR(source->addPt2(path));
    else
      TESSERA_RETURN_IF_ERROR(source->addSafetensors(path));
    return source;
  }
  std::vector<std::string> files;
  for (const fs::directory_entry &entry : fs::directory_iterator(path, error))
    if (entry.path().extension() == ".safetensors")
      files.push_back(entry.path().string());
  if (error)
    return TESSERA_ERROR(IoError, "cannot read folder '" + path + "': " + error.message());
  if (files.empty())
    return TESSERA_ERROR(NotFound, "folder '" + path + "' has no .safetensors file");
  std::sort(files.begin(), files.end());
  for (const std::string &file : files)
    TESSERA_RETURN_IF_ERROR(source->addSafetensors(file));
  return source;
}

Result<std::string> WeightSource::fingerprint() const {
  Fingerprint result;
  std::vector<ByteRange> contents;
  for (const auto &[tensor, entry] : weights) {
    result.add(tensor);
    result.add(static_cast<uint64_t>(entry.dtype));
    result.add(shapeToString(entry.shape));
    result.add(uint64_t{entry.checksum});
    contents.push_back(entry.bytes);
  }
  TESSERA_RETURN_IF_ERROR(result.addContent(contents, uint64_t{64} << 20));
  return result.text();
}

/// "missing: 'a', 'b' and 7 more": a list that stays readable.
static std::string listNames(const std::string &what, const std::vector<std::string> &names) {
  if (names.empty())
    return "";
  constexpr size_t shown = 20;
  std::string text = "; " + what + ": ";
  for (size_t i = 0; i < std::min(names.size(), shown); ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > shown)
    text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

const WeightEntry *entryOf(const WeightSource &source, const ParameterSegment &parameter,
                           const WeightOptions &options) {
  const auto found = source.entries().find(parameter.name);
  if (found == source.entries().end())
    return nullptr;
  const bool hasRule = options.isModelFile && parameter.init;
  if (hasRule && (parameter.init->isAsked || found->second.problem == WeightProblem::Valueless))
    return nullptr;
  return &found->second;
}

static Status checkNames(const RankState &views, const WeightSource &source, const WeightOptions &options) {
  std::vector<std::string> missing, extra, constant, mismatched;
  std::map<std::string, std::vector<std::string>> unreadable; // by reason
  std::set<std::string> used;
  for (const StateView &view : views) {
    if (!view.kind.isOfModel())
      continue;
    for (const ParameterSegment *parameter : parametersOf(view)) {
      const WeightEntry *weight = entryOf(source, *parameter, options);
      if (!weight) {
        // Formats other than PyTorch's own have no counters of batches: they begin anew.
        const bool isCounter = view.kind == StateRole::Buffer && isInteger(view.dtype);
        const bool mayBeMissing =
            options.allowMissing || options.isModelFile || isCounter || options.optional.count(parameter->name);
        if (!mayBeMissing || !parameter->init)
          missing.push_back("'" + parameter->name + "'");
        continue;
      }
      used.insert(parameter->name);
      if (!weight->hasValues())
        unreadable[weight->reason].push_back("'" + parameter->name + "'");
      else if (weight->shape != parameter->shape)
        mismatched.push_back("'" + parameter->name + "' has shape " + shapeToString(weight->shape) + ", expected " +
                             shapeToString(parameter->shape));
      else if (!canConvert(weight->dtype, view.modelDtype) ||
               isInteger(weight->dtype) != isInteger(view.modelDtype)) // integers are quantised, or something else
        mismatched.push_back("'" + parameter->name + "' has type " + std::string(safetensorsName(weight->dtype)) +
                             ", expected " + std::string(safetensorsName(view.modelDtype)));
    }
  }
  if (!options.allowExtra && !options.isModelFile && !source.mayHaveOthers())
    for (const auto &[name, entry] : source.entries())
      if (!used.count(name) && !options.unread.count(name))
        (options.constants.count(name) ? constant : extra).push_back("'" + name + "'");
  if (missing.empty() && extra.empty() && constant.empty() && mismatched.empty() && unreadable.empty())
    return Status::ok();
  std::string text =
      "weights '" + source.path() + "' do not fit the program" + listNames("missing", missing) +
      listNames("not in the program", extra) +
      listNames("constants of the compiled step, whose values here would change nothing: leave out", constant) +
      listNames("mismatched", mismatched);
  for (const auto &[reason, names] : unreadable)
    text += listNames("not readable", names) + " " + reason;
  return TESSERA_ERROR(InvalidArgument, text);
}

/// Elements [first, first + count) of `weight`, converted to the view's type; what needs no conversion is read into its
/// place.
static Status copyElements(const WeightEntry &weight, PieceReader &reader, int64_t first, const StateView &view,
                           uint8_t *target, int64_t count) {
  const DataType dtype = view.dtype;
  const auto width = static_cast<int64_t>(elementBytes(weight.dtype));
  if (weight.dtype == dtype)
    return reader.read(first * width, target, count * width);
  constexpr int64_t blockElements = 1 << 18;
  std::vector<uint8_t> block(std::min(count, blockElements) * width);
  for (int64_t done = 0; done < count; done += blockElements) {
    int64_t here = std::min(count - done, blockElements);
    TESSERA_RETURN_IF_ERROR(reader.read((first + done) * width, block.data(), here * width));
    uint8_t *place = target + done * elementBytes(dtype);
    if (view.modelDtype == dtype) {
      TESSERA_RETURN_IF_ERROR(convertElements(weight.dtype, block.data(), dtype, place, here));
      continue;
    }
    std::vector<float> wide(here); // a model's type that is not the view's is f32
    TESSERA_RETURN_IF_ERROR(convertElements(weight.dtype, block.data(), view.modelDtype, wide.data(), here));
    TESSERA_RETURN_IF_ERROR(roundElements(wide.data(), dtype, place, here));
  }
  return Status::ok();
}

Status loadWeights(const RankState &views, const WeightSource &source, uint64_t seed, const WeightOptions &options) {
  TESSERA_RETURN_IF_ERROR(checkNames(views, source, options));
  if (!options.isZeroed)
    clearState(views);
  for (const StateView &view : views) {
    if (!view.kind.isOfModel())
      continue;
    for (const ParameterSegment &segment : view.segments) {
      const WeightEntry *weight = entryOf(source, segment, options);
      if (!weight) {
        TESSERA_RETURN_IF_ERROR(initialiseSegment(view, segment, seed));
        continue;
      }
      auto [begin, end] = overlap(view, segment);
      PieceReader reader(weight->bytes, /*isOne=*/segment.part.count == 1);
      Status copied = segment.forEachRun(begin, end, [&](const ElementRun &run) {
        return copyElements(*weight, reader, run.inParameter, view,
                            view.data + (run.inUnit - view.begin) * elementBytes(view.dtype), run.count);
      });
      TESSERA_RETURN_IF_ERROR(std::move(copied).withContext("parameter '" + segment.name + "'"));
    }
  }
  return startAverages(views);
}

} // namespace tessera
