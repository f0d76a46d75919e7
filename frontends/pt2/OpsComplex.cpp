//===- OpsComplex.cpp - complex numbers as pairs of real ones ---------------===//
//
// Rows of operators that make complex numbers, take them apart, add or multiply them element by element, or move them.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Functions.h"
#include "frontends/pt2/Complex.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::compareWith;
using frontend::joinParts;
using frontend::partOf;

// --- Between real and complex ---

/// Of two real tensors of one type.
template <Value (*function)(Build &, Value, Value)> LogicalResult ofReal(Call &c, StringRef first, StringRef second) {
  if (c.isComplex(first) || c.isComplex(second) || c.element(first) != c.resultElement() ||
      c.element(second) != c.resultElement())
    return c.fail("expected real tensors of the type of the result's parts");
  Value x = c.value(first), y = c.value(second);
  return failed(broadcast(c, x, y)) ? failure() : c.setComplex(function(c.b, x, y));
}
LogicalResult opComplex(Call &c) { return ofReal<joinParts>(c, "real", "imag"); }

/// Lengths below 0 are not meant to be; PyTorch's slope by them has the other sign, and that at 0 is 0.
Value polar(Build &b, Value length, Value angle) {
  Value size = b.unary<AbsOp>(length), twice = StopGradientOp::create(b.builder, b.loc, b.scale(size, 2));
  Value x = b.select(compareWith(b, CompareDirection::Lt, length, 0), b.sub(size, twice), size);
  return frontend::fromPolar(b, x, angle);
}
LogicalResult opPolar(Call &c) { return ofReal<polar>(c, "abs", "angle"); }

LogicalResult opViewAsComplex(Call &c) {
  if (c.isComplex("self") || c.rank("self") == 0 || c.shape("self").back() != 2)
    return c.fail("expected a real tensor with a last dimension of size 2");
  return c.setComplex(c.value("self"));
}
LogicalResult opViewAsReal(Call &c) {
  return c.isComplex("self") ? c.set(c.value("self")) : c.fail("expected a complex tensor");
}
template <int part> LogicalResult opPart(Call &c) {
  return c.isComplex("self") ? c.set(partOf(c.b, c.value("self"), part)) : c.fail("expected a complex tensor");
}

/// To another complex type; of real numbers; or to a real type, which leaves the real part.
LogicalResult opComplexTo(Call &c) {
  if (!c.givesComplex()) {
    if (!c.isComplex("self") || !isa_and_nonnull<FloatType>(c.resultElement()))
      return c.fail(kNoComplex);
    return c.set(c.b.convert(partOf(c.b, c.value("self"), 0), c.resultElement()));
  }
  auto pairs = pairsOf(c, "self");
  return failed(pairs) ? failure() : c.setComplex(*pairs);
}

// --- Functions of each element ---

LogicalResult opPairs(Call &c) { return c.isComplex("self") ? c.setComplex(c.value("self")) : c.fail(kNoComplex); }
template <typename Op> LogicalResult opBoth(Call &c) {
  return c.isComplex("self") ? c.setComplex(c.b.unary<Op>(c.value("self"))) : c.fail(kNoComplex);
}

LogicalResult opConjugate(Call &c) {
  return c.isComplex("self") ? c.setComplex(frontend::conjugate(c.b, c.value("self"))) : c.fail(kNoComplex);
}

// --- Arithmetic ---

/// self + alpha * other, or the difference; `isTurned`: other - alpha * self.
template <bool isSum, bool isTurned = false> LogicalResult opSum(Call &c) {
  auto x = pairsOf(c, isTurned ? "other" : "self"), y = pairsOf(c, isTurned ? "self" : "other");
  if (failed(x) || failed(y) || failed(broadcast(c, *x, *y)))
    return failure();
  const std::optional<double> alpha = c.has("alpha") ? c.number("alpha") : 1;
  if (!alpha)
    return c.fail("alpha is no real number that a double holds");
  Value scaled = *alpha == 1 ? *y : c.b.scale(*y, *alpha);
  return c.setComplex(isSum ? c.b.add(*x, scaled) : c.b.sub(*x, scaled));
}

