//===- Draws.h - which nodes draw random numbers ----------------*- C++ -*-===//
//
// Each call that draws has a number of its own, from which its random numbers follow.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_DRAWS_H
#define TESSERA_FRONTENDS_PT2_DRAWS_H

#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// Numbers the nodes of a program that draw random numbers other than dropout's, those too whose results nothing reads:
/// in PyTorch they are the calls in their order.
void numberDraws(Program &program);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_DRAWS_H
