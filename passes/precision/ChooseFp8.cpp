//===- ChooseFp8.cpp - which products are computed in 8-bit floats --------===//
//
// See Passes.td. What a product is for follows from the graph, never from a name.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/Fp8Policy.h"
#include "compiler/dialect/train/NamePattern.h"
#include "compiler/dialect/train/Products.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "compiler/interfaces/Interfaces.h"
#include "passes/precision/Fp8Gain.h"
#include "passes/precision/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

namespace tessera {
#define GEN_PASS_DEF_CHOOSEFP8
#include "passes/precision/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::train;

namespace {

/// A product of the forward pass, and why it is not cast; empty: it is.
struct Product {
  Operation *op = nullptr;
  BlockArgument weight; ///< null: no parameter alone is one of its operands
  bool weightIsLhs = false;
  int64_t inputs = 0, outputs = 0;
  std::string reason;
  std::string otherwise = "bf16"; ///< what it is computed in where it is not cast

  std::string remain() const { return (otherwise == "bf16" ? "stays in " : "is computed in ") + otherwise; }
};

/// How many blocks of the model, from its beginning and from its end, stay in bf16.
struct KeptBlocks {
  int64_t first = 0, last = 0;

  static std::optional<KeptBlocks> parse(StringRef text) {
    KeptBlocks kept;
    SmallVector<StringRef> parts;
    text.split(parts, ',', -1, /*KeepEmpty=*/!text.empty());
    llvm::StringSet<> given;
    for (StringRef part : parts) {
      const bool isNew = given.insert(part.split(':').first).second;
      int64_t *count = part.consume_front("first:") ? &kept.first : part.consume_front("last:") ? &kept.last : nullptr;
      if (!count || !isNew || part.getAsInteger(10, *count) || *count < 0)
        return std::nullopt;
    }
    return kept;
  }
};

class Chooser {
public:
  Chooser(func::FuncOp func, Fp8Recipe recipe, const std::optional<NamePattern> &filter, KeptBlocks kept,
          const precision::Fp8Gain &gain, int64_t parts)
      : func(func), recipe(recipe), info(getInfo(recipe)), filter(filter), kept(kept), gain(gain), parts(parts) {}

  /// Appends what was found to `rows`.
  LogicalResult run(SmallVectorImpl<Attribute> &rows) {
    func.walk([&](Operation *op) {
      if (isa<DotGeneralOp, AttentionOp, Conv2dOp, Conv2dInputGradOp, Conv2dFilterGradOp>(op))
        products.push_back(describe(op));
    });
    findGradients();
    rejectSharedWeights();
    if (failed(keepBlocks()) || failed(checkFilter()))
      return failure();
    if (llvm::none_of(products, [](const Product &product) { return product.reason.empty(); }))
      return refuse();
    for (const Product &product : products) {
      if (product.reason.empty())
        mark(product);
      else
        product.op->emitRemark() << nameOf(product) << " " << product.remain() << ": " << product.reason;
      rows.push_back(rowOf(product));
    }
    return success();
  }

private:
  // --- What products are -----------------------------------------------------------

  /// The parameter of which `value` shows each element at most once; null if it is something else.
  BlockArgument weightOf(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      IndexMappingOpInterface view = asStaticView(op);
      if (!view || !view.isInjective())
        return {};
      value = op->getOperand(0);
    }
    auto arg = cast<BlockArgument>(value);
    return arg.getOwner() == &func.getBody().front() && isParameter(getArgRole(func, arg.getArgNumber()))
               ? arg
               : BlockArgument();
  }

