//===- Regions.h - parts of a program in another mode -----------*- C++ -*-===//
//
// `with torch.no_grad():` and `with torch.autocast(..., enabled=False):` are higher order operators with a graph of
// their own. Here its nodes become nodes of the program: those of the former read what has a gradient behind detach(),
// those of the latter are as they are.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_REGIONS_H
#define TESSERA_FRONTENDS_PT2_REGIONS_H

#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// Rewrites a program that was checked. Regions that enable gradients or autocast stay as they are. So do, with the
/// reason in Node::refusal, those with results that are not tensors; and of those without gradients the ones that have
/// other graphs in them, that change a tensor in place that is no buffer and was made outside of them, or of which a
/// result may be a tensor that they are given or a copy of it.
void inlineRegions(Program &program);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_REGIONS_H
