//===- CastFp8.cpp - products become products of 8-bit floats -------------===//
//
// See Passes.td. Operands become matrices, so that tokens are one dimension whatever the model calls them. Where it
// matters which of them are neighbours, they are in the order of samples.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Fp8Policy.h"
#include "compiler/dialect/train/MarkAs.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/precision/Fp8Matrix.h"
#include "passes/precision/Fp8Weights.h"
#include "passes/precision/Passes.h"
#include "passes/shard/SampleLayouts.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace tessera {
#define GEN_PASS_DEF_CASTFP8
#include "passes/precision/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::precision;
using namespace tessera::train;
using dist::Layout;

namespace {

/// The tokens of a product: what activations and gradients have and weights do not.
struct Tokens {
  int64_t count = 0;
  Layout lhs, rhs;         ///< where samples are
  bool hasSamples = false; ///< tokens belong to samples, which ranks split
  bool isGrouped = false;  ///< some share a scale and others do not, so that it matters which are neighbours
};

class Fp8Caster {
public:
  Fp8Caster(func::FuncOp func, int64_t groups, Quantizer quantizer)
      : func(func), groups(groups), ranks(countRanks(func, &dist::sampleAxes) * countRanks(func, &dist::positionAxes)),
        quantizer(quantizer), weights(func, quantizer, countRanks(func, &dist::stateAxes)), samples(func) {}

  int64_t scaled = 0;

  LogicalResult run() {
    SmallVector<DotGeneralOp> products;
    func.walk([&](DotGeneralOp dot) {
      if (dot.getScalingAttr())
        products.push_back(dot);
    });
    if (!products.empty() && samples.getNumSamples() % groups != 0)
      return func.emitError() << "--fp8-amax local: a micro-batch of " << samples.getNumSamples()
                              << (samples.getNumSamples() == 1 ? " sample" : " samples") << " cannot be " << groups
                              << " equal groups";
    SmallVector<DotGeneralOp> toCast;
    for (DotGeneralOp dot : products) {
      if (isEmpty(dot) || !policyOf(dot, true) || !policyOf(dot, false))
        leaveInBf16(dot);
      else
        toCast.push_back(dot);
    }
    if (failed(check(toCast)))
      return failure();
    std::vector<Product> described;
    for (DotGeneralOp dot : toCast) {
      MarkAs listener(dot);
      OpBuilder builder(dot, &listener);
      Build b(builder, dot.getLoc());
      const Tokens tokens = tokensOf(dot);
      described.push_back({dot, describe(b, dot, tokens, true), describe(b, dot, tokens, false)});
    }
    weights.build();
    for (const Product &product : described)
      cast(product);
    for (DotGeneralOp dot : toCast)
      dot.erase();
    completeBackwardMarks(func);
    return success();
  }

private:
  /// How many ranks there are along some axes.
  static int64_t countRanks(func::FuncOp func, dist::Axes (*axes)(dist::MeshAttr)) {
    auto module = func->getParentOfType<ModuleOp>();
    auto mesh = module ? module->getAttrOfType<dist::MeshAttr>(dist::kMesh) : dist::MeshAttr();
    return mesh ? dist::groupSize(mesh, axes(mesh)) : 1;
  }

  // --- What products are -----------------------------------------------------------

  static Fp8Product kindOf(DotGeneralOp dot) {
    return *productOf(dot.getScalingAttr().getLhs(), dot.getScalingAttr().getRhs());
  }

  static ProductOperand operandOf(DotGeneralOp dot, bool isLhs) {
    return isLhs ? dot.getScalingAttr().getLhs() : dot.getScalingAttr().getRhs();
  }

  static bool isWeight(DotGeneralOp dot, bool isLhs) { return operandOf(dot, isLhs) == ProductOperand::Weight; }

  static std::optional<OperandPolicy> policyOf(DotGeneralOp dot, bool isLhs) {
    return operandPolicy(dot.getScalingAttr().getRecipe(), kindOf(dot), operandOf(dot, isLhs));
  }

  static bool isEmpty(DotGeneralOp dot) {
    return llvm::any_of(dot->getOperands(), [](Value value) { return tensorType(value).getNumElements() == 0; });
  }

  static Order orderOf(DotGeneralOp dot, bool isLhs) {
    Order order;
    order.contracted.append(llvm::to_vector(isLhs ? dot.getLhsContract() : dot.getRhsContract()));
    for (int64_t dim = 0; dim < tensorType(isLhs ? dot.getLhs() : dot.getRhs()).getRank(); ++dim)
      if (!llvm::is_contained(order.contracted, dim))
        order.kept.push_back(dim);
    return order;
  }

