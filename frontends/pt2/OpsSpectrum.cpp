//===- OpsSpectrum.cpp - Fourier transforms of windows of a signal ----------===//
//
// Rows of stft, istft and windows that are made for them. Windows start `hop` elements apart: a signal is cut into
// blocks of that size, and a window is some blocks that follow each other.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/common/Fourier.h"
#include "frontends/common/Pad.h"
#include "frontends/pt2/Complex.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
/// Blocks that a window may have: each is a value of the step.
constexpr int64_t kMaxBlocks = 128;

/// What both directions have: transforms of `size` elements, of which the window covers `width` in the middle.
struct Frames {
  int64_t size, hop, width;
  Type element;
  double scale; ///< of each transform, forwards or backwards

  int64_t hopsPerWindow() const { return (size + hop - 1) / hop; }
};

FailureOr<Frames> framesOf(Call &c, bool isBack) {
  Frames f;
  f.size = c.integerOr("n_fft", 0);
  f.hop = c.integerOr("hop_length", f.size / 4);
  f.width = c.integerOr("win_length", f.size);
  auto element = dyn_cast_if_present<FloatType>(c.resultElement());
  f.element = element;
  if (!element || element.getWidth() < 32)
    return c.fail("Fourier transforms are supported in f32 and f64");
  if (!frontend::checkFourier(c, f.size))
    return failure();
  if (f.hop < 1 || f.hop > frontend::kMaxConstantElements || f.width < 1 || f.width > f.size)
    return c.fail("the window does not fit n_fft, or hop_length is out of range");
  if (f.hopsPerWindow() > kMaxBlocks)
    return c.fail("n_fft is more than " + Twine(kMaxBlocks) + " times hop_length, which is not supported");
  if (c.isTensor("window") && (c.isComplex("window") || c.shape("window") != ArrayRef<int64_t>{f.width}))
    return c.fail("the window must be a real vector of win_length numbers");
  const auto count = static_cast<double>(f.size);
  f.scale = c.flag("normalized", false) ? 1 / std::sqrt(count) : isBack ? 1 / count : 1;
  return f;
}

/// The window, or ones, in the middle of zeros; null where it is ones alone.
Value windowOf(Call &c, const Frames &f) {
  Build &b = c.b;
  if (!c.isTensor("window") && f.width == f.size)
    return {};
  Value window = c.isTensor("window") ? b.convert(c.value("window"), f.element)
                                      : b.splat(RankedTensorType::get({f.width}, f.element), 1);
  const int64_t before = (f.size - f.width) / 2;
  return before == 0 && f.width == f.size ? window : b.pad(window, {before}, {f.size - f.width - before});
}

/// All windows of [batch, length], as [batch, windows, size].
Value framed(Build &b, Value x, const Frames &f, int64_t count) {
  const int64_t batch = shapeOf(x)[0], whole = (count - 1 + f.hopsPerWindow()) * f.hop, length = shapeOf(x)[1];
  x = length < whole ? b.pad(x, {0, 0}, {0, whole - length}) : frontend::sliceAlong(b, x, 1, 0, whole);
  x = b.reshape(x, {batch, whole / f.hop, f.hop});
  SmallVector<Value> parts;
  for (int64_t i = 0; i < f.hopsPerWindow(); ++i)
    parts.push_back(frontend::sliceAlong(b, x, 1, i, i + count));
  return frontend::sliceAlong(b, parts.size() == 1 ? parts[0] : b.concat(parts, 2), 2, 0, f.size);
}

/// The reverse: the sums of windows [batch, windows, size] where they overlap, as [batch, length].
Value overlapped(Build &b, Value x, const Frames &f) {
  const int64_t batch = shapeOf(x)[0], count = shapeOf(x)[1];
  x = b.pad(x, {0, 0, 0}, {0, 0, f.hopsPerWindow() * f.hop - f.size});
  Value sum;
  for (int64_t i = 0; i < f.hopsPerWindow(); ++i) {
    Value part =
        b.pad(frontend::sliceAlong(b, x, 2, i * f.hop, (i + 1) * f.hop), {0, i, 0}, {0, f.hopsPerWindow() - 1 - i, 0});
    sum = sum ? b.add(sum, part) : part;
  }
  sum = b.reshape(sum, {batch, (count - 1 + f.hopsPerWindow()) * f.hop});
  return frontend::sliceAlong(b, sum, 1, 0, (count - 1) * f.hop + f.size);
}

