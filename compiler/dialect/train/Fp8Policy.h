//===- Fp8Policy.h - what a recipe of 8-bit floats does ---------*- C++ -*-===//
//
// The table of recipes: for each product of a linear layer and each of its
// operands the format, which elements share a scale, and how the scale is
// rounded. Nothing else knows recipes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_FP8POLICY_H
#define TESSERA_COMPILER_DIALECT_TRAIN_FP8POLICY_H

#include "compiler/dialect/train/Train.h"

#include <optional>
#include <string>

namespace tessera::train {

/// The products of y = x Wᵀ, with x [tokens, inputs] and W [outputs, inputs].
enum class Fp8Product {
  Output,     ///< x Wᵀ: contracts inputs
  InputGrad,  ///< g W: contracts outputs
  WeightGrad, ///< gᵀ x: contracts tokens
};

enum class Fp8Format { E4M3, E5M2 };

/// How an operand of a product is quantised. 0 elements: all along the dimension.
struct OperandPolicy {
  Fp8Format format;
  int64_t contracted; ///< elements along what is contracted that share a scale
  int64_t kept;       ///< elements along the other dimensions that do
  ScaleRounding rounding;

  bool isPowerOfTwo() const { return rounding != ScaleRounding::None; }
  bool operator==(const OperandPolicy &) const = default;
};

struct RecipeInfo {
  Fp8Recipe recipe;
  int64_t multiple; ///< inputs and outputs must be multiples of it

  llvm::StringRef name() const { return stringifyFp8Recipe(recipe); }
};

const RecipeInfo &getInfo(Fp8Recipe recipe);
/// `tensorwise, rowwise, …`.
std::string recipeNames();

/// Which product operands of these kinds make; none for kinds that no product has.
std::optional<Fp8Product> productOf(ProductOperand lhs, ProductOperand rhs);

/// How the recipe quantises `operand` of `product`; none: it computes the product in bf16.
std::optional<OperandPolicy> operandPolicy(Fp8Recipe recipe, Fp8Product product, ProductOperand operand);

/// Whether a layer is one of those that the recipe's authors leave in bf16 on a GPU, as they are not faster in 8 bits.
bool isSmall(Fp8Recipe recipe, int64_t inputs, int64_t outputs);

/// How many tokens of an activation or a gradient share a scale; 0: all.
constexpr int64_t tokensPerScale(Fp8Product product, const OperandPolicy &policy) {
  return product == Fp8Product::WeightGrad ? policy.contracted : policy.kept;
}

/// For people: `e4m3 x e4m3, 1 x 128 and 128 x 128`.
std::string describePolicy(Fp8Recipe recipe, Fp8Product product);

mlir::FloatType getType(mlir::MLIRContext *context, Fp8Format format);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_FP8POLICY_H