  Tokens tokensOf(DotGeneralOp dot) const {
    Tokens tokens;
    const Fp8Product kind = kindOf(dot);
    SmallVector<Layout> layouts = samples.ofOperands(dot);
    for (bool isLhs : {true, false}) {
      if (isWeight(dot, isLhs))
        continue;
      Order order = orderOf(dot, isLhs);
      ArrayRef<int64_t> dims = order.tokens(kind);
      const Layout &layout = layouts[isLhs ? 0 : 1];
      tokens.count = countElements(isLhs ? dot.getLhs() : dot.getRhs(), dims);
      tokens.hasSamples |= llvm::any_of(dims, [&](int64_t dim) { return !layout.dims[dim].empty(); });
      const int64_t sharing = tokensPerScale(kind, *policyOf(dot, isLhs));
      tokens.isGrouped |= sharing > 1 || (sharing == 0 && groups > 1);
    }
    tokens.lhs = std::move(layouts[0]);
    tokens.rhs = std::move(layouts[1]);
    return tokens;
  }

  // --- What cannot be cast ---------------------------------------------------------

  /// One error for each reason, at the first product that has it.
  LogicalResult check(ArrayRef<DotGeneralOp> products) const {
    std::vector<std::pair<std::string, SmallVector<DotGeneralOp>>> problems;
    for (DotGeneralOp dot : products) {
      const std::string problem = problemOf(dot);
      if (problem.empty())
        continue;
      auto known = llvm::find_if(problems, [&](const auto &one) { return one.first == problem; });
      if (known == problems.end())
        known = problems.insert(known, {problem, {}});
      known->second.push_back(dot);
    }
    for (auto &[problem, having] : problems) {
      InFlightDiagnostic error = having.front().emitError() << problem;
      SmallVector<StringRef> names;
      for (DotGeneralOp dot : having)
        if (StringRef name = getNodeName(dot.getLoc()); !name.empty() && !llvm::is_contained(names, name))
          names.push_back(name);
      if (!names.empty())
        error << ": '" << llvm::join(names, "', '") << "'";
    }
    return success(problems.empty());
  }

  std::string problemOf(DotGeneralOp dot) const {
    const std::string recipe = "recipe " + stringifyFp8Recipe(dot.getScalingAttr().getRecipe()).str();
    const Tokens tokens = tokensOf(dot);
    for (bool isLhs : {true, false}) {
      const OperandPolicy policy = *policyOf(dot, isLhs);
      const Order order = orderOf(dot, isLhs);
      for (bool contracted : {true, false}) {
        const int64_t block = contracted ? policy.contracted : policy.kept;
        const bool ofTokens = !isWeight(dot, isLhs) && contracted == (kindOf(dot) == Fp8Product::WeightGrad);
        const int64_t size =
            countElements(isLhs ? dot.getLhs() : dot.getRhs(), contracted ? order.contracted : order.kept);
        if (block == 0 || (!ofTokens && size % block == 0))
          continue;
        if (!ofTokens)
          return llvm::formatv("{0} needs inputs and outputs that are multiples of {1}, got {2}", recipe, block, size);
        const int64_t onRanks = tokens.hasSamples ? ranks : 1, inGroups = tokens.hasSamples ? groups : 1;
        if (size % (block * onRanks) != 0)
          return llvm::formatv("{0} needs a multiple of {1} tokens in a micro-batch on each rank, got {2} on {3} {4}",
                               recipe, block, size, onRanks, onRanks == 1 ? "rank" : "ranks");
        if (size % (block * inGroups) != 0)
          return llvm::formatv("{0} needs a multiple of {1} tokens in each group, got {2} in {3} groups", recipe, block,
                               size, inGroups);
      }
    }
    return "";
  }

  // --- Operands --------------------------------------------------------------------

  /// How many elements along each dimension of an operand share a scale.
  static SmallVector<int64_t> blocksOf(const Matrix &matrix, const OperandPolicy &policy, int64_t tokenDim,
                                       int64_t groups) {
    SmallVector<int64_t> blocks(2);
    for (int64_t dim : {0, 1}) {
      const int64_t block = dim == matrix.contracted ? policy.contracted : policy.kept;
      // Where all tokens share a scale, those of a group do.
      const int64_t whole = dim == tokenDim ? matrix.size(dim) / groups : matrix.size(dim);
      blocks[dim] = block == 0 ? whole : block;
    }
    return blocks;
  }

  // --- Products --------------------------------------------------------------------

