//===- Fp8Policy.cpp - the table of recipes -------------------------------===//
//
// See Fp8Policy.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Fp8Policy.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <limits>
#include <numeric>

using namespace mlir;

namespace tessera::train {

static constexpr int64_t kAll = 0;
static constexpr Fp8Format E4M3 = Fp8Format::E4M3, E5M2 = Fp8Format::E5M2;
static constexpr ScaleRounding None = ScaleRounding::None, Down = ScaleRounding::Down, E8M0 = ScaleRounding::E8M0;

namespace {
struct Row {
  Fp8Recipe recipe;
  Fp8Product product;
  ProductOperand operand;
  OperandPolicy policy;
};
} // namespace

/// tensorwise and the row-wise recipes as torchao's, blocks as DeepSeek-V3's, mxfp8 as OCP Microscaling with the scale
/// rounded up: {format, elements that share a scale along what is contracted, and along the rest, rounding of the
/// scale}. What has no row is computed in bf16.
static constexpr Row kPolicy[] = {
    {Fp8Recipe::Tensorwise, Fp8Product::Output, ProductOperand::Activation, {E4M3, kAll, kAll, None}},
    {Fp8Recipe::Tensorwise, Fp8Product::Output, ProductOperand::Weight, {E4M3, kAll, kAll, None}},
    {Fp8Recipe::Tensorwise, Fp8Product::InputGrad, ProductOperand::Gradient, {E5M2, kAll, kAll, None}},
    {Fp8Recipe::Tensorwise, Fp8Product::InputGrad, ProductOperand::Weight, {E4M3, kAll, kAll, None}},
    {Fp8Recipe::Tensorwise, Fp8Product::WeightGrad, ProductOperand::Gradient, {E5M2, kAll, kAll, None}},
    {Fp8Recipe::Tensorwise, Fp8Product::WeightGrad, ProductOperand::Activation, {E4M3, kAll, kAll, None}},

    {Fp8Recipe::Rowwise, Fp8Product::Output, ProductOperand::Activation, {E4M3, kAll, 1, Down}},
    {Fp8Recipe::Rowwise, Fp8Product::Output, ProductOperand::Weight, {E4M3, kAll, 1, Down}},
    {Fp8Recipe::Rowwise, Fp8Product::InputGrad, ProductOperand::Gradient, {E4M3, kAll, 1, Down}},
    {Fp8Recipe::Rowwise, Fp8Product::InputGrad, ProductOperand::Weight, {E4M3, kAll, 1, Down}},
    {Fp8Recipe::Rowwise, Fp8Product::WeightGrad, ProductOperand::Gradient, {E4M3, kAll, 1, Down}},
    {Fp8Recipe::Rowwise, Fp8Product::WeightGrad, ProductOperand::Activation, {E4M3, kAll, 1, Down}},

    {Fp8Recipe::RowwiseHp, Fp8Product::Output, ProductOperand::Activation, {E4M3, kAll, 1, Down}},
    {Fp8Recipe::RowwiseHp, Fp8Product::Output, ProductOperand::Weight, {E4M3, kAll, 1, Down}},
    {Fp8Recipe::RowwiseHp, Fp8Product::InputGrad, ProductOperand::Gradient, {E4M3, kAll, 1, Down}},
    {Fp8Recipe::RowwiseHp, Fp8Product::InputGrad, ProductOperand::Weight, {E4M3, kAll, kAll, Down}},

    {Fp8Recipe::Block128, Fp8Product::Output, ProductOperand::Activation, {E4M3, 128, 1, Down}},
    {Fp8Recipe::Block128, Fp8Product::Output, ProductOperand::Weight, {E4M3, 128, 128, Down}},
    {Fp8Recipe::Block128, Fp8Product::InputGrad, ProductOperand::Gradient, {E4M3, 128, 1, Down}},
    {Fp8Recipe::Block128, Fp8Product::InputGrad, ProductOperand::Weight, {E4M3, 128, 128, Down}},
    {Fp8Recipe::Block128, Fp8Product::WeightGrad, ProductOperand::Gradient, {E4M3, 128, 1, Down}},
    {Fp8Recipe::Block128, Fp8Product::WeightGrad, ProductOperand::Activation, {E4M3, 128, 1, Down}},

    {Fp8Recipe::Mxfp8, Fp8Product::Output, ProductOperand::Activation, {E4M3, 32, 1, E8M0}},
    {Fp8Recipe::Mxfp8, Fp8Product::Output, ProductOperand::Weight, {E4M3, 32, 1, E8M0}},
    {Fp8Recipe::Mxfp8, Fp8Product::InputGrad, ProductOperand::Gradient, {E4M3, 32, 1, E8M0}},
    {Fp8Recipe::Mxfp8, Fp8Product::InputGrad, ProductOperand::Weight, {E4M3, 32, 1, E8M0}},
    {Fp8Recipe::Mxfp8, Fp8Product::WeightGrad, ProductOperand::Gradient, {E4M3, 32, 1, E8M0}},
    {Fp8Recipe::Mxfp8, Fp8Product::WeightGrad, ProductOperand::Activation, {E4M3, 32, 1, E8M0}},
};

/// Whole blocks of inputs and outputs, and what hardware multiplies: rows of 16 bytes.
static constexpr int64_t multipleOf(Fp8Recipe recipe) {
  int64_t multiple = 16;
  for (const Row &row : kPolicy) {
    if (row.recipe != recipe)
      continue;
    const bool hasTokens = row.operand != ProductOperand::Weight;
    const bool contractsTokens = row.product == Fp8Product::WeightGrad;
    if (row.policy.contracted != kAll && !(hasTokens && contractsTokens))
      multiple = std::lcm(multiple, row.policy.contracted);
    if (row.policy.kept != kAll && (!hasTokens || contractsTokens))
      multiple = std::lcm(multiple, row.policy.kept);
  }
  return multiple;
}

static constexpr RecipeInfo kRecipes[] = {
    {Fp8Recipe::Tensorwise, multipleOf(Fp8Recipe::Tensorwise)}, {Fp8Recipe::Rowwise, multipleOf(Fp8Recipe::Rowwise)},
    {Fp8Recipe::RowwiseHp, multipleOf(Fp8Recipe::RowwiseHp)},   {Fp8Recipe::Block128, multipleOf(Fp8Recipe::Block128)},
    {Fp8Recipe::Mxfp8, multipleOf(Fp8Recipe::Mxfp8)},
};

const RecipeInfo &getInfo(Fp8Recipe recipe) {
  return *llvm::find_if(kRecipes, [&](const RecipeInfo &row) { return row.recipe == recipe; });
}

std::string recipeNames() {
  return llvm::join(llvm::map_range(kRecipes, [](const RecipeInfo &row) { return row.name(); }), ", ");
}

std::optional<Fp8Product> productOf(ProductOperand lhs, ProductOperand rhs) {
  auto reads = [&](ProductOperand a, ProductOperand b) { return (lhs == a && rhs == b) || (lhs == b && rhs == a); };
  if (reads(ProductOperand::Activation, ProductOperand::Weight))
    return Fp8Product::Output;
  if (reads(ProductOperand::Gradient, ProductOperand::Weight))
    return Fp8Product::InputGrad;
  if (reads(ProductOperand::Gradient, ProductOperand::Activation))
    return Fp8Product::WeightGrad;
  return std::nullopt;
}

std::optional<OperandPolicy> operandPolicy(Fp8Recipe recipe, Fp8Product product, ProductOperand operand) {
  for (const Row &row : kPolicy)
    if (row.recipe == recipe && row.product == product && row.operand == operand)
      return row.policy;
  return std::nullopt;
}

/// Layers of at most so many inputs and outputs, on an H100 (torchao float8/float8_linear_utils.py,
/// `auto_filter_small_kn`).
static constexpr struct {
  Fp8Recipe recipe;
  int64_t inputs, outputs;
} kSmall[] = {
    {Fp8Recipe::Tensorwise, 4096, 1024},
    {Fp8Recipe::Rowwise, std::numeric_limits<int64_t>::max(), 2048},
    {Fp8Recipe::Rowwise, 1024, std::numeric_limits<int64_t>::max()},
    {Fp8Recipe::Rowwise, 2048, 4096},
};

bool isSmall(Fp8Recipe recipe, int64_t inputs, int64_t outputs) {
  return llvm::any_of(
      kSmall, [&](const auto &row) { return row.recipe == recipe && inputs <= row.inputs && outputs <= row.outputs; });
}

/// The elements that share a scale, kept times contracted.
static std::string describeSharing(const OperandPolicy &policy) {
  if (policy.contracted == kAll)
    return policy.kept == kAll ? "by tensor" : "by row";
  return std::to_string(policy.kept) + " x " + std::to_string(policy.contracted);
}

std::string describePolicy(Fp8Recipe recipe, Fp8Product product) {
  const ProductOperand data = product == Fp8Product::Output ? ProductOperand::Activation : ProductOperand::Gradient;
  const ProductOperand other = product == Fp8Product::WeightGrad ? ProductOperand::Activation : ProductOperand::Weight;
  const std::optional<OperandPolicy> left = operandPolicy(recipe, product, data);
  const std::optional<OperandPolicy> right = operandPolicy(recipe, product, other);
  if (!left || !right)
    return "bf16";
  auto format = [](const OperandPolicy &policy) { return policy.format == Fp8Format::E4M3 ? "e4m3" : "e5m2"; };
  const std::string sharing = describeSharing(*left), same = describeSharing(*right);
  return std::string(format(*left)) + " x " + format(*right) + ", " +
         (sharing == same ? sharing : sharing + " and " + same);
}

FloatType getType(MLIRContext *context, Fp8Format format) {
  return format == Fp8Format::E4M3 ? FloatType(Float8E4M3FNType::get(context))
                                   : FloatType(Float8E5M2Type::get(context));
}

} // namespace tessera::train
