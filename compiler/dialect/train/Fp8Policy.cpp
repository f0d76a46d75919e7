//===- Fp8Policy.cpp - the table of recipes -------------------------------===//
//
// See Fp8Policy.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Fp8Policy.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <iterator>

using namespace mlir;

namespace tessera::train {

static constexpr int64_t kAll = 0;
static constexpr Fp8Format E4M3 = Fp8Format::E4M3, E5M2 = Fp8Format::E5M2;
static constexpr ScaleRounding None = ScaleRounding::None, Down = ScaleRounding::Down, E8M0 = ScaleRounding::E8M0;

/// tensorwise and the row-wise recipes as torchao's, blocks as DeepSeek-V3's, mxfp8 as OCP Microscaling with the scale
/// rounded up.
static constexpr RecipeInfo kRecipes[] = {
    {Fp8Recipe::Tensorwise, "tensorwise", 16, 1, "one scale per tensor; gradients in e5m2"},
    {Fp8Recipe::Rowwise, "rowwise", 16, 1, "one scale, a power of two, per row and per column"},
    {Fp8Recipe::RowwiseHp, "rowwise_hp", 16, 1,
     "as rowwise; gradients of weights in bf16, weights by tensor for those of inputs"},
    {Fp8Recipe::Block128, "block128", 128, 128, "scales, powers of two, of 128 elements, of weights of 128 x 128"},
    {Fp8Recipe::Mxfp8, "mxfp8", 32, 32, "scales, powers of two in 8 bits, of 32 elements"},
};

namespace {
struct Row {
  Fp8Recipe recipe;
  Fp8Product product;
  ProductOperand operand;
  OperandPolicy policy;
};
} // namespace

/// {format, elements that share a scale along what is contracted, and along the rest, rounding of the scale}. What has
/// no row is computed in bf16.
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

const RecipeInfo &getInfo(Fp8Recipe recipe) {
  return *llvm::find_if(kRecipes, [&](const RecipeInfo &row) { return row.recipe == recipe; });
}

std::optional<Fp8Recipe> findRecipe(StringRef name) {
  const auto *row = llvm::find_if(kRecipes, [&](const RecipeInfo &info) { return info.name == name; });
  return row == std::end(kRecipes) ? std::nullopt : std::optional(row->recipe);
}

std::string recipeNames() {
  return llvm::join(llvm::map_range(kRecipes, [](const RecipeInfo &row) { return row.name; }), ", ");
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

StringRef nameOf(Fp8Product product) {
  switch (product) {
  case Fp8Product::Output:
    return "output";
  case Fp8Product::InputGrad:
    return "input gradient";
  case Fp8Product::WeightGrad:
    return "weight gradient";
  }
  llvm_unreachable("unknown product");
}

std::optional<OperandPolicy> operandPolicy(Fp8Recipe recipe, Fp8Product product, ProductOperand operand) {
  for (const Row &row : kPolicy)
    if (row.recipe == recipe && row.product == product && row.operand == operand)
      return row.policy;
  return std::nullopt;
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
