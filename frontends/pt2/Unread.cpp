//===- Unread.cpp - nodes that nothing depends on --------------------------===//

#include "frontends/pt2/Unread.h"

#include "frontends/pt2/Aliasing.h"
#include "frontends/pt2/Importer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

namespace tessera::pt2 {

namespace {
/// All names that an argument refers to, also in nested lists and dictionaries.
void addNames(const Argument &argument, llvm::StringSet<> &names) {
  for (const std::string &name : namesOf(argument))
    names.insert(name);
  if (const auto *lists = argument.as<std::vector<std::vector<TensorArg>>>())
    for (const std::vector<TensorArg> &list : *lists)
      for (const TensorArg &tensor : list)
        names.insert(tensor.name);
  if (const auto *dictionary = argument.as<DictArg>())
    for (const DictEntry &entry : dictionary->entries)
      addNames(entry.argument, names);
}
} // namespace

void dropUnread(Program &program) {
  llvm::StringSet<> read;
  for (const Argument &output : program.graph.outputs)
    addNames(output, read);
  std::vector<Node> &nodes = program.graph.nodes;
  std::vector<bool> stays(nodes.size(), false);
  for (size_t i = nodes.size(); i-- > 0;) {
    llvm::StringSet<> results;
    for (const Argument &output : nodes[i].outputs)
      addNames(output, results);
    stays[i] = results.empty() || hasEffect(nodes[i]) ||
               llvm::any_of(results, [&](const auto &result) { return read.contains(result.getKey()); });
    if (stays[i])
      for (const NamedArgument &input : nodes[i].inputs)
        addNames(input.argument, read);
  }
  std::vector<Node> left;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (stays[i])
      left.push_back(std::move(nodes[i]));
  nodes = std::move(left);
}

} // namespace tessera::pt2
