//===- Node.cpp - what an op handler sees of one ONNX node ----------------===//

#include "frontends/onnx/Node.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tessera::onnx_import {

Value Node::input(int i) {
  Entry &entry = inputs[i];
  if (!entry.value) {
    DenseElementsAttr splat = entry.constant->splatAttr(entry.constant->shape());
    entry.value = b.constant(splat ? splat : entry.constant->toAttr());
  }
  return entry.value;
}

RankedTensorType Node::type(int i) const {
  const Entry &entry = inputs[i];
  return entry.constant ? entry.constant->type : train::tensorType(entry.value);
}

Value Node::inputTo(int i, ArrayRef<int64_t> shape) {
  if (const HostTensor *value = constant(i); value && value->shape() != shape)
    if (DenseElementsAttr splat = value->splatAttr(shape))
      return b.constant(splat);
  return b.broadcastTo(input(i), shape);
}

std::optional<SmallVector<int64_t>> Node::ints(int i) const {
  const HostTensor *value = constant(i);
  if (!value || value->isFloat() || value->type.getRank() > 1)
    return std::nullopt;
  return SmallVector<int64_t>(value->ints.begin(), value->ints.end());
}

std::optional<double> Node::scalar(int i) const {
  const HostTensor *value = constant(i);
  constexpr int64_t largest = int64_t{1} << 53; // beyond this a double does not hold every integer
  if (!value || value->size() != 1 || (!value->isFloat() && (value->ints[0] < -largest || value->ints[0] > largest)))
    return std::nullopt;
  return value->number(0);
}

const onnx::AttributeProto *Node::attribute(StringRef name) const {
  for (const auto &attribute : proto.attribute())
    if (name == attribute.name())
      return &attribute;
  return nullptr;
}

int64_t Node::attr(StringRef name, int64_t fallback) const {
  const auto *attribute = this->attribute(name);
  return attribute && attribute->has_i() ? attribute->i() : fallback;
}

double Node::attrFloat(StringRef name, double fallback) const {
  const auto *attribute = this->attribute(name);
  return attribute && attribute->has_f() ? attribute->f() : fallback;
}

std::string Node::attrString(StringRef name, StringRef fallback) const {
  const auto *attribute = this->attribute(name);
  return attribute && attribute->has_s() ? attribute->s() : fallback.str();
}

std::optional<SmallVector<int64_t>> Node::attrInts(StringRef name) const {
  const auto *attribute = this->attribute(name);
  if (!attribute)
    return std::nullopt;
  return SmallVector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}

std::optional<SmallVector<int64_t>> Node::axesOf(ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t axis : axes) {
    auto checked = axisOf(axis, rank);
    if (!checked)
      return std::nullopt;
    result.push_back(*checked);
  }
  llvm::sort(result);
  if (std::adjacent_find(result.begin(), result.end()) != result.end())
    return std::nullopt;
  return result;
}

std::optional<SmallVector<int64_t>> Node::broadcastShape(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  SmallVector<int64_t> shape(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return std::nullopt;
    shape[shape.size() - 1 - i] = x == 1 ? y : x;
  }
  if (!countElements(shape))
    return std::nullopt;
  return shape;
}

std::string Node::shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "[";
  llvm::interleaveComma(shape, stream);
  stream << "]";
  return text;
}

LogicalResult Node::set(Value value, int i) {
  if (!countElements(train::shapeOf(value)))
    return fail("result of shape " + shapeText(train::shapeOf(value)) + " is too large");
  if (i < static_cast<int>(outputs.size()))
    outputs[i].value = value;
  return success();
}

LogicalResult Node::set(HostTensor constant, int i) {
  if (i < static_cast<int>(outputs.size()))
    outputs[i].constant = std::make_shared<const HostTensor>(std::move(constant));
  return success();
}

LogicalResult Node::set(Entry entry, int i) {
  if (i < static_cast<int>(outputs.size()))
    outputs[i] = std::move(entry);
  return success();
}

} // namespace tessera::onnx_import
