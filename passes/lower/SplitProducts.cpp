//===- SplitProducts.cpp - products of sizes that libraries are slow at -----===//
//
// cuBLASLt has kernels for tensor cores only where each dimension that is contiguous in memory is a multiple of 16
// bytes, however long the rows are that it is a part of: with 50257 classes a product takes 7 times as long as with
// 50264 (H100, cuBLASLt 13.1, docs/benchmarks/gpu.md). Such a dimension is cut into a part that is a multiple and a
// rest.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/exec/Exec.h"
#include "compiler/dialect/train/Builders.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_SPLITPRODUCTS
#include "passes/lower/Passes.h.inc"

namespace {

using train::shapeOf;
using train::tensorType;

constexpr int64_t kAlignment = 16; ///< bytes
/// Bytes of which the larger part is a multiple: what was measured (50176 of 50257 classes), one tile of 128 columns.
constexpr int64_t kMultiple = 256;

/// One dimension of a product: where its operands and its result have it, -1 where they have not.
struct Axis {
  int64_t lhs = -1, rhs = -1, result = -1;
};

/// The dimension of `value` that is contiguous in memory, if what it is a view of is stored in order of its dimensions;
/// -1 if a value has none.
int64_t contiguousDim(Value value) {
  int64_t dim = int64_t(shapeOf(value).size()) - 1;
  // Where in `value` each dimension of what is looked at is.
  SmallVector<int64_t> place(llvm::to_vector(llvm::seq<int64_t>(0, dim + 1)));
  while (Operation *op = value.getDefiningOp()) {
    if (auto transpose = dyn_cast<train::TransposeOp>(op)) {
      SmallVector<int64_t> before(place.size());
      for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
        before[from] = place[to];
      place = std::move(before);
    } else if (!isa<train::SliceOp>(op)) {
      break;
    }
    value = op->getOperand(0);
  }
  return place.empty() ? -1 : place.back();
}

class Splitting {
public:
  explicit Splitting(train::DotGeneralOp product) : product(product) {
    const int64_t batches = product.getLhsBatch().size();
    int64_t next = batches;
    auto addFree = [&](Value operand, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract, int64_t Axis::*place) {
      for (int64_t dim = 0, rank = shapeOf(operand).size(); dim < rank; ++dim)
        if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim)) {
          Axis &axis = axes.emplace_back();
          axis.*place = dim;
          axis.result = next++;
        }
    };
    addFree(product.getLhs(), product.getLhsBatch(), product.getLhsContract(), &Axis::lhs);
    addFree(product.getRhs(), product.getRhsBatch(), product.getRhsContract(), &Axis::rhs);
    for (auto [lhs, rhs] : llvm::zip_equal(product.getLhsContract(), product.getRhsContract()))
      axes.push_back({lhs, rhs, -1});
  }

  /// The dimension to cut, if there is one: one of the result before one that is contracted, so that sums are of
  /// products that nothing else is to be done to.
  const Axis *find(int64_t minLength) {
    const int64_t lhs = contiguousDim(product.getLhs()), rhs = contiguousDim(product.getRhs()),
                  result = int64_t(shapeOf(product.getResult()).size()) - 1;
    for (const Axis &axis : axes) {
      const bool isContiguous = (axis.lhs >= 0 && axis.lhs == lhs) || (axis.rhs >= 0 && axis.rhs == rhs) ||
                                (axis.result >= 0 && axis.result == result);
      if (isContiguous && lengthOf(axis) >= minLength && lengthOf(axis) * elementBytes() % kAlignment != 0)
        return &axis;
    }
    return nullptr;
  }

  /// The products that may have another dimension to cut are added to `more`.
  void cut(const Axis &axis, SmallVectorImpl<train::DotGeneralOp> &more) {
    const int64_t length = lengthOf(axis), multiple = kMultiple / elementBytes(), part = length / multiple * multiple;
    OpBuilder builder(product);
    train::Build b(builder, product.getLoc());
    auto piece = [&](Value operand, int64_t dim, int64_t from, int64_t to) {
      if (dim < 0)
        return operand;
      SmallVector<int64_t> starts(shapeOf(operand).size(), 0), limits(shapeOf(operand));
      starts[dim] = from;
      limits[dim] = to;
      Value made = b.slice(operand, starts, limits);
      made.getDefiningOp()->setDiscardableAttrs(product->getDiscardableAttrDictionary());
      return made;
    };
    auto operands = [&](int64_t from, int64_t to) {
      Value lhs = piece(product.getLhs(), axis.lhs, from, to), rhs = piece(product.getRhs(), axis.rhs, from, to);
      return std::pair(lhs, rhs);
    };
    if (axis.result < 0) {
      std::pair first = operands(0, part), second = operands(part, length);
      return replace(sum(b, first, second));
    }
    SmallVector<Value> parts;
    for (auto range : {std::pair(int64_t(0), part), std::pair(part, length)}) {
      auto [lhs, rhs] = operands(range.first, range.second);
      auto resize = [&](SmallVectorImpl<int64_t> &shape) { shape[axis.result] = range.second - range.first; };
      parts.push_back(clone(builder, lhs, rhs, resize));
    }
    for (Value part : parts)
      more.push_back(part.getDefiningOp<train::DotGeneralOp>());
    join(b, parts, axis.result);
  }

