//===- SsaLiveness.cpp - positions and last uses of tensors ---------------===//
//
// See SsaLiveness.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/SsaLiveness.h"

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/exec/Exec.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::lower;

SsaLiveness::SsaLiveness(func::FuncOp func) { number(func.getBody().front()); }

void SsaLiveness::number(Block &block) {
  for (Operation &op : block) {
    positions[&op] = next++;
    if (auto repeat = dyn_cast<exec::RepeatOp>(op))
      number(repeat.getBody().front());
    ends[&op] = next++;
  }
}

unsigned SsaLiveness::lastUse(Value value) const {
  unsigned last = 0;
  if (Operation *definition = value.getDefiningOp())
    last = ends.lookup(definition);
  Block *block = value.getParentBlock();
  auto extend = [&](Operation *user) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    last = std::max(last, ancestor == user ? positions.lookup(user) : ends.lookup(ancestor));
  };
  for (Operation *user : value.getUsers()) {
    extend(user);
    if (user->getNumResults() == 1 && isa<dist::FutureType>(user->getResult(0).getType()))
      for (Operation *done : user->getResult(0).getUsers())
        extend(done);
  }
  return last;
}
