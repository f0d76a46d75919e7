//===- VerifyStep.cpp - what a step function's attributes say together ----===//
//
// Each attribute by itself is checked in VerifySignature.cpp.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/Signature.h"
#include "compiler/dialect/train/Train.h"
#include "compiler/dialect/train/Verify.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tessera::train;

bool tessera::train::isStaticTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape();
}

ShapedType tessera::train::globalType(DictionaryAttr attrs, Type type) {
  if (auto global = attrs ? dyn_cast_or_null<TypeAttr>(attrs.get("dist.global")) : nullptr)
    if (auto shaped = dyn_cast<ShapedType>(global.getValue()); shaped && shaped.hasStaticShape())
      return shaped;
  return cast<ShapedType>(type);
}

namespace {

/// Whether the step computes a next value for an argument.
bool hasNextValue(FunctionOpInterface func, unsigned argument) {
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (auto alias = func.getResultAttrOfType<IntegerAttr>(index, kAlias); alias && alias.getInt() == argument)
      return true;
  return false;
}

/// A derived argument has a source, looks as this does, and changes where it does.
LogicalResult verifyDerived(FunctionOpInterface func) {
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
    if (getArgRole(func, index) != ArgRole::Derived)
      continue;
    auto of = func.getArgAttrOfType<StringAttr>(index, kOf);
    unsigned source = 0;
    while (source < index &&
           (!isParameter(getArgRole(func, source)) || func.getArgAttrOfType<StringAttr>(source, kName) != of))
      ++source;
    // train.step_c11
    if (!of || source == index)
      return func->emitError() << "argument " << index << ": a derived argument needs " << kOf
                               << " = the name of a parameter before it";
    auto wide = cast<RankedTensorType>(func.getArgumentTypes()[source]);
    // train.step_c12
    if (!wide.getElementType().isF32() || type != wide.clone(BFloat16Type::get(func->getContext())))
      return func->emitError() << "argument " << index << " is derived from " << of << " of type " << wide
                               << ", expected the same shape, of bf16 made from f32, got " << type;
    // train.step_c13
    if (!func.isExternal() && hasNextValue(func, index) != hasNextValue(func, source))
      return func->emitError() << "argument " << index << " is derived from " << of
                               << ": both need a next value, or neither";
  }
  return success();
}

/// Only what is fed with data counts samples, and all of it the same number.
LogicalResult verifyDims(FunctionOpInterface func) {
  std::optional<std::pair<size_t, int64_t>> first;
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
    auto dims = func.getArgAttrOfType<DimsAttr>(index, kDims);
    auto role = func.getArgAttrOfType<StringAttr>(index, kRole);
    // train.step_c14
    if (dims && (!role || (role != "input" && role != "target")))
      return func->emitError() << "argument " << index << ": " << kDims << " describes an input or a target";
    if (!dims || dims.getSampleDim() < 0)
      continue;
    const int64_t samples = cast<RankedTensorType>(type).getDimSize(dims.getSampleDim());
    if (!first)
      first = {index, samples};
    // train.step_c15
    if (samples != first->second)
      return func->emitError() << "argument " << index << " has " << samples << " samples (dimension "
                               << dims.getSampleDim() << "), argument " << first->first << " has " << first->second;
  }
  return success();
}

} // namespace

LogicalResult tessera::train::verifyStep(FunctionOpInterface func) {
  // train.step_c1
  if (!func.isExternal() && !llvm::hasSingleElement(func.getFunctionBody()))
    return func->emitError("step function needs a body of one block");
  llvm::SmallDenseMap<Attribute, Type> params;
  llvm::SmallDenseSet<Attribute> buffers;
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
    // train.step_c2
    if (!isStaticTensor(type))
      return func->emitError() << "argument " << index << " needs a tensor of static shape, got " << type;
    const std::optional<ArgRole> role = getArgRole(func, index);
    auto name = func.getArgAttrOfType<StringAttr>(index, kName);
    // train.step_c16
    if (role == ArgRole::Buffer && (!name || !buffers.insert(name).second))
      return func->emitError() << "argument " << index << ": a buffer needs " << kName << " of its own";
    if (role != ArgRole::Param)
      continue;
    // train.step_c3
    if (!name)
      return func->emitError() << "argument " << index << ": a parameter needs " << kName;
    // train.step_c4
    if (!params.try_emplace(name, globalType(func.getArgAttrDict(index), type)).second)
      return func->emitError() << "two parameters are called " << name;
  }
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    if (getArgRole(func, index) != ArgRole::State)
      continue;
    Attribute of = func.getArgAttr(index, kOf);
    // train.step_c5
    if (!of)
      return func->emitError() << "argument " << index << ": a state needs " << kOf;
    // train.step_c6
    if (!params.contains(of))
      return func->emitError() << "argument " << index << ": there is no parameter " << of;
  }
  if (failed(verifyDerived(func)) || failed(verifyDims(func)))
    return failure();
  llvm::SmallDenseSet<Attribute> differentiated;
  for (auto [index, type] : llvm::enumerate(func.getResultTypes())) {
    // train.step_c7
    if (!isStaticTensor(type))
      return func->emitError() << "result " << index << " needs a tensor of static shape, got " << type;
    if (getResultRole(func, index) != ResultRole::Grad)
      continue;
    Attribute of = func.getResultAttr(index, kOf);
    auto param = params.find(of);
    // train.step_c8
    if (!of || param == params.end())
      return func->emitError() << "result " << index << ": a gradient needs " << kOf << " = the name of a parameter";
    // train.step_c9
    if (Type global = globalType(func.getResultAttrDict(index), type); param->second != global)
      return func->emitError() << "result " << index << ": the gradient of " << of << " has type " << global
                               << ", expected " << param->second;
    // train.step_c10
    if (!differentiated.insert(of).second)
      return func->emitError() << "result " << index << ": " << of << " already has a gradient";
  }
  return success();
}