/// A real operand scales both parts: no product of an infinity with an imaginary part of 0 is made.
LogicalResult opComplexMul(Call &c) {
  const bool isScaled = isReal(c, "other"), isScale = !isScaled && isReal(c, "self");
  auto x = isScale ? factorOf(c, "self") : pairsOf(c, "self");
  auto y = isScaled ? factorOf(c, "other") : pairsOf(c, "other");
  if (failed(x) || failed(y) || failed(broadcast(c, *x, *y)))
    return failure();
  return c.setComplex(isScaled || isScale ? c.b.mul(*x, *y) : frontend::multiplyPairs(c.b, *x, *y));
}

/// By a real divisor each part is divided.
LogicalResult opComplexDiv(Call &c) {
  const bool isScaled = isReal(c, "other");
  auto x = pairsOf(c, "self"), y = isScaled ? factorOf(c, "other") : pairsOf(c, "other");
  if (failed(x) || failed(y) || failed(broadcast(c, *x, *y)))
    return failure();
  return c.setComplex(isScaled ? c.b.div(*x, *y) : frontend::dividePairs(c.b, *x, *y));
}

// --- Choices ---

/// One of two by a condition, which has no parts.
LogicalResult choose(Call &c, StringRef condition, StringRef onTrue, StringRef onFalse) {
  auto x = pairsOf(c, onTrue), y = pairsOf(c, onFalse);
  if (failed(x) || failed(y) || failed(broadcast(c, *x, *y)))
    return failure();
  SmallVector<int64_t> shape(c.shape(condition));
  shape.push_back(1);
  auto common = broadcastShape(shape, shapeOf(*x));
  if (!c.element(condition).isInteger(1) || !common)
    return c.fail("the condition is not boolean, or does not fit");
  auto wide = [&](Value value) { return c.b.broadcastTo(value, *common); };
  return c.setComplex(c.b.select(wide(c.b.reshape(c.value(condition), shape)), wide(*x), wide(*y)));
}
LogicalResult opComplexWhere(Call &c) { return choose(c, "condition", "self", "other"); }
/// One number in the shape of `self`.
LogicalResult opComplexFill(Call &c) {
  auto x = pairsOf(c, "value");
  if (failed(x))
    return failure();
  if (!c.isComplex("self") || shapeOf(*x).size() != 1)
    return c.fail("expected a complex tensor, and one number");
  return c.setComplex(c.b.broadcastTo(*x, c.shape("self")));
}
LogicalResult opComplexMaskedFill(Call &c) { return choose(c, "mask", "value", "self"); }

// --- What moves elements, or adds them up ---

/// Whether all that is moved is complex: each tensor of a list, or the first argument. Others are indices or shapes.
bool movesComplex(const Call &c) {
  auto list = c.list("tensors");
  return list ? llvm::all_of(*list, [&](int i) { return c.has(i) && c.inputs[i].isComplex; })
              : !c.inputs.empty() && c.inputs[0].isComplex;
}

/// Runs the row for real numbers on both parts; of real tensors that `widened` names the imaginary part is 0.
LogicalResult eachPart(Call &c, ArrayRef<StringRef> widened = {}) {
  const SmallVector<int64_t> zeros(c.inputCount(), 0), ones(c.inputCount(), 1);
  if (!movesComplex(c))
    return c.fail(kNoComplex);
  auto real = callOfParts(c, zeros, widened), imaginary = callOfParts(c, ones, widened);
  if (failed(real) || failed(imaginary))
    return failure();
  for (auto [i, x, y] : llvm::enumerate(real->outputs, imaginary->outputs))
    if (!x.value || !y.value)
      return c.fail(kNoComplex);
    else if (failed(c.setComplex(joinParts(c.b, x.value, y.value), static_cast<int>(i))))
      return failure();
  return success();
}
LogicalResult opEachPart(Call &c) { return eachPart(c); }
LogicalResult opComplexAdjoint(Call &c) {
  return failed(eachPart(c)) ? failure() : c.setComplex(frontend::conjugate(c.b, c.outputs[0].value));
}
LogicalResult opComplexCopy(Call &c) { return eachPart(c, {"src"}); }
LogicalResult opPut(Call &c) { return c.isComplex("values") ? eachPart(c) : c.fail(kNoComplex); }
LogicalResult opPlace(Call &c) { return c.isComplex("src") ? eachPart(c) : c.fail(kNoComplex); }
LogicalResult opComplexPad(Call &c) {
  const bool isZero = !c.has("value") || c.number("value") == 0.0;
  return isZero ? eachPart(c) : c.fail("complex numbers are padded only with 0");
}