private:
  int64_t elementBytes() { return tensorType(product.getLhs()).getElementTypeBitWidth() / 8; }
  int64_t lengthOf(const Axis &axis) {
    return axis.lhs >= 0 ? shapeOf(product.getLhs())[axis.lhs] : shapeOf(product.getRhs())[axis.rhs];
  }

  /// The same product of other operands.
  Value clone(OpBuilder &builder, Value lhs, Value rhs, llvm::function_ref<void(SmallVectorImpl<int64_t> &)> resize) {
    SmallVector<int64_t> shape(shapeOf(product.getResult()));
    resize(shape);
    auto made = cast<train::DotGeneralOp>(builder.clone(*product));
    made->setOperands({lhs, rhs});
    made.getResult().setType(RankedTensorType::get(shape, tensorType(product.getResult()).getElementType()));
    return made.getResult();
  }

  /// Both parts of what is contracted are added in f32 and rounded once, as those of one product are.
  Value sum(train::Build &b, std::pair<Value, Value> first, std::pair<Value, Value> second) {
    auto type = RankedTensorType::get(shapeOf(product.getResult()), b.builder.getF32Type());
    Value part = clone(b.builder, first.first, first.second, [](SmallVectorImpl<int64_t> &) {});
    part.setType(type);
    auto whole =
        exec::AddProductOp::create(b.builder, b.loc, type, part, second.first, second.second, product.getLhsBatch(),
                                   product.getRhsBatch(), product.getLhsContract(), product.getRhsContract());
    whole->setDiscardableAttrs(product->getDiscardableAttrDictionary());
    Value rounded = b.convert(whole, tensorType(product.getResult()).getElementType());
    rounded.getDefiningOp()->setDiscardableAttrs(product->getDiscardableAttrDictionary());
    return rounded;
  }

  /// The parts of the result in its place; in that of a table that it is joined into, if that alone reads it.
  void join(train::Build &b, ArrayRef<Value> parts, int64_t dim) {
    Value whole = product.getResult();
    SmallVector<train::ReshapeOp> reshapes;
    while (whole.hasOneUse()) {
      auto reshape = dyn_cast<train::ReshapeOp>(*whole.user_begin());
      if (!reshape || dim + 1 != int64_t(shapeOf(product.getResult()).size()) || shapeOf(reshape.getResult()).empty() ||
          shapeOf(reshape.getResult()).back() != shapeOf(whole).back())
        break;
      reshapes.push_back(reshape);
      whole = reshape.getResult();
    }
    auto table = whole.hasOneUse() ? dyn_cast<train::ConcatOp>(*whole.user_begin()) : nullptr;
    const int64_t last = int64_t(shapeOf(whole).size()) - 1;
    if (!table || int64_t(table.getDim()) != (reshapes.empty() ? dim : last)) {
      Value joined = b.concat(parts, dim);
      joined.getDefiningOp()->setDiscardableAttrs(product->getDiscardableAttrDictionary());
      return replace(joined);
    }
    OpBuilder builder(table);
    SmallVector<Value> joined;
    for (Value operand : table.getOperands()) {
      if (operand != whole) {
        joined.push_back(operand);
        continue;
      }
      for (Value part : parts) {
        if (!reshapes.empty()) {
          SmallVector<int64_t> shape(shapeOf(whole));
          shape.back() = shapeOf(part).back();
          part = train::Build(builder, reshapes.back().getLoc()).reshape(part, shape);
          part.getDefiningOp()->setDiscardableAttrs(reshapes.back()->getDiscardableAttrDictionary());
        }
        joined.push_back(part);
      }
    }
    table->setOperands(joined);
    for (train::ReshapeOp reshape : llvm::reverse(reshapes))
      reshape.erase();
    product.erase();
  }

  void replace(Value made) {
    product.getResult().replaceAllUsesWith(made);
    product.erase();
  }

  train::DotGeneralOp product;
  SmallVector<Axis> axes;
};

struct SplitProducts : impl::SplitProductsBase<SplitProducts> {
  using SplitProductsBase::SplitProductsBase;
  void runOnOperation() override {
    SmallVector<train::DotGeneralOp> products;
    getOperation().walk([&](train::DotGeneralOp op) { products.push_back(op); });
    while (!products.empty()) {
      train::DotGeneralOp product = products.pop_back_val();
      Type lhs = tensorType(product.getLhs()).getElementType(), rhs = tensorType(product.getRhs()).getElementType();
      if (!isa<FloatType>(lhs) || lhs != rhs || lhs.getIntOrFloatBitWidth() != 16)
        continue; // what is f32 has no kernels for tensor cores anyway
      Splitting splitting(product);
      if (const Axis *axis = splitting.find(minLength)) {
        emitRemark(product.getLoc()) << "cut: the library is slow at sizes that are no multiple of 16 bytes";
        splitting.cut(*axis, products);
      }
    }
  }
};

} // namespace
} // namespace tessera
