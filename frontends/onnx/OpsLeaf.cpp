//===- OpsLeaf.cpp - constants, ranges and random numbers -----------------===//

#include "frontends/common/Neural.h"
#include "frontends/onnx/OpTable.h"
#include "frontends/onnx/Proto.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
LogicalResult opConstant(Node &n) {
  MLIRContext *context = n.b.builder.getContext();
  auto f32 = Float32Type::get(context);
  if (const auto *value = n.attribute("value"); value && value->has_t()) {
    auto tensor = readTensor(context, value->t(), n.folder);
    if (!tensor)
      return n.fail(llvm::toString(tensor.takeError()));
    return n.set(std::move(*tensor));
  }
  if (const auto *value = n.attribute("value_int"))
    return n.set(HostTensor::ofShape(context, {value->i()}).reshaped({}));
  if (const auto *value = n.attribute("value_float"))
    return n.set(HostTensor::ofFloats(RankedTensorType::get({}, f32), {value->f()}));
  if (auto values = n.attrInts("value_ints"))
    return n.set(HostTensor::ofShape(context, *values));
  if (const auto *value = n.attribute("value_floats"))
    return n.set(HostTensor::ofFloats(RankedTensorType::get({value->floats_size()}, f32),
                                      {value->floats().begin(), value->floats().end()}));
  return n.fail("only dense tensors, integers and floats are supported");
}

LogicalResult opConstantOfShape(Node &n) {
  auto shape = n.ints(0);
  if (!shape)
    return n.fail("the shape must be known at import");
  if (!countElements(*shape))
    return n.fail("shape " + shapeText(*shape) + " is negative or too large");
  Type element = Float32Type::get(n.b.builder.getContext());
  double value = 0;
  if (const auto *attribute = n.attribute("value"); attribute && attribute->has_t()) {
    auto tensor = readTensor(n.b.builder.getContext(), attribute->t(), n.folder);
    if (!tensor)
      return n.fail(llvm::toString(tensor.takeError()));
    if (tensor->size() != 1)
      return n.fail("value has " + Twine(tensor->size()) + " elements, expected 1");
    element = tensor->type.getElementType();
    value = tensor->number(0);
  }
  return n.set(n.b.splat(RankedTensorType::get(*shape, element), value));
}

/// Longer ranges are counted when the step runs, each rank its part.
constexpr int64_t kMostStored = int64_t{1} << 20;

LogicalResult opRange(Node &n) {
  const HostTensor *start = n.constant(0), *limit = n.constant(1), *delta = n.constant(2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1)
    return n.fail("start, limit and delta must be scalars that are known at import");
  if (start->type.getElementType() != limit->type.getElementType() ||
      start->type.getElementType() != delta->type.getElementType())
    return n.fail("start, limit and delta have different element types");
  const double step = delta->number(0);
  const double count = std::ceil((limit->number(0) - start->number(0)) / step);
  const bool isReal = start->isFloat();
  const int64_t most = isReal ? kMaxConstantElements : kMaxElements;
  if (step == 0 || !(count <= static_cast<double>(most)))
    return n.fail("range is infinite or has more than " + Twine(most) + " elements");
  const int64_t size = count > 0 ? static_cast<int64_t>(count) : 0;
  auto type = cast<RankedTensorType>(start->type.clone(ArrayRef<int64_t>{size}));
  if (!isReal && size > kMostStored) {
    auto repeated = [&](int64_t number) {
      return n.b.constant(SplatElementsAttr::get(type, IntegerAttr::get(type.getElementType(), number)));
    };
    Value counted = n.b.iota(type, 0);
    if (delta->ints[0] != 1)
      counted = n.b.mul(counted, repeated(delta->ints[0]));
    return n.set(start->ints[0] == 0 ? counted : n.b.add(counted, repeated(start->ints[0])));
  }
  HostTensor result{type, {}, {}};
  for (int64_t i = 0; i < size; ++i) {
    if (result.isFloat())
      result.floats.push_back(roundTo(result.type.getElementType(), start->floats[0] + static_cast<double>(i) * step));
    else
      result.ints.push_back(static_cast<int64_t>(static_cast<uint64_t>(start->ints[0]) +
                                                 static_cast<uint64_t>(i) * static_cast<uint64_t>(delta->ints[0])));
  }
  return n.set(std::move(result));
}

