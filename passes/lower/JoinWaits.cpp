//===- JoinWaits.cpp - one wait for each future ---------------------------===//
//
// See Passes.td.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/Dist.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_JOINWAITS
#include "passes/lower/Passes.h.inc"

namespace {

struct JoinWaits : impl::JoinWaitsBase<JoinWaits> {
  void runOnOperation() override {
    llvm::DenseMap<std::pair<Block *, Value>, dist::DoneOp> first;
    getOperation().walk([&](dist::DoneOp done) {
      auto [known, isFirst] = first.try_emplace({done->getBlock(), done.getFuture()}, done);
      if (isFirst)
        return;
      done.replaceAllUsesWith(known->second.getResult());
      done.erase();
    });
  }
};

} // namespace
} // namespace tessera
