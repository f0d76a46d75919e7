//===- Fourier.cpp - discrete Fourier transforms ----------------------------===//

#include "frontends/common/Fourier.h"

#include "frontends/common/Axis.h"
#include "frontends/common/Pairs.h"

#include <cmath>
#include <complex>

#include <numbers>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

namespace {
/// Up to this size a transform is one product. On a CPU two of 16 take less time than one of 256.
constexpr int64_t kMaxDirect = 64;
/// The matrix of a prime has four times its square of numbers: 16 MiB of f32.
constexpr int64_t kMaxPrime = 1024;
constexpr int64_t kMaxSize = int64_t{1} << 20;

/// The largest divisor up to the square root.
int64_t divisorOf(int64_t size) {
  for (auto divisor = static_cast<int64_t>(std::sqrt(static_cast<double>(size))); divisor > 1; --divisor)
    if (size % divisor == 0)
      return divisor;
  return 1;
}
bool isDirect(int64_t size) { return size <= kMaxDirect || divisorOf(size) == 1; }

int64_t largestPrime(int64_t size) {
  int64_t largest = 1;
  for (int64_t prime = 2; prime * prime <= size; ++prime)
    for (; size % prime == 0; size /= prime)
      largest = prime;
  return std::max(largest, size);
}

/// scale * exp(+-2 pi i k / n), 0 <= k < n. The angle is reduced to an eighth of a turn in integers, so that quarters
/// of turns are exact.
std::complex<double> root(const Fourier &f, int64_t k, int64_t n) {
  constexpr double pi = std::numbers::pi;
  const int64_t quarter = 4 * k / n, rest = 4 * k % n;
  const bool isSteep = 2 * rest > n;
  const double angle = pi / 2 * static_cast<double>(isSteep ? n - rest : rest) / static_cast<double>(n);
  double x = std::cos(angle), y = std::sin(angle);
  if (isSteep)
    std::swap(x, y);
  const double turned[] = {x, y, 0 - x, 0 - y}; // no -0
  constexpr int cosines[] = {0, 3, 2, 1}, sines[] = {1, 0, 3, 2};
  const double sine = turned[sines[quarter]];
  return {f.scale * turned[cosines[quarter]], f.scale * (f.isForward ? 0 - sine : sine)};
}

/// The product of dimensions of `x` with a constant whose first dimensions are these; what is new replaces `axis`, of
/// pairs with the last one. In f32 whatever the step's precision is, as under PyTorch's autocast.
Value contract(Build &b, Value x, ArrayRef<int64_t> dims, ArrayRef<int64_t> shape, ArrayRef<double> values) {
  const Type element = tensorType(x).getElementType();
  Value matrix = roundedConstant(b, element, shape, values);
  const auto count = static_cast<int64_t>(dims.size()), rank = static_cast<int64_t>(shapeOf(x).size());
  Value made = b.dot(x, matrix, {}, {}, dims, llvm::to_vector(llvm::seq<int64_t>(0, count)),
                     element.isF32() ? TypeAttr::get(element) : TypeAttr());
  return b.moveDim(made, rank - count, dims.front());
}

/// What `entries` adds for each of rows x parts x columns, of the root of that row and column.
using Entries = llvm::function_ref<void(std::complex<double>, int64_t row, int64_t part, std::vector<double> &)>;
std::vector<double> matrixOf(const Fourier &f, int64_t rows, int64_t parts, int64_t columns, int64_t size,
                             Entries entries) {
  std::vector<double> values;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t column = 0; column < columns; ++column)
        entries(root(f, row * column % size, size), row, part, values);
  return values;
}

/// n x count roots as pairs, for real numbers.
Value contractReal(Build &b, Value x, const Fourier &f, int64_t count) {
  const int64_t size = shapeOf(x)[f.axis];
  auto values = matrixOf(f, size, 1, count, size, [](auto w, int64_t, int64_t, std::vector<double> &values) {
    values.insert(values.end(), {w.real(), w.imag()});
  });
  return contract(b, x, {f.axis}, {size, count, 2}, values);
}

/// The same for pairs: a row for each part.
Value contractPairs(Build &b, Value pairs, const Fourier &f) {
  const int64_t size = shapeOf(pairs)[f.axis], last = static_cast<int64_t>(shapeOf(pairs).size()) - 1;
  auto values = matrixOf(f, size, 2, size, size, [](auto w, int64_t, int64_t part, std::vector<double> &values) {
    values.insert(values.end(), {part == 0 ? w.real() : 0 - w.imag(), part == 0 ? w.imag() : w.real()});
  });
  return contract(b, pairs, {f.axis, last}, {size, 2, size, 2}, values);
}

/// How much element k of the first half of `size` results counts in real ones: for itself and its conjugate.
double weightOf(int64_t k, int64_t size) { return k == 0 || 2 * k == size ? 1 : 2; }