LogicalResult opShape(Node &n) {
  ArrayRef<int64_t> shape = n.shape(0);
  const int64_t rank = n.rank(0);
  auto clamped = [&](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + rank : index, 0, rank); };
  const int64_t start = clamped(n.attr("start", 0)), end = std::max(start, clamped(n.attr("end", rank)));
  return n.set(HostTensor::ofShape(n.b.builder.getContext(), shape.slice(start, end - start)));
}

LogicalResult opSize(Node &n) {
  return n.set(HostTensor::ofShape(n.b.builder.getContext(), {n.type(0).getNumElements()}).reshaped({}));
}

LogicalResult opEyeLike(Node &n) {
  if (n.rank(0) != 2)
    return n.fail("input has rank " + Twine(n.rank(0)) + ", expected 2");
  Type element = n.element(0);
  if (n.attribute("dtype"))
    element = elementType(n.b.builder.getContext(), static_cast<int32_t>(n.attr("dtype", 0)));
  if (!element)
    return n.fail("element type is not supported");
  const int64_t offset = n.attr("k", 0), rows = n.shape(0)[0], columns = n.shape(0)[1];
  if (rows * columns > kMaxConstantElements)
    return n.fail("result is too large");
  HostTensor result = HostTensor::splat(RankedTensorType::get({rows, columns}, element), 0);
  for (int64_t i = 0; i < rows; ++i)
    if (offset > -rows && offset < columns && i + offset >= 0 && i + offset < columns) {
      if (result.isFloat())
        result.floats[i * columns + i + offset] = 1;
      else
        result.ints[i * columns + i + offset] = 1;
    }
  return n.set(std::move(result));
}

/// Inverted dropout. The mask is a pure function of the step's seed (an argument that the host sets) and a stream
/// number of its own; the attribute `seed` of the node is not used.
LogicalResult opDropout(Node &n) {
  std::optional<double> ratio = n.opset < 12 ? n.attrFloat("ratio", 0.5) : n.has(1) ? n.scalar(1) : 0.5;
  std::optional<double> training = n.opset >= 12 && n.has(2) ? n.scalar(2) : 0.0;
  if (!ratio || !training)
    return n.fail("ratio and training_mode must be known at import");
  if (*ratio < 0 || *ratio >= 1)
    return n.fail("ratio is " + std::to_string(*ratio) + ", expected at least 0 and below 1");
  auto maskType = n.type(0).clone(n.b.builder.getI1Type());
  if (*training == 0 || *ratio == 0) {
    if (n.wants(1) && failed(n.set(n.b.splat(maskType, 1), 1)))
      return failure();
    return n.set(n.inputs[0]);
  }
  if (!n.isFloat(0))
    return n.fail("input is not floating point");
  ++*n.activeDropouts;
  auto [x, keep] = dropOut(n.b, n.input(0), *ratio, *n.step);
  if (n.wants(1) && failed(n.set(keep, 1)))
    return failure();
  return n.set(x);
}

const OpRow kLeafOps[] = {
    {"", "Constant", kAny, kNew, 0, opConstant}, {"", "ConstantOfShape", kAny, kNew, 1, opConstantOfShape},
    {"", "Dropout", kAny, kNew, 1, opDropout},   {"", "EyeLike", kAny, kNew, 1, opEyeLike},
    {"", "Range", kAny, kNew, 3, opRange},       {"", "Shape", kAny, kNew, 1, opShape},
    {"", "Size", kAny, kNew, 1, opSize},
};
} // namespace

ArrayRef<OpRow> leafOps() { return kLeafOps; }

} // namespace tessera::onnx_import
