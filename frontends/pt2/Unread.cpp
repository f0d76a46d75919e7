//===- Unread.cpp - nodes that nothing depends on --------------------------===//

#include "frontends/pt2/Unread.h"

#include "frontends/pt2/Aliasing.h"
#include "frontends/pt2/OpTable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

namespace tessera::pt2 {

/// An operator that is not known may do more than give results: it stays, and is refused.
static bool hasEffect(const Node &node) {
  const llvm::StringRef target = shortTarget(node.target);
  return (!findOp(target) && !findComplexOp(target)) ||
         (changesTensor(node.target) && target != "aten.detach_.default");
}

void dropUnread(Program &program) {
  llvm::StringSet<> read;
  for (const Argument &output : program.graph.outputs)
    eachName(output, [&](const std::string &name) { read.insert(name); });
  std::vector<Node> &nodes = program.graph.nodes;
  std::vector<bool> stays(nodes.size(), false);
  for (size_t i = nodes.size(); i-- > 0;) {
    llvm::StringSet<> results;
    for (const Argument &output : nodes[i].outputs)
      eachName(output, [&](const std::string &name) { results.insert(name); });
    stays[i] = results.empty() || hasEffect(nodes[i]) ||
               llvm::any_of(results, [&](const auto &result) { return read.contains(result.getKey()); });
    if (stays[i])
      for (const NamedArgument &input : nodes[i].inputs)
        eachName(input.argument, [&](const std::string &name) { read.insert(name); });
  }
  keepNodes(nodes, stays);
}

} // namespace tessera::pt2
