//===- OpsFourier.cpp - discrete Fourier transforms -------------------------===//
//
// Rows of torch.fft. They read and give complex numbers, but for those of real results and arguments.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/common/Fourier.h"
#include "frontends/common/Pad.h"
#include "frontends/pt2/Complex.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// Between which numbers the last dimension's transform is: complex ones; from real ones to the half of the results of
/// which the others are the conjugates; or from such a half to real ones.
enum class Kind { Complex, FromReal, ToReal };

/// What a call transforms: dimensions in their order, how many elements each has (of real results, as such), and the
/// factors of the results.
struct Plan {
  SmallVector<int64_t> dims, sizes;
  SmallVector<double> scales;
};

/// The dimensions of the tensor, without that of pairs.
ArrayRef<int64_t> sizesOf(Call &c) { return c.shape("self").drop_back(c.isComplex("self") ? 1 : 0); }

/// Counts dimensions from the front; each must be there once.
LogicalResult findDims(Call &c, SmallVectorImpl<int64_t> &dims) {
  const auto rank = static_cast<int64_t>(sizesOf(c).size());
  if (!frontend::axesOf(dims, rank))
    return c.fail("dimensions are out of range or occur twice");
  for (int64_t &dim : dims)
    dim = *axisOf(dim, rank);
  return success();
}

/// How many elements a dimension has unless the call says so: twice the half, but for the ends.
int64_t sizeOf(ArrayRef<int64_t> shape, int64_t dim, bool isHalf) { return isHalf ? 2 * (shape[dim] - 1) : shape[dim]; }

/// `norm`: which direction is divided by the number of elements, or both by its root.
LogicalResult readNorm(Call &c, bool isForward, Plan &plan) {
  const std::string norm = c.text("norm", "backward");
  if (norm != "backward" && norm != "forward" && norm != "ortho")
    return c.fail("norm is '" + norm + "'");
  for (int64_t size : plan.sizes) {
    const auto count = static_cast<double>(size);
    plan.scales.push_back(norm == "ortho" ? 1 / std::sqrt(count) : isForward == (norm == "forward") ? 1 / count : 1);
  }
  return success();
}

/// How many dimensions the forms have: one, the last two unless others are named, or all.
enum class Axes { One, Two, All };

FailureOr<Plan> planOf(Call &c, Axes form, Kind kind, bool isForward) {
  ArrayRef<int64_t> shape = sizesOf(c);
  const auto rank = static_cast<int64_t>(shape.size());
  const StringRef counts = form == Axes::One ? "n" : "s";
  auto sizes = c.has(counts) ? c.ints(counts) : std::optional(SmallVector<int64_t>());
  if (!sizes)
    return c.fail("'" + counts + "' is not known");
  Plan plan;
  if (c.has("dim") && !c.ints("dim"))
    return c.fail("'dim' is not known");
  if (c.has("dim"))
    plan.dims = *c.ints("dim");
  else if (form == Axes::One)
    plan.dims = {-1};
  else if (form == Axes::Two)
    plan.dims = {-2, -1};
  else
    for (int64_t dim = c.has("s") ? rank - static_cast<int64_t>(sizes->size()) : 0; dim < rank; ++dim)
      plan.dims.push_back(dim);
  if (failed(findDims(c, plan.dims)))
    return failure();
  if (c.has(counts) && sizes->size() != plan.dims.size())
    return c.fail("'" + counts + "' has " + Twine(sizes->size()) + " sizes, not " + Twine(plan.dims.size()));
  for (auto [i, dim] : llvm::enumerate(plan.dims)) {
    const bool isHalf = kind == Kind::ToReal && i + 1 == plan.dims.size();
    const bool isGiven = c.has(counts) && (form == Axes::One || (*sizes)[i] != -1);
    plan.sizes.push_back(isGiven ? (*sizes)[i] : sizeOf(shape, dim, isHalf));
  }
  return failed(readNorm(c, isForward, plan)) ? FailureOr<Plan>() : plan;
}

