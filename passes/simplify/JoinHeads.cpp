//===- JoinHeads.cpp - what is done alike to queries and keys, done once --===//

#include "compiler/dialect/train/Builders.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_JOINHEADS
#include "passes/simplify/Passes.h.inc"

namespace {
int64_t product(ArrayRef<int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

bool agreeBut(ArrayRef<int64_t> first, ArrayRef<int64_t> second, int64_t dim) {
  if (first.size() != second.size())
    return false;
  for (size_t index = 0; index < first.size(); ++index)
    if (static_cast<int64_t>(index) != dim && first[index] != second[index])
      return false;
  return true;
}

/// The `count` heads that a reshaped slice of a value begins, as a slice of the reshaped value: that is a view of
/// memory. Null if the slice does not begin a head or the value does not end one.
SliceOp headsOf(Build &on, ReshapeOp reshape, int64_t dim, int64_t source, int64_t count) {
  auto slice = reshape.getOperand().getDefiningOp<SliceOp>();
  if (!slice)
    return {};
  ArrayRef<int64_t> from = shapeOf(slice.getOperand());
  for (auto [index, size] : llvm::enumerate(from))
    if (static_cast<int64_t>(index) != source && (slice.getStarts()[index] != 0 || slice.getLimits()[index] != size))
      return {};
  SmallVector<int64_t> shape(reshape.getType().getShape());
  const int64_t inner = product(from.drop_front(source + 1)), after = product(ArrayRef(shape).drop_front(dim + 1));
  if (llvm::any_of(slice.getStrides(), [](int64_t stride) { return stride != 1; }) ||
      from[source] * inner % after != 0 || slice.getStarts()[source] * inner % after != 0)
    return {};
  shape[dim] = from[source] * inner / after;
  if (product(shape) != product(from))
    return {};
  SmallVector<int64_t> starts(shape.size(), 0), limits(shape);
  starts[dim] = slice.getStarts()[source] * inner / after;
  limits[dim] = starts[dim] + count;
  return on.slice(on.reshape(slice.getOperand(), shape), starts, limits).getDefiningOp<SliceOp>();
}

/// Two values that are the same function of two neighbouring slices of one value, concatenated along a dimension
/// without a concatenation.
class Joined {
public:
  /// Whether `first` and `second` along `dim` are, and `reader` alone reads them.
  Joined(Value first, Value second, int64_t dim, Operation *reader) : reader(reader) {
    isPossible =
        match(first, second, dim) && llvm::all_of(visited, [&](Operation *op) { return isRead(op); }) && hasWork;
  }

  bool isPossible = false;
  /// Once built: the heads that all begins with, where they are a slice of a view of memory.
  SliceOp leaf;

  Value build(OpBuilder &builder, Value first, Value second, int64_t dim) {
    auto key = std::make_tuple(first, second, dim);
    if (auto found = built.find(key); found != built.end())
      return found->second;
    return built[key] = make(builder, first, second, dim);
  }

private:
  using Pair = std::tuple<Value, Value, int64_t>;

  /// Slices are where a tree ends: they may have other readers.
  bool isRead(Operation *op) {
    return leaves.contains(op) ||
           llvm::all_of(op->getUsers(), [&](Operation *user) { return user == reader || visited.contains(user); });
  }

  static bool isLeaf(Value first, Value second, int64_t dim) {
    auto a = first.getDefiningOp<SliceOp>(), b = second.getDefiningOp<SliceOp>();
    if (!a || !b || a.getOperand() != b.getOperand() || !agreeBut(a.getStarts(), b.getStarts(), dim) ||
        !agreeBut(a.getLimits(), b.getLimits(), dim) || a.getStrides() != b.getStrides())
      return false;
    return a.getStrides()[dim] == 1 && a.getLimits()[dim] == b.getStarts()[dim];
  }

  /// The dimension of a reshape's operand that its result's `dim` is made of, for sizes that differ there; -1: none.
  static int64_t reshapedDim(ReshapeOp a, ReshapeOp b, int64_t dim) {
    ArrayRef<int64_t> from = shapeOf(a.getOperand()), other = shapeOf(b.getOperand()), to = a.getType().getShape();
    const int64_t before = product(to.take_front(dim)), after = product(to.drop_front(dim + 1));
    for (int64_t source = 0; source < static_cast<int64_t>(from.size()); ++source)
      if (product(from.take_front(source)) == before && agreeBut(from, other, source)) {
        const int64_t inner = product(from.drop_front(source + 1));
        // A whole number of the operand's elements is one of the result's, or the other way round.
        const int64_t sum = from[source] + other[source];
        if (from[source] * inner % after == 0 && other[source] * inner % after == 0 && sum * inner % after == 0)
          return source;
      }
    return -1;
  }

  bool match(Value first, Value second, int64_t dim) {
    if (!agreeBut(shapeOf(first), shapeOf(second), dim) ||
        tensorType(first).getElementType() != tensorType(second).getElementType())
      return false;
    Operation *a = first.getDefiningOp(), *b = second.getDefiningOp();
    if (!a || !b || a->getName() != b->getName() || a->getBlock() != b->getBlock())
      return false;
    visited.insert(a);
    visited.insert(b);
    if (isLeaf(first, second, dim)) {
      leaves.insert(a);
      leaves.insert(b);
      return true;
    }
    if (isRepeated(first, second, dim)) {
      leaves.insert(a);
      leaves.insert(b);
      return true;
    }
    if (a == b)
      return false;
    return llvm::TypeSwitch<Operation *, bool>(a)
        .Case([&](SliceOp slice) {
          auto other = cast<SliceOp>(b);
          return agreeBut(slice.getStarts(), other.getStarts(), -1) && slice.getStarts()[dim] == 0 &&
                 agreeBut(slice.getLimits(), other.getLimits(), dim) && slice.getStrides() == other.getStrides() &&
                 slice.getStrides()[dim] == 1 && slice.getLimits()[dim] == shapeOf(slice.getOperand())[dim] &&
                 other.getLimits()[dim] == shapeOf(other.getOperand())[dim] &&
                 match(slice.getOperand(), other.getOperand(), dim);
        })
        .Case([&](TransposeOp transpose) {
          auto other = cast<TransposeOp>(b);
          return transpose.getPermutation() == other.getPermutation() &&
                 match(transpose.getOperand(), other.getOperand(), transpose.getPermutation()[dim]);
        })
        .Case([&](ReshapeOp reshape) {
          auto other = cast<ReshapeOp>(b);
          const int64_t source = reshapedDim(reshape, other, dim);
          return source >= 0 && match(reshape.getOperand(), other.getOperand(), source);
        })
        .Case([&](ConcatOp concat) {
          auto other = cast<ConcatOp>(b);
          return concat.getDim() == other.getDim() && static_cast<int64_t>(concat.getDim()) != dim &&
                 matchOperands(a, b, dim);
        })
        .Default([&](Operation *) {
          const bool isElementwise = a->hasTrait<OpTrait::Elementwise>() || isa<ConvertOp>(a);
          if (!isElementwise || a->getNumResults() != 1 ||
              a->getDiscardableAttrDictionary() != b->getDiscardableAttrDictionary() ||
              a->getPropertiesAsAttribute() != b->getPropertiesAsAttribute())
            return false;
          hasWork = true;
          return matchOperands(a, b, dim);
        });
  }

  bool matchOperands(Operation *a, Operation *b, int64_t dim) {
    return a->getNumOperands() == b->getNumOperands() &&
           llvm::all_of(llvm::zip_equal(a->getOperands(), b->getOperands()), [&](auto operands) {
             auto [one, other] = operands;
             return shapeOf(one).size() == shapeOf(a->getResult(0)).size() && match(one, other, dim);
           });
  }

  /// One value repeated along `dim`.
  static bool isRepeated(Value first, Value second, int64_t dim) {
    auto a = first.getDefiningOp<BroadcastOp>(), b = second.getDefiningOp<BroadcastOp>();
    if (a && b) {
      if (a.getOperand() != b.getOperand() || a.getBroadcastDimensions() != b.getBroadcastDimensions())
        return false;
      for (auto [source, target] : llvm::enumerate(a.getBroadcastDimensions()))
        if (target == dim && shapeOf(a.getOperand())[source] != 1)
          return false;
      return true;
    }
    SplatElementsAttr one, other;
    return matchPattern(first, m_Constant(&one)) && matchPattern(second, m_Constant(&other)) &&
           one.getSplatValue<Attribute>() == other.getSplatValue<Attribute>();
  }

  Value make(OpBuilder &builder, Value first, Value second, int64_t dim) {
    Operation *a = first.getDefiningOp(), *b = second.getDefiningOp();
    Build on(builder, a->getLoc());
    SmallVector<int64_t> shape(shapeOf(first));
    shape[dim] += shapeOf(second)[dim];
    if (isLeaf(first, second, dim)) {
      auto slice = cast<SliceOp>(a);
      return on.slice(slice.getOperand(), slice.getStarts(), cast<SliceOp>(b).getLimits(), slice.getStrides());
    }
    if (isRepeated(first, second, dim)) {
      if (auto broadcast = dyn_cast<BroadcastOp>(a))
        return on.broadcast(broadcast.getOperand(), shape, broadcast.getBroadcastDimensions());
      SplatElementsAttr splat;
      matchPattern(first, m_Constant(&splat));
      return on.constant(splat.resizeSplat(tensorType(first).clone(shape)));
    }
    return llvm::TypeSwitch<Operation *, Value>(a)
        .Case([&](SliceOp slice) {
          SmallVector<int64_t> limits(slice.getLimits());
          limits[dim] = shape[dim];
          return on.slice(build(builder, slice.getOperand(), b->getOperand(0), dim), slice.getStarts(), limits,
                          slice.getStrides());
        })
        .Case([&](TransposeOp transpose) {
          ArrayRef<int64_t> permutation = transpose.getPermutation();
          return on.transpose(build(builder, transpose.getOperand(), b->getOperand(0), permutation[dim]), permutation);
        })
        .Case([&](ReshapeOp reshape) -> Value {
          const int64_t source = reshapedDim(reshape, cast<ReshapeOp>(b), dim);
          if (SliceOp heads = headsOf(on, reshape, dim, source, shape[dim])) {
            leaf = heads;
            return heads.getResult();
          }
          return on.reshape(build(builder, reshape.getOperand(), b->getOperand(0), source), shape);
        })
        .Default([&](Operation *) {
          SmallVector<Value> operands;
          for (auto [one, other] : llvm::zip_equal(a->getOperands(), b->getOperands()))
            operands.push_back(build(builder, one, other, dim));
          Operation *made = builder.clone(*a);
          made->setOperands(operands);
          made->getResult(0).setType(tensorType(first).clone(shape));
          return made->getResult(0);
        });
  }

  Operation *reader;
  llvm::SetVector<Operation *> visited;
  DenseSet<Operation *> leaves;
  bool hasWork = false; ///< anything but views
  llvm::DenseMap<Pair, Value> built;
};

/// `heads` [B, H, T, D], computed of those before `leaf` ends, and after them the values, if these are the heads that
/// follow: then what is computed can take the place of what it is computed of. Null: they are not.
Value appendValues(Build &on, AttentionOp attention, Value heads, SliceOp leaf) {
  constexpr int64_t swapped[] = {0, 2, 1, 3};
  auto transpose = attention.getValue().getDefiningOp<TransposeOp>();
  auto reshape = transpose && transpose.getPermutation() == ArrayRef(swapped)
                     ? transpose.getOperand().getDefiningOp<ReshapeOp>()
                     : ReshapeOp();
  if (!leaf || !reshape)
    return {};
  const int64_t last = tensorType(reshape.getOperand()).getRank() - 1;
  SliceOp values = headsOf(on, reshape, 2, last, reshape.getType().getShape()[2]);
  if (!values || values.getOperand().getType() != leaf.getOperand().getType() ||
      values.getOperand().getDefiningOp<ReshapeOp>().getOperand() !=
          leaf.getOperand().getDefiningOp<ReshapeOp>().getOperand() ||
      values.getStarts()[2] != leaf.getLimits()[2])
    return {};
  Value parts[] = {on.transpose(heads, swapped), values};
  return on.transpose(on.concat(parts, 2), swapped);
}

struct JoinHeads : impl::JoinHeadsBase<JoinHeads> {
  void runOnOperation() override {
    getOperation().walk([&](AttentionOp attention) {
      Value q = attention.getQuery(), k = attention.getKey();
      constexpr int64_t heads = 1;
      for (bool keysFirst : {false, true}) {
        Value first = keysFirst ? k : q, second = keysFirst ? q : k;
        Joined joined(first, second, heads, attention);
        if (!joined.isPossible)
          continue;
        OpBuilder builder(attention);
        Value whole = joined.build(builder, first, second, heads);
        Build on(builder, attention.getLoc());
        const int64_t numFirst = shapeOf(first)[heads], numBoth = shapeOf(whole)[heads];
        Value withValues = appendValues(on, attention, whole, joined.leaf);
        if (withValues)
          whole = withValues;
        auto headsFrom = [&](int64_t start, int64_t limit) {
          SmallVector<int64_t> starts(tensorType(whole).getRank(), 0), limits(shapeOf(whole));
          starts[heads] = start;
          limits[heads] = limit;
          return on.slice(whole, starts, limits);
        };
        Value front = headsFrom(0, numFirst), back = headsFrom(numFirst, numBoth);
        attention.getQueryMutable().assign(keysFirst ? back : front);
        attention.getKeyMutable().assign(keysFirst ? front : back);
        if (withValues)
          attention.getValueMutable().assign(headsFrom(numBoth, shapeOf(whole)[heads]));
        return;
      }
    });
  }
};
} // namespace
} // namespace tessera