/// The vector or the vectors, padded at both ends if the call says so (torch.stft has done that by itself).
FailureOr<Value> signalOf(Call &c, const Frames &f) {
  Build &b = c.b;
  if (c.rank("self") < 1 || c.rank("self") > 2)
    return c.fail("expected one or two dimensions");
  Value x = b.convert(c.value("self"), f.element);
  x = b.reshape(x, {c.rank("self") == 2 ? c.shape("self")[0] : 1, c.shape("self").back()});
  if (!StringRef(c.node.target).ends_with(".center") || !c.flag("center", true))
    return x;
  frontend::Pads pads(2);
  pads.before[1] = pads.after[1] = f.size / 2;
  const std::string mode = c.text("pad_mode", "reflect");
  if (!frontend::checkPads(c, shapeOf(x), pads))
    return failure();
  if (mode == "constant")
    return frontend::padConstant(b, x, pads, 0);
  return mode == "reflect" ? frontend::padFromInput(c, x, pads, frontend::PadMode::Reflect, mode)
                           : FailureOr<Value>(c.fail("pad_mode is '" + mode + "'"));
}

LogicalResult opStft(Call &c) {
  if (c.isComplex("self"))
    return c.fail("spectra of complex signals are not supported");
  if (c.flag("align_to_window", false))
    return c.fail("align_to_window is not supported");
  auto f = framesOf(c, /*isBack=*/false);
  auto x = failed(f) ? FailureOr<Value>() : signalOf(c, *f);
  if (failed(x))
    return failure();
  const int64_t length = shapeOf(*x)[1], count = length < f->size ? 0 : (length - f->size) / f->hop + 1;
  if (count < 1)
    return c.fail("the signal is shorter than n_fft");
  if (!countElements({shapeOf(*x)[0], count, f->hopsPerWindow() * f->hop, 2}))
    return c.fail("the result is too large");
  Build &b = c.b;
  Value frames = framed(b, *x, *f, count);
  if (Value window = windowOf(c, *f))
    frames = b.mul(frames, b.broadcastTo(window, shapeOf(frames)));
  const int64_t results = c.flag("onesided", true) ? f->size / 2 + 1 : f->size;
  Value made = frontend::transformReal(b, frames, {2, /*isForward=*/true, f->scale}, results);
  made = b.moveDim(made, 2, 1); // [batch, frequencies, windows, 2]
  if (c.rank("self") == 1)
    made = b.reshape(made, shapeOf(made).drop_front());
  return c.givesComplex() ? c.setComplex(made) : c.set(made);
}

/// Whether the squares of windows, which the sum is divided by, are nowhere 0.
LogicalResult checkEnvelope(Call &c, const Frames &f, int64_t count, int64_t start, int64_t end) {
  const HostTensor *window = c.isTensor("window") ? c.known("window") : nullptr;
  if (c.isTensor("window") && !window)
    return c.fail("the window is not known, so that it cannot be checked that windows overlap");
  std::vector<double> sums((count - 1) * f.hop + f.size, 0);
  const int64_t before = (f.size - f.width) / 2;
  for (int64_t frame = 0; frame < count; ++frame)
    for (int64_t i = 0; i < f.width; ++i) {
      const double value = window ? window->number(i) : 1;
      sums[frame * f.hop + before + i] += value * value;
    }
  for (int64_t i = start; i < end; ++i)
    if (!(sums[i] > 1e-11)) // as PyTorch
      return c.fail("no window covers some elements of the result");
  return success();
}

