//===- TokenPlan.h - what tokens fill the tensors of a batch with -----------===//

#ifndef TESSERA_RUNTIME_DATA_TOKENPLAN_H
#define TESSERA_RUNTIME_DATA_TOKENPLAN_H

#include "runtime/data/BatchPart.h"

namespace tessera {

/// How a batch tensor is filled: with tokens, with the tokens one place later, with the place of each token in its
/// document, with the number of its document, or with 1 where there is a token.
enum class TokenFill { Tokens, Targets, Positions, Documents, Mask };

struct TokenPlan {
  /// What says where the documents of a sample end.
  enum class Documents { Unknown, EndToken, Rows };

  std::vector<TokenFill> fills; ///< of each batch tensor
  int64_t length = 0;           ///< of a sample, in tokens
  int64_t vocabulary = -1;      ///< -1: not known
  int64_t target = -1;          ///< which tensor is the target; -1: none
  bool tellsDocuments = false;  ///< an input has positions or numbers of documents, each sample its own

  /// For a model with one integer input and at most one target of shape [length], beside positions, masks and numbers
  /// of documents (position_ids, attention_mask, document_ids, segment_ids, seq_idx). Errors: other inputs; an input
  /// that numbers documents where nothing says how they end. `path` is of the data, for errors.
  static Result<TokenPlan> make(const std::string &path, const std::vector<BatchSpec> &specs, Documents documents);
};

/// Writes an integer as an element of a batch tensor.
void storeInteger(DataType dtype, uint8_t *target, int64_t index, int64_t value);

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_TOKENPLAN_H
