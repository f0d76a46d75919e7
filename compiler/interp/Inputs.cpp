//===- Inputs.cpp - argument values made from a seed ----------------------===//

#include "compiler/interp/Inputs.h"

#include "compiler/dialect/train/Signature.h"
#include "compiler/interp/Interp.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace tessera::interp {

// --- Random numbers ------------------------------------------------------------

/// SplitMix64's mixing function.
static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// FNV-1a.
static uint64_t hashName(uint64_t seed, StringRef name) {
  uint64_t hash = 0xcbf29ce484222325ull ^ mix(seed + 0x9e3779b97f4a7c15ull);
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

static uint64_t bitsAt(uint64_t stream, int64_t index) {
  return mix(stream + 0x9e3779b97f4a7c15ull * static_cast<uint64_t>(index + 1));
}

/// About normal with variance 1: the sum of four uniform numbers.
static double normalAt(uint64_t stream, int64_t index) {
  double sum = 0.0;
  for (int64_t i = 0; i < 4; ++i)
    sum += static_cast<double>(bitsAt(stream, 4 * index + i) >> 11) * 0x1p-53;
  return (sum - 2.0) * std::sqrt(3.0);
}

// --- Names and segments --------------------------------------------------------

std::string nameOfArg(func::FuncOp function, unsigned index) {
  if (auto name = function.getArgAttrOfType<StringAttr>(index, train::kName))
    return name.str();
  return "arg" + std::to_string(index);
}

void Segment::forEachElement(int64_t size, llvm::function_ref<void(int64_t, int64_t)> fn) const {
  const int64_t row = size / attr.getParts(), elements = attr.getNumElements();
  for (int64_t part = 0; part < attr.getParts(); ++part)
    for (int64_t i = 0; i < elements; ++i)
      fn(part * row + attr.getOffset() + i, attr.getParameterElement(part, i));
}

static SmallVector<Segment> nameSegments(ArrayRef<train::SegmentAttr> segments, StringRef suffix) {
  return llvm::map_to_vector(segments, [&](train::SegmentAttr segment) {
    return Segment{(segment.getName().getValue() + suffix).str(), segment};
  });
}

SmallVector<Segment> segmentsOf(func::FuncOp function, unsigned index) {
  if (function.getArgAttr(index, train::kSegments))
    return nameSegments(train::getSegments(function, index), "");
  auto of = function.getArgAttrOfType<StringAttr>(index, train::kOf);
  auto state = function.getArgAttrOfType<StringAttr>(index, train::kState);
  if (!of || !state)
    return {};
  for (unsigned unit = 0; unit < function.getNumArguments(); ++unit)
    if (function.getArgAttr(unit, train::kSegments) && nameOfArg(function, unit) == of.getValue())
      return nameSegments(train::getSegments(function, unit), (Twine(".") + state.getValue()).str());
  return {};
}

// --- Bounds of integer inputs --------------------------------------------------

namespace {
struct IntegerRange {
  int64_t bound = 0;                   ///< values are below it; 0: no use says
  std::optional<int64_t> ignoredIndex; ///< a target value that means "no target"
};
} // namespace

/// Follows an integer value to the ops that use it as row or class numbers.
static void findRange(Value value, IntegerRange &range, llvm::SmallPtrSetImpl<Value> &seen) {
  if (!seen.insert(value).second)
    return;
  auto atMost = [&](int64_t bound) { range.bound = range.bound == 0 ? bound : std::min(range.bound, bound); };
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto gather = dyn_cast<train::GatherRowsOp>(user); gather && use.getOperandNumber() == 1) {
      atMost(gather.getTable().getType().getShape()[0]);
    } else if (auto scatter = dyn_cast<train::ScatterAddRowsOp>(user); scatter && use.getOperandNumber() == 1) {
      atMost(scatter.getInit().getType().getShape()[0]);
    } else if (auto loss = dyn_cast<train::CrossEntropyOp>(user); loss && use.getOperandNumber() == 1) {
      atMost(loss.getLogits().getType().getShape().back());
      if (loss.getIgnoreIndex())
        range.ignoredIndex = static_cast<int64_t>(*loss.getIgnoreIndex());
    } else if (isa<train::LinearCrossEntropyOp, train::LinearCrossEntropyGradOp>(user) && use.getOperandNumber() == 2) {
      auto readClasses = [&](auto loss) {
        atMost(loss.getWeight().getType().getShape()[1 - loss.getWeightDim()]);
        if (loss.getIgnoreIndex())
          range.ignoredIndex = static_cast<int64_t>(*loss.getIgnoreIndex());
      };
      if (auto loss = dyn_cast<train::LinearCrossEntropyOp>(user))
        readClasses(loss);
      else
        readClasses(cast<train::LinearCrossEntropyGradOp>(user));
    } else if (isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::ConvertOp, train::BroadcastOp,
                   train::ConcatOp, train::PadOp>(user) ||
               isa_and_present<dist::DistDialect>(user->getDialect())) {
      for (Value result : user->getResults())
        findRange(result, range, seen);
    } else if (user->getNumRegions() == 1 && !user->getRegion(0).empty()) {
      // accumulate and repeat pass their operands after the counter, a fusion passes them alone.
      Block &body = user->getRegion(0).front();
      unsigned shift = body.getNumArguments() - std::min(body.getNumArguments(), user->getNumOperands());
      if (use.getOperandNumber() + shift < body.getNumArguments())
        findRange(body.getArgument(use.getOperandNumber() + shift), range, seen);
    }
  }
}

