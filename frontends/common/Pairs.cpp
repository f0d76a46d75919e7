//===- Pairs.cpp - complex numbers as pairs of real ones --------------------===//

#include "frontends/common/Pairs.h"

#include "frontends/common/Axis.h"
#include "frontends/common/Functions.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

Value partOf(Build &b, Value pairs, int64_t part) {
  return elementAlong(b, pairs, static_cast<int64_t>(shapeOf(pairs).size()) - 1, part);
}

Value joinParts(Build &b, Value real, Value imaginary) {
  SmallVector<int64_t> shape(shapeOf(real));
  const auto dim = static_cast<int64_t>(shape.size());
  shape.push_back(1);
  return b.concat({b.reshape(real, shape), b.reshape(imaginary, shape)}, dim);
}

Value fromPolar(Build &b, Value length, Value angle) {
  return joinParts(b, b.mul(length, b.unary<CosOp>(angle)), b.mul(length, b.unary<SinOp>(angle)));
}

Value multiplyPairs(Build &b, Value x, Value y) {
  Value xr = partOf(b, x, 0), xi = partOf(b, x, 1), yr = partOf(b, y, 0), yi = partOf(b, y, 1);
  return joinParts(b, b.sub(b.mul(xr, yr), b.mul(xi, yi)), b.add(b.mul(xr, yi), b.mul(xi, yr)));
}

/// x conj(y) / |y|^2 of both divided by the scale, on which the quotient does not depend.
Value dividePairs(Build &b, Value x, Value y) {
  Value yr = partOf(b, y, 0), yi = partOf(b, y, 1), scale = scaleOf(b, yr, yi);
  auto scaled = [&](Value part) { return b.div(part, scale); };
  Value xr = scaled(partOf(b, x, 0)), xi = scaled(partOf(b, x, 1));
  yr = scaled(yr);
  yi = scaled(yi);
  Value square = b.add(b.mul(yr, yr), b.mul(yi, yi));
  return joinParts(b, b.div(b.add(b.mul(xr, yr), b.mul(xi, yi)), square),
                   b.div(b.sub(b.mul(xi, yr), b.mul(xr, yi)), square));
}

Value conjugate(Build &b, Value pairs) { return joinParts(b, partOf(b, pairs, 0), b.neg(partOf(b, pairs, 1))); }

} // namespace tessera::frontend
