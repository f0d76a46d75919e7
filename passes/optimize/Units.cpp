//===- Units.cpp - which parameters are flattened together ----------------===//

#include "passes/optimize/Units.h"

#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Signature.h"

using namespace mlir;
using namespace tessera;

std::optional<WrapPolicy> WrapPolicy::parse(StringRef text) {
  if (text == "module")
    return WrapPolicy{Module};
  if (text == "none")
    return WrapPolicy{None};
  int64_t bytes = 0;
  if (text.consume_front("size:") && !text.getAsInteger(10, bytes) && bytes > 0)
    return WrapPolicy{Size, bytes};
  return std::nullopt;
}

Operation *tessera::getAncestorInBlock(Operation *op, Block &block) { return block.findAncestorOpInBlock(*op); }

/// An exporter's name for a tensor that lost its own, such as "onnx::MatMul_123", says nothing about the module: the
/// nodes that read the parameter do, if they agree.
static std::string getScope(const Parameter &parameter) {
  if (StringRef(parameter.name).contains('.'))
    return train::getBlockScope(parameter.name);
  std::string scope;
  for (Operation *user : parameter.arg.getUsers()) {
    if (train::isMarkedBackward(user))
      continue;
    std::string found = train::getBlockScope(train::getNodeName(user->getLoc()));
    if (found.empty() || (!scope.empty() && scope != found))
      return "";
    scope = found;
  }
  return scope;
}

/// What reads the parameter; of one that is held in a narrower type, what reads it widened.
static auto readers(const Parameter &parameter) {
  Value value = parameter.arg;
  if (parameter.modelType)
    for (Operation *user : value.getUsers())
      if (isa<train::ConvertOp>(user) && !train::isMarkedBackward(user)) {
        value = user->getResult(0);
        break;
      }
  return value.getUses();
}

SmallVector<Parameter> tessera::collectParameters(func::FuncOp func, train::ArgRole role,
                                                  const std::optional<train::NamePattern> &noDecay) {
  Block &block = func.getBody().front();
  llvm::DenseMap<Operation *, int64_t> position;
  for (auto [index, op] : llvm::enumerate(block))
    position[&op] = index;
  int64_t end = position.size();

  SmallVector<Parameter> parameters;
  for (unsigned index : train::getArgsWithRole(func, role)) {
    Parameter parameter;
    parameter.arg = func.getArgument(index);
    parameter.name = train::getArgName(func, index).str();
    parameter.type = cast<RankedTensorType>(parameter.arg.getType());
    parameter.init = func.getArgAttrOfType<StringAttr>(index, train::kInit);
    parameter.placement = func.getArgAttrOfType<train::PlacementAttr>(index, train::kPlacement);
    parameter.computeType = func.getArgAttrOfType<TypeAttr>(index, train::kComputeType);
    parameter.modelType = func.getArgAttrOfType<TypeAttr>(index, train::kModelType);
    if (!train::isFlattened(func, index))
      continue;
    parameter.decays = role == train::ArgRole::Frozen ? false
                       : noDecay                      ? !noDecay->match(parameter.name)
                                                      : parameter.type.getRank() > 1;
    parameter.firstUse = end;
    for (OpOperand &use : readers(parameter)) {
      if (train::isMarkedBackward(use.getOwner()))
        continue;
      const std::pair place(position.lookup(getAncestorInBlock(use.getOwner(), block)),
                            static_cast<int64_t>(use.getOperandNumber()));
      if (place < std::pair(parameter.firstUse, parameter.operand)) {
        std::tie(parameter.firstUse, parameter.operand) = place;
        parameter.isJoined = isa<train::ConcatOp>(use.getOwner());
      }
    }
    parameters.push_back(parameter);
  }
  return parameters;
}

/// Names the unit of each parameter by module: its block's scope, or for the rest "embed" if it is first read before
/// any block and else "head" (one "root" if there are no blocks).
static SmallVector<std::string> nameByModule(ArrayRef<Parameter> parameters) {
  SmallVector<std::string> names;
  int64_t firstBlock = -1;
  for (const Parameter &parameter : parameters) {
    names.push_back(getScope(parameter));
    if (!names.back().empty() && (firstBlock < 0 || parameter.firstUse < firstBlock))
      firstBlock = parameter.firstUse;
  }
  for (auto [name, parameter] : llvm::zip_equal(names, parameters))
    if (name.empty())
      name = firstBlock < 0 ? "root" : parameter.firstUse < firstBlock ? "embed" : "head";
  return names;
}