/// Follows an argument of a program to the kernels that read its slot.
static void findRange(exec::ProgramOp program, unsigned index, IntegerRange &range) {
  auto slotOf = [](Value buffer) { return buffer.getDefiningOp<exec::BufferOp>().getSlot(); };
  auto kernels = program->getParentOfType<ModuleOp>().lookupSymbol<ModuleOp>("kernels");
  exec::ArgumentOp argument = *std::next(program.getOps<exec::ArgumentOp>().begin(), index);
  Type element = cast<MemRefType>(argument.getBuffer().getType()).getElementType();
  llvm::SmallPtrSet<Value, 16> seen;
  program.walk([&](exec::LaunchOp launch) {
    auto kernel = kernels ? kernels.lookupSymbol<func::FuncOp>(launch.getKernel()) : func::FuncOp();
    for (auto [number, input] : llvm::enumerate(launch.getInputs()))
      if (kernel && slotOf(input) == slotOf(argument.getBuffer()) &&
          cast<MemRefType>(input.getType()).getElementType() == element)
        findRange(kernel.getArgument(number), range, seen);
  });
}

// --- Values --------------------------------------------------------------------

static double hyperValue(StringRef name, uint64_t seed) {
  if (name == "lr")
    return 1.0e-3;
  if (name == "bias_correction1")
    return 1.0 - 0.9;
  if (name == "bias_correction2")
    return 1.0 - 0.999;
  if (name == "update_always")
    return 0.0;
  return static_cast<double>(seed);
}

/// Floating point values of about unit size for data; for a parameter such that products keep it.
static Tensor makeFloats(RankedTensorType type, uint64_t stream, std::optional<train::ArgRole> role, StringRef name) {
  Tensor result(type);
  double scale = 1.0;
  if (train::isParameter(role))
    scale = type.getRank() < 2 ? 0.5 : 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(type.getShape()[0], 1)));
  if (role == train::ArgRole::State)
    scale = 0.01;
  bool isVariance = role == train::ArgRole::State && name.ends_with(".v");
  for (int64_t i = 0, end = result.size(); i < end; ++i) {
    double value = scale * normalAt(stream, i);
    result.set(i, isVariance ? value * value : value);
  }
  return result;
}

static Tensor makeIntegers(RankedTensorType type, uint64_t stream, IntegerRange range) {
  Tensor result(type);
  auto bound = static_cast<uint64_t>(range.bound > 0 ? range.bound : type.getElementType().isInteger(1) ? 2 : 8);
  for (int64_t i = 0, end = result.size(); i < end; ++i) {
    uint64_t bits = bitsAt(stream, i);
    if (range.ignoredIndex && bits % 8 == 7)
      result.setInt(i, *range.ignoredIndex);
    else
      result.setInt(i, static_cast<int64_t>((bits >> 8) % bound));
  }
  return result;
}

/// Along the last dimension 0, 1, 2, …, each some times in a row.
static Tensor makeRuns(RankedTensorType type, uint64_t stream) {
  Tensor result(type);
  const int64_t length = type.getRank() == 0 ? 1 : type.getShape().back();
  const int64_t largest = llvm::maxIntN(type.getElementTypeBitWidth());
  int64_t value = 0;
  for (int64_t i = 0, end = result.size(); i < end; ++i) {
    const bool isNext = bitsAt(stream, i) % 4 == 0 && value < largest;
    value = i % length == 0 ? 0 : value + static_cast<int64_t>(isNext);
    result.setInt(i, value);
  }
  return result;
}

