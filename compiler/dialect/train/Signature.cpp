//===- Signature.cpp - arguments and results of a step function -----------===//

#include "compiler/dialect/train/Signature.h"

#include "compiler/dialect/train/Program.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tessera::train {

static StringRef stringOf(Attribute attr) {
  auto string = dyn_cast_or_null<StringAttr>(attr);
  return string ? string.getValue() : StringRef();
}

bool isStepFunction(func::FuncOp func) {
  if (func.isExternal())
    return false;
  return llvm::any_of(llvm::seq(func.getNumArguments()),
                      [&](unsigned index) { return getArgRole(func, index).has_value(); });
}

FailureOr<ProgramKind> programKind(Operation *op) {
  Attribute attr = op->getAttr(kProgram);
  if (!attr)
    return ProgramKind::Train;
  if (stringOf(attr) == kEvaluate)
    return ProgramKind::Evaluate;
  return op->emitError() << kProgram << " must be \"" << kEvaluate << "\" or absent, got " << attr;
}

bool isTrainingStep(func::FuncOp func) { return isStepFunction(func) && !func->hasAttr(kProgram); }

LogicalResult checkTensorFunction(func::FuncOp func) {
  if (!llvm::hasSingleElement(func.getBody()))
    return func.emitError("function needs a body of one block");
  auto isStatic = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  for (auto [what, types] : {std::pair("argument ", func.getArgumentTypes()), {"result ", func.getResultTypes()}})
    for (auto [index, type] : llvm::enumerate(types))
      if (!isStatic(type))
        return func.emitError() << what << index << " needs a tensor of static shape, got " << type;
  return success();
}

static std::optional<ArgRole> argRoleOf(Attribute attr) { return symbolizeArgRole(stringOf(attr)); }
static std::optional<ResultRole> resultRoleOf(Attribute attr) { return symbolizeResultRole(stringOf(attr)); }

std::optional<ArgRole> getArgRole(FunctionOpInterface func, unsigned index) {
  return argRoleOf(func.getArgAttr(index, kRole));
}
std::optional<ResultRole> getResultRole(FunctionOpInterface func, unsigned index) {
  return resultRoleOf(func.getResultAttr(index, kRole));
}
std::optional<ArgRole> getArgRole(Operation *op) { return argRoleOf(op->getAttr(kRole)); }
std::optional<ResultRole> getResultRole(Operation *op) { return resultRoleOf(op->getAttr(kRole)); }

NamedAttribute getRoleAttr(MLIRContext *context, ArgRole role) {
  return {kRole, StringAttr::get(context, stringifyArgRole(role))};
}
NamedAttribute getRoleAttr(MLIRContext *context, ResultRole role) {
  return {kRole, StringAttr::get(context, stringifyResultRole(role))};
}

StringRef getArgName(func::FuncOp func, unsigned index) { return stringOf(func.getArgAttr(index, kName)); }

std::optional<unsigned> getAliasedArg(FunctionOpInterface func, unsigned result) {
  auto alias = func.getResultAttrOfType<IntegerAttr>(result, kAlias);
  return alias ? std::optional(static_cast<unsigned>(alias.getInt())) : std::nullopt;
}

bool isNextOfBuffer(FunctionOpInterface func, unsigned result) {
  const std::optional<unsigned> argument = getAliasedArg(func, result);
  return argument && getArgRole(func, *argument) == ArgRole::Buffer;
}

SmallVector<unsigned> getArgsWithRole(func::FuncOp func, ArgRole role) {
  SmallVector<unsigned> indices;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (getArgRole(func, index) == role)
      indices.push_back(index);
  return indices;
}

FailureOr<unsigned> getLossResult(func::FuncOp func) {
  SmallVector<unsigned> losses;
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (getResultRole(func, index) == ResultRole::Loss)
      losses.push_back(index);
  if (losses.size() != 1)
    return func.emitError() << "expected one result of role \"loss\", got " << losses.size();
  auto type = dyn_cast<RankedTensorType>(func.getResultTypes()[losses.front()]);
  if (!type || type.getRank() != 0 || !isa<FloatType>(type.getElementType()))
    return func.emitError() << "the loss must be a floating-point scalar, got "
                            << func.getResultTypes()[losses.front()];
  return losses.front();
}

SmallVector<StepResult> getResults(func::FuncOp func) {
  SmallVector<StepResult> results;
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    DictionaryAttr attrs = func.getResultAttrDict(index);
    results.push_back({value, attrs ? attrs : DictionaryAttr::get(func.getContext())});
  }
  return results;
}

void setResults(func::FuncOp func, ArrayRef<StepResult> results) {
  SmallVector<Value> values;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attrs;
  for (const StepResult &result : results) {
    values.push_back(result.value);
    types.push_back(result.value.getType());
    attrs.push_back(result.attrs);
  }
  func.getBody().front().getTerminator()->setOperands(values);
  func.setFunctionType(FunctionType::get(func.getContext(), func.getArgumentTypes(), types));
  func.setAllResultAttrs(attrs);
}

BlockArgument appendArgument(func::FuncOp func, Type type, ArgRole role, StringRef name, ArrayRef<NamedAttribute> more,
                             Location loc) {
  Builder builder(func.getContext());
  SmallVector<NamedAttribute> attrs(more);
  attrs.push_back(getRoleAttr(func.getContext(), role));
  attrs.push_back(builder.getNamedAttr(kName, builder.getStringAttr(name)));
  unsigned index = func.getNumArguments();
  LogicalResult inserted = func.insertArgument(index, type, builder.getDictionaryAttr(attrs), loc);
  assert(succeeded(inserted) && "a function of static tensors takes any argument");
  (void)inserted;
  return func.getArgument(index);
}

StringRef getNodeName(Location loc) {
  StringRef name;
  loc->walk([&](Location inner) {
    if (auto named = dyn_cast<NameLoc>(inner))
      name = named.getName().getValue();
    return WalkResult::advance();
  });
  return name;
}

std::string getBlockScope(StringRef name) {
  SmallVector<StringRef> components;
  std::string dotted = name.str();
  llvm::replace(dotted, '/', '.');
  StringRef(dotted).split(components, '.', -1, /*KeepEmpty=*/false);
  for (auto [index, component] : llvm::enumerate(components))
    if (llvm::all_of(component, [](char c) { return llvm::isDigit(c); }))
      return llvm::join(ArrayRef<StringRef>(components).take_front(index + 1), ".");
  return "";
}

} // namespace tessera::train
