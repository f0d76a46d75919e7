//===- Documents.h - masks that follow from documents -----------*- C++ -*-===//
//
// Samples packed of documents are masked by their ids: a query sees the keys of its own document. Such a mask is of all
// pairs and known only when a batch is. Where equal ids are known to lie side by side, the keys are a range for each
// query, which follows from where documents begin.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_DOCUMENTS_H
#define TESSERA_PASSES_SIMPLIFY_DOCUMENTS_H

#include "passes/simplify/AttentionMask.h"

namespace tessera::simplify {

/// Where runs of equal elements along the last dimension of a value begin. No two runs hold the same element.
struct Runs {
  mlir::Value steps; ///< not 0 where an element differs from the one before; the first element means nothing
  bool isAfter;      ///< … where the next element differs from this one
  double most;       ///< no element is larger, and none is negative
};
/// Of values that never come back once they change: sums of what is not negative.
std::optional<Runs> runsOf(mlir::Value value);

/// The input that `ids` are the elements of, integers of their own or a wider type, positions along the last dimension;
/// null if they are none of an input's.
mlir::BlockArgument inputOf(mlir::Value ids);

/// Whether in each of the runs every element of `positions` is the one before it plus 1. An element that is the largest
/// of its type is taken not to occur.
bool countsInRuns(mlir::Value positions, const Runs &runs);

/// What `mask` is, if it compares ids of queries and keys: `documents`, and of these keys what kind, window, begin and
/// end say. Nothing if it compares none. Where it does, and is not such a mask, the kind is Other and `remark` says
/// why. `promiseRuns` as of classifyMask.
std::optional<MaskClass> classifyDocuments(const Mask &mask, bool promiseRuns);

/// The keys [begin, end) that each query sees: tensor<samples or 1 x positions x i64>, or null where all are seen.
struct DocumentRanges {
  mlir::Value begin, end;
};
/// Those of its own document, of `length` positions, and in the ranges `within`. A causal attention sees none behind
/// the query anyway.
DocumentRanges rangesOfDocuments(train::Build &b, const Documents &documents, int64_t length, DocumentRanges within,
                                 bool causal);

} // namespace tessera::simplify

#endif // TESSERA_PASSES_SIMPLIFY_DOCUMENTS_H
