//===- Mutation.cpp - which buffers a program changes in its forward pass --===//
//
// See Mutation.h.
//
//===----------------------------------------------------------------------===//

#include "frontends/pt2/Mutation.h"

namespace tessera::pt2 {

static std::string firstName(const Node &node, llvm::StringRef argument) {
  const Argument *given = node.input(argument.str());
  const std::vector<std::string> found = given ? namesOf(*given) : std::vector<std::string>();
  return found.size() == 1 ? found.front() : "";
}

llvm::ArrayRef<std::string> Mutations::namesOfBuffer(llvm::StringRef buffer) const {
  auto found = names.find(buffer);
  return found == names.end() ? llvm::ArrayRef<std::string>() : llvm::ArrayRef<std::string>(found->second);
}

std::optional<InPlaceFunction> Mutations::functionOf(const Node &node) const {
  return bufferOf(firstName(node, "self")).empty() ? std::nullopt : pt2::functionOf(node.target);
}

void Mutations::change(llvm::StringRef buffer) {
  changed.insert(buffer);
  for (const std::string &view : views[buffer])
    staleNames[view] = buffer;
}

void Mutations::add(const Node &node, const Graph &graph, bool isByBatch) {
  std::vector<std::string> results;
  std::vector<llvm::StringRef> read; // buffers, or views of them
  for (const Argument &output : node.outputs)
    for (std::string &name : namesOf(output))
      results.push_back(std::move(name));
  for (const NamedArgument &named : node.inputs)
    for (const std::string &name : namesOf(named.argument)) {
      if (auto old = staleNames.find(name); old != staleNames.end())
        stale[&node] = old->second;
      if (llvm::StringRef buffer = bufferOf(name); !buffer.empty())
        read.push_back(buffer);
      if (auto shared = viewOf.find(name); shared != viewOf.end())
        read.insert(read.end(), shared->second.begin(), shared->second.end());
    }
  if (isByBatch) {
    for (auto [argument, init] : {std::pair("running_mean", "zeros"), std::pair("running_var", "constant:1")})
      if (const llvm::StringRef buffer = bufferOf(firstName(node, argument)); !buffer.empty()) {
        change(buffer);
        initial.try_emplace(buffer, init);
      }
    return;
  }
  if (observesRange(node.target)) {
    for (const char *argument : {"running_min", "running_max", "scale", "zero_point"})
      if (const llvm::StringRef buffer = bufferOf(firstName(node, argument)); !buffer.empty())
        change(buffer);
    return;
  }
  if (const llvm::StringRef buffer = bufferOf(firstName(node, "self")); isInPlace(node.target) && !buffer.empty()) {
    change(buffer);
    for (const std::string &result : results) {
      whole[result] = buffer;
      names[buffer].push_back(result);
    }
    return;
  }
  if (aliasOf(node, graph).sharing == Sharing::None)
    return;
  for (const std::string &result : results)
    for (llvm::StringRef buffer : read) {
      views[buffer].push_back(result);
      viewOf[result].push_back(buffer);
    }
}

void Mutations::find(const Program &program, llvm::function_ref<bool(const Node &)> isSkipped,
                     llvm::function_ref<bool(const Node &)> isByBatch) {
  for (const InputSpec &spec : program.signature.inputs)
    if (spec.kind == InputSpec::Kind::Buffer) {
      whole[spec.name] = spec.name;
      names[spec.name].push_back(spec.name);
    }
  for (const Node &node : program.graph.nodes)
    if (!isSkipped(node))
      add(node, program.graph, isByBatch(node));
  llvm::StringSet<> readFirst, writtenFirst;
  for (const Node &node : program.graph.nodes) {
    const bool isCopy = node.target == "torch.ops.aten.copy_.default";
    for (const NamedArgument &named : node.inputs) // what a copy reads comes before what it writes
      for (const std::string &name : namesOf(named.argument))
        if (!(isCopy && named.name == "self") && !writtenFirst.contains(name))
          readFirst.insert(name);
    if (isCopy)
      writtenFirst.insert(firstName(node, "self"));
  }
  for (const InputSpec &spec : program.signature.inputs)
    if (spec.kind == InputSpec::Kind::Buffer && !spec.persistent && writtenFirst.contains(spec.name) &&
        !readFirst.contains(spec.name))
      temporary.insert(spec.name);
}

} // namespace tessera::pt2
