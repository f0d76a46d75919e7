//===- InPlace.cpp - programs without operators in place ------------------===//

#include "frontends/pt2/InPlace.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

#include <limits>

using llvm::StringRef;

namespace tessera::pt2 {

namespace {
/// How the result of an operator shares memory with its first argument.
enum class Sharing {
  None,      ///< memory of its own
  Same,      ///< the same tensor
  Shape,     ///< all of it, in another shape
  Transpose, ///< all of it, with two dimensions exchanged
  Slice,
  Select,
  View,  ///< in a way that can be made again, but not undone
  Maybe, ///< depends on strides or arguments, or has several results, or takes no gradient
};

/// Of operators that are not in here, results have memory of their own.
Sharing sharingOf(StringRef target) {
  return llvm::StringSwitch<Sharing>(target)
      .Cases({"alias.default", "detach_.default"}, Sharing::Same)
      .Cases({"unflatten.int", "squeeze.default", "squeeze.dim", "squeeze.dims", "unsqueeze.default", "view.default",
              "view_as.default"},
             Sharing::Shape)
      .Cases({"t.default", "transpose.int", "swapaxes.default", "swapdims.default"}, Sharing::Transpose)
      .Case("slice.Tensor", Sharing::Slice)
      .Case("select.int", Sharing::Select)
      .Cases({"diagonal.default", "expand.default", "expand_as.default", "movedim.int", "narrow.default",
              "permute.default", "unfold.default"},
             Sharing::View)
      .Cases({"_reshape_alias.default",    "adjoint.default",      "as_strided.default",
              "broadcast_tensors.default", "broadcast_to.default", "chunk.default",
              "contiguous.default",        "detach.default",       "einsum.default",
              "feature_dropout.default",   "flatten.using_ints",   "imag.default",
              "lift_fresh.default",        "mH.default",           "mT.default",
              "matrix_H.default",          "meshgrid.default",     "meshgrid.indexing",
              "movedim.intlist",           "moveaxis.int",         "moveaxis.intlist",
              "numpy_T.default",           "positive.default"},
             Sharing::Maybe)
      .Cases({"real.default",         "reshape.default",      "reshape_as.default",   "resolve_conj.default",
              "resolve_neg.default",  "split.Tensor",         "split.sizes",          "split_with_sizes.default",
              "squeeze.dimname",      "sum_to_size.default",  "tensor_split.indices", "tensor_split.sections",
              "unbind.int",           "unsafe_chunk.default", "view.dtype",           "view_as_complex.default",
              "view_as_real.default", "ravel.default",        "hsplit.int",           "vsplit.int"},
             Sharing::Maybe)
      .Cases({"alpha_dropout.default", "atleast_1d.default", "atleast_2d.default", "atleast_3d.default", "conj.default",
              "feature_alpha_dropout.default", "pad.default", "pixel_shuffle.default", "pixel_unshuffle.default",
              "rms_norm.default", "unflatten.Dimname"},
             Sharing::Maybe)
      .Default(Sharing::None);
}

/// The operator that makes a new tensor of what one in place makes; empty if `target` is none, or changes more than
/// elements.
std::string functional(StringRef target) {
  StringRef name = target;
  if (!name.consume_front("torch.ops.aten."))
    return "";
  auto [base, overload] = name.split('.');
  if (base == "__iand__")
    return ("torch.ops.aten.bitwise_and." + llvm::Twine(overload)).str();
  if (base == "__ior__")
    return ("torch.ops.aten.bitwise_or." + llvm::Twine(overload)).str();
  if (!base.consume_back("_") || base.empty() || base.starts_with("__"))
    return "";
  for (StringRef other :
       {"as_strided", "detach",      "requires_grad", "resize",     "resize_as", "set",       "squeeze", "swapaxes",
        "swapdims",   "t",           "transpose",     "unsqueeze",  "rename",    "bernoulli", "uniform", "normal",
        "random",     "exponential", "geometric",     "log_normal", "cauchy",    "dropout"})
    if (base == other)
      return "";
  if (base == "zero")
    return "torch.ops.aten.zeros_like.default";
  return ("torch.ops.aten." + llvm::Twine(base) + "." + overload).str();
}

/// Calls `visit(std::string &)` for each tensor that an argument names.
template <typename Visit> void tensorNames(Argument &argument, Visit visit) {
  auto each = [&](auto *list) {
    if (list)
      for (auto &element : *list)
        visit(element.name);
  };
  auto optional = [&](OptionalTensorArg &element) {
    if (element)
      visit(element->name);
  };
  if (auto *tensor = std::get_if<TensorArg>(&argument.value))
    visit(tensor->name);
  each(std::get_if<std::vector<TensorArg>>(&argument.value));
  if (auto *one = std::get_if<OptionalTensorArg>(&argument.value))
    optional(*one);
  if (auto *list = std::get_if<std::vector<OptionalTensorArg>>(&argument.value))
    llvm::for_each(*list, optional);
  if (auto *lists = std::get_if<std::vector<std::vector<TensorArg>>>(&argument.value))
    for (std::vector<TensorArg> &list : *lists)
      each(&list);
}

/// Names that are looked at, for all operators together: of honest programs there are few.
constexpr size_t kMaxWork = 1 << 26;
constexpr size_t kAlways = std::numeric_limits<size_t>::max();

class Rewriter {
public:
  explicit Rewriter(Program &program) : program(program), graph(program.graph) {}

