//===- Node.cpp - what an op handler sees of one ONNX node ----------------===//

#include "frontends/onnx/Node.h"

using namespace mlir;

namespace tessera::onnx_import {

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

} // namespace tessera::onnx_import