/// Of sizes: what they are of one part.
LogicalResult opSizes(Call &c) {
  auto real = callOfParts(c, SmallVector<int64_t>(c.inputCount(), 0));
  if (failed(real))
    return failure();
  c.outputs = std::move(real->outputs);
  return success();
}

/// One real number everywhere.
LogicalResult opFilled(Call &c) {
  auto real = callOfParts(c, SmallVector<int64_t>(c.inputCount(), 0));
  if (failed(real))
    return failure();
  const Entry &made = real->outputs[0];
  Value x = made.value ? made.value : c.b.constant(made.constant->toAttr());
  return c.setComplex(joinParts(c.b, x, c.b.splatLike(x, 0)));
}

/// In place: of a constant, as torch.tensor() in a module writes it, nothing changes.
LogicalResult opComplexDetachInPlace(Call &c) {
  return c.known("self") ? opPairs(c) : c.fail("it changes what is no constant");
}
LogicalResult opComplexNothing(Call &) { return success(); }

const OpRow kComplexOps[] = {
    {"aten._assert_tensor_metadata.default", opComplexNothing, ""},
    {"aten._conj.default", opConjugate},
    {"aten._conj_physical.default", opConjugate},
    {"aten._to_copy.default", opComplexTo},
    {"aten._unsafe_view.default", opEachPart},
    {"aten.add.Scalar", opSum<true>},
    {"aten.add.Tensor", opSum<true>},
    {"aten.adjoint.default", opComplexAdjoint},
    {"aten.alias.default", opPairs},
    {"aten.broadcast_tensors.default", opEachPart, ""},
    {"aten.cat.default", opEachPart, ""},
    {"aten.chunk.default", opEachPart},
    {"aten.clone.default", opPairs},
    {"aten.complex.default", opComplex, "real,imag"},
    {"aten.concat.default", opEachPart, ""},
    {"aten.conj.default", opConjugate},
    {"aten.conj_physical.default", opConjugate},
    {"aten.constant_pad_nd.default", opComplexPad},
    {"aten.contiguous.default", opPairs},
    {"aten.copy.default", opComplexCopy, "self,src"},
    {"aten.cumsum.default", opEachPart},
    {"aten.detach.default", opBoth<StopGradientOp>},
    {"aten.detach_.default", opComplexDetachInPlace},
    {"aten.diagonal.default", opEachPart},
    {"aten.div.Scalar", opComplexDiv},
    {"aten.div.Tensor", opComplexDiv},
    {"aten.embedding.default", opEachPart, "weight,indices"},
    {"aten.empty.memory_format", opFilled, ""},
    {"aten.expand.default", opEachPart},
    {"aten.expand_as.default", opEachPart, "self,other"},
    {"aten.fill.Scalar", opComplexFill},
    {"aten.fill.Tensor", opComplexFill, "self,value"},
    {"aten.flatten.using_ints", opEachPart},
    {"aten.flip.default", opEachPart},
    {"aten.full.default", opFilled, ""},
    {"aten.gather.default", opEachPart, "self,index"},
    {"aten.imag.default", opPart<1>},
    {"aten.index.Tensor", opEachPart},
    {"aten.index_put.default", opPut, "self,values"},
    {"aten.index_select.default", opEachPart, "self,index"},
    {"aten.lift_fresh_copy.default", opPairs},
    {"aten.mH.default", opComplexAdjoint},
    {"aten.mT.default", opEachPart},
    {"aten.masked_fill.Scalar", opComplexMaskedFill, "self,mask"},
    {"aten.masked_fill.Tensor", opComplexMaskedFill, "self,mask"},
    {"aten.matrix_H.default", opComplexAdjoint},
    {"aten.mean.default", opEachPart},
    {"aten.mean.dim", opEachPart},
    {"aten.movedim.int", opEachPart},
    {"aten.movedim.intlist", opEachPart},
    {"aten.mul.Scalar", opComplexMul},
    {"aten.mul.Tensor", opComplexMul},
    {"aten.narrow.default", opEachPart},
    {"aten.neg.default", opBoth<NegOp>},
    {"aten.new_zeros.default", opFilled},
    {"aten.numpy_T.default", opEachPart},
    {"aten.ones.default", opFilled, ""},
    {"aten.ones_like.default", opFilled},
    {"aten.pad.default", opComplexPad},
    {"aten.permute.default", opEachPart},
    {"aten.polar.default", opPolar, "abs,angle"},
    {"aten.real.default", opPart<0>},
    {"aten.repeat.default", opEachPart},
    {"aten.repeat_interleave.self_int", opEachPart},
    {"aten.reshape.default", opEachPart},
    {"aten.resolve_conj.default", opPairs},
    {"aten.resolve_neg.default", opPairs},
    {"aten.roll.default", opEachPart},
    {"aten.rsub.Scalar", opSum<false, true>},
    {"aten.rsub.Tensor", opSum<false, true>},
    {"aten.scatter.src", opPlace, "self,index,src"},
    {"aten.scatter_add.default", opPlace, "self,index,src"},
    {"aten.select.int", opEachPart},
    {"aten.select_scatter.default", opPlace, "self,src"},
    {"aten.slice.Tensor", opEachPart},
    {"aten.slice_scatter.default", opPlace, "self,src"},
    {"aten.split.Tensor", opEachPart},
    {"aten.split.sizes", opEachPart},
    {"aten.split_with_sizes.default", opEachPart},
    {"aten.squeeze.default", opEachPart},
    {"aten.squeeze.dim", opEachPart},
    {"aten.squeeze.dims", opEachPart},
    {"aten.stack.default", opEachPart, ""},
    {"aten.sub.Scalar", opSum<false>},
    {"aten.sub.Tensor", opSum<false>},
    {"aten.sum.default", opEachPart},
    {"aten.sum.dim_IntList", opEachPart},
    {"aten.swapaxes.default", opEachPart},
    {"aten.swapdims.default", opEachPart},
    {"aten.sym_numel.default", opSizes},
    {"aten.sym_size.int", opSizes},
    {"aten.t.default", opEachPart},
    {"aten.to.device", opComplexTo},
    {"aten.to.dtype", opComplexTo},
    {"aten.to.dtype_layout", opComplexTo},
    {"aten.transpose.int", opEachPart},
    {"aten.tril.default", opEachPart},
    {"aten.triu.default", opEachPart},
    {"aten.type_as.default", opComplexTo, "self,other"},
    {"aten.unbind.int", opEachPart},
    {"aten.unflatten.int", opEachPart},
    {"aten.unsqueeze.default", opEachPart},
    {"aten.view.default", opEachPart},
    {"aten.view_as.default", opEachPart, "self,other"},
    {"aten.view_as_complex.default", opViewAsComplex},
    {"aten.view_as_real.default", opViewAsReal},
    {"aten.where.ScalarOther", opComplexWhere, "condition,self"},
    {"aten.where.ScalarSelf", opComplexWhere, "condition,other"},
    {"aten.where.self", opComplexWhere, "condition,self,other"},
    {"aten.zeros.default", opFilled, ""},
    {"aten.zeros_like.default", opFilled},
};
} // namespace

llvm::ArrayRef<OpRow> complexOps() { return kComplexOps; }

} // namespace tessera::pt2