  llvm::StringMap<std::string> run() {
    if (llvm::none_of(graph.nodes, [](const Node &node) { return !functional(node.target).empty(); }))
      return {};
    collect();
    std::vector<Node> old = std::move(graph.nodes);
    graph.nodes.clear();
    for (size_t i = 0; i < old.size(); ++i) {
      at = i;
      Node &node = old[i];
      originals.push_back(&node);
      const std::string target = functional(node.target), result = target.empty() ? "" : resultOf(node);
      if (result.empty() || !replace(node, target, result)) {
        Node copy = node;
        for (NamedArgument &input : copy.inputs)
          tensorNames(input.argument, [&](std::string &name) { name = current(name); });
        graph.nodes.push_back(std::move(copy));
        share(node, i);
      }
    }
    for (Argument &output : graph.outputs)
      tensorNames(output, [&](std::string &name) { name = current(name); });
    for (OutputSpec &output : program.signature.outputs)
      tensorNames(output.argument, [&](std::string &name) { output.name = name = current(name); });
    return std::move(reasons);
  }

private:
  /// What a tensor's memory belongs to.
  struct Memory {
    std::string parent; ///< empty: it is its own
    Sharing sharing = Sharing::None;
    size_t node = 0;
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
    const std::string *at = &name;
    for (auto found = memory.find(*at); found != memory.end() && !found->second.parent.empty();
         found = memory.find(*at))
      at = &found->second.parent;
    return *at;
  }
  bool isReadLater(const std::string &name) const {
    auto found = lastRead.find(name);
    return found != lastRead.end() && found->second > at;
  }
  /// Whether both names are of one tensor, not of parts of it.
  bool isSame(std::string name, const std::string &other) const {
    for (auto found = memory.find(name); name != other; found = memory.find(name)) {
      if (found == memory.end() || found->second.sharing != Sharing::Same)
        return false;
      name = found->second.parent;
    }
    return true;
  }

  void collect() {
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for (NamedArgument &input : graph.nodes[i].inputs)
        tensorNames(input.argument, [&](std::string &name) { lastRead[name] = i; });
    for (Argument &output : graph.outputs)
      tensorNames(output, [&](std::string &name) { lastRead[name] = kAlways; });
    for (Argument &input : graph.inputs)
      tensorNames(input, [&](std::string &name) { given[name] = true; });
  }

  /// How the result of a node shares memory with its first argument, where arguments and types decide.
  Sharing sharingOf(const Node &node, const std::string &self) const {
    StringRef target = node.target;
    target.consume_front("torch.ops.aten.");
    auto flag = [&](const char *name) {
      const Argument *argument = node.input(name);
      const bool *value = argument ? argument->as<bool>() : nullptr;
      return value && *value;
    };
    if (target.starts_with("to.") || target.starts_with("type_as.")) {
      auto from = graph.tensors.find(self), to = graph.tensors.find(resultOf(node));
      const bool isCopy = flag("copy") || (from != graph.tensors.end() && to != graph.tensors.end() &&
                                           from->second.dtype != to->second.dtype);
      return isCopy ? Sharing::None : Sharing::Maybe;
    }
    if (target == "dropout.default") {
      const Argument *rate = node.input("p");
      const double *value = rate ? rate->as<double>() : nullptr;
      return flag("train") && value && *value > 0 ? Sharing::None : Sharing::Same;
    }
    return tessera::pt2::sharingOf(target);
  }

