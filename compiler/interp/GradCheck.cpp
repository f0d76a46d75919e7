//===- GradCheck.cpp - gradients against finite differences ---------------===//

#include "compiler/dialect/train/Signature.h"
#include "compiler/interp/Check.h"
#include "compiler/interp/Compare.h"
#include "compiler/interp/Inputs.h"
#include "compiler/interp/Interp.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/Support/Format.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace tessera::interp {

void widenToF64(ModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](Float32Type type) -> Type { return Float64Type::get(type.getContext()); });
  replacer.addReplacement([](DenseElementsAttr attr) -> std::optional<std::pair<Attribute, WalkResult>> {
    if (!attr.getElementType().isF32())
      return std::nullopt;
    Type wide = Float64Type::get(attr.getContext());
    auto widened = cast<DenseFPElementsAttr>(attr).mapValues(wide, [](const APFloat &value) {
      APFloat converted = value;
      bool losesInfo = false;
      converted.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      return converted.bitcastToAPInt();
    });
    return std::make_pair(Attribute(widened), WalkResult::skip());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
}

/// The result that is the loss, or -1.
static int64_t findLoss(func::FuncOp function) {
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (train::getResultRole(function, index) == train::ResultRole::Loss)
      return index;
  return -1;
}

/// The elements to check: all, or a sample without repetition.
static std::vector<int64_t> chooseElements(int64_t size, int64_t samples, uint64_t seed) {
  std::vector<int64_t> elements(size);
  for (int64_t i = 0; i < size; ++i)
    elements[i] = i;
  if (size <= samples)
    return elements;
  std::mt19937_64 generator(seed);
  for (int64_t i = 0; i < samples; ++i)
    std::swap(elements[i], elements[i + static_cast<int64_t>(generator() % static_cast<uint64_t>(size - i))]);
  elements.resize(samples);
  llvm::sort(elements);
  return elements;
}

LogicalResult checkGradients(func::FuncOp function, ArrayRef<Tensor> arguments, int64_t samples, uint64_t seed,
                             Tolerance tolerance, int64_t numRanks) {
  int64_t lossIndex = findLoss(function);
  if (lossIndex < 0)
    return function.emitError("has no result with train.role = \"loss\" to differentiate");
  FailureOr<std::vector<Tensor>> results = evaluateGlobal(function, arguments, numRanks);
  if (failed(results))
    return failure();
  std::vector<Tensor> moved(arguments.begin(), arguments.end());
  int64_t checked = 0;
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    auto of = function.getResultAttrOfType<StringAttr>(index, train::kOf);
    if (train::getResultRole(function, index) != train::ResultRole::Grad || !of)
      continue;
    int64_t argument = -1;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (nameOfArg(function, i) == of.getValue())
        argument = i;
    if (argument < 0 || arguments[argument].size() != (*results)[index].size())
      return function.emitError("result ")
             << index << " is the gradient of '" << of.getValue() << "', which is no argument of its size";
    Tensor &param = moved[argument];
    for (int64_t i : chooseElements(param.size(), samples, seed + index)) {
      double original = param.at(i), step = 1.0e-5 * std::max(1.0, std::fabs(original)), losses[2];
      for (int side = 0; side < 2; ++side) {
        param.set(i, side == 0 ? original - step : original + step);
        FailureOr<std::vector<Tensor>> there = evaluateGlobal(function, moved, numRanks);
        if (failed(there))
          return failure();
        losses[side] = (*there)[lossIndex].at(0);
      }
      param.set(i, original);
      double difference = (losses[1] - losses[0]) / (2.0 * step), gradient = (*results)[index].at(i);
      ++checked;
      if (check::isClose(gradient, difference, tolerance.rtol, tolerance.atol))
        continue;
      std::string got, want;
      llvm::raw_string_ostream(got) << llvm::format("%.9g", gradient);
      llvm::raw_string_ostream(want) << llvm::format("%.9g", difference);
      return function.emitError("gradient of '")
             << of.getValue() << "' at " << printIndex(delinearize(i, param.getShape())) << " is " << got
             << ", finite differences give " << want;
    }
  }
  if (checked == 0)
    return function.emitError("has no result with train.role = \"grad\" to check");
  return success();
}

} // namespace tessera::interp
