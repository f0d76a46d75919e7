//===- CastFp8.cpp - products become products of 8-bit floats -------------===//
//
// See Passes.td. Operands become matrices, so that tokens are one dimension whatever the model calls them.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Fp8Policy.h"
#include "compiler/dialect/train/MarkAs.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "passes/precision/Fp8Weights.h"
#include "passes/precision/Passes.h"

#include "llvm/ADT/StringSet.h"

#include <numeric>

namespace tessera {
#define GEN_PASS_DEF_CASTFP8
#include "passes/precision/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::precision;
using namespace tessera::train;

namespace {

/// An operand of a product as a matrix.
struct Matrix {
  Value value;
  int64_t contracted; ///< its dimension that is contracted; the other one is kept

  int64_t kept() const { return 1 - contracted; }
  int64_t size(int64_t dim) const { return shapeOf(value)[dim]; }
};

class Fp8Caster {
public:
  Fp8Caster(func::FuncOp func, int64_t groups, Quantizer quantizer)
      : func(func), groups(groups), ranks(countRanks(func)), quantizer(quantizer), weights(func, quantizer) {}

  int64_t scaled = 0;

  LogicalResult run() {
    SmallVector<DotGeneralOp> products;
    func.walk([&](DotGeneralOp dot) {
      if (dot.getScalingAttr())
        products.push_back(dot);
    });
    bool isValid = true;
    llvm::StringSet<> told;
    for (DotGeneralOp dot : products)
      if (std::string problem = problemOf(dot); !problem.empty()) {
        isValid = false;
        if (told.insert(problem).second)
          func.emitError(problem);
      }
    if (!isValid)
      return failure();
    std::vector<Product> toCast;
    for (DotGeneralOp dot : products) {
      const ScalingAttr scaling = dot.getScalingAttr();
      if (!policyOf(dot, scaling.getLhs()) || !policyOf(dot, scaling.getRhs())) {
        leaveInBf16(dot);
        continue;
      }
      MarkAs listener(dot);
      OpBuilder builder(dot, &listener);
      Build b(builder, dot.getLoc());
      toCast.push_back({dot, describe(b, dot, true), describe(b, dot, false)});
    }
    weights.build();
    for (const Product &product : toCast)
      cast(product);
    completeBackwardMarks(func);
    return success();
  }

private:
  /// How many ranks tokens are split over.
  static int64_t countRanks(func::FuncOp func) {
    auto module = func->getParentOfType<ModuleOp>();
    auto mesh = module ? module->getAttrOfType<dist::MeshAttr>(dist::kMesh) : dist::MeshAttr();
    return mesh ? dist::groupSize(mesh, dist::sampleAxes(mesh)) : 1;
  }

  static Fp8Product kindOf(DotGeneralOp dot) {
    return *productOf(dot.getScalingAttr().getLhs(), dot.getScalingAttr().getRhs());
  }

  static std::optional<OperandPolicy> policyOf(DotGeneralOp dot, ProductOperand operand) {
    return operandPolicy(dot.getScalingAttr().getRecipe(), kindOf(dot), operand);
  }

  static int64_t count(Value value, ArrayRef<int64_t> dims) {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1},
                           [&](int64_t product, int64_t dim) { return product * shapeOf(value)[dim]; });
  }

