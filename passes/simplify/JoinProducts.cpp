//===- JoinProducts.cpp - products of one value by several weights as one -===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/NamePattern.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/simplify/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_JOINPRODUCTS
#include "passes/simplify/Passes.h.inc"

namespace {
/// A product by a weight, and the bias that is added to it.
struct Projection {
  DotGeneralOp product;
  BlockArgument weight;
  AddOp sum; ///< null: no bias, or none that this pass knows
  BlockArgument bias;

  int64_t columns() const { return shapeOf(weight)[0]; }
};

/// What products must have in common: the value, how it is contracted, the type of the result and that which the weight
/// is computed in, the block of the model, and whether the weight decays (a unit holds those that do apart from those
/// that do not).
using Key = std::tuple<Value, ArrayRef<int64_t>, ArrayRef<int64_t>, Type, Attribute, std::string, bool>;

struct JoinProducts : impl::JoinProductsBase<JoinProducts> {
  using JoinProductsBase::JoinProductsBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!isStepFunction(func))
      return;
    std::optional<NamePattern> pattern;
    if (failed(NamePattern::read(func.getLoc(), "--no-decay", noDecay, pattern)))
      return signalPassFailure();
    llvm::MapVector<Value, SmallVector<DotGeneralOp>> byValue;
    func.walk([&](DotGeneralOp product) {
      if (isByWeight(product) && !product.getScalingAttr()) // recipes scale each weight for itself
        byValue[product.getLhs()].push_back(product);
    });
    for (auto &[value, products] : byValue) {
      if (products.size() < 2)
        continue;
      SmallVector<std::pair<Key, Projection>> all;
      for (DotGeneralOp product : products)
        if (std::optional<Projection> found = read(product))
          all.emplace_back(keyOf(*found, pattern), *found);
      while (!all.empty()) {
        SmallVector<Projection> alike;
        const Key key = all.front().first;
        llvm::erase_if(all, [&](const std::pair<Key, Projection> &one) {
          if (one.first != key)
            return false;
          alike.push_back(one.second);
          return true;
        });
        if (alike.size() > 1)
          join(alike);
      }
    }
  }

private:
  BlockArgument parameter(Value value) {
    auto arg = dyn_cast<BlockArgument>(value);
    return arg && arg.getOwner() == &getOperation().getBody().front() &&
                   getArgRole(getOperation(), arg.getArgNumber()) == ArgRole::Param
               ? arg
               : BlockArgument();
  }

  StringRef nameOf(BlockArgument arg) { return getArgName(getOperation(), arg.getArgNumber()); }

  Attribute computeType(BlockArgument arg) { return getOperation().getArgAttr(arg.getArgNumber(), kComputeType); }

  bool isByWeight(DotGeneralOp product) {
    BlockArgument weight = parameter(product.getRhs());
    return weight && product.getLhsBatch().empty() && product->getBlock() == weight.getOwner() &&
           shapeOf(weight).size() > 1;
  }

  std::optional<Projection> read(DotGeneralOp product) {
    Projection found{product, parameter(product.getRhs()), {}, {}};
    // All dimensions but the first are contracted: what is computed by several weights are rows of them.
    if (product.getRhsContract().size() + 1 != shapeOf(found.weight).size() ||
        llvm::is_contained(product.getRhsContract(), 0)) {
      product.emitRemark() << "product not joined with others of the same value: the columns of '"
                           << nameOf(found.weight) << "' do not lie one behind the other";
      return std::nullopt;
    }
    if (getOperation().getArgAttr(found.weight.getArgNumber(), kPlacement)) {
      product.emitRemark() << "product not joined with others of the same value: model axes split '"
                           << nameOf(found.weight) << "'";
      return std::nullopt;
    }
    if (!found.weight.hasOneUse()) {
      product.emitRemark() << "product not joined with others of the same value: '" << nameOf(found.weight)
                           << "' has other readers";
      return std::nullopt;
    }
    readBias(found);
    return found;
  }

  void readBias(Projection &found) {
    auto sum = found.product->hasOneUse() ? dyn_cast<AddOp>(*found.product->user_begin()) : AddOp();
    if (!sum)
      return;
    Value other = sum.getLhs() == found.product ? sum.getRhs() : sum.getLhs();
    auto repeated = other.getDefiningOp<BroadcastOp>();
    BlockArgument bias = repeated ? parameter(repeated.getOperand()) : BlockArgument();
    if (!bias || !bias.hasOneUse() || !repeated->hasOneUse() || shapeOf(bias).size() != 1 ||
        repeated.getBroadcastDimensions() != ArrayRef<int64_t>{sum.getType().getRank() - 1} ||
        shapeOf(bias)[0] != found.columns() || getOperation().getArgAttr(bias.getArgNumber(), kPlacement) ||
        computeType(bias) != computeType(found.weight))
      return;
    found.sum = sum;
    found.bias = bias;
  }

  Key keyOf(Projection found, const std::optional<NamePattern> &pattern) {
    std::string scope = getBlockScope(nameOf(found.weight));
    if (scope.empty())
      scope = getBlockScope(getNodeName(found.product.getLoc()));
    DotGeneralOp product = found.product;
    return {product.getLhs(),
            product.getLhsContract(),
            product.getRhsContract(),
            product.getType().getElementType(),
            computeType(found.weight),
            scope,
            pattern && pattern->match(nameOf(found.weight))};
  }

  void join(ArrayRef<Projection> all) {
    DotGeneralOp first = all.front().product;
    OpBuilder builder(first);
    Build build(builder, first.getLoc());
    auto join = [&](auto part) {
      SmallVector<Value> parts = llvm::map_to_vector(all, part);
      return build.concat(parts, 0);
    };
    Value whole = build.dot(first.getLhs(), join([](const Projection &one) -> Value { return one.weight; }), {}, {},
                            first.getLhsContract(), first.getRhsContract(), first.getComputeTypeAttr());
    const bool hasBias = llvm::all_of(all, [](const Projection &one) { return one.sum; });
    const int64_t last = tensorType(whole).getRank() - 1;
    if (hasBias) {
      Value bias = join([](const Projection &one) -> Value { return one.bias; });
      whole = build.add(whole, build.broadcast(bias, shapeOf(whole), {last}));
    }
    SmallVector<int64_t> starts(last + 1, 0), limits(shapeOf(whole));
    for (Projection one : all) {
      limits[last] = starts[last] + one.columns();
      Operation *replaced = hasBias ? one.sum.getOperation() : one.product.getOperation();
      replaced->getResult(0).replaceAllUsesWith(Build(builder, replaced->getLoc()).slice(whole, starts, limits));
      starts[last] = limits[last];
    }
    for (Projection one : all) {
      if (hasBias) {
        Value other = one.sum.getLhs() == one.product ? one.sum.getRhs() : one.sum.getLhs();
        one.sum->erase();
        other.getDefiningOp()->erase();
      }
      one.product->erase();
    }
  }
};
} // namespace
} // namespace tessera
