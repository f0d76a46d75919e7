//===- GpuAttentions.cpp - attention as a GPU's kernels see it ------------===//

#include "compiler/cost/GpuAttentions.h"

#include "compiler/dialect/exec/Exec.h"
#include "compiler/dialect/train/Builders.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::cost {

namespace {
ShapedType typeOf(Value value) { return cast<ShapedType>(value.getType()); }

/// What all four ops have.
template <typename Op>
GpuAttention describe(Op op, Value query, Value key, Value value, std::initializer_list<Value> results) {
  GpuAttention made;
  auto q = typeOf(query).getShape(), v = typeOf(value).getShape();
  made.batch = q[0], made.heads = q[1], made.queries = q[2], made.depth = q[3];
  made.groups = v[1], made.keys = v[2], made.valueDepth = v[3];
  made.window = op.getWindow().value_or(0);
  made.scale = static_cast<float>(op.getScale().convertToDouble());
  made.isCausal = op.getCausal();
  made.hasMask = op.getMask() != nullptr;
  made.hasRanges = op.getBegin() != nullptr;
  const Type element = typeOf(query).getElementType();
  made.isHalf = element.isBF16() || element.isF16();
  for (Value result : results)
    made.hasWideResults |= typeOf(result).getElementType() != element;
  return made;
}
template <typename Op>
GpuAttention describeGrad(Op op, Value query, Value key, Value value, std::initializer_list<Value> results) {
  GpuAttention made = describe(op, query, key, value, results);
  made.isBackward = true;
  return made;
}
} // namespace

std::optional<GpuAttention> gpuAttention(Operation *op) {
  using Described = std::optional<GpuAttention>;
  return llvm::TypeSwitch<Operation *, Described>(op)
      .Case([](train::AttentionOp a) { return describe(a, a.getQuery(), a.getKey(), a.getValue(), {a.getResult()}); })
      .Case([](exec::AttentionOp a) { return describe(a, a.getQ(), a.getK(), a.getV(), {a.getOut()}); })
      .Case([](train::AttentionGradOp a) {
        return describeGrad(a, a.getQuery(), a.getKey(), a.getValue(),
                            {a.getOutput(), a.getQueryGrad(), a.getKeyGrad(), a.getValueGrad()});
      })
      .Case([](exec::AttentionGradOp a) {
        return describeGrad(a, a.getQ(), a.getK(), a.getV(), {a.getOut(), a.getDq(), a.getDk(), a.getDv()});
      })
      .Default([](Operation *) { return Described(); });
}

} // namespace tessera::cost