  /// Notes whose memory a node's results share.
  void share(const Node &node, size_t index) {
    const std::string self = selfOf(node);
    const bool isInPlace = !functional(node.target).empty(); // one that stays: its result is its first argument
    const Sharing sharing = self.empty() ? Sharing::None : isInPlace ? Sharing::Same : sharingOf(node, self);
    if (sharing == Sharing::None)
      return;
    for (Argument output : node.outputs)
      tensorNames(output, [&](std::string &name) {
        memory[name] = {self, sharing, index};
        family[rootOf(self)].push_back(name);
      });
  }

  bool refuse(const std::string &result, const std::string &why) {
    reasons[result] = why;
    return false;
  }

  /// Replaces an operator in place; false if it stays, with its reason.
  bool replace(const Node &node, const std::string &target, const std::string &result) {
    const std::string self = selfOf(node);
    if (self.empty())
      return refuse(result, "it changes a tensor in place that is not its first argument");
    const std::string root = rootOf(self);
    if (given.count(root))
      return refuse(result, isSame(self, root) ? "it changes '" + root + "' in place, an input or a parameter"
                                               : "it changes what may be a part of '" + root +
                                                     "' in place, which is an input, a parameter or a buffer");
    std::string top = self; // the tensor of the same elements that the others are views of
    while (memory.count(top) && memory[top].sharing == Sharing::Same)
      top = memory[top].parent;
    std::vector<std::string> others; // that are read later and would change, too
    std::vector<std::string> names = family[root];
    names.insert(names.begin(), root);
    for (const std::string &name : names)
      if (!isSame(name, top) && isReadLater(name))
        others.push_back(name);
    work += others.empty() ? names.size() : names.size() * names.size();
    if (work > kMaxWork)
      return refuse(result, "the program changes too many views in place");
    if (std::string why = others.empty() ? "" : whyNot(top, names); !why.empty())
      return refuse(result, why);
    emit(node, target, result);
    for (const std::string &name : names)
      if (isSame(name, top))
        renamed[name] = result;
    memory[result] = {top, Sharing::Same, at};
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
    for (const std::string &name : names) {
      const bool isOld = memory.count(name) && memory[name].sharing == Sharing::Maybe;
      if (isOld && dependents(name, names))
        return "it changes the memory of '" + name + "' in place, which may be a copy and is read later";
    }
    return "";
  }

  /// Whether a name, or a view of it, is read later.
  bool dependents(const std::string &name, const std::vector<std::string> &names) {
    if (isReadLater(name))
      return true;
    return llvm::any_of(names, [&](const std::string &other) {
      if (!isReadLater(other))
        return false;
      std::string up = other;
      while (up != name && memory.count(up))
        up = memory[up].parent;
      return up == name;
    });
  }

  void emit(const Node &node, const std::string &target, const std::string &result) {
    Node made = node;
    made.target = target;
    for (NamedArgument &input : made.inputs)
      tensorNames(input.argument, [&](std::string &name) { name = current(name); });
    if (target == "torch.ops.aten.zeros_like.default")
      made.inputs[0].name = "self";
    made.outputs = {Argument{TensorArg{result}}};
    graph.nodes.push_back(std::move(made));
  }

  /// A name that no tensor has, for one that looks like another.
  std::string fresh(const std::string &like) {
    std::string name;
    do
      name = like + "_after" + std::to_string(++made);
    while (graph.tensors.count(name));
    graph.tensors[name] = graph.tensors[like];
    return name;
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
        if (of.sharing == Sharing::Slice || of.sharing == Sharing::Select) {
          undo.target = of.sharing == Sharing::Slice ? "torch.ops.aten.slice_scatter.default"
                                                     : "torch.ops.aten.select_scatter.default";
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
      if (isSame(name, top) || done.count(name) || !dependents(name, names))
        continue;
      const Memory &of = memory[name];
      if (of.sharing == Sharing::Same) {
        renamed[name] = current(of.parent);
        continue;
      }
      Node again = *originals[of.node];
      for (NamedArgument &input : again.inputs)
        tensorNames(input.argument, [&](std::string &read) { read = current(read); });
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
  std::map<std::string, std::string> renamed;
  std::map<std::string, Memory> memory;                   ///< of what shares another's
  std::map<std::string, std::vector<std::string>> family; ///< by the owner of the memory: who shares it
  llvm::StringMap<std::string> reasons;
};
} // namespace

llvm::StringMap<std::string> replaceInPlace(Program &program) { return Rewriter(program).run(); }

} // namespace tessera::pt2