  Product describe(Operation *op) {
    Product product;
    product.op = op;
    auto dot = dyn_cast<DotGeneralOp>(op);
    if (!dot) {
      product.reason = isa<AttentionOp>(op) ? "an attention" : "a convolution";
      if (!isa<AttentionOp>(op))
        product.otherwise = "f32";
      return product;
    }
    if (isComputedInF32(dot))
      product.otherwise = "f32";
    for (Value operand : dot.getOperands())
      if (Type element = tensorType(operand).getElementType(); !element.isF32())
        product.otherwise = llvm::formatv("{0}", element);
    BlockArgument lhs = weightOf(dot.getLhs()), rhs = weightOf(dot.getRhs());
    if (static_cast<bool>(lhs) == static_cast<bool>(rhs)) {
      product.reason = lhs ? "it multiplies two parameters" : "it multiplies no parameter";
      return product;
    }
    product.weight = lhs ? lhs : rhs;
    product.weightIsLhs = static_cast<bool>(lhs);
    Value weight = lhs ? dot.getLhs() : dot.getRhs();
    product.inputs = 1;
    for (int64_t dim : lhs ? dot.getLhsContract() : dot.getRhsContract())
      product.inputs *= shapeOf(weight)[dim];
    const int64_t elements = tensorType(weight).getNumElements();
    product.outputs = product.inputs == 0 ? 0 : elements / product.inputs;
    product.reason = reasonOf(product, dot);
    return product;
  }

  std::string reasonOf(const Product &product, DotGeneralOp dot) {
    const unsigned index = product.weight.getArgNumber();
    if (isComputedInF32(func, index))
      return "--keep-f32 names its parameter";
    if (isComputedInF32(dot))
      return "--keep-f32 names what its activation is made of";
    for (Value operand : dot.getOperands())
      if (!tensorType(operand).getElementType().isF32())
        return "the model has it in " + product.otherwise;
    if (tensorType(dot.getLhs()).getNumElements() == 0 || tensorType(dot.getRhs()).getNumElements() == 0)
      return "it has no elements";
    if (!dot.getLhsBatch().empty())
      return "it has a batch of matrices";
    if (filter && !filter->match(getArgName(func, index)))
      return "--fp8-filter does not name its parameter";
    if (std::string use = useOf(dot.getResult()); !use.empty())
      return use;
    const Sizes part = sizesOnRank(product, dot);
    if (part.inputs % info.multiple != 0 || part.outputs % info.multiple != 0)
      return llvm::formatv("{0} inputs and {1} outputs{2}, expected multiples of {3}", part.inputs, part.outputs,
                           part.isWhole ? "" : " on each rank along model axes", info.multiple);
    const int64_t tokens = tensorType(dot.getResult()).getNumElements() / product.outputs / parts;
    return gain.against(recipe, {tokens, part.inputs, part.outputs});
  }

  struct Sizes {
    int64_t inputs, outputs;
    bool isWhole = true;
  };

  /// What a rank has of the inputs and outputs: a part of one where model axes split the weight.
  Sizes sizesOnRank(const Product &product, DotGeneralOp dot) {
    const Sizes whole{product.inputs, product.outputs};
    auto placement = func.getArgAttrOfType<PlacementAttr>(product.weight.getArgNumber(), kPlacement);
    if (!placement)
      return whole;
    int64_t dim = placement.getDim();
    SmallVector<TransposeOp> views;
    for (Value value = product.weightIsLhs ? dot.getLhs() : dot.getRhs(); value != product.weight;
         value = views.back().getOperand()) {
      auto transpose = value.getDefiningOp<TransposeOp>();
      if (!transpose)
        return whole; // which of the two is split cannot be seen
      views.push_back(transpose);
    }
    for (TransposeOp transpose : llvm::reverse(views))
      dim = llvm::find(transpose.getPermutation(), dim) - transpose.getPermutation().begin();
    const int64_t parts = placement.getParts();
    return llvm::is_contained(product.weightIsLhs ? dot.getLhsContract() : dot.getRhsContract(), dim)
               ? Sizes{product.inputs / parts, product.outputs, false}
               : Sizes{product.inputs, product.outputs / parts, false};
  }

