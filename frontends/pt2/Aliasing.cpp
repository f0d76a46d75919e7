//===- Aliasing.cpp - which operators share or change memory ---------------===//

#include "frontends/pt2/Aliasing.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

using llvm::StringRef;

namespace tessera::pt2 {

/// "add_.Tensor" of "torch.ops.aten.add_.Tensor"; empty if it is no operator of ATen.
static StringRef ofAten(StringRef target) { return target.consume_front("torch.ops.aten.") ? target : ""; }

/// All operators of native_functions.yaml whose result is annotated as an alias, and those composed of others that may
/// give such a result or their argument (PyTorch 2.15); of any other one, results have memory of their own.
static Sharing sharingOf(StringRef name) {
  static const llvm::StringSet<> maybe = {"_reshape_alias.default",
                                          "_unsafe_view.default",
                                          "adjoint.default",
                                          "alpha_dropout.default",
                                          "as_strided.default",
                                          "atleast_1d.Sequence",
                                          "atleast_1d.default",
                                          "atleast_2d.Sequence",
                                          "atleast_2d.default",
                                          "atleast_3d.Sequence",
                                          "atleast_3d.default",
                                          "broadcast_tensors.default",
                                          "broadcast_to.default",
                                          "cartesian_prod.default",
                                          "channel_shuffle.default",
                                          "chunk.default",
                                          "coalesce.default",
                                          "conj.default",
                                          "contiguous.default",
                                          "detach.default",
                                          "dsplit.array",
                                          "dsplit.int",
                                          "einsum.default",
                                          "feature_alpha_dropout.default",
                                          "feature_dropout.default",
                                          "flatten.using_ints",
                                          "hsplit.array",
                                          "hsplit.int",
                                          "indices.default",
                                          "lift.default",
                                          "lift_fresh.default",
                                          "linalg_diagonal.default",
                                          "mH.default",
                                          "mT.default",
                                          "matrix_H.default",
                                          "meshgrid.default",
                                          "meshgrid.indexing",
                                          "movedim.intlist",
                                          "moveaxis.int",
                                          "moveaxis.intlist",
                                          "narrow.Tensor",
                                          "native_channel_shuffle.default",
                                          "numpy_T.default",
                                          "pad.default",
                                          "pin_memory.default",
                                          "pixel_shuffle.default",
                                          "pixel_unshuffle.default",
                                          "positive.default",
                                          "ravel.default",
                                          "real.default",
                                          "reshape.default",
                                          "reshape_as.default",
                                          "resolve_conj.default",
                                          "resolve_neg.default",
                                          "rms_norm.default",
                                          "slice_inverse.default",
                                          "split.Tensor",
                                          "split.sizes",
                                          "split_with_sizes.default",

                                          "sum_to_size.default",
                                          "tensor_split.indices",
                                          "tensor_split.sections",
                                          "tensor_split.tensor_indices_or_sections",
                                          "unbind.int",

                                          "unsafe_chunk.default",
                                          "unsafe_split.Tensor",
                                          "unsafe_split_with_sizes.default",
                                          "values.default",
                                          "view.dtype",
                                          "vsplit.array",
                                          "vsplit.int"};
  if (maybe.contains(name))
    return Sharing::Maybe;
  return llvm::StringSwitch<Sharing>(name)
      .Cases({"alias.default", "detach_.default"}, Sharing::Same)
      .Cases({"unflatten.int", "squeeze.default", "squeeze.dim", "squeeze.dims", "unsqueeze.default", "view.default",
              "view_as.default"},
             Sharing::Shape)
      .Cases({"t.default", "transpose.int", "swapaxes.default", "swapdims.default"}, Sharing::Transpose)
      .Case("slice.Tensor", Sharing::Slice)
      .Case("select.int", Sharing::Select)
      .Case("diagonal.default", Sharing::Diagonal)
      .Cases({"_conj.default", "_neg_view.default", "expand.default", "expand_as.default", "imag.default",
              "movedim.int", "narrow.default", "permute.default", "unfold.default", "view_as_complex.default",
              "view_as_real.default"},
             Sharing::View)
      .Default(Sharing::None);
}

static std::string resultOf(const Node &node) {
  const auto *result = node.outputs.size() == 1 ? node.outputs[0].as<TensorArg>() : nullptr;
  return result ? result->name : "";
}

static bool flagOf(const Node &node, const char *name) {
  const Argument *argument = node.input(name);
  const bool *value = argument ? argument->as<bool>() : nullptr;
  return value && *value;
}

/// Of `to` and `type_as`: a copy unless type and place stay, in which case the tensor itself.
static Sharing sharingOfTo(const Node &node, const Graph &graph, const std::string &self) {
  auto from = graph.tensors.find(self), to = graph.tensors.find(resultOf(node));
  if (from == graph.tensors.end() || to == graph.tensors.end())
    return Sharing::Maybe;
  if (flagOf(node, "copy") || from->second.dtype != to->second.dtype)
    return Sharing::None;
  const Argument *format = node.input("memory_format");
  return format && !format->isNone() ? Sharing::Maybe : Sharing::Same;
}

/// Of `contiguous`: a copy where a stride of a dimension becomes another, the tensor itself where none does.
static Sharing sharingOfContiguous(const Node &node, const Graph &graph, const std::string &self) {
  auto from = graph.tensors.find(self), to = graph.tensors.find(resultOf(node));
  const Argument *format = node.input("memory_format");
  if (from == graph.tensors.end() || to == graph.tensors.end() || (format && !format->isNone()))
    return Sharing::Maybe;
  const TensorMeta &before = from->second, &after = to->second;
  const size_t rank = before.sizes.size();
  if (before.strides.size() != rank || after.strides.size() != rank)
    return Sharing::Maybe;
  auto isKnown = [](const SymInt &size) { return size.isConstant(); };
  bool isSame = true, isCopy = false;
  for (size_t dim = 0; dim < rank; ++dim) {
    const SymInt &size = before.sizes[dim], &had = before.strides[dim], &has = after.strides[dim];
    if (isKnown(size) && size.value == 0)
      return Sharing::Maybe;
    if (isKnown(size) && size.value == 1)
      continue;
    const bool areKnown = isKnown(size) && isKnown(had) && isKnown(has);
    isCopy |= areKnown && had.value != has.value;
    isSame &= areKnown && had.value == has.value;
  }
  return isCopy ? Sharing::None : isSame ? Sharing::Same : Sharing::Maybe;
}

Alias aliasOf(const Node &node, const Graph &graph) {
  Alias alias;
  std::vector<std::string> read;
  for (const NamedArgument &input : node.inputs)
    eachName(input.argument, [&](const std::string &name) {
      if (graph.tensors.count(name))
        read.push_back(name);
    });
  if (read.empty())
    return alias;
  const StringRef name = ofAten(node.target);
  if (name.starts_with("to.") || name.starts_with("type_as.")) {
    alias.sharing = sharingOfTo(node, graph, read.front());
  } else if (name == "contiguous.default") {
    alias.sharing = sharingOfContiguous(node, graph, read.front());
  } else if (name == "dropout.default") {
    const Argument *rate = node.input("p");
    const double *value = rate ? rate->as<double>() : nullptr;
    const bool isOff = !flagOf(node, "train") || (value && *value == 0);
    alias.sharing = isOff ? Sharing::Same : Sharing::None;
  } else if (isInPlace(node.target)) {
    alias.sharing = Sharing::Same;
  } else {
    alias.sharing = name.empty() ? Sharing::Maybe : sharingOf(name);
  }
  if (alias.sharing == Sharing::Maybe)
    alias.of = std::move(read);
  else if (alias.sharing != Sharing::None)
    alias.of = {read.front()};
  return alias;
}

std::optional<bool> returnsArgument(const Node &node, const Graph &graph) {
  // Views and copies, but never the argument (PyTorch 2.15).
  static const llvm::StringSet<> isNew = {"_unsafe_view.default",
                                          "as_strided.default",
                                          "broadcast_to.default",
                                          "chunk.default",
                                          "detach.default",
                                          "dsplit.array",
                                          "dsplit.int",
                                          "einsum.default",
                                          "hsplit.array",
                                          "hsplit.int",
                                          "linalg_diagonal.default",
                                          "mT.default",
                                          "meshgrid.default",
                                          "meshgrid.indexing",
                                          "movedim.intlist",
                                          "numpy_T.default",
                                          "reshape.default",
                                          "reshape_as.default",
                                          "split.Tensor",
                                          "split.sizes",
                                          "split_with_sizes.default",
                                          "tensor_split.indices",
                                          "tensor_split.sections",
                                          "unbind.int",
                                          "unsafe_chunk.default",
                                          "unsafe_split.Tensor",
                                          "unsafe_split_with_sizes.default",
                                          "vsplit.array",
                                          "vsplit.int"};
  switch (aliasOf(node, graph).sharing) {
  case Sharing::Same:
    return node.target != "torch.ops.aten.alias.default";
  case Sharing::Maybe:
    return isNew.contains(ofAten(node.target)) ? std::optional(false) : std::nullopt;
  default:
    return false;
  }
}

bool isInPlace(StringRef target) {
  const StringRef base = ofAten(target).split('.').first;
  return (base.starts_with("__i") && base.ends_with("__")) || (base.ends_with("_") && !base.ends_with("__"));
}

namespace {
struct InPlaceRow {
  llvm::StringLiteral inPlace, function, self;
};
/// Where not only "_" makes the difference.
constexpr InPlaceRow kNamedOtherwise[] = {
    {"__iand__.Scalar", "bitwise_and.Scalar", "self"},
    {"__iand__.Tensor", "bitwise_and.Tensor", "self"},
    {"__ior__.Scalar", "bitwise_or.Scalar", "self"},
    {"__ior__.Tensor", "bitwise_or.Tensor", "self"},
    {"__ixor__.Scalar", "bitwise_xor.Scalar", "self"},
    {"__ixor__.Tensor", "bitwise_xor.Tensor", "self"},
    {"alpha_dropout_.default", "alpha_dropout.default", "input"},
    {"bernoulli_.float", "bernoulli.p", "self"},
    {"dropout_.default", "dropout.default", "input"},
    {"feature_alpha_dropout_.default", "feature_alpha_dropout.default", "input"},
    {"feature_dropout_.default", "feature_dropout.default", "input"},
    {"floor_divide_.Tensor", "floor_divide.default", "self"},
    {"normal_.default", "normal_functional.default", "self"},
    {"pow_.Scalar", "pow.Tensor_Scalar", "self"},
    {"pow_.Tensor", "pow.Tensor_Tensor", "self"},
    {"zero_.default", "zeros_like.default", "self"},
};
} // namespace

std::optional<InPlaceFunction> functionOf(StringRef target) {
  if (!isInPlace(target))
    return std::nullopt;
  const StringRef name = ofAten(target);
  auto made = [](const llvm::Twine &function, StringRef self) {
    return InPlaceFunction{("torch.ops.aten." + function).str(), self.str()};
  };
  for (const InPlaceRow &row : kNamedOtherwise)
    if (row.inPlace == name)
      return made(row.function, row.self);
  auto [base, overload] = name.split('.');
  if (base.ends_with("__"))
    return std::nullopt;
  base.consume_back("_");
  static const llvm::StringSet<> others = {// of shapes and strides
                                           "as_strided", "detach",    "requires_grad", "resize",   "resize_as",
                                           "set",        "squeeze",   "swapaxes",      "swapdims", "t",
                                           "transpose",  "unsqueeze", "rename"};
  if (others.contains(base))
    return std::nullopt;
  return made(llvm::Twine(base) + "." + overload, "self");
}

bool observesRange(StringRef target) { return ofAten(target) == "fused_moving_avg_obs_fake_quant.default"; }

bool changesTensor(StringRef target) {
  const StringRef name = ofAten(target);
  return isInPlace(target) || observesRange(target) || name.contains("batch_norm") || name.contains("instance_norm");
}

} // namespace tessera::pt2
