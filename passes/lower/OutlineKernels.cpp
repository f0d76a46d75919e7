//===- OutlineKernels.cpp - equal fusions share one kernel ----------------===//

#include "passes/lower/Passes.h"

#include "compiler/dialect/train/Train.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "passes/lower/Passes.h.inc"

namespace {

/// Equal for fusions with equal bodies, whatever their locations and operands.
llvm::hash_code hashOf(exec::FusionOp fusion) {
  llvm::hash_code hash = llvm::hash_value(fusion.getKind());
  for (Operation &op : fusion.getBody().front())
    hash = llvm::hash_combine(hash, OperationEquivalence::computeHash(&op, OperationEquivalence::ignoreHashValue,
                                                                      OperationEquivalence::ignoreHashValue,
                                                                      OperationEquivalence::IgnoreLocations));
  return hash;
}

bool equal(exec::FusionOp a, exec::FusionOp b) {
  return a.getKind() == b.getKind() && a.getOperandTypes() == b.getOperandTypes() &&
         a.getResultTypes() == b.getResultTypes() && a.getExtent() == b.getExtent() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

/// What the kernel is about: its last op that computes something beyond arithmetic, else its last op.
std::string hint(exec::FusionOp fusion) {
  StringRef name;
  for (Operation &op : fusion.getBody().front().without_terminator()) {
    StringRef own = op.getName().stripDialect();
    bool plain =
        isa<train::AddOp, train::SubOp, train::MulOp, train::ConvertOp, train::BroadcastOp, train::ReshapeOp,
            train::ConstantOp, train::SelectOp, train::CompareOp, train::SliceOp, train::TransposeOp, train::IotaOp>(
            op);
    if (!plain || name.empty())
      name = own;
  }
  return name.str();
}

struct OutlineKernels : impl::OutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<exec::FusionOp> fusions;
    module.walk([&](exec::FusionOp fusion) {
      if (!fusion.getKernel())
        fusions.push_back(fusion);
    });
    if (fusions.empty())
      return;
    auto builder = OpBuilder::atBlockEnd(module.getBody());
    auto kernels = module.lookupSymbol<ModuleOp>("kernels");
    if (!kernels)
      kernels = ModuleOp::create(builder, module.getLoc(), "kernels");
    builder.setInsertionPointToEnd(kernels.getBody());

    DenseMap<size_t, SmallVector<exec::FusionOp>> byHash;
    unsigned count = llvm::range_size(kernels.getOps<func::FuncOp>());
    for (exec::FusionOp fusion : fusions) {
      auto &candidates = byHash[hashOf(fusion)];
      auto same = llvm::find_if(candidates, [&](exec::FusionOp other) { return equal(fusion, other); });
      if (same != candidates.end()) {
        fusion.setKernelAttr(same->getKernelAttr());
        continue;
      }
      std::string name = ("k" + Twine(count++) + "_" + fusion.getKind() + "_" + hint(fusion)).str();
      outline(fusion, name, builder);
      fusion.setKernel(name);
      candidates.push_back(fusion);
    }
  }

  void outline(exec::FusionOp fusion, StringRef name, OpBuilder &builder) {
    auto kernel = func::FuncOp::create(builder, fusion.getLoc(), name,
                                       builder.getFunctionType(fusion.getOperandTypes(), fusion.getResultTypes()));
    OpBuilder::InsertionGuard guard(builder);
    Block *entry = kernel.addEntryBlock();
    builder.setInsertionPointToStart(entry);
    IRMapping mapping;
    Block &body = fusion.getBody().front();
    mapping.map(body.getArguments(), entry->getArguments());
    for (Operation &op : body.without_terminator())
      builder.clone(op, mapping);
    SmallVector<Value> results;
    for (Value value : body.getTerminator()->getOperands())
      results.push_back(mapping.lookup(value));
    func::ReturnOp::create(builder, fusion.getLoc(), results);
  }
};

} // namespace
} // namespace tessera