/// Cuts and pads each dimension at its end.
FailureOr<Value> resized(Call &c, Value x, const Plan &plan, Kind kind) {
  frontend::Pads pads(static_cast<int64_t>(shapeOf(x).size()));
  for (auto [i, dim, size] : llvm::enumerate(plan.dims, plan.sizes)) {
    if (!frontend::checkFourier(c, size))
      return failure();
    const bool isHalf = kind == Kind::ToReal && i + 1 == plan.dims.size();
    pads.after[dim] = (isHalf ? size / 2 + 1 : size) - shapeOf(x)[dim];
  }
  if (!frontend::checkPads(c, shapeOf(x), pads))
    return failure();
  return frontend::padConstant(c.b, x, pads, 0);
}

/// Sets the results. Real numbers are transformed as such along the last dimension.
LogicalResult run(Call &c, const Plan &plan, Kind kind, bool isForward) {
  auto element = dyn_cast_if_present<FloatType>(c.resultElement());
  if (!element || element.getWidth() < 32)
    return c.fail("Fourier transforms are supported in f32 and f64");
  const bool isComplex = c.isComplex("self");
  if (kind == Kind::FromReal && isComplex)
    return c.fail("expected a real tensor");
  Build &b = c.b;
  auto x = resized(c, b.convert(c.value("self"), element), plan, kind);
  if (failed(x))
    return failure();
  Value made = *x;
  if (!isComplex && (kind == Kind::ToReal || plan.dims.empty()))
    made = frontend::joinParts(b, made, b.splatLike(made, 0));
  for (size_t i = 0; i < plan.dims.size(); ++i) {
    const size_t at = kind == Kind::ToReal ? i : plan.dims.size() - 1 - i; // real numbers are at an end
    const bool isLast = at + 1 == plan.dims.size();
    const frontend::Fourier f{plan.dims[at], isForward, plan.scales[at]};
    const int64_t size = plan.sizes[at];
    if (isLast && kind == Kind::ToReal)
      made = frontend::transformToReal(b, made, f, size);
    else if (isLast && !isComplex && kind != Kind::ToReal)
      made = frontend::transformReal(b, made, f, kind == Kind::FromReal ? size / 2 + 1 : size);
    else
      made = frontend::transform(b, made, f);
  }
  return kind == Kind::ToReal ? c.set(made) : c.setComplex(made);
}

template <Axes form, Kind kind, bool isForward> LogicalResult opFourier(Call &c) {
  auto plan = planOf(c, form, kind, isForward);
  if (failed(plan))
    return failure();
  if (plan->dims.empty() && kind != Kind::Complex)
    return c.fail("no dimension is transformed");
  return run(c, *plan, kind, isForward);
}

/// What the functions of torch.fft call: the results are divided by nothing, the root of the number of elements, or
/// that.
LogicalResult core(Call &c, Kind kind, bool isForward) {
  Plan plan;
  auto dims = c.ints("dim");
  const int64_t norm = c.integerOr("normalization", -1);
  if (!dims || norm < 0 || norm > 2 || (dims->empty() && kind != Kind::Complex))
    return c.fail("expected dimensions and a normalisation");
  plan.dims = *dims;
  if (failed(findDims(c, plan.dims)))
    return failure();
  for (int64_t dim : plan.dims)
    plan.sizes.push_back(sizesOf(c)[dim]);
  if (kind == Kind::ToReal) {
    plan.sizes.back() = c.integerOr("last_dim_size", 0);
    if (plan.sizes.back() / 2 + 1 != sizesOf(c)[plan.dims.back()])
      return c.fail("last_dim_size does not fit the dimension");
  }
  for (int64_t size : plan.sizes)
    plan.scales.push_back(norm == 0 ? 1 : norm == 1 ? 1 / std::sqrt(static_cast<double>(size)) : 1.0 / size);
  return run(c, plan, kind, isForward);
}
LogicalResult opComplexToComplex(Call &c) { return core(c, Kind::Complex, c.flag("forward", true)); }
LogicalResult opComplexToReal(Call &c) { return core(c, Kind::ToReal, /*isForward=*/false); }
LogicalResult opRealToComplex(Call &c) {
  return core(c, c.flag("onesided", true) ? Kind::FromReal : Kind::Complex, /*isForward=*/true);
}

