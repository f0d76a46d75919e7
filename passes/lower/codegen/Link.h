//===- Link.h - object code to a shared object ------------------*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_LINK_H
#define TESSERA_PASSES_LOWER_CODEGEN_LINK_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace tessera::codegen {

/// Links `object` with LLD in this process.
bool linkSharedObject(llvm::StringRef object, std::string &sharedObject, std::string &error);

/// Whether `sharedObject` needs nothing but the C library's memory functions and libm. Else `error` names the symbols.
bool checkUndefinedSymbols(llvm::StringRef sharedObject, std::string &error);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_LINK_H
