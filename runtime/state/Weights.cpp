//===- Weights.cpp - parameters from files -------------------------------------===//

#include "runtime/state/Weights.h"
#include "runtime/state/Init.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace tessera {

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
  if (options.isPartial && options.isPartial(parameter.name) && found->second.shape != parameter.shape)
    return nullptr; // such as a head for other classes
  const bool hasRule = options.isModelFile && parameter.init;
  if (hasRule && (parameter.init->isAsked || found->second.problem == WeightProblem::Valueless))
    return nullptr;
  return &found->second;
}

/// " (tensors 'a', 'b' …)"
static std::string partsText(const std::vector<std::string> &tensors) {
  if (tensors.empty())
    return "";
  constexpr size_t shown = 2;
  std::string text = tensors.size() > 1 ? " (tensors '" : " (tensor '";
  for (size_t i = 0; i < std::min(tensors.size(), shown); ++i)
    text += (i ? "', '" : "") + tensors[i];
  return text + (tensors.size() > shown ? fmt::format("' and {} more)", tensors.size() - shown) : "')");
}

/// The type of a part of the weight that does not become `wanted`: integers among floats are quantised, or something
/// else.
static std::optional<DataType> otherType(const WeightEntry &weight, DataType wanted) {
  auto isOther = [&](DataType dtype) { return !canConvert(dtype, wanted) || isInteger(dtype) != isInteger(wanted); };
  for (const WeightPart &part : weight.parts)
    if (isOther(part.dtype))
      return part.dtype;
  return isOther(weight.dtype) ? std::optional(weight.dtype) : std::nullopt;
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
        const bool mayBeMissing = options.allowMissing || options.isModelFile || isCounter ||
                                  options.optional.count(parameter->name) ||
                                  (options.isPartial && options.isPartial(parameter->name));
        if (!mayBeMissing || !parameter->init)
          missing.push_back("'" + parameter->name + "'" + partsText(source.absentParts(parameter->name)));
        continue;
      }
      used.insert(parameter->name);
      if (weight->problem == WeightProblem::Misshapen)
        mismatched.push_back("'" + parameter->name + "' " + weight->reason);
      else if (!weight->hasValues())
        unreadable[weight->reason].push_back("'" + parameter->name + "'");
      else if (weight->shape != parameter->shape)
        mismatched.push_back("'" + parameter->name + "' has shape " + shapeToString(weight->shape) + ", expected " +
                             shapeToString(parameter->shape));
      else if (const std::optional<DataType> other = otherType(*weight, view.modelDtype))
        mismatched.push_back("'" + parameter->name + "' has type " + std::string(safetensorsName(*other)) +
                             ", expected " + std::string(safetensorsName(view.modelDtype)));
    }
  }
  if (!options.allowExtra && !options.isModelFile && !source.mayHaveOthers())
    for (const auto &[name, entry] : source.entries())
      if (!used.count(name) && !options.unread.count(name) && !(options.isPartial && options.isPartial(name)))
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
  if (!options.unmapped.empty() && !missing.empty())
    text += "; the program does not know the names of Hugging Face's files: " + options.unmapped;
  return TESSERA_ERROR(InvalidArgument, text);
}

/// Elements [first, first + count) of a tensor of type `stored`, converted to the view's type; what needs no conversion
/// is read into its place.
static Status copyElements(DataType stored, PieceReader &reader, int64_t first, const StateView &view, uint8_t *target,
                           int64_t count) {
  const DataType dtype = view.dtype;
  const auto width = static_cast<int64_t>(elementBytes(stored));
  if (stored == dtype)
    return reader.read(first * width, target, count * width);
  constexpr int64_t blockElements = 1 << 18;
  std::vector<uint8_t> block(std::min(count, blockElements) * width);
  for (int64_t done = 0; done < count; done += blockElements) {
    int64_t here = std::min(count - done, blockElements);
    TESSERA_RETURN_IF_ERROR(reader.read((first + done) * width, block.data(), here * width));
    uint8_t *place = target + done * elementBytes(dtype);
    if (view.modelDtype == dtype) {
      TESSERA_RETURN_IF_ERROR(convertElements(stored, block.data(), dtype, place, here));
      continue;
    }
    std::vector<float> wide(here); // a model's type that is not the view's is f32
    TESSERA_RETURN_IF_ERROR(convertElements(stored, block.data(), view.modelDtype, wide.data(), here));
    TESSERA_RETURN_IF_ERROR(roundElements(wide.data(), dtype, place, here));
  }
  return Status::ok();
}

static uint8_t *placeOf(const StateView &view, int64_t inUnit) {
  return view.data + (inUnit - view.begin) * elementBytes(view.dtype);
}

/// What the view holds of a parameter that is a tensor in its order.
static Status copyWhole(const WeightEntry &weight, const StateView &view, const ParameterSegment &segment) {
  auto [begin, end] = overlap(view, segment);
  PieceReader reader(weight.bytes, /*isOne=*/segment.part.count == 1);
  return segment.forEachRun(begin, end, [&](const ElementRun &run) {
    return copyElements(weight.dtype, reader, run.inParameter, view, placeOf(view, run.inUnit), run.count);
  });
}

/// What the view holds of a part of a parameter. A tensor whose elements lie far from each other is read as a whole.
static Status copyPart(const WeightPart &part, const StateView &view, const ParameterSegment &segment) {
  auto [begin, end] = overlap(view, segment);
  constexpr size_t longRun = 1024; // bytes
  const bool isScattered = part.piece.runLength() * elementBytes(part.dtype) < longRun;
  std::vector<uint8_t> memory;
  ByteRange bytes = part.bytes;
  PieceReader reader(bytes);
  return segment.forEachRun(begin, end, [&](const ElementRun &run) {
    return part.piece.forEachRun(run.inParameter, run.inParameter + run.count, [&](const PieceRun &piece) -> Status {
      if (isScattered && memory.empty()) {
        TESSERA_ASSIGN_OR_RETURN(memory, part.bytes.readAll());
        bytes = ByteRange(ByteSpan(memory));
      }
      return copyElements(part.dtype, reader, piece.inTensor, view,
                          placeOf(view, run.inUnit + (piece.inParameter - run.inParameter)), piece.count);
    });
  });
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
      Status copied;
      for (const WeightPart &part : weight->parts)
        if (copied.isOk())
          copied = copyPart(part, view, segment);
      if (weight->parts.empty())
        copied = copyWhole(*weight, view, segment);
      TESSERA_RETURN_IF_ERROR(std::move(copied).withContext("parameter '" + segment.name + "'"));
    }
  }
  return startAverages(views);
}

} // namespace tessera
