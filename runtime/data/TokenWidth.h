//===- TokenWidth.h - whether a token file is of the width it is read with --===//

#ifndef TESSERA_RUNTIME_DATA_TOKENWIDTH_H
#define TESSERA_RUNTIME_DATA_TOKENWIDTH_H

#include "runtime/base/InputFile.h"

namespace tessera {

/// Whether a file without header, to be read as uint16, has uint32 tokens below 65536: every second word of a sample of
/// at most 256 KiB is 0, and not the others. Files of fewer than 64 such pairs are never taken for that. Errors: of
/// reading.
Result<bool> looksLikeWideTokens(const InputFile &file);

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_TOKENWIDTH_H
