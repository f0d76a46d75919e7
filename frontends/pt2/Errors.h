//===- Errors.h - how the reader reports ------------------------*- C++ -*-===//
//
// One line of text as an llvm::Error.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_ERRORS_H
#define TESSERA_FRONTENDS_PT2_ERRORS_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace tessera::pt2 {

inline llvm::Error error(const llvm::Twine &message) {
  return llvm::createStringError(std::make_error_code(std::errc::invalid_argument), message);
}

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_ERRORS_H