Value contractToReal(Build &b, Value pairs, const Fourier &f, int64_t size) {
  const int64_t half = shapeOf(pairs)[f.axis], last = static_cast<int64_t>(shapeOf(pairs).size()) - 1;
  auto values = matrixOf(f, half, 2, size, size, [&](auto w, int64_t k, int64_t part, std::vector<double> &values) {
    values.push_back(weightOf(k, size) * (part == 0 ? w.real() : 0 - w.imag()));
  });
  return contract(b, pairs, {f.axis, last}, {half, 2, size}, values);
}

/// Element j * size + i of dimensions [first, size] at `axis` is turned by j * i of first * size parts.
Value twiddle(Build &b, Value pairs, const Fourier &f) {
  const int64_t first = shapeOf(pairs)[f.axis], second = shapeOf(pairs)[f.axis + 1];
  std::vector<double> values;
  for (int64_t k = 0; k < first; ++k)
    for (int64_t j = 0; j < second; ++j) {
      const std::complex<double> w = root(f, k * j, first * second);
      values.insert(values.end(), {w.real(), w.imag()});
    }
  const auto last = static_cast<int64_t>(shapeOf(pairs).size()) - 1;
  Value table = roundedConstant(b, tensorType(pairs).getElementType(), {first, second, 2}, values);
  return multiplyPairs(b, pairs, b.broadcast(table, shapeOf(pairs), {f.axis, f.axis + 1, last}));
}

/// Of n = first * second: element second * i + j, result k + first * l.
template <typename First> Value split(Build &b, Value x, const Fourier &f, First transformFirst) {
  const int64_t size = shapeOf(x)[f.axis], first = divisorOf(size);
  SmallVector<int64_t> shape(shapeOf(x));
  shape[f.axis] = first;
  shape.insert(shape.begin() + f.axis + 1, size / first);
  Value made = transformFirst(b.reshape(x, shape));
  made = transform(b, twiddle(b, made, {f.axis, f.isForward}), {f.axis + 1, f.isForward});
  made = b.moveDim(made, f.axis, f.axis + 1);
  shape.assign(shapeOf(made).begin(), shapeOf(made).end());
  shape.erase(shape.begin() + f.axis);
  shape[f.axis] = size;
  return b.reshape(made, shape);
}
} // namespace

bool checkFourier(Call &n, int64_t size) {
  if (size < 1)
    return succeeded(n.fail("a Fourier transform of no elements"));
  if (size > kMaxSize)
    return succeeded(
        n.fail("a Fourier transform of " + Twine(size) + " elements: at most " + Twine(kMaxSize) + " are supported"));
  if (const int64_t prime = largestPrime(size); prime > kMaxPrime)
    return succeeded(n.fail("a Fourier transform of " + Twine(size) + " elements: its prime factor " + Twine(prime) +
                            " is beyond " + Twine(kMaxPrime) + " and would need a matrix of " + Twine(prime) + " x " +
                            Twine(prime) + "; cut or pad to another size"));
  return true;
}

Value transform(Build &b, Value pairs, const Fourier &f) {
  if (isDirect(shapeOf(pairs)[f.axis]))
    return contractPairs(b, pairs, f);
  return split(b, pairs, f, [&](Value x) { return transform(b, x, f); });
}

Value transformReal(Build &b, Value x, const Fourier &f, int64_t count) {
  const int64_t size = shapeOf(x)[f.axis];
  if (isDirect(size))
    return contractReal(b, x, f, count);
  Value all = split(b, x, f, [&](Value part) { return transformReal(b, part, f, shapeOf(part)[f.axis]); });
  return count == size ? all : sliceAlong(b, all, f.axis, 0, count);
}

Value transformToReal(Build &b, Value pairs, const Fourier &f, int64_t size) {
  if (isDirect(size))
    return contractToReal(b, pairs, f, size);
  // The other half counts in the first one, whose imaginary results are nothing.
  const int64_t half = shapeOf(pairs)[f.axis], last = static_cast<int64_t>(shapeOf(pairs).size()) - 1;
  std::vector<double> weights;
  for (int64_t k = 0; k < half; ++k)
    weights.insert(weights.end(), {weightOf(k, size), weightOf(k, size) - (weightOf(k, size) == 1 ? 1 : 0)});
  Value table = roundedConstant(b, tensorType(pairs).getElementType(), {half, 2}, weights);
  pairs = b.mul(pairs, b.broadcast(table, shapeOf(pairs), {f.axis, last}));
  SmallVector<int64_t> low(last + 1, 0), high(last + 1, 0);
  high[f.axis] = size - half;
  return partOf(b, transform(b, b.pad(pairs, low, high), f), 0);
}

} // namespace tessera::frontend
