//===- Guard.h - what a program assumes of its inputs' sizes ----*- C++ -*-===//
//
// torch.export writes guards as Python: `(L['x'].size()[0] % 2) == 0`. A program that assumed one is another program
// for sizes that it does not hold for.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_GUARD_H
#define TESSERA_FRONTENDS_PT2_GUARD_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace tessera::pt2 {

/// The size of a dimension of an input; nothing if there is none.
using SizeOf = llvm::function_ref<std::optional<int64_t>(llvm::StringRef input, int64_t dim)>;

/// Whether a guard holds: whole numbers, sizes (`L['x'].size()[0]`, `L['x'].shape[0]`, `L['args'][1].size()[0]` of the
/// input args_1), + - * // %, comparisons, and, or, not and parentheses. Nothing if it says anything else, or numbers
/// do not fit.
std::optional<bool> holds(llvm::StringRef guard, SizeOf sizeOf);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_GUARD_H
