//===- DealPositions.h - blocks of positions by their work ------*- C++ -*-===//
//
// Packed documents make the work of attention differ from block to block of a sequence, in each batch in another way.
// So which blocks a rank has follows from the batch: inputs are read in ranges, the pairs of a query and a key that
// each block of queries sees are counted, and all else of the step is laid out as blocks are dealt.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SHARD_DEALPOSITIONS_H
#define TESSERA_PASSES_SHARD_DEALPOSITIONS_H

#include "passes/shard/SequenceStrategy.h"

namespace tessera::shard {

/// In front of the attentions of each block of ops: what it takes to know the keys that queries see, computed on inputs
/// in ranges; the order; a `dist.deal`; and inputs and ranges of keys constrained to `plan.dealt` blocks in that order,
/// which what else reads them follows. Blocks are sorted by their work and dealt in turn, forth and back (the order of
/// query blocks in PyTorch's context parallel for flex attention): the work of two ranks differs by at most that of the
/// largest block less the smallest. Arguments have their shardings; the keys that
/// queries see follow from the batch.
void dealPositions(mlir::func::FuncOp func, dist::MeshAttr mesh, const SequencePlan &plan);

} // namespace tessera::shard

#endif // TESSERA_PASSES_SHARD_DEALPOSITIONS_H