LogicalResult opIstft(Call &c) {
  if (!c.isComplex("self") || c.flag("return_complex", false) || c.rank("self") < 3 || c.rank("self") > 4)
    return c.fail("expected a complex spectrum, or a batch of such, and a real result");
  auto f = framesOf(c, /*isBack=*/true);
  if (failed(f))
    return failure();
  Build &b = c.b;
  Value x = c.value("self");
  const bool isBatch = c.rank("self") == 4;
  SmallVector<int64_t> shape(shapeOf(x));
  if (!isBatch)
    shape.insert(shape.begin(), 1);
  x = b.moveDim(b.reshape(x, shape), 1, 2); // [batch, windows, frequencies, 2]
  const int64_t count = shapeOf(x)[1], half = f->size / 2 + 1;
  const bool isHalf = c.flag("onesided", shape[1] != f->size);
  if (shape[1] != (isHalf ? half : f->size) || count < 1 || count > frontend::kMaxConstantElements)
    return c.fail("the spectrum does not fit n_fft, or is too large");
  const int64_t whole = (count - 1) * f->hop + f->size;
  if (whole > frontend::kMaxConstantElements || !countElements({shape[0], count, f->hopsPerWindow() * f->hop, 2}))
    return c.fail("the result is too large");
  const int64_t start = c.flag("center", true) ? f->size / 2 : 0;
  const int64_t end = c.has("length") ? start + std::min(c.integerOr("length", 0), whole + 1) : whole - start;
  if (end <= start || end > whole)
    return c.fail("length is more than the windows give, or nothing");
  if (failed(checkEnvelope(c, *f, count, start, end)))
    return failure();
  x = frontend::transformToReal(b, frontend::sliceAlong(b, x, 2, 0, half), {2, /*isForward=*/false, f->scale}, f->size);
  Value window = windowOf(c, *f);
  if (!window)
    window = b.splat(RankedTensorType::get({f->size}, f->element), 1);
  Value sum = overlapped(b, b.mul(x, b.broadcastTo(window, shapeOf(x))), *f);
  Value squares = overlapped(b, b.broadcastTo(b.mul(window, window), {1, count, f->size}), *f);
  auto kept = [&](Value value) { return frontend::sliceAlong(b, value, 1, start, end); };
  Value made = kept(sum);
  made = b.div(made, b.broadcastTo(kept(squares), shapeOf(made)));
  return c.set(isBatch ? made : b.reshape(made, {end - start}));
}

/// alpha - beta cos(2 pi i / n) of n or, unless periodic, n - 1 (torch.signal.windows.general_cosine).
LogicalResult cosineWindow(Call &c, double alpha, double beta) {
  const int64_t size = c.integerOr("window_length", -1);
  Type element = c.resultElement();
  auto type = dyn_cast<FloatType>(element);
  if (size < 0 || size > frontend::kMaxConstantElements || !type || type.getWidth() < 32)
    return c.fail("expected a known length, and f32 or f64");
  HostTensor values = HostTensor::splat(RankedTensorType::get({size}, element), 1);
  const int64_t whole = c.flag("periodic", true) ? size : size - 1;
  for (int64_t i = 0; size > 1 && i < size; ++i)
    values.floats[i] = frontend::roundTo(
        element, alpha - beta * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(whole)));
  return c.set(std::move(values));
}
LogicalResult opHann(Call &c) { return cosineWindow(c, 0.5, 0.5); }
LogicalResult opHamming(Call &c) { return cosineWindow(c, c.numberOr("alpha", 0.54), c.numberOr("beta", 0.46)); }

const OpRow kSpectrumOps[] = {
    {"aten.hamming_window.default", opHamming, ""},
    {"aten.hamming_window.periodic", opHamming, ""},
    {"aten.hamming_window.periodic_alpha", opHamming, ""},
    {"aten.hamming_window.periodic_alpha_beta", opHamming, ""},
    {"aten.hann_window.default", opHann, ""},
    {"aten.hann_window.periodic", opHann, ""},
    {"aten.istft.default", opIstft},
    {"aten.stft.center", opStft},
    {"aten.stft.default", opStft},
};
} // namespace

llvm::ArrayRef<OpRow> spectrumOps() { return kSpectrumOps; }

} // namespace tessera::pt2
