//===- Gamma.cpp - the gamma function's logarithm ---------------------------===//
//
// Lanczos' approximation with the coefficients of P. Godfrey (2001) for g = 607/128, of magnitudes; negative numbers by
// gamma(-y) gamma(y) = -pi / (y sin(pi y)).
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Gamma.h"

#include "frontends/common/Functions.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

namespace {
constexpr double kPi = std::numbers::pi;
constexpr double kLanczosShift = 607.0 / 128.0 + 0.5, kLanczosFirst = 0.99999999999999709182;
constexpr double kSeries[] = {57.156235665862923517,     -59.597960355475491248,    14.136097974741747174,
                              -0.49191381609762019978,   .33994649984811888699e-4,  .46523628927048575665e-4,
                              -.98374475304879564677e-4, .15808870322491248884e-3,  -.21026444172410488319e-3,
                              .21743961811521264320e-3,  -.16431810653676389022e-3, .84418223983852743293e-4,
                              -.26190838401581408670e-4, .36899182659531622704e-5};

/// A number taken apart, so that no branch that is not selected divides by 0 or overflows.
struct Parts {
  Value isNegative, isInfinite;
  Value size; ///< |x|; 1 where that is infinite
  Value rest; ///< |x| less the nearest whole number where x is negative, else 1/2
};
Parts partsOf(Build &b, Value x) {
  Value isNegative = compareWith(b, CompareDirection::Lt, x, 0), isInfinite = frontend::isInfinite(b, x);
  Value size = b.select(isInfinite, b.splatLike(x, 1), b.unary<AbsOp>(x));
  Value rest = b.select(isNegative, b.sub(size, b.unary<RoundOp>(size)), b.splatLike(x, 0.5));
  return {isNegative, isInfinite, size, rest};
}

/// The series, or its slope.
Value series(Build &b, Value x, bool isSlope) {
  Value sum;
  for (size_t i = std::size(kSeries); i > 0; --i) {
    Value place = plus(b, x, static_cast<double>(i));
    Value term =
        b.div(b.splatLike(x, isSlope ? -kSeries[i - 1] : kSeries[i - 1]), isSlope ? b.mul(place, place) : place);
    sum = sum ? b.add(sum, term) : term;
  }
  return isSlope ? sum : plus(b, sum, kLanczosFirst);
}
} // namespace

Value logGamma(Build &b, Value x) {
  const Parts parts = partsOf(b, x);
  Value y = parts.size, t = plus(b, y, kLanczosShift), zero = b.splatLike(x, 0);
  Value above = b.sub(b.mul(plus(b, y, 0.5), b.unary<LogOp>(t)), t);
  above = b.add(plus(b, above, 0.5 * std::log(2 * kPi)), b.unary<LogOp>(b.div(series(b, y, false), y)));
  // 0 at 1 and 2 exactly, with the slope that it has.
  Value isZero = b.max(compareWith(b, CompareDirection::Eq, y, 1), compareWith(b, CompareDirection::Eq, y, 2));
  Value rounding = StopGradientOp::create(b.builder, b.loc, above);
  above = b.sub(above, b.select(isZero, rounding, zero));
  Value safe = b.select(parts.isNegative, y, b.splatLike(x, 1));
  Value sine = b.unary<AbsOp>(b.unary<SinOp>(b.scale(parts.rest, kPi)));
  Value below = b.sub(b.unary<LogOp>(b.div(b.splatLike(x, kPi), b.mul(safe, sine))), above);
  return b.select(parts.isInfinite, b.unary<AbsOp>(x), b.select(parts.isNegative, below, above));
}

Value digamma(Build &b, Value x) {
  const Parts parts = partsOf(b, x);
  Value y = parts.size, t = plus(b, y, kLanczosShift), one = b.splatLike(x, 1);
  Value smooth = b.add(b.div(series(b, y, true), series(b, y, false)), b.unary<LogOp>(t));
  smooth = b.add(smooth, plus(b, b.div(plus(b, y, 0.5), t), -1));
  Value angle = b.scale(parts.rest, kPi);
  Value below = b.add(smooth, b.scale(b.div(b.unary<CosOp>(angle), b.unary<SinOp>(angle)), kPi));
  // psi(inf) is inf, psi(-inf) no number, as in PyTorch.
  Value infinite = b.sub(x, b.select(parts.isNegative, x, b.splatLike(x, 0)));
  return b.select(parts.isInfinite, infinite, b.select(parts.isNegative, below, b.sub(smooth, b.div(one, y))));
}

} // namespace tessera::frontend
