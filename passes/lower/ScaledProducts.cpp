//===- ScaledProducts.cpp - products in 8 bits as a GPU's library has them ===//
//
// See Passes.td. What is contracted becomes the innermost dimension of both operands, and scales lie as the library
// reads them.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/ScaledProducts.h"

#include "compiler/dialect/exec/ScaleLayout.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/MarkAs.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "passes/lower/Passes.h"

#include <cmath>

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_SCALEDPRODUCTS
#include "passes/lower/Passes.h.inc"

using exec::ScaleBlocks;
using exec::ScaleMode;
using train::shapeOf;
using train::tensorType;

namespace {

/// What cuBLASLt has from 12.9 on: rows and blocks of f32 scales on Hopper alone (NVIDIA cuBLAS documentation, "Scaling
/// Mode Support Overview").
struct Support {
  StringRef architecture;
  ScaleMode mode;
};
constexpr Support kSupport[] = {
    {"sm_90", ScaleMode::Tensor},       {"sm_90", ScaleMode::Row},     {"sm_90", ScaleMode::Block128},
    {"sm_90", ScaleMode::Block128x128}, {"sm_100", ScaleMode::Tensor}, {"sm_100", ScaleMode::Block32},
};

bool isSupported(StringRef architecture, ScaleMode mode) {
  return llvm::any_of(kSupport,
                      [&](const Support &row) { return row.architecture == architecture && row.mode == mode; });
}

/// Blocks of 128 have no fast accumulation in cuBLASLt (pytorch/pytorch, scaled_gemm of aten/src/ATen/cuda).
bool hasFastAccumulation(ScaleMode mode) { return mode == ScaleMode::Tensor || mode == ScaleMode::Row; }

/// An operand as [kept, contracted], and its scales as blocks of it.
struct Operand {
  Value value, scales;

  int64_t kept() const { return shapeOf(value)[0]; }
  int64_t contracted() const { return shapeOf(value)[1]; }
  bool isByRow() const { return shapeOf(scales)[1] == 1; }

  /// The mode that has as many scales along each dimension. One block along what is contracted is a whole row.
  std::optional<ScaleMode> mode(StringRef architecture, bool isPowerOfTwo) const {
    auto isCut = [](int64_t size, int64_t block, int64_t count) {
      return block == 0 ? count == 1 : block * count == size;
    };
    for (const Support &row : kSupport) {
      const ScaleBlocks blocks = exec::blocksOf(row.mode);
      if (row.architecture == architecture && (row.mode != ScaleMode::Block32 || isPowerOfTwo) &&
          (blocks.contracted == 0) == isByRow() && isCut(kept(), blocks.kept, shapeOf(scales)[0]) &&
          isCut(contracted(), blocks.contracted, shapeOf(scales)[1]))
        return row.mode;
    }
    return std::nullopt;
  }
};

Operand operandOf(train::Build &b, Value value, Value scales, int64_t contracted) {
  if (tensorType(scales).getRank() == 0)
    scales = b.reshape(scales, {1, 1});
  if (contracted == 0) {
    value = b.transpose(value, {1, 0});
    scales = b.transpose(scales, {1, 0});
  }
  return {value, scales};
}

/// One scale for each row.
Value rowScales(train::Build &b, const Operand &operand) {
  return b.reshape(b.repeatBlocks(operand.scales, {operand.kept(), 1}), {operand.kept()});
}

/// Scales as the table of exec::ScaleMode says.
Value layOut(train::Build &b, const Operand &operand, ScaleMode mode) {
  const RankedTensorType type = exec::scaleType(b.builder.getContext(), mode, operand.kept(), operand.contracted());
  ArrayRef<int64_t> counts = shapeOf(operand.scales), shape = type.getShape();
  switch (mode) {
  case ScaleMode::Row:
    return rowScales(b, operand);
  case ScaleMode::Block128:
    return b.transpose(operand.scales, {1, 0});
  case ScaleMode::Block128x128:
    return shape == counts ? operand.scales
                           : b.pad(operand.scales, {0, 0}, {0, shape[1] - counts[1]}, {}, /*value=*/1.0);
  case ScaleMode::Block32: {
    // Rows of a tile are cut in 4 times 32. Padding is 0 in bits, which is 2^-127.
    const int64_t rows = shape[0] * 128, columns = shape[1] * 4;
    Value padded =
        b.pad(operand.scales, {0, 0}, {rows - counts[0], columns - counts[1]}, {}, /*value=*/std::ldexp(1.0, -127));
    Value tiles = b.transpose(b.reshape(padded, {shape[0], 4, 32, shape[1], 4}), {0, 3, 2, 1, 4});
    return b.convert(tiles, type.getElementType());
  }
  case ScaleMode::None:
  case ScaleMode::Tensor:
    return b.reshape(operand.scales, {});
  }
  llvm_unreachable("unknown mode");
}

class ScaledProductRewriter {
public:
  explicit ScaledProductRewriter(StringRef architecture) : architecture(architecture) {}

  /// False, with a remark, if the product is left to `decompose`.
  bool rewrite(train::ScaledDotOp dot) const {
    train::MarkAs listener(dot);
    OpBuilder builder(dot, &listener);
    train::Build b(builder, dot.getLoc());
    if (std::string why = problemOf(dot); !why.empty())
      return leave(dot, why);
    const Operand lhs = operandOf(b, dot.getLhs(), dot.getLhsInverseScale(), dot.getLhsContract()[0]);
    const Operand rhs = operandOf(b, dot.getRhs(), dot.getRhsInverseScale(), dot.getRhsContract()[0]);
    if (std::optional<Value> product = multiply(b, dot, lhs, rhs)) {
      dot.replaceAllUsesWith(*product);
      dot.erase();
      return true;
    }
    return leave(dot, "cuBLASLt has no such scales on " + architecture.str());
  }

private:
  /// Sums of the forward pass alone may keep fewer digits, as in torchao's and TransformerEngine's defaults.
  static bool isForward(train::ScaledDotOp dot) {
    return !train::isMarkedBackward(dot) || dot->hasAttr(train::kRecompute);
  }