  /// Why the product is none of those in the middle of a model: what it computes chooses among others (a router), or
  /// nothing but the loss and outputs follows from it (a head).
  static std::string useOf(Value result) {
    SmallVector<Value> pending = {result};
    llvm::DenseSet<Value> seen;
    bool isInner = false;
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      if (!seen.insert(value).second)
        continue;
      for (OpOperand &use : value.getUses()) {
        Operation *user = use.getOwner();
        if (isa<SoftmaxOp, ArgmaxOp, SortIndicesOp>(user))
          return "a router: what it computes goes into a softmax or chooses among others";
        auto reduce = dyn_cast<ReduceOp>(user);
        if (isa<DotGeneralOp, AttentionOp, LayerNormOp, Conv2dOp, Conv2dInputGradOp>(user))
          isInner = true;
        else if (reduce && reduce.getKind() == ReduceKind::Max)
          return "a router or a head: what it computes goes into a maximum";
        else
          llvm::append_range(pending, user->getResults());
      }
    }
    return isInner ? "" : "a head: only the loss and outputs follow from it";
  }

  void findGradients() {
    for (BlockArgument arg : func.getArguments())
      if (getArgRole(func, arg.getArgNumber()) == ArgRole::Param)
        trained.insert(arg);
    func.walk([&](Operation *op) {
      if (!isa<StopGradientOp>(op) &&
          llvm::any_of(op->getOperands(), [&](Value value) { return trained.contains(value); }))
        trained.insert(op->result_begin(), op->result_end());
    });
  }

  // --- What is left out ------------------------------------------------------------

  /// A weight is cast for all that reads it, or for nothing.
  void rejectSharedWeights() {
    llvm::MapVector<BlockArgument, SmallVector<Product *>> byWeight;
    for (Product &product : products)
      if (product.weight)
        byWeight[product.weight].push_back(&product);
    for (auto &[weight, readers] : byWeight) {
      const int64_t reads = countReads(weight);
      const auto *other = llvm::find_if(readers, [](Product *product) { return !product->reason.empty(); });
      const bool isShared = reads > static_cast<int64_t>(readers.size());
      if (!isShared && other == readers.end())
        continue;
      for (Product *product : readers)
        if (product->reason.empty())
          product->reason = isShared
                                ? "its parameter has other readers"
                                : "another product of its parameter " + (*other)->remain() + ": " + (*other)->reason;
    }
  }

  /// Reads of a parameter through views.
  static int64_t countReads(Value value) {
    int64_t reads = 0;
    for (Operation *user : value.getUsers()) {
      IndexMappingOpInterface view = asStaticView(user);
      reads += view && view.isInjective() ? countReads(user->getResult(0)) : 1;
    }
    return reads;
  }

  LogicalResult keepBlocks() {
    SmallVector<std::string> blocks;
    auto blockOf = [&](const Product &product) {
      std::string scope = product.weight ? getBlockScope(getArgName(func, product.weight.getArgNumber())) : "";
      return scope.empty() ? getBlockScope(getNodeName(product.op->getLoc())) : scope;
    };
    for (const Product &product : products)
      if (std::string block = blockOf(product); !block.empty() && !llvm::is_contained(blocks, block))
        blocks.push_back(block);
    const int64_t count = blocks.size();
    if (kept.first + kept.last > count)
      return func.emitError() << "--fp8-keep-bf16 names " << kept.first + kept.last
                              << (kept.first + kept.last == 1 ? " block" : " blocks") << ", but products are in "
                              << count << " (as parameters are named)";
    for (Product &product : products) {
      const int64_t position = llvm::find(blocks, blockOf(product)) - blocks.begin();
      if (product.reason.empty() && position < count && (position < kept.first || position >= count - kept.last))
        product.reason = "--fp8-keep-bf16 names its block, '" + blocks[position] + "'";
    }
    return success();
  }

  LogicalResult checkFilter() {
    SmallVector<StringRef> names;
    for (const Product &product : products)
      if (product.weight)
        names.push_back(getArgName(func, product.weight.getArgNumber()));
    return success(!filter || succeeded(filter->expectMatch(func.getLoc(), "parameter of a product", names)));
  }

  bool matches(const Product &product) {
    return product.weight && filter->match(getArgName(func, product.weight.getArgNumber()));
  }

  // --- Result ----------------------------------------------------------------------

  std::string nameOf(const Product &product) {
    if (!product.weight)
      return ("'" + getNodeName(product.op->getLoc()) + "'").str();
    return ("the product of '" + getArgName(func, product.weight.getArgNumber()) + "'").str();
  }