  /// Tokens are what activations and gradients have and weights do not.
  std::string problemOf(DotGeneralOp dot) const {
    const ScalingAttr scaling = dot.getScalingAttr();
    const RecipeInfo &info = getInfo(scaling.getRecipe());
    const bool isWeightGrad = kindOf(dot) == Fp8Product::WeightGrad;
    const bool lhsHasTokens = scaling.getLhs() != ProductOperand::Weight;
    Value holder = lhsHasTokens ? dot.getLhs() : dot.getRhs();
    const int64_t contracted = count(holder, lhsHasTokens ? dot.getLhsContract() : dot.getRhsContract());
    const int64_t tokens = isWeightGrad ? contracted : tensorType(holder).getNumElements() / contracted;
    if (isWeightGrad && tokens % (info.tokenMultiple * ranks) != 0)
      return "recipe " + info.name().str() + " needs a multiple of " + std::to_string(info.tokenMultiple) +
             " tokens in a micro-batch on each rank, got " + std::to_string(tokens) + " on " + std::to_string(ranks) +
             (ranks == 1 ? " rank" : " ranks");
    if (tokens % groups != 0 || (isWeightGrad && tokens / groups % info.tokenMultiple != 0))
      return "--fp8-amax local: " + std::to_string(tokens) + " tokens of a micro-batch cannot be " +
             std::to_string(groups) + " groups of a multiple of " + std::to_string(info.tokenMultiple);
    return "";
  }

  // --- Operands --------------------------------------------------------------------

  /// Kept and contracted dimensions as one each, in the order in which the operand holds them where that can be.
  static Matrix toMatrix(Build &b, Value operand, ArrayRef<int64_t> contract) {
    SmallVector<int64_t> keptFirst, contract_(contract);
    for (int64_t dim = 0; dim < tensorType(operand).getRank(); ++dim)
      if (!llvm::is_contained(contract, dim))
        keptFirst.push_back(dim);
    const int64_t kept = count(operand, keptFirst), contracted = count(operand, contract);
    SmallVector<int64_t> contractedFirst(contract_);
    llvm::append_range(contractedFirst, keptFirst);
    if (llvm::is_sorted(contractedFirst))
      return {b.reshape(operand, {contracted, kept}), 0};
    llvm::append_range(keptFirst, contract_);
    if (!llvm::is_sorted(keptFirst))
      operand = b.transpose(operand, keptFirst);
    return {b.reshape(operand, {kept, contracted}), 1};
  }

  /// How many elements along each dimension of an operand share a scale.
  SmallVector<int64_t> blocksOf(const Matrix &matrix, const OperandPolicy &policy, int64_t tokenDim) const {
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

  Operand describe(Build &b, DotGeneralOp dot, bool isLhs) {
    const ScalingAttr scaling = dot.getScalingAttr();
    const ProductOperand kind = isLhs ? scaling.getLhs() : scaling.getRhs();
    Operand operand{
        toMatrix(b, isLhs ? dot.getLhs() : dot.getRhs(), isLhs ? dot.getLhsContract() : dot.getRhsContract()),
        {},
        *policyOf(dot, kind),
        false};
    const bool isWeight = kind == ProductOperand::Weight;
    const int64_t tokenDim = isWeight                                ? -1
                             : kindOf(dot) == Fp8Product::WeightGrad ? operand.matrix.contracted
                                                                     : operand.matrix.kept();
    operand.blocks = blocksOf(operand.matrix, operand.policy, tokenDim);
    operand.isHeld = isWeight && weights.request(operand.matrix.value, operand.blocks, operand.policy);
    return operand;
  }

  Quantized quantize(Build &b, const Operand &operand) {
    return operand.isHeld ? weights.read(b, operand.matrix.value, operand.blocks, operand.policy)
                          : quantizer.quantize(b, operand.matrix.value, operand.blocks, operand.policy);
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
    dot.replaceAllUsesWith(b.reshape(scaledDot, shapeOf(dot.getResult())));
    dot.erase();
    ++scaled;
  }

  func::FuncOp func;
  int64_t groups, ranks;
  Quantizer quantizer;
  Fp8Weights weights;
};

struct CastFp8Pass : tessera::impl::CastFp8Base<CastFp8Pass> {
  using CastFp8Base::CastFp8Base;
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    Fp8Caster caster(getOperation(), groups, {nonfinite == "scale1"});
    if (failed(caster.run()))
      return signalPassFailure();
    numScaled += caster.scaled;
  }
};

} // namespace
