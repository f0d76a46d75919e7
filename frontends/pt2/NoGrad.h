//===- NoGrad.h - regions without gradients or autocast ---------*- C++ -*-===//
//
// `with torch.no_grad():` is a higher order operator with a graph of its own. Here its nodes become nodes of the
// program, which read what has a gradient behind detach(). So is `with torch.autocast(..., enabled=False):`, whose
// nodes become nodes of the program as they are.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_NOGRAD_H
#define TESSERA_FRONTENDS_PT2_NOGRAD_H

#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// Rewrites a program that was checked. Regions that cannot become part of it stay, and are not supported: autocast
/// that is enabled; of those without gradients the ones that have results that are not tensors or in which gradients
/// are enabled again, and those that change a tensor in place that is no buffer and was made outside of them.
void inlineRegions(Program &program);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_NOGRAD_H