  static bool leave(train::ScaledDotOp dot, const std::string &why) {
    dot.emitRemark() << "product of 8-bit floats is computed in bf16 or f32: " << why;
    return false;
  }

  std::string problemOf(train::ScaledDotOp dot) const {
    const RankedTensorType lhs = dot.getLhs().getType(), rhs = dot.getRhs().getType();
    if (!isSupported(architecture, ScaleMode::Tensor))
      return architecture.str() + " has no products of 8-bit floats";
    if (isa<Float8E5M2Type>(lhs.getElementType()) && isa<Float8E5M2Type>(rhs.getElementType()))
      return "both operands are f8E5M2";
    if (lhs.getRank() != 2 || rhs.getRank() != 2 || dot.getLhsContract().size() != 1)
      return "operands are no matrices";
    for (int64_t size : llvm::concat<const int64_t>(lhs.getShape(), rhs.getShape()))
      if (size % exec::kScaledMultiple != 0)
        return "size " + std::to_string(size) + " is no multiple of " + std::to_string(exec::kScaledMultiple);
    return "";
  }

  static Value create(train::Build &b, train::ScaledDotOp dot, Type type, const Operand &lhs, Value lhsScales,
                      ScaleMode lhsMode, const Operand &rhs, Value rhsScales, ScaleMode rhsMode) {
    const bool isFast = isForward(dot) && hasFastAccumulation(lhsMode) && hasFastAccumulation(rhsMode);
    return exec::ScaledProductOp::create(b.builder, b.loc, type, lhs.value, lhsScales, lhsMode, rhs.value, rhsScales,
                                         rhsMode, Value(), isFast);
  }

  std::optional<Value> multiply(train::Build &b, train::ScaledDotOp dot, const Operand &lhs, const Operand &rhs) const {
    RankedTensorType type = dot.getType();
    std::optional<ScaleMode> lhsMode = lhs.mode(architecture, dot.getPowerOfTwo()),
                             rhsMode = rhs.mode(architecture, dot.getPowerOfTwo());
    if (lhsMode && rhsMode && exec::isModePair(*lhsMode, *rhsMode))
      return create(b, dot, type, lhs, layOut(b, lhs, *lhsMode), *lhsMode, rhs, layOut(b, rhs, *rhsMode), *rhsMode);
    if (!lhs.isByRow() || !rhs.isByRow())
      return std::nullopt;
    if (isSupported(architecture, ScaleMode::Row))
      return create(b, dot, type, lhs, rowScales(b, lhs), ScaleMode::Row, rhs, rowScales(b, rhs), ScaleMode::Row);
    // Scales that are one along what is contracted can be applied to the result.
    RankedTensorType wide = type.clone(b.builder.getF32Type());
    Value one = b.splat(RankedTensorType::get({}, b.builder.getF32Type()), 1.0);
    Value product = create(b, dot, wide, lhs, one, ScaleMode::Tensor, rhs, one, ScaleMode::Tensor);
    Value scales = b.mul(b.broadcast(rowScales(b, lhs), wide.getShape(), {0}),
                         b.broadcast(rowScales(b, rhs), wide.getShape(), {1}));
    return b.convert(b.mul(product, scales), type.getElementType());
  }

  StringRef architecture;
};

struct ScaledProducts : impl::ScaledProductsBase<ScaledProducts> {
  using ScaledProductsBase::ScaledProductsBase;
  void runOnOperation() override {
    ScaledProductRewriter rewriter(architecture);
    getOperation().walk([&](train::ScaledDotOp dot) {
      if (rewriter.rewrite(dot))
        ++numScaled;
    });
  }
};

} // namespace

/// Whether the GPU multiplies operands that are quantised so.
static bool multiplies(StringRef architecture, const train::OperandPolicy &lhs, const train::OperandPolicy &rhs) {
  if (lhs.contracted == 0 && rhs.contracted == 0) // a scale for each row, also of the result
    return isSupported(architecture, ScaleMode::Tensor);
  auto modeOf = [&](const train::OperandPolicy &policy) {
    for (const Support &row : kSupport)
      if (row.architecture == architecture && exec::blocksOf(row.mode) == ScaleBlocks{policy.contracted, policy.kept})
        return row.mode;
    return ScaleMode::None;
  };
  return exec::isModePair(modeOf(lhs), modeOf(rhs));
}

SmallVector<StringRef> lower::architecturesOf(train::Fp8Recipe recipe) {
  using train::Fp8Product;
  using train::ProductOperand;
  SmallVector<StringRef> found;
  for (const Support &row : kSupport) {
    if (llvm::is_contained(found, row.architecture))
      continue;
    bool hasAll = true;
    for (auto [product, left, right] :
         {std::tuple(Fp8Product::Output, ProductOperand::Activation, ProductOperand::Weight),
          std::tuple(Fp8Product::InputGrad, ProductOperand::Gradient, ProductOperand::Weight),
          std::tuple(Fp8Product::WeightGrad, ProductOperand::Gradient, ProductOperand::Activation)}) {
      const auto lhs = train::operandPolicy(recipe, product, left), rhs = train::operandPolicy(recipe, product, right);
      hasAll &= !lhs || !rhs || multiplies(row.architecture, *lhs, *rhs);
    }
    if (hasAll)
      found.push_back(row.architecture);
  }
  return found;
}

} // namespace tessera
