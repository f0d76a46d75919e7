//===- TokenWidth.h - how many bytes a token of a file has -------------------===//
//
// Files of raw tokens do not say their type. What is known: the size of the file, its values, how many tokens the model
// has, and what the user says. Where these contradict each other, or allow several widths, nothing is read.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DATA_TOKENWIDTH_H
#define TESSERA_RUNTIME_DATA_TOKENWIDTH_H

#include "runtime/base/InputFile.h"

namespace tessera {

/// What is known besides the file.
struct TokenWidthHints {
  int64_t vocabulary = -1;           ///< tokens of the model are in [0, vocabulary); -1: not known
  int asked = 0;                     ///< bytes per token, as the user says: 2, 4 or 8; 0: unsaid
  int others = 0;                    ///< bytes per token of the files beside it; 0: there are none yet
  uint64_t sampledBytes = 256 << 10; ///< of the file, at most; spread evenly
};

struct TokenWidth {
  int bytes = 0;      ///< 2, 4 or 8
  std::string reason; ///< "--token-bytes", "values", "values and a vocabulary of 50257", …: what it was decided by
};

/// "uint16", "uint32" or "int64".
std::string tokenTypeName(int bytes);

/// The width of the tokens of a file without header. Errors: of reading; a size that the width does not divide;
/// values that speak for another width than the one asked for, or against all; several widths that are possible.
Result<TokenWidth> decideTokenWidth(const InputFile &file, const TokenWidthHints &hints);

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_TOKENWIDTH_H
