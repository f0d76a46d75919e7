//===- BatchSize.h - numbers that follow from the size of a batch -*- C++ -*-===//
//
// A model that computes with x.shape[0] has another result for each part of a
// batch than for all of it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_BATCHSIZE_H
#define TESSERA_FRONTENDS_PT2_BATCHSIZE_H

#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// The first argument of a node with tensors as results that follows from one of `symbols`, and is a number to compute
/// with, or says which part of a tensor without samples is taken; "" if there is none. Other sizes and places are found
/// in the step.
std::string findNumberOf(const std::vector<std::string> &symbols, const Node &node, const Graph &graph);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_BATCHSIZE_H
