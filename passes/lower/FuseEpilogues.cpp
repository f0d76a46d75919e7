//===- FuseEpilogues.cpp - bias, GELU and their gradients into products ---===//
//
// Moves what a library does while it writes a product into the product; see Passes.td.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/EpilogueProduct.h"
#include "passes/lower/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_FUSEEPILOGUES
#include "passes/lower/Passes.h.inc"

namespace {

using exec::Epilogue;

void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Nothing reads it: GELU has no gradient here.
void dropPreActivation(exec::EpilogueProductOp product) {
  OpBuilder builder(product);
  auto alone = exec::EpilogueProductOp::create(builder, product.getLoc(), product.getResult().getType(), Type(),
                                               product.getInput() ? Epilogue::GeluBias : Epilogue::Gelu,
                                               product.getLhs(), product.getRhs(), Value(), product.getInput(),
                                               product.getLhsContract(), product.getRhsContract());
  alone->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  product.getResult().replaceAllUsesWith(alone.getResult());
  product.erase();
}

void fuse(Block &block, bool fusesGelu) {
  const FusionRoles roles(block);
  SmallVector<Operation *> products;
  for (Operation &op : block)
    if (isa<train::DotGeneralOp, exec::AddProductOp>(op))
      products.push_back(&op);
  for (Operation *op : products) {
    epilogue::Product product(op);
    if (product.isPlain && !epilogue::fuseForward(product, roles, fusesGelu) &&
        !(fusesGelu && epilogue::fuseGeluGrad(product)))
      epilogue::fuseBiasGrad(product);
  }
  eraseUnused(block);
  for (exec::EpilogueProductOp product : llvm::make_early_inc_range(block.getOps<exec::EpilogueProductOp>()))
    if (exec::givesPreActivation(product.getEpilogue()) && product.getOutput().use_empty())
      dropPreActivation(product);
}

struct FuseEpilogues : impl::FuseEpiloguesBase<FuseEpilogues> {
  using FuseEpiloguesBase::FuseEpiloguesBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (kinds == "none" || kinds == "bias" || kinds == "all")
      return success();
    return emitError(UnknownLoc::get(context)) << "fuse-epilogues: kinds is '" << kinds << "', not none, bias or all";
  }

  void runOnOperation() override {
    if (kinds == "none")
      return;
    SmallVector<Block *> blocks{&getOperation().getBody().front()};
    getOperation().walk([&](exec::RepeatOp repeat) { blocks.push_back(&repeat.getBody().front()); });
    for (Block *block : blocks)
      fuse(*block, kinds == "all");
  }
};

} // namespace
} // namespace tessera
