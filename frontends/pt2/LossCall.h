//===- LossCall.h - what all losses of a program have ----------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_PT2_LOSSCALL_H
#define TESSERA_FRONTENDS_PT2_LOSSCALL_H

#include "frontends/common/Functions.h"
#include "frontends/common/Loss.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

namespace tessera::pt2 {

using frontend::Reduction;

/// The argument `reduction`: 0, 1 or 2. Fails with the call's reason.
inline mlir::FailureOr<Reduction> reductionOf(Call &c) {
  switch (c.integerOr("reduction", 1)) {
  case 0:
    return Reduction::None;
  case 1:
    return Reduction::Mean;
  case 2:
    return Reduction::Sum;
  default:
    return c.fail("an unknown reduction");
  }
}

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_LOSSCALL_H