  /// As the precision phase computes other products.
  static void leaveInBf16(DotGeneralOp dot) {
    MarkAs listener(dot);
    OpBuilder builder(dot, &listener);
    Build b(builder, dot.getLoc());
    dot.removeScalingAttr();
    for (OpOperand &operand : dot->getOpOperands())
      operand.set(b.convert(operand.get(), builder.getBF16Type()));
  }

  /// An operand as a matrix, and what of it shares a scale.
  struct Operand {
    Matrix matrix;
    SmallVector<int64_t> blocks;
    OperandPolicy policy;
    bool isHeld = false; ///< a weight that is quantised in its unit
  };

  struct Product {
    DotGeneralOp dot;
    Operand lhs, rhs;
  };

  Operand describe(Build &b, DotGeneralOp dot, const Tokens &tokens, bool isLhs) {
    const Fp8Product kind = kindOf(dot);
    Value value = isLhs ? dot.getLhs() : dot.getRhs();
    Order order = orderOf(dot, isLhs);
    if (!isWeight(dot, isLhs) && tokens.hasSamples && tokens.isGrouped)
      value = putSamplesFirst(b, value, isLhs ? tokens.lhs : tokens.rhs, samples.getNumSamples(), kind, order);
    Operand operand{toMatrix(b, value, order), {}, *policyOf(dot, isLhs)};
    const int64_t tokenDim = isWeight(dot, isLhs)             ? -1
                             : kind == Fp8Product::WeightGrad ? operand.matrix.contracted
                                                              : operand.matrix.kept();
    operand.blocks = blocksOf(operand.matrix, operand.policy, tokenDim, tokens.hasSamples ? groups : 1);
    if (isWeight(dot, isLhs)) {
      const StringRef reason = weights.request(operand.matrix.value, operand.blocks, operand.policy);
      operand.isHeld = reason.empty();
      if (!operand.isHeld)
        dot.emitRemark() << "the weight of '" << getNodeName(dot.getLoc())
                         << "' is quantised where it is read: " << reason;
    }
    return operand;
  }

  Quantized quantize(Build &b, const Operand &operand) {
    if (operand.isHeld)
      return weights.read(b, operand.matrix.value, operand.blocks, operand.policy);
    const Value product = casts.lookup(operand.matrix.value);
    return quantizer.quantize(b, product ? product : operand.matrix.value, operand.blocks, operand.policy);
  }

  void cast(const Product &product) {
    DotGeneralOp dot = product.dot;
    MarkAs listener(dot);
    OpBuilder builder(dot, &listener);
    Build b(builder, dot.getLoc());
    const Quantized lhs = quantize(b, product.lhs), rhs = quantize(b, product.rhs);
    const int64_t rows = product.lhs.matrix.size(product.lhs.matrix.kept());
    const int64_t columns = product.rhs.matrix.size(product.rhs.matrix.kept());
    const bool isPowerOfTwo = product.lhs.policy.isPowerOfTwo() && product.rhs.policy.isPowerOfTwo();
    auto scaledDot = ScaledDotOp::create(builder, dot.getLoc(), tensorType(dot).clone({rows, columns}), lhs.value,
                                         rhs.value, lhs.inverseScale, rhs.inverseScale, {product.lhs.matrix.contracted},
                                         {product.rhs.matrix.contracted}, isPowerOfTwo);
    Value result = joinKept(b, scaledDot, product.lhs.matrix, product.rhs.matrix);
    casts[dot.getResult()] = b.reshape(result, shapeOf(dot.getResult()));
    dot.replaceAllUsesWith(casts[dot.getResult()]);
    ++scaled;
  }

  func::FuncOp func;
  int64_t groups, ranks;
  Quantizer quantizer;
  Fp8Weights weights;
  shard::SampleLayouts samples;
  llvm::DenseMap<Value, Value> casts; ///< of products, which others may read as they are
};

struct CastFp8Pass : tessera::impl::CastFp8Base<CastFp8Pass> {
  using CastFp8Base::CastFp8Base;
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    if (groups < 1) {
      getOperation().emitError() << "cast-fp8: groups must be at least 1, got " << groups.getValue();
      return signalPassFailure();
    }
    if (nonfinite != "propagate" && nonfinite != "scale1") {
      getOperation().emitError() << "cast-fp8: nonfinite must be propagate or scale1, got '" << nonfinite << "'";
      return signalPassFailure();
    }
    Fp8Caster caster(getOperation(), groups, {nonfinite == "scale1"});
    if (failed(caster.run()))
      return signalPassFailure();
    numScaled += caster.scaled;
  }
};

} // namespace
