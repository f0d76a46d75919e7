//===- InPlace.cpp - programs without operators in place ------------------===//

#include "frontends/pt2/InPlace.h"

#include "frontends/pt2/Aliasing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <limits>

namespace tessera::pt2 {

namespace {
/// Names that are looked at, for all operators together: of honest programs there are few.
constexpr size_t kMaxWork = 1 << 22;
constexpr size_t kAlways = std::numeric_limits<size_t>::max();

class Rewriter {
public:
  explicit Rewriter(Program &program) : program(program), graph(program.graph) {}

  void run() {
    if (llvm::none_of(graph.nodes, [](const Node &node) { return functionOf(node.target).has_value(); }))
      return;
    collect();
    std::vector<Node> old = std::move(graph.nodes);
    graph.nodes.clear();
    for (size_t i = 0; i < old.size(); ++i) {
      at = i;
      Node &node = old[i];
      originals.push_back(&node);
      const std::optional<InPlaceFunction> function = functionOf(node.target);
      const std::string result = function ? resultOf(node) : "";
      std::string why;
      if (result.empty() || !replace(node, *function, result, why)) {
        Node copy = node;
        if (!why.empty())
          copy.refusal = why;
        for (NamedArgument &input : copy.inputs)
          eachName(input.argument, [&](std::string &name) { name = current(name); });
        graph.nodes.push_back(std::move(copy));
        share(node, i);
      }
    }
    for (Argument &output : graph.outputs)
      eachName(output, [&](std::string &name) { name = current(name); });
    for (OutputSpec &output : program.signature.outputs)
      eachName(output.argument, [&](std::string &name) { output.name = name = current(name); });
  }

private:
  /// What a tensor's memory belongs to.
  struct Memory {
    std::string parent;
    Sharing sharing = Sharing::None;
    size_t node = 0;
    std::string root; ///< the owner of the memory
    std::string top;  ///< the first name of the same tensor
  };

  static std::string selfOf(const Node &node) {
    const auto *self = node.inputs.empty() ? nullptr : node.inputs[0].argument.as<TensorArg>();
    return self ? self->name : "";
  }
  static std::string resultOf(const Node &node) {
    const auto *result = node.outputs.size() == 1 ? node.outputs[0].as<TensorArg>() : nullptr;
    return result ? result->name : "";
  }
  std::string current(const std::string &name) const {
    auto found = renamed.find(name);
    return found == renamed.end() ? name : found->second;
  }
  const std::string &rootOf(const std::string &name) const {
    auto found = memory.find(name);
    return found == memory.end() ? name : found->second.root;
  }
  const std::string &topOf(const std::string &name) const {
    auto found = memory.find(name);
    return found == memory.end() ? name : found->second.top;
  }
  bool isReadLater(const std::string &name) const {
    auto found = lastRead.find(name);
    return found != lastRead.end() && found->second > at;
  }
  void collect() {
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for (NamedArgument &input : graph.nodes[i].inputs)
        eachName(input.argument, [&](std::string &name) { lastRead[name] = i; });
    for (Argument &output : graph.outputs)
      eachName(output, [&](std::string &name) { lastRead[name] = kAlways; });
    for (Argument &input : graph.inputs)
      eachName(input, [&](std::string &name) { given[name] = true; });
  }

  /// Notes whose memory a node's results share.
  void share(const Node &node, size_t index) {
    const Alias alias = aliasOf(node, graph);
    if (alias.sharing == Sharing::None)
      return;
    for (const Argument &output : node.outputs)
      eachName(output, [&](const std::string &name) { share(name, alias, index); });
  }
  void share(const std::string &name, const Alias &alias, size_t index) {
    const std::string &parent = alias.of.front();
    for (const std::string &of : alias.of) {
      std::vector<std::string> &own = family[rootOf(of)];
      if (own.empty() || own.back() != name)
        own.push_back(name);
      if (rootOf(of) != rootOf(parent) || mixed.count(rootOf(of)))
        mixed[rootOf(of)] = mixed[rootOf(parent)] = true;
    }
    memory[name] = {parent, alias.sharing, index, rootOf(parent),
                    alias.sharing == Sharing::Same ? topOf(parent) : name};
  }

  /// Replaces an operator in place; false if it stays, and why.
  bool replace(const Node &node, const InPlaceFunction &function, const std::string &result, std::string &why) {
    auto refuse = [&](std::string reason) {
      why = std::move(reason);
      return false;
    };
    const std::string self = selfOf(node);
    if (self.empty())
      return refuse("it changes a tensor in place that is not its first argument");
    const std::string root = rootOf(self);
    if (given.count(root))
      return refuse(topOf(self) == root ? "it changes '" + root + "' in place, an input or a parameter"
                                        : "it changes what may be a part of '" + root +
                                              "' in place, which is an input, a parameter or a buffer");
    if (mixed.count(root))
      return refuse("it changes what may share its memory with several tensors in place");
    const std::string top = topOf(self); // the others are views of it, or it of them
    std::vector<std::string> others;     // that are read later and would change, too
    std::vector<std::string> names = family[root];
    if (names.empty() || names.front() != root)
      names.insert(names.begin(), root);
    work += names.size();
    if (work > kMaxWork)
      return refuse("the program changes too many views in place");
    const llvm::StringSet<> alive = aliveOf(top, names);
    llvm::erase_if(names, [&](const std::string &name) { return !alive.contains(name); });
    for (const std::string &name : names)
      if (topOf(name) != top && isReadLater(name))
        others.push_back(name);
    if (why = others.empty() ? "" : whyNot(top, names); !why.empty())
      return false;
    family[root] = names;
    emit(node, function, result);
    for (const std::string &name : names)
      if (topOf(name) == top)
        renamed[name] = result;
    memory[result] = {top, Sharing::Same, at, root, top};
    family[root].push_back(result);
    if (!others.empty()) {
      changeParents(top, result);
      makeAgain(top, names);
    }
    return true;
  }