/// The first element that has come before in its row, but not right before.
static std::optional<int64_t> findApart(const Tensor &value) {
  const RankedTensorType type = value.getType();
  const int64_t length = type.getRank() == 0 ? 1 : type.getShape().back();
  llvm::SmallSet<int64_t, 8> ended;
  for (int64_t i = 0, end = value.size(); i < end; ++i) {
    if (i % length == 0) {
      ended.clear();
      continue;
    }
    if (value.intAt(i) == value.intAt(i - 1))
      continue;
    ended.insert(value.intAt(i - 1));
    if (ended.contains(value.intAt(i)))
      return i;
  }
  return std::nullopt;
}

static Tensor makeValue(func::FuncOp function, exec::ProgramOp program, unsigned index, RankedTensorType type,
                        uint64_t seed, StringRef name) {
  const std::optional<train::ArgRole> role = train::getArgRole(function, index);
  if (role == train::ArgRole::Hyper && type.getRank() == 0)
    return Tensor::scalar(type, hyperValue(name, seed));
  if (isa<FloatType>(type.getElementType()))
    return makeFloats(type, hashName(seed, name), role, name);
  if (function.getArgAttr(index, train::kHasRuns))
    return makeRuns(type, hashName(seed, name));
  IntegerRange range;
  llvm::SmallPtrSet<Value, 16> seen;
  if (program)
    findRange(program, index, range);
  else
    findRange(function.getArgument(index), range, seen);
  return makeIntegers(type, hashName(seed, name), range);
}

FailureOr<unsigned> sourceOfDerived(func::FuncOp function, unsigned index) {
  auto of = function.getArgAttrOfType<StringAttr>(index, train::kOf);
  for (unsigned source = 0; of && source < index; ++source)
    if (train::isParameter(train::getArgRole(function, source)) && nameOfArg(function, source) == of.getValue())
      return source;
  return function.emitError("argument ") << index << ": there is no parameter that it is derived from";
}

Tensor derivedFrom(const Tensor &source, RankedTensorType type) {
  Tensor result(type);
  for (int64_t i = 0, end = result.size(); i < end; ++i)
    result.set(i, source.at(i));
  return result;
}

FailureOr<std::vector<Tensor>> makeArguments(func::FuncOp function, uint64_t seed, NamedTensors &known,
                                             exec::ProgramOp program) {
  std::vector<Tensor> arguments;
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    if (!isa<RankedTensorType>(function.getArgumentTypes()[index]))
      return function.emitError("argument ") << index << " is not a tensor";
    RankedTensorType type = globalArgType(function, index);
    if (train::getArgRole(function, index) == train::ArgRole::Derived) {
      FailureOr<unsigned> source = sourceOfDerived(function, index);
      if (failed(source))
        return failure();
      arguments.push_back(derivedFrom(arguments[*source], type));
      continue;
    }
    auto valueOf = [&](StringRef name, RankedTensorType wanted) -> FailureOr<Tensor> {
      auto it = known.find(name);
      if (it == known.end())
        return known[name] = makeValue(function, program, index, wanted, seed, name);
      RankedTensorType given = it->second.getType();
      bool sameKind = isa<FloatType>(given.getElementType()) == isa<FloatType>(wanted.getElementType());
      if (given.getNumElements() != wanted.getNumElements() || !sameKind)
        return function.emitError("argument ")
               << index << " '" << name << "' has type " << wanted << ", got a value of type " << given;
      if (given.getElementType() != wanted.getElementType()) {
        Tensor converted(wanted);
        for (int64_t i = 0, end = converted.size(); i < end; ++i)
          converted.isFloat() ? converted.set(i, it->second.at(i)) : converted.setInt(i, it->second.intAt(i));
        return converted;
      }
      return it->second.reshaped(wanted);
    };
    SmallVector<Segment> segments = segmentsOf(function, index);
    if (segments.empty()) {
      FailureOr<Tensor> value = valueOf(nameOfArg(function, index), type);
      if (failed(value))
        return failure();
      if (function.getArgAttr(index, train::kHasRuns))
        if (std::optional<int64_t> apart = findApart(*value))
          return function.emitError("argument ")
                 << index << " '" << nameOfArg(function, index) << "': element " << *apart << " is "
                 << value->intAt(*apart)
                 << ", which has come before, but not right before; equal ones must lie side by side";
      arguments.push_back(std::move(*value));
      continue;
    }
    Tensor unit(type);
    for (const Segment &segment : segments) {
      FailureOr<Tensor> value = valueOf(segment.name, type.clone(segment.shape()));
      if (failed(value))
        return failure();
      segment.forEachElement(unit.size(), [&](int64_t to, int64_t from) { unit.copyFrom(to, *value, from); });
    }
    arguments.push_back(std::move(unit));
  }
  return arguments;
}

} // namespace tessera::interp
