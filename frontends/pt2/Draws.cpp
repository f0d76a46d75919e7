//===- Draws.cpp - which nodes draw random numbers -------------------------===//

#include "frontends/pt2/Draws.h"

#include "frontends/pt2/Aliasing.h"
#include "frontends/pt2/OpTable.h"

#include "llvm/ADT/StringSet.h"

namespace tessera::pt2 {

void numberDraws(Program &program) {
  llvm::StringSet<> targets;
  for (const OpRow &row : randomOps())
    targets.insert(row.target);
  int64_t count = 0;
  for (Node &node : program.graph.nodes) {
    const std::optional<InPlaceFunction> function = functionOf(node.target); // of a buffer it is still in place
    if (targets.contains(shortTarget(function ? function->target : node.target)))
      node.draw = count++;
  }
}

} // namespace tessera::pt2
