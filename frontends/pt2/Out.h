//===- Out.h - operators that are given their result ------------*- C++ -*-===//
//
// `torch.div(x, y, out=z)` is an operator with an argument `out`. Here it becomes one that makes a new tensor, and a
// copy of it in place.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_OUT_H
#define TESSERA_FRONTENDS_PT2_OUT_H

#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// Rewrites the operators of a graph that was checked, and of the graphs in it, that `outOperators` names. Few modules
/// use out= of others.
void replaceOut(Graph &graph);

/// Names of the operators that are rewritten so: "aten.add.out".
std::vector<std::string> outOperators();

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_OUT_H
