//===- OpsComplex.cpp - complex numbers as pairs of real ones ---------------===//
//
// Rows of operators that read or give complex numbers. A complex tensor is one of floats with a last dimension of size
// 2, the real and the imaginary part; gradients are then PyTorch's, which are those of the two parts.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Functions.h"
#include "frontends/pt2/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
using frontend::compareWith;

/// The real part (0) or the imaginary part (1) of pairs.
Value partOf(Build &b, Value pairs, int64_t part) {
  SmallVector<int64_t> starts(shapeOf(pairs).size(), 0), limits(shapeOf(pairs));
  starts.back() = part;
  limits.back() = part + 1;
  return b.reshape(b.slice(pairs, starts, limits), shapeOf(pairs).drop_back());
}

/// Pairs of parts of one shape.
Value joined(Build &b, Value real, Value imaginary) {
  SmallVector<int64_t> shape(shapeOf(real));
  const auto dim = static_cast<int64_t>(shape.size());
  shape.push_back(1);
  return b.concat({b.reshape(real, shape), b.reshape(imaginary, shape)}, dim);
}

// --- Operands ---

std::optional<std::complex<double>> numberOf(Call &c, StringRef name) {
  const Argument *argument = c.node.input(name.str());
  if (const auto *value = argument ? argument->as<std::complex<double>>() : nullptr)
    return *value;
  std::optional<double> value = c.number(name);
  return value ? std::optional<std::complex<double>>(*value) : std::nullopt;
}

/// A tensor or a number, real or complex, as pairs of parts of the result's type.
FailureOr<Value> pairsOf(Call &c, StringRef name) {
  Build &b = c.b;
  Type element = c.resultElement();
  if (!isa_and_nonnull<FloatType>(element))
    return c.fail(kNoComplex);
  if (c.isTensor(name)) {
    Value x = b.convert(c.value(name), element);
    return c.isComplex(name) ? x : joined(b, x, b.splatLike(x, 0));
  }
  auto number = numberOf(c, name);
  if (!number)
    return c.fail("'" + name + "' is neither a tensor nor a number that a double holds");
  auto real = c.splat(element, number->real()), imaginary = c.splat(element, number->imag());
  return failed(real) || failed(imaginary) ? FailureOr<Value>() : joined(b, *real, *imaginary);
}

/// Whether it is a tensor or a number without an imaginary part.
bool isReal(Call &c, StringRef name) { return c.isTensor(name) ? !c.isComplex(name) : c.number(name).has_value(); }

/// A real tensor or number in the result's type, with a last dimension of size 1, which broadcasts to both parts.
FailureOr<Value> factorOf(Call &c, StringRef name) {
  if (!isa_and_nonnull<FloatType>(c.resultElement()))
    return c.fail(kNoComplex);
  auto x = c.isTensor(name) ? c.b.convert(c.value(name), c.resultElement())
                            : c.splat(c.resultElement(), c.numberOr(name, 0));
  if (failed(x))
    return failure();
  SmallVector<int64_t> shape(shapeOf(*x));
  shape.push_back(1);
  return c.b.reshape(*x, shape);
}

/// Broadcasts two values to their common shape.
LogicalResult broadcast(Call &c, Value &x, Value &y) {
  auto shape = broadcastShape(shapeOf(x), shapeOf(y));
  if (!shape)
    return c.fail("shapes do not broadcast");
  x = c.b.broadcastTo(x, *shape);
  y = c.b.broadcastTo(y, *shape);
  return success();
}

// --- Between real and complex ---

/// Of two real tensors of one type.
template <Value (*function)(Build &, Value, Value)> LogicalResult ofReal(Call &c, StringRef first, StringRef second) {
  if (c.isComplex(first) || c.isComplex(second) || c.element(first) != c.resultElement() ||
      c.element(second) != c.resultElement())
    return c.fail("expected real tensors of the type of the result's parts");
  Value x = c.value(first), y = c.value(second);
  return failed(broadcast(c, x, y)) ? failure() : c.setComplex(function(c.b, x, y));
}
LogicalResult opComplex(Call &c) { return ofReal<joined>(c, "real", "imag"); }

