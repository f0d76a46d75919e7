//===- KernelWork.cpp - bytes and operations of a kernel's body -----------===//

#include "compiler/cost/KernelWork.h"

#include "compiler/dialect/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;

namespace tessera::cost {

double bytesOf(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  return type ? static_cast<double>(type.getNumElements() * exec::elementBytes(type.getElementType())) : 0.0;
}

double bytesOf(ValueRange values) {
  double bytes = 0;
  llvm::SmallPtrSet<Value, 8> seen;
  for (Value value : values)
    if (seen.insert(value).second)
      bytes += bytesOf(value);
  return bytes;
}

namespace {
/// Vector operations per element of the polynomials and iterations that stand for a function.
double operationsPerElement(Operation *op) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<train::ConstantOp, train::IotaOp, train::ReshapeOp, train::BroadcastOp, train::TransposeOp, train::SliceOp,
            train::PadOp, train::ConcatOp, train::StopGradientOp>([](auto) { return 0.0; })
      .Case<train::DivOp, train::SqrtOp, train::RsqrtOp>([](auto) { return 6.0; })
      .Case<train::ExpOp, train::LogOp>([](auto) { return 15.0; })
      .Case<train::TanhOp, train::ErfOp, train::SinOp, train::CosOp, train::Expm1Op, train::Log1pOp, train::SigmoidOp,
            train::AtanOp, train::AsinOp, train::AcosOp>([](auto) { return 25.0; })
      .Case<train::GeluOp, train::GeluGradOp>([](auto) { return 35.0; })
      .Case<train::PowOp, train::SoftplusOp, train::RngUniformOp, train::StochasticRoundOp>([](auto) { return 40.0; })
      .Default([](Operation *) { return 1.0; });
}

KernelWork workOf(Block &body, ValueRange operands, ValueRange results) {
  KernelWork work;
  work.bytes = work.written = bytesOf(results);
  llvm::SmallPtrSet<Value, 8> seen;
  for (auto [argument, operand] : llvm::zip(body.getArguments(), operands)) {
    if (!seen.insert(operand).second)
      continue;
    double rows = 0;
    const bool isTable = !argument.use_empty() && llvm::all_of(argument.getUses(), [&](OpOperand &use) {
      rows += bytesOf(use.getOwner()->getResult(0));
      return isa<train::GatherRowsOp>(use.getOwner()) && use.getOperandNumber() == 0;
    });
    work.bytes += isTable ? std::min(rows, bytesOf(operand)) : bytesOf(operand);
  }
  for (Operation &op : body.without_terminator()) {
    double elements = 0;
    for (Value value : llvm::concat<Value>(op.getOperands(), op.getResults()))
      if (auto type = dyn_cast<ShapedType>(value.getType()); type && !isa<train::GatherRowsOp>(op))
        elements = std::max(elements, static_cast<double>(type.getNumElements()));
    work.operations += elements * operationsPerElement(&op);
  }
  return work;
}
} // namespace

KernelWork kernelWork(exec::FusionOp fusion) {
  return workOf(fusion.getBody().front(), fusion.getOperands(), fusion.getResults());
}

KernelWork kernelWork(exec::LaunchOp launch) {
  auto module = launch->getParentOfType<ModuleOp>();
  auto kernels = module ? module.lookupSymbol<ModuleOp>("kernels") : ModuleOp();
  auto kernel = kernels ? kernels.lookupSymbol<func::FuncOp>(launch.getKernel()) : func::FuncOp();
  if (!kernel || kernel.isExternal() || kernel.getNumArguments() != launch.getInputs().size())
    return {bytesOf(launch.getInputs()) + bytesOf(launch.getOutputs()), bytesOf(launch.getOutputs()), 0};
  return workOf(kernel.getBody().front(), launch.getInputs(), launch.getOutputs());
}

} // namespace tessera::cost