  /// Why views of the memory of `top` cannot follow it; empty if they can.
  std::string whyNot(const std::string &top, const std::vector<std::string> &names) {
    for (std::string name = top; memory.count(name); name = memory[name].parent)
      if (memory[name].sharing == Sharing::View || memory[name].sharing == Sharing::Maybe)
        return "it changes what may be a view of '" + rootOf(name) + "' in place, which is read later";
    for (const std::string &name : names)
      if (memory.count(name) && memory[name].sharing == Sharing::Maybe)
        return "it changes the memory of '" + name + "' in place, which may be a copy and is read later";
    return "";
  }

  /// `top`, names that are read later, and what they are views of. No other one matters any more.
  llvm::StringSet<> aliveOf(const std::string &top, const std::vector<std::string> &names) {
    llvm::StringSet<> alive;
    auto mark = [&](std::string name) {
      while (alive.insert(name).second && memory.count(name))
        name = memory[name].parent;
    };
    mark(top);
    for (const std::string &name : names)
      if (isReadLater(name))
        mark(name);
    return alive;
  }

  void emit(const Node &node, const InPlaceFunction &function, const std::string &result) {
    Node made = node;
    made.target = function.target;
    made.wasInPlace = true;
    for (NamedArgument &input : made.inputs)
      eachName(input.argument, [&](std::string &name) { name = current(name); });
    made.inputs[0].name = function.self;
    made.outputs = {Argument{TensorArg{result}}};
    graph.nodes.push_back(std::move(made));
  }

  /// A new tensor of the type of another.
  std::string fresh(const std::string &like) {
    std::string name = freshName(graph, like + "_after", made);
    graph.tensors[name] = graph.tensors[like];
    return name;
  }

  /// What writes a part of a tensor that a view is; null for a view of another kind.
  static const char *scatterOf(Sharing sharing) {
    switch (sharing) {
    case Sharing::Slice:
      return "torch.ops.aten.slice_scatter.default";
    case Sharing::Select:
      return "torch.ops.aten.select_scatter.default";
    case Sharing::Diagonal:
      return "torch.ops.aten.diagonal_scatter.default";
    default:
      return nullptr;
    }
  }

  /// What the tensor `top`, now `value`, is a view of changes with it.
  void changeParents(std::string name, std::string value) {
    while (memory.count(name)) {
      const Memory &of = memory[name];
      const Node &view = *originals[of.node];
      const std::string parent = of.parent;
      if (of.sharing != Sharing::Same) {
        Node undo = view;
        const std::string result = fresh(parent);
        const Argument child{TensorArg{value}}, whole{TensorArg{current(parent)}};
        auto named = [](const char *argument, const Argument &is) {
          return NamedArgument{argument, is, NamedArgument::Kind::Positional};
        };
        if (const char *scatter = scatterOf(of.sharing)) {
          undo.target = scatter;
          undo.inputs[0].argument = whole;
          undo.inputs.insert(undo.inputs.begin() + 1, named("src", child));
        } else if (of.sharing == Sharing::Shape) {
          undo.target = "torch.ops.aten.view_as.default";
          undo.inputs = {named("self", child), named("other", whole)};
        } else {
          undo.inputs[0].argument = child; // a second time
        }
        undo.outputs = {Argument{TensorArg{result}}};
        graph.nodes.push_back(std::move(undo));
        value = result;
      }
      renamed[parent] = value;
      name = parent;
    }
  }

  /// Makes the views again that were made before and are read later, and those that these are views of.
  void makeAgain(const std::string &top, const std::vector<std::string> &names) {
    llvm::StringMap<bool> done;
    for (std::string name = top;; name = memory[name].parent) {
      done[name] = true;
      if (!memory.count(name))
        break;
    }
    for (const std::string &name : names) { // in the order in which they were made
      if (topOf(name) == top || done.count(name))
        continue;
      const Memory &of = memory[name];
      if (of.sharing == Sharing::Same) {
        renamed[name] = current(of.parent);
        continue;
      }
      Node again = *originals[of.node];
      for (NamedArgument &input : again.inputs)
        eachName(input.argument, [&](std::string &read) { read = current(read); });
      const std::string result = fresh(name);
      again.outputs = {Argument{TensorArg{result}}};
      graph.nodes.push_back(std::move(again));
      renamed[name] = result;
    }
  }

  Program &program;
  Graph &graph;
  size_t at = 0, made = 0, work = 0;
  std::vector<const Node *> originals;
  llvm::StringMap<size_t> lastRead;
  llvm::StringMap<bool> given; ///< the graph's inputs
  llvm::StringMap<bool> mixed; ///< owners of memory that one tensor may share with another
  std::map<std::string, std::string> renamed;
  std::map<std::string, Memory> memory;                   ///< of what shares another's
  std::map<std::string, std::vector<std::string>> family; ///< by the owner of the memory: who shares it
};
} // namespace

void replaceInPlace(Program &program) { Rewriter(program).run(); }

} // namespace tessera::pt2