/// Lengths below 0 are not meant to be; PyTorch's slope by them has the other sign, and that at 0 is 0.
Value polar(Build &b, Value length, Value angle) {
  Value size = b.unary<AbsOp>(length), twice = StopGradientOp::create(b.builder, b.loc, b.scale(size, 2));
  Value x = b.select(compareWith(b, CompareDirection::Lt, length, 0), b.sub(size, twice), size);
  return joined(b, b.mul(x, b.unary<CosOp>(angle)), b.mul(x, b.unary<SinOp>(angle)));
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
LogicalResult opTo(Call &c) {
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

/// Sets what is made of the parts.
LogicalResult ofParts(Call &c, llvm::function_ref<LogicalResult(Build &, Value, Value)> set) {
  if (!c.isComplex("self"))
    return c.fail(kNoComplex);
  Value x = c.value("self");
  return set(c.b, partOf(c.b, x, 0), partOf(c.b, x, 1));
}

LogicalResult opConjugate(Call &c) {
  return ofParts(c, [&](Build &b, Value x, Value y) { return c.setComplex(joined(b, x, b.neg(y))); });
}
LogicalResult opExp(Call &c) {
  return ofParts(c, [&](Build &b, Value x, Value y) {
    Value length = b.exp(x);
    return c.setComplex(joined(b, b.mul(length, b.unary<CosOp>(y)), b.mul(length, b.unary<SinOp>(y))));
  });
}
/// At 0 the slope is 0.
LogicalResult opAbs(Call &c) {
  return ofParts(c, [&](Build &b, Value x, Value y) {
    Value isZero = b.mul(compareWith(b, CompareDirection::Eq, x, 0), compareWith(b, CompareDirection::Eq, y, 0));
    Value length = frontend::hypot(b, b.select(isZero, b.splatLike(x, 1), x), y);
    return c.set(b.select(isZero, b.splatLike(x, 0), length));
  });
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

Value product(Build &b, Value x, Value y) {
  Value a = partOf(b, x, 0), d = partOf(b, x, 1), e = partOf(b, y, 0), f = partOf(b, y, 1);
  return joined(b, b.sub(b.mul(a, e), b.mul(d, f)), b.add(b.mul(a, f), b.mul(d, e)));
}

/// A real operand scales both parts: no product of an infinity with an imaginary part of 0 is made.
LogicalResult opMul(Call &c) {
  const bool isScaled = isReal(c, "other"), isScale = !isScaled && isReal(c, "self");
  auto x = isScale ? factorOf(c, "self") : pairsOf(c, "self");
  auto y = isScaled ? factorOf(c, "other") : pairsOf(c, "other");
  if (failed(x) || failed(y) || failed(broadcast(c, *x, *y)))
    return failure();
  return c.setComplex(isScaled || isScale ? c.b.mul(*x, *y) : product(c.b, *x, *y));
}

LogicalResult opDiv(Call &c) {
  if (!isReal(c, "other"))
    return c.fail("quotients by complex numbers are not supported");
  auto x = pairsOf(c, "self"), y = factorOf(c, "other");
  if (failed(x) || failed(y) || failed(broadcast(c, *x, *y)))
    return failure();
  return c.setComplex(c.b.div(*x, *y));
}

// --- What moves elements, or adds them up ---

/// The row of the same operator for real numbers.
const OpRow *realRow(const Call &c) { return findOp(shortTarget(c.node.target)); }

/// Whether all that is moved is complex: each tensor of a list, or the first argument. Others are indices or shapes.
bool movesComplex(const Call &c) {
  auto list = c.list("tensors");
  return list ? llvm::all_of(*list, [&](int i) { return c.has(i) && c.inputs[i].isComplex; })
              : !c.inputs.empty() && c.inputs[0].isComplex;
}

/// The call of one part.
FailureOr<Call> callOf(Call &c, int64_t part) {
  const OpRow *row = realRow(c);
  if (!row || !movesComplex(c))
    return c.fail(kNoComplex);
  Call real = c;
  for (int i = 0; i < c.inputCount(); ++i)
    if (c.inputs[i].isComplex) {
      real.inputs[i] = Entry();
      real.inputs[i].value = partOf(c.b, c.input(i), part);
    }
  real.outputs.assign(c.outputs.size(), Entry());
  return failed(row->handler(real)) ? FailureOr<Call>(c.fail(real.reason)) : FailureOr<Call>(std::move(real));
}

/// Runs the real row on both parts.
LogicalResult opEachPart(Call &c) {
  auto real = callOf(c, 0), imaginary = callOf(c, 1);
  if (failed(real) || failed(imaginary))
    return failure();
  for (auto [i, x, y] : llvm::enumerate(real->outputs, imaginary->outputs))
    if (!x.value || !y.value)
      return c.fail(kNoComplex);
    else if (failed(c.setComplex(joined(c.b, x.value, y.value), static_cast<int>(i))))
      return failure();
  return success();
}

/// Of sizes: what they are of one part.
LogicalResult opSizes(Call &c) {
  auto real = callOf(c, 0);
  if (failed(real))
    return failure();
  c.outputs = std::move(real->outputs);
  return success();
}

/// In place: of a constant, as torch.tensor() in a module writes it, nothing changes.
LogicalResult opDetachInPlace(Call &c) {
  return c.known("self") ? opPairs(c) : c.fail("it changes what is no constant");
}
LogicalResult opNothing(Call &) { return success(); }

const OpRow kRows[] = {
    {"aten._assert_tensor_metadata.default", opNothing, ""},
    {"aten._conj.default", opConjugate},
    {"aten._conj_physical.default", opConjugate},
    {"aten._to_copy.default", opTo},
    {"aten._unsafe_view.default", opEachPart},
    {"aten.abs.default", opAbs},
    {"aten.add.Scalar", opSum<true>},
    {"aten.add.Tensor", opSum<true>},
    {"aten.alias.default", opPairs},
    {"aten.cat.default", opEachPart, ""},
    {"aten.chunk.default", opEachPart},
    {"aten.clone.default", opPairs},
    {"aten.complex.default", opComplex, "real,imag"},
    {"aten.concat.default", opEachPart, ""},
    {"aten.conj.default", opConjugate},
    {"aten.conj_physical.default", opConjugate},
    {"aten.contiguous.default", opPairs},
    {"aten.detach.default", opBoth<StopGradientOp>},
    {"aten.detach_.default", opDetachInPlace},
    {"aten.div.Scalar", opDiv},
    {"aten.div.Tensor", opDiv},
    {"aten.embedding.default", opEachPart, "weight,indices"},
    {"aten.exp.default", opExp},
    {"aten.expand.default", opEachPart},
    {"aten.expand_as.default", opEachPart, "self,other"},
    {"aten.flatten.using_ints", opEachPart},
    {"aten.flip.default", opEachPart},
    {"aten.imag.default", opPart<1>},
    {"aten.index.Tensor", opEachPart},
    {"aten.index_select.default", opEachPart, "self,index"},
    {"aten.lift_fresh_copy.default", opPairs},
    {"aten.mT.default", opEachPart},
    {"aten.mean.default", opEachPart},
    {"aten.mean.dim", opEachPart},
    {"aten.movedim.int", opEachPart},
    {"aten.movedim.intlist", opEachPart},
    {"aten.mul.Scalar", opMul},
    {"aten.mul.Tensor", opMul},
    {"aten.neg.default", opBoth<NegOp>},
    {"aten.permute.default", opEachPart},
    {"aten.polar.default", opPolar, "abs,angle"},
    {"aten.real.default", opPart<0>},
    {"aten.repeat.default", opEachPart},
    {"aten.reshape.default", opEachPart},
    {"aten.resolve_conj.default", opPairs},
    {"aten.resolve_neg.default", opPairs},
    {"aten.roll.default", opEachPart},
    {"aten.rsub.Scalar", opSum<false, true>},
    {"aten.rsub.Tensor", opSum<false, true>},
    {"aten.select.int", opEachPart},
    {"aten.slice.Tensor", opEachPart},
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
    {"aten.to.device", opTo},
    {"aten.to.dtype", opTo},
    {"aten.to.dtype_layout", opTo},
    {"aten.transpose.int", opEachPart},
    {"aten.type_as.default", opTo, "self,other"},
    {"aten.unbind.int", opEachPart},
    {"aten.unflatten.int", opEachPart},
    {"aten.unsqueeze.default", opEachPart},
    {"aten.view.default", opEachPart},
    {"aten.view_as.default", opEachPart, "self,other"},
    {"aten.view_as_complex.default", opViewAsComplex},
    {"aten.view_as_real.default", opViewAsReal},
};
} // namespace

llvm::ArrayRef<OpRow> complexOps() { return kRows; }

} // namespace tessera::pt2
