//===- OpsMemory.cpp - operators that ask how a tensor lies in memory ------===//
//
// A step has values, not memory; the program says how its tensors lay when it was exported.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/common/Pad.h"
#include "frontends/pt2/OpTable.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
constexpr llvm::StringLiteral kUnknown = "the program does not say how the tensor lies in memory";
/// Strides beyond this are of no tensor.
constexpr int64_t kMaxStride = int64_t{1} << 40;
/// Beyond this many slices a lookup is smaller.
constexpr int64_t kMaxParts = 16;

LogicalResult opStride(Call &c) {
  auto dim = axisOf(c.integerOr("dim", 0), c.rank("self"));
  std::optional<Placement> place = c.placement("self");
  if (!dim || c.rank("self") == 0)
    return c.fail("the dimension is out of range");
  return place ? c.setNumber(static_cast<double>(place->strides[*dim])) : c.fail(kUnknown);
}

LogicalResult opOffset(Call &c) {
  std::optional<Placement> place = c.placement("self");
  return place ? c.setNumber(static_cast<double>(place->offset)) : c.fail(kUnknown);
}

/// A dimension of elements that are `stride` apart.
struct Step {
  int64_t dim, size, stride;
};

/// The dimensions that have more than one element, those with the largest strides first.
SmallVector<Step> stepsOf(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  SmallVector<Step> steps;
  for (auto [dim, size, stride] : llvm::enumerate(sizes, strides))
    if (size != 1)
      steps.push_back({static_cast<int64_t>(dim), size, stride});
  llvm::stable_sort(steps, [](const Step &a, const Step &b) { return a.stride > b.stride; });
  return steps;
}

/// The last dimension cut or filled up to `size`. What it is filled with is not read.
Value fit(Build &b, Value x, int64_t size) {
  const auto last = static_cast<int64_t>(shapeOf(x).size()) - 1;
  frontend::Pads pads(last + 1);
  pads.after[last] = size - shapeOf(x)[last];
  return pads.after[last] == 0 ? x : frontend::padConstant(b, x, pads, 0);
}

/// The elements of a tensor in the order of memory; nothing if some share a place, or others lie between them.
std::optional<Value> inMemoryOrder(Call &c, const Placement &place) {
  const SmallVector<Step> steps = stepsOf(c.shape("self"), place.strides);
  SmallVector<int64_t> order;
  int64_t stride = 1;
  for (const Step &step : llvm::reverse(steps)) {
    if (step.stride != stride)
      return std::nullopt;
    stride *= step.size;
    order.insert(order.begin(), step.dim);
  }
  for (int64_t dim = 0; dim < c.rank("self"); ++dim)
    if (c.shape("self")[dim] == 1)
      order.push_back(dim);
  return c.b.reshape(frontend::permute(c.b, c.value("self"), order), {c.type("self").getNumElements()});
}

/// The last dimension as `step.size` windows of `width` elements or more, each `step.stride` behind the one before.
FailureOr<Value> windows(Call &c, Value x, const Step &step, int64_t width) {
  Build &b = c.b;
  const auto [dim, count, stride] = step;
  const auto last = static_cast<int64_t>(shapeOf(x).size()) - 1;
  const int64_t parts = (width + stride - 1) / stride;
  SmallVector<int64_t> shape(shapeOf(x));
  shape[last] = count;
  shape.push_back(parts <= kMaxParts ? parts * stride : width);
  if (!countElements(shape))
    return c.fail("the windows have too many elements together");
  if (parts <= kMaxParts) { // each window is some parts as long as a step, of which windows share all but the first
    x = fit(b, x, (count + parts - 1) * stride);
    shape.back() = stride;
    SmallVector<Value> made;
    for (int64_t part = 0; part < parts; ++part)
      made.push_back(b.reshape(frontend::sliceAlong(b, x, last, part * stride, (part + count) * stride), shape));
    return parts == 1 ? made[0] : b.concat(made, last + 1);
  }
  if (count > frontend::kMaxConstantElements / width)
    return c.fail("the windows have too many elements together");
  return frontend::takeWindows(b, x, last, width, stride, count);
}

/// Elements of the memory of `self`, by strides of one's own. They may be the same ones, whose gradients add up.
LogicalResult opAsStrided(Call &c) {
  auto sizes = c.ints("size"), strides = c.ints("stride");
  std::optional<Placement> place = c.placement("self");
  if (!place)
    return c.fail(kUnknown);
  auto offset = c.has("storage_offset") ? c.integer("storage_offset") : place->offset;
  auto count = sizes ? countElements(*sizes) : std::nullopt;
  if (!count || *count == 0 || !strides || strides->size() != sizes->size() || !offset || *offset < 0 ||
      llvm::any_of(*strides, [](int64_t stride) { return stride < 0 || stride > kMaxStride; }))
    return c.fail("sizes and strides do not fit, or there are no elements");
  std::optional<Value> flat = inMemoryOrder(c, *place);
  if (!flat)
    return c.fail("the tensor is a view that shares elements or has gaps: make it contiguous() before");
  Build &b = c.b;
  SmallVector<Step> steps = stepsOf(*sizes, *strides);
  while (!steps.empty() && steps.back().stride == 0)
    steps.pop_back();
  // How far the elements reach, from each dimension on.
  SmallVector<int64_t> widths(steps.size() + 1, 1);
  for (int64_t i = static_cast<int64_t>(steps.size()) - 1; i >= 0; --i)
    if (llvm::MulOverflow(steps[i].size - 1, steps[i].stride, widths[i]) ||
        llvm::AddOverflow(widths[i], widths[i + 1], widths[i]))
      return c.fail("strides are out of range");
  const int64_t from = *offset - place->offset, all = shapeOf(*flat)[0];
  if (from < 0 || from >= all || widths[0] > all - from)
    return c.fail("it reads memory that is not the tensor's own");
  Value x = frontend::sliceAlong(b, *flat, 0, from, all);
  SmallVector<int64_t> dims, shape;
  for (auto [step, width] : llvm::zip(steps, ArrayRef(widths).drop_front())) {
    auto made = windows(c, x, step, width);
    if (failed(made))
      return failure();
    x = *made;
    dims.push_back(step.dim);
    shape.push_back(step.size);
  }
  x = b.reshape(fit(b, x, 1), shape);
  // The dimensions in their order; those of one element or without a stride are none yet.
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, dims.size()));
  llvm::sort(order, [&](int64_t a, int64_t b) { return dims[a] < dims[b]; });
  llvm::sort(dims);
  x = frontend::permute(b, x, order);
  return c.set(shapeOf(x) == ArrayRef(*sizes) ? x : b.broadcast(x, *sizes, dims));
}

const OpRow kMemoryOps[] = {
    {"aten.as_strided.default", opAsStrided},
    {"aten.sym_storage_offset.default", opOffset},
    {"aten.sym_stride.int", opStride},
};
} // namespace

llvm::ArrayRef<OpRow> memoryOps() { return kMemoryOps; }

} // namespace tessera::pt2