/// Fills units of at most `bytes` in the given order; a larger parameter is a unit of its own. What is concatenated
/// stays together.
static SmallVector<std::string> nameBySize(ArrayRef<Parameter> parameters, int64_t bytes) {
  SmallVector<std::string> names;
  int64_t unit = 0, filled = 0;
  auto isWithNext = [&](size_t index) {
    return index + 1 < parameters.size() && parameters[index].isJoined && parameters[index + 1].isJoined &&
           parameters[index].firstUse == parameters[index + 1].firstUse;
  };
  for (size_t index = 0; index < parameters.size();) {
    size_t end = index;
    int64_t size = 0;
    do {
      const Parameter &parameter = parameters[end];
      size +=
          static_cast<int64_t>(llvm::divideCeil(parameter.type.getElementTypeBitWidth(), 8u)) * parameter.elements();
    } while (isWithNext(end++));
    if (filled > 0 && filled + size > bytes) {
      ++unit;
      filled = 0;
    }
    filled += size;
    names.append(end - index, "unit." + std::to_string(unit));
    index = end;
  }
  return names;
}

static void assignOffsets(ParameterUnit &unit) {
  llvm::stable_sort(unit.parameters, [](const Parameter &a, const Parameter &b) { return a.decays > b.decays; });
  for (Parameter &parameter : unit.parameters) {
    parameter.offset = unit.elements;
    unit.elements += parameter.elements();
    if (parameter.decays)
      unit.decayElements = unit.elements;
  }
}

namespace {
/// What the parameters of one unit have in common.
struct UnitKey {
  StringRef module;
  Type elementType;
  Attribute axes, computeType, modelType;
  bool isApart; ///< placed, and does not decay

  bool operator==(const UnitKey &) const = default;
};
} // namespace

/// A name for the unit that no other has.
static std::string nameUnit(const UnitKey &key, train::ArgRole role, llvm::StringSet<> &names) {
  std::string name = key.module.str();
  llvm::raw_string_ostream out(name);
  if (role == train::ArgRole::Frozen)
    out << ".frozen";
  if (key.computeType)
    out << ".read_" << cast<TypeAttr>(key.computeType).getValue();
  if (key.axes)
    for (auto axis : cast<ArrayAttr>(key.axes).getAsRange<StringAttr>())
      out << '.' << axis.getValue();
  if (key.isApart)
    out << ".no_decay";
  if (names.contains(name))
    out << '.' << key.elementType;
  const std::string base = name;
  for (int number = 2; !names.insert(name).second; ++number)
    name = base + "." + std::to_string(number);
  return name;
}

SmallVector<ParameterUnit> tessera::makeUnits(ArrayRef<Parameter> parameters, train::ArgRole role, WrapPolicy policy,
                                              llvm::StringSet<> &names) {
  SmallVector<Parameter> ordered(parameters);
  // What one op concatenates lies side by side.
  llvm::stable_sort(ordered, [](const Parameter &a, const Parameter &b) {
    return std::tie(a.firstUse, a.operand) < std::tie(b.firstUse, b.operand);
  });
  SmallVector<std::string> modules;
  if (policy.kind == WrapPolicy::Module)
    modules = nameByModule(ordered);
  else if (policy.kind == WrapPolicy::Size)
    modules = nameBySize(ordered, policy.bytes);
  else
    modules.assign(ordered.size(), "all");

  SmallVector<ParameterUnit> units;
  SmallVector<UnitKey> keys;
  for (auto [module, parameter] : llvm::zip_equal(modules, ordered)) {
    const Attribute axes = parameter.placement ? parameter.placement.getAxes() : Attribute();
    const UnitKey key = {module,
                         parameter.type.getElementType(),
                         axes,
                         parameter.computeType,
                         parameter.modelType,
                         axes && role == train::ArgRole::Param && !parameter.decays};
    const size_t same = llvm::find(keys, key) - keys.begin();
    if (same == keys.size()) {
      keys.push_back(key);
      units.push_back({nameUnit(key, role, names), module, role, {}, 0, 0});
    }
    units[same].parameters.push_back(parameter);
  }
  for (ParameterUnit &unit : units)
    assignOffsets(unit);
  return units;
}
