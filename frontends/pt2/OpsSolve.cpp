//===- OpsSolve.cpp - determinants, inverses, powers of small matrices ------===//

#include "frontends/common/Functions.h"
#include "frontends/common/Solve.h"
#include "frontends/pt2/OpTable.h"

#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// The matrices of an argument as [batch, n, n].
FailureOr<Value> squareOf(Call &c, StringRef name) {
  ArrayRef<int64_t> shape = c.shape(name);
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2] ||
      !(c.element(name).isF32() || c.element(name).isF64()))
    return c.fail("expected square matrices of f32 or f64");
  const int64_t size = shape.back(), all = c.type(name).getNumElements();
  if (all == 0 || size > frontend::kMostRows)
    return c.fail("matrices of " + Twine(size) + " rows are not supported: 1 to " + Twine(frontend::kMostRows) +
                  " are");
  return c.b.reshape(c.value(name), {all / (size * size), size, size});
}

/// The argument that is a matrix, as overloads name it.
StringRef matrixName(Call &c) { return c.isTensor("A") ? "A" : "self"; }

SmallVector<int64_t> batchShape(Call &c, StringRef name) { return SmallVector<int64_t>(c.shape(name).drop_back(2)); }

/// Sign and logarithm of the magnitude of the determinant, [batch].
std::pair<Value, Value> signAndLogarithm(Build &b, Value matrix) {
  const frontend::Eliminated done = frontend::eliminate(b, matrix, {});
  Value pivots = frontend::pivotsOf(b, done);
  Value still = StopGradientOp::create(b.builder, b.loc, pivots);
  Value signs = b.reduce(ReduceKind::Mul, frontend::sign(b, still), {1});
  return {b.mul(done.sign, signs), b.sum(b.unary<LogOp>(b.unary<AbsOp>(pivots)), {1})};
}

LogicalResult opDeterminant(Call &c) {
  const StringRef name = matrixName(c);
  auto matrix = squareOf(c, name);
  if (failed(matrix))
    return failure();
  Build &b = c.b;
  const frontend::Eliminated done = frontend::eliminate(b, *matrix, {});
  Value product = b.mul(done.sign, b.reduce(ReduceKind::Mul, frontend::pivotsOf(b, done), {1}));
  return c.set(b.reshape(product, batchShape(c, name)));
}

/// NaN where the determinant is negative.
LogicalResult opLogDeterminant(Call &c) {
  auto matrix = squareOf(c, "self");
  if (failed(matrix))
    return failure();
  Build &b = c.b;
  auto [sign, logarithm] = signAndLogarithm(b, *matrix);
  Value isNegative = frontend::compareWith(b, CompareDirection::Lt, sign, 0);
  Value result = b.select(isNegative, b.splatLike(sign, std::numeric_limits<double>::quiet_NaN()), logarithm);
  return c.set(b.reshape(result, batchShape(c, "self")));
}

LogicalResult opSignAndLogarithm(Call &c) {
  const StringRef name = matrixName(c);
  auto matrix = squareOf(c, name);
  if (failed(matrix))
    return failure();
  auto [sign, logarithm] = signAndLogarithm(c.b, *matrix);
  if (failed(c.set(c.b.reshape(sign, batchShape(c, name)))))
    return failure();
  return c.set(c.b.reshape(logarithm, batchShape(c, name)), 1);
}

LogicalResult opInverse(Call &c) {
  const StringRef name = matrixName(c);
  auto matrix = squareOf(c, name);
  if (failed(matrix))
    return failure();
  Value inverse = frontend::solve(c.b, *matrix, frontend::unitLike(c.b, *matrix));
  return c.set(c.b.reshape(inverse, c.shape(name)));
}

/// What A multiplies, or what multiplies A, to give B; B is matrices or vectors.
LogicalResult opSolve(Call &c) {
  auto matrix = squareOf(c, "A");
  if (failed(matrix))
    return failure();
  Build &b = c.b;
  const SmallVector<int64_t> batch = batchShape(c, "A"), given(c.shape("B"));
  const int64_t size = c.shape("A").back();
  const bool isVector = given.size() == 1 || ArrayRef<int64_t>(given) == c.shape("A").drop_back(),
             isLeft = c.flag("left", true);
  SmallVector<int64_t> wanted(batch);
  wanted.append({size, isVector ? 1 : isLeft ? given.back() : given[given.size() - 2]});
  if (!isVector && !isLeft)
    std::swap(wanted[wanted.size() - 1], wanted[wanted.size() - 2]);
  const SmallVector<int64_t> vector(ArrayRef<int64_t>(wanted).drop_back());
  if (c.element("A") != c.element("B") || ArrayRef<int64_t>(given) != ArrayRef<int64_t>(isVector ? vector : wanted) ||
      (isVector && !isLeft) || c.type("B").getNumElements() == 0)
    return c.fail("A and B have other types, or shapes that do not fit without broadcasting");
  Value right = b.reshape(c.value("B"), {shapeOf(*matrix)[0], wanted[wanted.size() - 2], wanted.back()});
  auto turned = [&](Value x) { return isLeft ? x : b.transpose(x, {0, 2, 1}); };
  Value found = turned(frontend::solve(b, turned(*matrix), turned(right)));
  return c.set(b.reshape(found, given));
}

LogicalResult opExponential(Call &c) {
  const StringRef name = matrixName(c);
  auto matrix = squareOf(c, name);
  return failed(matrix) ? failure() : c.set(c.b.reshape(frontend::matrixExponential(c.b, *matrix), c.shape(name)));
}

/// By squares; of a negative power those of the inverse.
LogicalResult opPower(Call &c) {
  constexpr int64_t kMost = 1024;
  const StringRef name = matrixName(c);
  auto matrix = squareOf(c, name);
  auto power = c.integer("n");
  if (failed(matrix) || !power || std::abs(*power) > kMost)
    return failed(matrix) ? failure() : c.fail("expected a known power up to " + Twine(kMost));
  Build &b = c.b;
  Value unit = frontend::unitLike(b, *matrix), square = *power < 0 ? frontend::solve(b, *matrix, unit) : *matrix,
        result;
  for (int64_t left = std::abs(*power); left > 0; left /= 2) {
    if (left % 2 == 1)
      result = result ? b.dot(result, square, {0}, {0}, {2}, {1}) : square;
    if (left > 1)
      square = b.dot(square, square, {0}, {0}, {2}, {1});
  }
  return c.set(b.reshape(result ? result : unit, c.shape(name)));
}

const OpRow kSolveOps[] = {
    {"aten._linalg_det.default", opDeterminant, "A"},
    {"aten._linalg_slogdet.default", opSignAndLogarithm, "A"},
    {"aten._linalg_solve_ex.default", opSolve, "A,B"},
    {"aten.det.default", opDeterminant},
    {"aten.inverse.default", opInverse},
    {"aten.linalg_det.default", opDeterminant, "A"},
    {"aten.linalg_inv.default", opInverse, "A"},
    {"aten.linalg_inv_ex.default", opInverse, "A"},
    {"aten.linalg_matrix_exp.default", opExponential},
    {"aten.linalg_matrix_power.default", opPower},
    {"aten.linalg_slogdet.default", opSignAndLogarithm, "A"},
    {"aten.linalg_solve.default", opSolve, "A,B"},
    {"aten.logdet.default", opLogDeterminant},
    {"aten.matrix_exp.default", opExponential},
    {"aten.matrix_power.default", opPower},
    {"aten.slogdet.default", opSignAndLogarithm},
};
} // namespace

llvm::ArrayRef<OpRow> solveOps() { return kSolveOps; }

} // namespace tessera::pt2
