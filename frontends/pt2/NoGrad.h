//===- NoGrad.h - regions without gradients ---------------------*- C++ -*-===//
//
// `with torch.no_grad():` is a higher order operator with a graph of its own. Here its nodes become nodes of the
// program, which read what has a gradient behind detach().
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_NOGRAD_H
#define TESSERA_FRONTENDS_PT2_NOGRAD_H

#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// Rewrites a program that was checked. Regions that cannot become part of it stay, and are not supported: those that
/// have results that are not tensors or regions within, and those that change a tensor in place that is no buffer.
void inlineNoGrad(Program &program);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_NOGRAD_H
