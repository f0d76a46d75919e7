//===- OpsComplexProduct.cpp - products of complex matrices -----------------===//
//
// Of real ones: four of two matrices, as PyTorch's own kernels multiply them. (Three would do, with more rounding where
// parts cancel.)
//
//===----------------------------------------------------------------------===//

#include "frontends/pt2/Complex.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// Factors that one operator may have: each doubles the number of real products.
constexpr size_t kMostFactors = 4;

/// Of the product of all complex inputs: the sum over all choices of parts, with i^2 = -1. Inputs of `skipped` are
/// left out.
FailureOr<Value> productOf(Call &c, ArrayRef<int> skipped = {}) {
  SmallVector<int> factors;
  SmallVector<int64_t> parts(c.inputCount(), 0);
  for (int i = 0; i < c.inputCount(); ++i) {
    if (llvm::is_contained(skipped, i)) {
      parts[i] = kLeftOut;
      continue;
    }
    if (!c.has(i) || !c.inputs[i].isComplex)
      return c.fail("products of complex and real matrices are not supported");
    factors.push_back(i);
  }
  if (factors.size() > kMostFactors)
    return c.fail("products of more than " + Twine(kMostFactors) + " complex matrices are not supported");
  Value sums[2];
  for (unsigned choice = 0; choice < 1U << factors.size(); ++choice) {
    for (auto [at, i] : llvm::enumerate(factors))
      parts[i] = choice >> at & 1;
    auto call = callOfParts(c, parts);
    if (failed(call))
      return failure();
    Value term = call->outputs[0].value;
    if (!term)
      return c.fail(kNoComplex);
    const int imaginary = llvm::popcount(choice); // factors: i to this power
    Value &sum = sums[imaginary % 2];
    if (!sum)
      sum = imaginary / 2 % 2 == 1 ? c.b.neg(term) : term;
    else
      sum = imaginary / 2 % 2 == 1 ? c.b.sub(sum, term) : c.b.add(sum, term);
  }
  return frontend::joinParts(c.b, sums[0], sums[1]);
}

LogicalResult opProduct(Call &c) {
  auto made = productOf(c);
  return failed(made) ? failure() : c.setComplex(*made);
}

/// Of the conjugate of the first.
LogicalResult opVdot(Call &c) {
  Call conjugated = c;
  Entry &self = conjugated.inputs[c.at("self")];
  if (!self.isComplex)
    return c.fail(kNoComplex);
  self.value = frontend::conjugate(c.b, c.value("self"));
  self.constant = nullptr;
  auto made = productOf(conjugated);
  return failed(made) ? c.fail(conjugated.reason) : c.setComplex(*made);
}

/// The bias is added to the product.
LogicalResult opComplexLinear(Call &c) {
  if (!c.isTensor("bias"))
    return opProduct(c);
  auto made = productOf(c, c.at("bias"));
  if (failed(made))
    return failure();
  auto shape = broadcastShape(shapeOf(*made), c.shape("bias"));
  if (!c.isComplex("bias") || c.element("bias") != c.element("input") || !shape ||
      ArrayRef<int64_t>(*shape) != shapeOf(*made))
    return c.fail("the bias does not fit");
  return c.setComplex(c.b.add(*made, c.b.broadcastTo(c.value("bias"), *shape)));
}

const OpRow kComplexProductOps[] = {
    {"aten.bmm.default", opProduct, "self,mat2"},
    {"aten.dot.default", opProduct, "self,tensor"},
    {"aten.einsum.default", opProduct, ""},
    {"aten.inner.default", opProduct, "self,other"},
    {"aten.linalg_matmul.default", opProduct, "self,other"},
    {"aten.linear.default", opComplexLinear, "input,weight"},
    {"aten.matmul.default", opProduct, "self,other"},
    {"aten.mm.default", opProduct, "self,mat2"},
    {"aten.mv.default", opProduct, "self,vec"},
    {"aten.outer.default", opProduct, "self,vec2"},
    {"aten.tensordot.default", opProduct, "self,other"},
    {"aten.vdot.default", opVdot, "self,other"},
};
} // namespace

llvm::ArrayRef<OpRow> complexProductOps() { return kComplexProductOps; }

} // namespace tessera::pt2
