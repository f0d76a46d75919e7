//===- ValueContents.cpp - what each tensor of a step consists of ---------===//
//
// See ValueContents.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/ValueContents.h"

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/train/Constants.h"
#include "passes/lower/BufferAssignment.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace tessera::lower {

int64_t numElements(Value value) { return cast<ShapedType>(value.getType()).getNumElements(); }

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static SmallVector<int64_t> rowMajor(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

/// The content of a view whose position `p` is position `view(p)` of the whole.
static Content throughView(const StridedMap &view, const Content &whole) {
  const StridedMap positions = view.inverse();
  PieceLimit limit(whole.size());
  Content result;
  for (const Piece &piece : whole) {
    for (StridedMap &map : meet(positions, piece.map, limit.effort))
      result.push_back({piece.origin, std::move(map)});
    if (limit.isReached(result.size()))
      return {{kNotFollowed, view.domain()}};
  }
  return result;
}

/// A box of `shape` in a value of `wholeShape`, with its first element at `start` and `steps` between its elements.
static StridedMap boxOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> wholeShape, ArrayRef<int64_t> start,
                        ArrayRef<int64_t> steps) {
  SmallVector<int64_t> strides = rowMajor(shape), wholeStrides = rowMajor(wholeShape);
  SmallVector<StridedMap::Dim> dims;
  int64_t first = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    dims.push_back({shape[dim], strides[dim], wholeStrides[dim] * steps[dim]});
    first += start[dim] * wholeStrides[dim];
  }
  return StridedMap::get(0, first, dims);
}

/// A contiguous box along one dimension.
static StridedMap boxAlong(int64_t dim, int64_t start, ArrayRef<int64_t> shape, ArrayRef<int64_t> wholeShape) {
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  starts[dim] = start;
  return boxOf(shape, wholeShape, starts, steps);
}

void ValueContents::define(Value value, int64_t iteration) {
  auto future = dyn_cast<dist::FutureType>(value.getType());
  int64_t elements = future ? future.getTensor().getNumElements() : numElements(value);
  origins.push_back({value, iteration});
  contents[value] = {{unsigned(origins.size() - 1), StridedMap::identity(elements)}};
}

const Content &ValueContents::lookup(Value value) const {
  auto found = contents.find(value);
  assert(found != contents.end() && "values are bound in program order");
  return found->second;
}

Content ValueContents::constant(double value, int64_t elements) {
  auto [found, isNew] = constants.try_emplace(llvm::bit_cast<uint64_t>(value), origins.size());
  if (isNew)
    origins.push_back({Value(), 0, value});
  return {{found->second, StridedMap::get(0, 0, {{elements, 1, 0}})}};
}

Content ValueContents::transpose(const Content &content, ArrayRef<int64_t> shape, ArrayRef<int64_t> permutation) const {
  SmallVector<int64_t> strides = rowMajor(shape), resultShape;
  for (int64_t dim : permutation)
    resultShape.push_back(shape[dim]);
  SmallVector<StridedMap::Dim> dims;
  for (auto [dim, stride] : llvm::zip_equal(permutation, rowMajor(resultShape)))
    dims.push_back({shape[dim], stride, strides[dim]});
  return throughView(StridedMap::get(0, 0, dims), content);
}

Content ValueContents::part(const Content &content, int64_t number, int64_t elements) const {
  return throughView(StridedMap::get(0, number * elements, {{elements, 1, 1}}), content);
}

int64_t ValueContents::positionOver(ArrayAttr axes) const { return dist::positionInGroup(mesh, axes, rank); }

bool ValueContents::derive(Operation *op) {
  auto derived = [&](const StridedMap &view) {
    bind(op->getResult(0), throughView(view, lookup(op->getOperand(0))));
    return true;
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<train::ReshapeOp, train::BarrierOp, train::StopGradientOp, dist::CopyStartOp, dist::DoneOp>(
          [&](Operation *) {
            // The same elements in the same order.
            bind(op->getResult(0), lookup(op->getOperand(0)));
            return true;
          })
      .Case([&](train::TransposeOp transposed) {
        bind(transposed.getResult(),
             transpose(lookup(transposed.getOperand()), shapeOf(transposed.getOperand()), transposed.getPermutation()));
        return true;
      })
      .Case([&](train::SliceOp slice) {
        return derived(
            boxOf(shapeOf(slice.getResult()), shapeOf(slice.getOperand()), slice.getStarts(), slice.getStrides()));
      })
      .Case([&](dist::SliceLocalOp slice) {
        const auto dim = int64_t(slice.getDim());
        ArrayRef<int64_t> shape = shapeOf(slice.getResult());
        return derived(boxAlong(dim, positionOver(slice.getAxes()) * shape[dim], shape, shapeOf(slice.getOperand())));
      })
      .Case([&](train::ConcatOp concat) {
        Content joined;
        int64_t start = 0;
        for (Value operand : concat.getOperands()) {
          const auto dim = int64_t(concat.getDim());
          // From positions in the whole to those in the operand.
          StridedMap box = boxAlong(dim, start, shapeOf(operand), shapeOf(concat.getResult())).inverse();
          for (const Piece &piece : throughView(box, lookup(operand)))
            joined.push_back(piece);
          start += shapeOf(operand)[dim];
        }
        bind(concat.getResult(), std::move(joined));
        return true;
      })
      .Case([&](train::ConstantOp value) {
        if (std::optional<double> number = train::splatOf(value.getValue()))
          bind(value.getResult(), constant(*number, numElements(value.getResult())));
        else
          define(value.getResult()); // only kernels can hold it
        return true;
      })
      .Default([](Operation *) { return false; });
}

std::string describe(Value value) {
  std::string result, name = nameOf(value.getLoc());
  llvm::raw_string_ostream stream(result);
  if (!name.empty())
    stream << "'" << name << "' (";
  if (auto argument = dyn_cast<BlockArgument>(value))
    stream << "argument " << argument.getArgNumber();
  else
    stream << "result " << cast<OpResult>(value).getResultNumber() << " of '" << value.getDefiningOp()->getName()
           << "'";
  if (!name.empty())
    stream << ")";
  return result;
}

std::string ValueContents::describe(unsigned origin) const {
  const Origin &of = origins[origin];
  std::string result;
  llvm::raw_string_ostream stream(result);
  Value value = of.value;
  if (value)
    stream << lower::describe(value);
  else
    stream << "the constant " << of.number;
  if (value && isa_and_nonnull<exec::RepeatOp>(value.getParentBlock()->getParentOp()))
    stream << " of iteration " << of.iteration;
  return result;
}

} // namespace tessera::lower
