//===- SharedBuffers.cpp - buffers with two names ---------------------------===//

#include "frontends/pt2/SharedBuffers.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

namespace tessera::pt2 {

void mergeBuffers(Program &program) {
  std::map<std::string, std::string> firstOf; // names of the graph
  for (const std::vector<std::string> &group : program.tied) {
    std::vector<const InputSpec *> seen;
    const std::set<std::string> names(group.begin(), group.end());
    for (const InputSpec &spec : program.signature.inputs) {
      if (spec.kind != InputSpec::Kind::Buffer || !names.count(spec.target))
        continue;
      auto first = llvm::find_if(seen, [&](const InputSpec *other) {
        return program.weights.at(other->target).isSame(program.weights.at(spec.target));
      });
      if (first != seen.end())
        firstOf.try_emplace(spec.name, (*first)->name);
      else
        seen.push_back(&spec);
    }
  }
  if (firstOf.empty())
    return;
  auto rename = [&](std::string &name) {
    if (auto found = firstOf.find(name); found != firstOf.end())
      name = found->second;
  };
  for (Node &node : program.graph.nodes)
    for (NamedArgument &input : node.inputs)
      eachName(input.argument, rename);
  for (Argument &output : program.graph.outputs)
    eachName(output, rename);
  for (OutputSpec &output : program.signature.outputs)
    eachName(output.argument, [&](std::string &name) {
      rename(name);
      output.name = name;
    });
}

} // namespace tessera::pt2
