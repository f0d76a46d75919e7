//===- Fp8Gain.cpp - which products are faster in 8 bits ------------------===//
//
// See Fp8Gain.h. Of the cost of casts the model counts the bytes that kernels move for activations and gradients, and
// for transposes of what is not contracted along its innermost dimension. Casts of weights are once a step and by
// shards; they are left out.
//
//===----------------------------------------------------------------------===//

#include "passes/precision/Fp8Gain.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::precision {

FailureOr<Fp8Gain> Fp8Gain::create(StringRef select, StringRef target, Location loc) {
  Fp8Gain gain;
  if (select == "rules") {
    gain.hasRules = true;
  } else if (select == "auto") {
    FailureOr<cost::Target> loaded = cost::Target::load(target, loc);
    if (failed(loaded))
      return failure();
    gain.model.emplace(std::move(*loaded), dist::MeshAttr());
  } else if (select != "all") {
    return emitError(loc) << "--fp8-select: expected all, rules or auto, got '" << select << "'";
  }
  return gain;
}

namespace {

/// [m, k] times [k, n].
struct Sizes {
  double m, n, k;
};

Sizes sizesOf(Fp8Product product, const LayerShape &layer) {
  const auto tokens = static_cast<double>(layer.tokens), inputs = static_cast<double>(layer.inputs),
             outputs = static_cast<double>(layer.outputs);
  switch (product) {
  case Fp8Product::Output:
    return {tokens, outputs, inputs};
  case Fp8Product::InputGrad:
    return {tokens, inputs, outputs};
  case Fp8Product::WeightGrad:
    return {outputs, inputs, tokens};
  }
  llvm_unreachable("unknown product");
}

/// Bytes for each element that kernels read and write to quantise it from bf16: once for the largest value and once for
/// the cast where all elements share a scale, else once.
double castBytes(const OperandPolicy &policy) { return policy.contracted == 0 && policy.kept == 0 ? 5 : 3; }

constexpr double kTransposeBytes = 2;

} // namespace

std::string Fp8Gain::against(Fp8Recipe recipe, const LayerShape &layer) const {
  if (hasRules && isSmall(recipe, layer.inputs, layer.outputs))
    return llvm::formatv("{0} inputs and {1} outputs are too few to gain from recipe {2}", layer.inputs, layer.outputs,
                         stringifyFp8Recipe(recipe));
  if (!model)
    return "";
  MLIRContext context;
  const Type wide = BFloat16Type::get(&context), narrow = Float8E4M3FNType::get(&context);
  double before = 0, after = 0, moved = 0;
  std::optional<OperandPolicy> forward; // of the activation: what is cast alike is cast once
  for (Fp8Product product : {Fp8Product::Output, Fp8Product::InputGrad, Fp8Product::WeightGrad}) {
    const auto [m, n, k] = sizesOf(product, layer);
    const double seconds = model->gemmSeconds(wide, 1, m, n, k);
    before += seconds;
    const ProductOperand data = product == Fp8Product::Output ? ProductOperand::Activation : ProductOperand::Gradient;
    const ProductOperand other =
        product == Fp8Product::WeightGrad ? ProductOperand::Activation : ProductOperand::Weight;
    const std::optional<OperandPolicy> left = operandPolicy(recipe, product, data),
                                       right = operandPolicy(recipe, product, other);
    if (!left || !right) {
      after += seconds;
      continue;
    }
    after += model->gemmSeconds(narrow, 1, m, n, k);
    const double width =
        product == Fp8Product::Output ? static_cast<double>(layer.inputs) : static_cast<double>(layer.outputs);
    const double elements = static_cast<double>(layer.tokens) * width;
    if (product != Fp8Product::WeightGrad) {
      moved += castBytes(*left) * elements;
      if (product == Fp8Product::Output)
        forward = left;
      continue;
    }
    // Both operands, across their rows: the gradient was cast for the input's, the activation for the output.
    const std::optional<OperandPolicy> gradient =
        operandPolicy(recipe, Fp8Product::InputGrad, ProductOperand::Gradient);
    const double activations = static_cast<double>(layer.tokens * layer.inputs);
    moved += ((left == gradient ? 0 : castBytes(*left)) + kTransposeBytes) * elements;
    moved += ((right == forward ? 0 : castBytes(*right)) + kTransposeBytes) * activations;
  }
  after += model->kernelSeconds(moved);
  if (after < before)
    return "";
  return llvm::formatv("in bf16 its products take {0:f1} us on a rank of {1}, in 8 bits {2:f1} us with casts",
                       before * 1e6, model->getTarget().name, after * 1e6);
}

} // namespace tessera::precision