  /// All at once: which of them are worth a change of the model is for the user to see.
  LogicalResult refuse() {
    InFlightDiagnostic error = func.emitError()
                               << "no product can be computed in 8 bits by recipe " << info.name() << ":";
    llvm::StringSet<> told;
    for (const Product &product : products)
      if (const std::string line = nameOf(product) + ": " + product.reason; told.insert(line).second)
        error << "\n  " << line;
    return error;
  }

  void mark(const Product &product) {
    auto dot = cast<DotGeneralOp>(product.op);
    const ProductOperand lhs = product.weightIsLhs ? ProductOperand::Weight : ProductOperand::Activation;
    const ProductOperand rhs = product.weightIsLhs ? ProductOperand::Activation : ProductOperand::Weight;
    dot.setScalingAttr(ScalingAttr::get(func.getContext(), recipe, lhs, rhs));
    func.setArgAttr(product.weight.getArgNumber(), kComputeType,
                    TypeAttr::get(Float8E4M3FNType::get(func.getContext())));
  }

  ProductAttr rowOf(const Product &product) {
    Builder builder(func.getContext());
    auto computedIn = [&](Fp8Product kind) {
      return builder.getStringAttr(!hasGradient(product, kind) ? "none"
                                   : product.reason.empty()    ? describePolicy(recipe, kind)
                                                               : product.otherwise);
    };
    return ProductAttr::get(
        func.getContext(), builder.getStringAttr(getNodeName(product.op->getLoc())),
        builder.getStringAttr(product.weight ? getArgName(func, product.weight.getArgNumber()) : StringRef()),
        product.inputs, product.outputs, computedIn(Fp8Product::Output), computedIn(Fp8Product::InputGrad),
        computedIn(Fp8Product::WeightGrad), builder.getStringAttr(product.reason));
  }

  /// Whether the step computes the gradient; of the forward pass: true.
  bool hasGradient(const Product &product, Fp8Product kind) const {
    if (kind == Fp8Product::Output || !product.weight)
      return true;
    if (kind == Fp8Product::WeightGrad)
      return trained.contains(product.weight);
    auto dot = cast<DotGeneralOp>(product.op);
    return trained.contains(product.weightIsLhs ? dot.getRhs() : dot.getLhs());
  }

  func::FuncOp func;
  Fp8Recipe recipe;
  const RecipeInfo &info;
  const std::optional<NamePattern> &filter;
  KeptBlocks kept;
  const precision::Fp8Gain &gain;
  int64_t parts;
  std::vector<Product> products;
  llvm::DenseSet<Value> trained; ///< what trained parameters have a part in
};

struct ChooseFp8Pass : tessera::impl::ChooseFp8Base<ChooseFp8Pass> {
  using ChooseFp8Base::ChooseFp8Base;
  void runOnOperation() override {
    SmallVector<Attribute> rows;
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>())
      if (isStepFunction(func) && failed(run(func, rows)))
        return signalPassFailure();
    if (!rows.empty())
      getOperation()->setAttr(kProducts, ArrayAttr::get(&getContext(), rows));
  }

private:
  LogicalResult run(func::FuncOp func, SmallVectorImpl<Attribute> &rows) {
    const std::optional<Fp8Recipe> found = symbolizeFp8Recipe(recipe);
    if (!found)
      return func.emitError() << "unknown recipe '" << recipe << "', expected one of " << recipeNames();
    const std::optional<KeptBlocks> kept = KeptBlocks::parse(keepBf16);
    if (!kept)
      return func.emitError() << "--fp8-keep-bf16: expected first:<blocks>,last:<blocks>, got '" << keepBf16 << "'";
    std::optional<NamePattern> pattern;
    if (failed(NamePattern::read(func.getLoc(), "--fp8-filter", filter, pattern)))
      return failure();
    if (parts < 1)
      return func.emitError() << "choose-fp8: parts must be at least 1, got " << parts.getValue();
    FailureOr<precision::Fp8Gain> gain = precision::Fp8Gain::create(select, target, func.getLoc());
    if (failed(gain))
      return failure();
    return Chooser(func, *found, pattern, *kept, *gain, parts).run(rows);
  }
};

} // namespace
