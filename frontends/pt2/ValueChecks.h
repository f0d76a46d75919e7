//===- ValueChecks.h - checks of numbers that depend on data ----*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_PT2_VALUECHECKS_H
#define TESSERA_FRONTENDS_PT2_VALUECHECKS_H

#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// Drops what is only there to check numbers read from tensors (`assert lengths.max().item() <= size`), each check with
/// a warning of the program: a step reads no numbers from tensors. Numbers that something else reads stay.
void dropValueChecks(Program &program);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_VALUECHECKS_H