/// Frequency 0 in the middle, or back at the front.
template <bool isBack> LogicalResult opShift(Call &c) {
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(sizesOf(c).size())));
  if (c.has("dim") && !c.ints("dim"))
    return c.fail("'dim' is not known");
  if (c.has("dim"))
    dims = *c.ints("dim");
  if (failed(findDims(c, dims)))
    return failure();
  Value x = c.value("self");
  for (int64_t dim : dims)
    x = frontend::rollAlong(c.b, x, dim, (shapeOf(x)[dim] + (isBack ? 1 : 0)) / 2);
  return c.isComplex("self") ? c.setComplex(x) : c.set(x);
}

/// The frequencies of n elements at a distance: 0 to those below half of n, and the negative ones, or half of n alone.
template <bool isHalf> LogicalResult opFrequencies(Call &c) {
  Type element = c.resultElement();
  const int64_t size = c.integerOr("n", 0);
  const double distance = c.numberOr("d", 1);
  if (size < 1 || size > frontend::kMaxConstantElements || !isa_and_nonnull<FloatType>(element))
    return c.fail("expected a known number of elements, and floating point");
  const int64_t count = isHalf ? size / 2 + 1 : size;
  const double step = frontend::roundTo(element, 1 / (static_cast<double>(size) * distance));
  HostTensor values = HostTensor::splat(RankedTensorType::get({count}, element), 0);
  for (int64_t i = 0; i < count; ++i)
    values.floats[i] = frontend::roundTo(element, static_cast<double>(!isHalf && 2 * i >= size ? i - size : i) * step);
  return c.set(std::move(values));
}

const OpRow kFourierOps[] = {
    {"aten._fft_c2c.default", opComplexToComplex},
    {"aten._fft_c2r.default", opComplexToReal},
    {"aten._fft_r2c.default", opRealToComplex},
    {"aten.fft_fft.default", opFourier<Axes::One, Kind::Complex, true>},
    {"aten.fft_fft2.default", opFourier<Axes::Two, Kind::Complex, true>},
    {"aten.fft_fftfreq.default", opFrequencies<false>, ""},
    {"aten.fft_fftn.default", opFourier<Axes::All, Kind::Complex, true>},
    {"aten.fft_fftshift.default", opShift<false>},
    {"aten.fft_hfft.default", opFourier<Axes::One, Kind::ToReal, true>},
    {"aten.fft_hfft2.default", opFourier<Axes::Two, Kind::ToReal, true>},
    {"aten.fft_hfftn.default", opFourier<Axes::All, Kind::ToReal, true>},
    {"aten.fft_ifft.default", opFourier<Axes::One, Kind::Complex, false>},
    {"aten.fft_ifft2.default", opFourier<Axes::Two, Kind::Complex, false>},
    {"aten.fft_ifftn.default", opFourier<Axes::All, Kind::Complex, false>},
    {"aten.fft_ifftshift.default", opShift<true>},
    {"aten.fft_ihfft.default", opFourier<Axes::One, Kind::FromReal, false>},
    {"aten.fft_ihfft2.default", opFourier<Axes::Two, Kind::FromReal, false>},
    {"aten.fft_ihfftn.default", opFourier<Axes::All, Kind::FromReal, false>},
    {"aten.fft_irfft.default", opFourier<Axes::One, Kind::ToReal, false>},
    {"aten.fft_irfft2.default", opFourier<Axes::Two, Kind::ToReal, false>},
    {"aten.fft_irfftn.default", opFourier<Axes::All, Kind::ToReal, false>},
    {"aten.fft_rfft.default", opFourier<Axes::One, Kind::FromReal, true>},
    {"aten.fft_rfft2.default", opFourier<Axes::Two, Kind::FromReal, true>},
    {"aten.fft_rfftfreq.default", opFrequencies<true>, ""},
    {"aten.fft_rfftn.default", opFourier<Axes::All, Kind::FromReal, true>},
};
} // namespace

llvm::ArrayRef<OpRow> fourierOps() { return kFourierOps; }

} // namespace tessera::pt2
