//===- Arguments.cpp - initializers, inputs and outputs of @step ----------===//

#include "frontends/onnx/Importer.h"
#include "frontends/onnx/Proto.h"

#include <cmath>

using namespace mlir;

namespace tessera::onnx_import {

namespace {
/// Buffers of at most this many elements become constants if their data is there, else frozen arguments.
constexpr int64_t kMaxBufferElements = int64_t{1} << 20;
constexpr int kMaxGraphDepth = 32;

/// Names under which exporters and common model code keep tensors that are not trained.
bool isBufferName(StringRef name) {
  static const llvm::Regex pattern("(^|[._/])(inv_freq|original_inv_freq|cos_cached|sin_cached|cos_cache|sin_cache|"
                                   "freqs_cis|freqs_cos|freqs_sin|causal_mask|masked_bias|attn_mask|position_ids|"
                                   "running_mean|running_var)$");
  return pattern.match(name) || name.starts_with("c_lifted_tensor") || name.starts_with("_lifted_tensor_constant");
}

/// [1, …, 1, n, n] with n > 1: may be a causal mask.
bool isSquareTable(ArrayRef<int64_t> shape) {
  if (shape.size() < 2 || shape.back() < 2 || shape.back() != shape[shape.size() - 2])
    return false;
  return llvm::all_of(shape.drop_back(2), [](int64_t size) { return size == 1; });
}

/// One value on and below the diagonal, another above.
bool isCausalMask(const HostTensor &tensor) {
  if (!isSquareTable(tensor.shape()))
    return false;
  const int64_t n = tensor.shape().back();
  const double below = tensor.floats[0], above = tensor.floats[1];
  if (below == above)
    return false;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      if (tensor.floats[i * n + j] != (j <= i ? below : above))
        return false;
  return true;
}

/// Powers q^i with q < 1: the frequencies of rotary positions.
bool isGeometric(const HostTensor &tensor) {
  if (tensor.type.getRank() != 1 || tensor.size() < 3 || tensor.floats[0] != 1.0 || tensor.floats[1] >= 1.0)
    return false;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (std::abs(tensor.floats[i] - std::pow(tensor.floats[1], static_cast<double>(i))) > 1e-4 * tensor.floats[i])
      return false;
  return true;
}

/// Cosines or sines of positions: the first row is all 1 or all 0, the others differ, nothing exceeds 1.
bool isPositionTable(const HostTensor &tensor) {
  ArrayRef<int64_t> shape = tensor.shape();
  if (shape.size() < 2 || shape.back() < 2 || tensor.size() <= shape.back() || tensor.uniform())
    return false;
  const double first = tensor.floats[0];
  if (first != 0.0 && first != 1.0)
    return false;
  for (int64_t i = 0; i < shape.back(); ++i)
    if (tensor.floats[i] != first)
      return false;
  return llvm::all_of(tensor.floats, [](double x) { return std::abs(x) <= 1.0; }) &&
         tensor.floats[shape.back()] != first;
}
} // namespace

LogicalResult Importer::collectUses(const Nodes &nodes, int depth) {
  if (depth > kMaxGraphDepth)
    return error() << "graphs are nested deeper than " << kMaxGraphDepth;
  for (const auto &node : nodes) {
    for (const std::string &name : node.input())
      used.insert(name);
    if (node.op_type() == "BatchNormalization")
      for (int i = 3; i < node.input_size(); ++i)
        buffers.insert(node.input(i));
    for (const auto &attribute : node.attribute())
      if (attribute.has_g()) {
        for (const auto &output : attribute.g().output())
          used.insert(output.name());
        if (failed(collectUses(attribute.g().node(), depth + 1)))
          return failure();
      }
  }
  return success();
}

Value Importer::addArgument(StringRef name, RankedTensorType type, StringRef role) {
  Location loc = NameLoc::get(builder.getStringAttr(name), fileLoc);
  argAttrs.push_back(builder.getDictionaryAttr({builder.getNamedAttr(train::kName, builder.getStringAttr(name)),
                                                builder.getNamedAttr(train::kRole, builder.getStringAttr(role))}));
  return func.getBody().front().addArgument(type, loc);
}

Value Importer::seedArgument() {
  if (!seed)
    seed = addArgument("seed", RankedTensorType::get({}, builder.getI64Type()), "hyper");
  return seed;
}

/// The TorchScript exporter in evaluation mode merges initializers of equal value, such as the weights of all fresh
/// layer norms, and writes an Identity for each of the others under its old name. Vectors are not tied on purpose: each
/// becomes a parameter of its own again. (Equal matrices are tied weights.)
bool Importer::untie(const onnx::NodeProto &identity, ArrayRef<Entry> inputs) {
  auto argument = inputs.empty() ? BlockArgument() : dyn_cast_or_null<BlockArgument>(inputs[0].value);
  if (!argument || identity.output_size() != 1 || identity.output(0).empty())
    return false;
  auto type = cast<RankedTensorType>(argument.getType());
  auto role = cast<DictionaryAttr>(argAttrs[argument.getArgNumber()]).getAs<StringAttr>(train::kRole);
  if (type.getRank() != 1 || role.getValue() != "param")
    return false;
  const std::string &name = identity.output(0);
  emitRemark(fileLoc) << "parameter '" << name << "' was merged with '" << identity.input(0)
                      << "' by the exporter because their values are equal; it is a parameter of its own again";
  top.names[name].value = addArgument(name, type, frozen && frozen->match(name) ? "frozen" : "param");
  return true;
}

/// Decides what an initializer becomes, and reads its value if it becomes a constant.
FailureOr<Importer::Kind> Importer::classify(const onnx::TensorProto &tensor, RankedTensorType type, Constant &value) {
  auto read = [&]() -> llvm::Error {
    auto tensorValue = readTensor(&context, tensor, folder);
    if (!tensorValue)
      return tensorValue.takeError();
    value = std::make_shared<const HostTensor>(std::move(*tensorValue));
    return llvm::Error::success();
  };
  // A parameter without elements has nothing to train; concatenations have such operands.
  if (!isa<FloatType>(type.getElementType()) || type.getRank() == 0 || type.getNumElements() == 0) {
    if (llvm::Error why = read()) {
      error() << "initializer '" << tensor.name() << "': " << llvm::toString(std::move(why));
      return failure();
    }
    return Kind::Constant;
  }
  const bool external = tensor.data_location() == onnx::TensorProto::EXTERNAL;
  const int64_t count = type.getNumElements();
  if (buffers.contains(tensor.name()))
    return Kind::Frozen;
  // GPT-2 keeps its causal mask as `attn.bias` of shape [1, 1, T, T].
  const bool isTable = type.getRank() >= 3 && isSquareTable(type.getShape());
  const bool named = isBufferName(tensor.name()) || (isTable && StringRef(tensor.name()).ends_with("attn.bias"));
  // Inline data costs nothing to look at; of external data, only what cannot be a weight is read.
  if (named || isTable || !external)
    if (count > 0 && count <= kMaxBufferElements) {
      if (llvm::Error why = read()) {
        if (!external) {
          error() << "initializer '" << tensor.name() << "': " << llvm::toString(std::move(why));
          return failure();
        }
        llvm::consumeError(std::move(why));
      }
      if (value && (named || isCausalMask(*value) || isGeometric(*value) || isPositionTable(*value)))
        return Kind::Constant;
      value.reset();
    }
  if (named || (frozen && frozen->match(tensor.name())))
    return Kind::Frozen;
  return Kind::Parameter;
}

LogicalResult Importer::addInitializers() {
  if (model.graph().sparse_initializer_size() > 0)
    return error() << "sparse initializers are not supported";
  for (const auto &tensor : model.graph().initializer()) {
    if (!used.contains(tensor.name()))
      continue;
    if (top.names.count(tensor.name()))
      return error() << "initializer '" << tensor.name() << "' is defined twice";
    auto type = protoType(&context, tensor);
    if (!type)
      return error() << "initializer '" << tensor.name() << "': " << llvm::toString(type.takeError());
    Constant value;
    FailureOr<Kind> kind = classify(tensor, *type, value);
    if (failed(kind))
      return failure();
    if (*kind == Kind::Constant)
      top.names[tensor.name()].constant = intern(std::move(value));
    else
      top.names[tensor.name()].value = addArgument(tensor.name(), *type, *kind == Kind::Parameter ? "param" : "frozen");
  }
  return success();
}

/// The size that the file gives. The dynamo exporter writes one that tracing fixed as a symbol whose name is a number.
static std::optional<int64_t> fixedSize(const onnx::TensorShapeProto::Dimension &dim) {
  int64_t size = dim.dim_value();
  if (dim.has_dim_value() || (dim.has_dim_param() && !StringRef(dim.dim_param()).getAsInteger(10, size)))
    return size;
  return std::nullopt;
}

FailureOr<int64_t> Importer::sizeOf(const onnx::TensorShapeProto::Dimension &dim, StringRef input, int64_t axis) {
  const int64_t wanted = axis == 0 ? options.batch : axis == 1 ? options.sequence : 0;
  const char *option = axis == 0 ? "--batch" : "--seq";
  if (std::optional<int64_t> given = fixedSize(dim)) {
    const int64_t fixed = *given;
    if (fixed < 1) {
      error() << "input '" << input << "' has size " << fixed << " in dimension " << axis << ", expected at least 1";
      return failure();
    }
    if (wanted && wanted != fixed) {
      error() << "input '" << input << "' has the fixed size " << fixed << " in dimension " << axis << ", got "
              << option << " " << wanted << "; export the model with a symbolic dimension";
      return failure();
    }
    return fixed;
  }
  if (auto found = options.dims.find(dim.dim_param()); dim.has_dim_param() && found != options.dims.end()) {
    if (found->second >= 1)
      return found->second;
    error() << "dimension '" << dim.dim_param() << "' is bound to " << found->second << ", expected at least 1";
    return failure();
  }
  if (wanted)
    return wanted;
  InFlightDiagnostic diagnostic = error();
  diagnostic << "input '" << input << "' has an unknown size in dimension " << axis;
  if (dim.has_dim_param() && !dim.dim_param().empty())
    diagnostic << "; bind it with --dim " << dim.dim_param() << "=<size>";
  if (axis < 2)
    diagnostic << (dim.dim_param().empty() ? "; bind it with " : " or ") << option << " <size>";
  return failure();
}

LogicalResult Importer::addInputs() {
  llvm::StringSet<> symbols;
  for (const auto &input : model.graph().input()) {
    for (const auto &dim : input.type().tensor_type().shape().dim())
      if (!fixedSize(dim))
        symbols.insert(dim.dim_param());
    if (top.names.count(input.name())) {
      if (top.names[input.name()].value && !isa<BlockArgument>(top.names[input.name()].value))
        return error() << "input '" << input.name() << "' is defined twice";
      continue; // an initializer that is also listed as input, as files of IR version 3 do
    }
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape())
      return error() << "input '" << input.name() << "' is not a tensor with a shape";
    const auto &proto = input.type().tensor_type();
    Type element = elementType(&context, proto.elem_type());
    if (!element)
      return error() << "input '" << input.name() << "' has element type " << dataTypeName(proto.elem_type())
                     << ", which is not supported";
    SmallVector<int64_t> shape;
    for (const auto &dim : proto.shape().dim()) {
      auto size = sizeOf(dim, input.name(), static_cast<int64_t>(shape.size()));
      if (failed(size))
        return failure();
      shape.push_back(*size);
    }
    if (!countElements(shape))
      return error() << "input '" << input.name() << "' of shape " << Node::shapeText(shape) << " is too large";
    top.names[input.name()].value = addArgument(input.name(), RankedTensorType::get(shape, element), "input");
  }
  for (const auto &[name, size] : options.dims)
    if (!symbols.contains(name))
      return error() << "no input has a symbolic dimension '" << name << "'";
  return success();
}

LogicalResult Importer::addResults() {
  SmallVector<Value> results;
  SmallVector<Attribute> resultAttrs;
  for (const auto &output : model.graph().output()) {
    Entry *entry = top.find(output.name());
    if (!entry || entry->sequence)
      return error() << "output '" << output.name() << "' is not "
                     << (entry ? "a tensor" : "defined by any node, input or initializer");
    if (!entry->value) {
      Location loc = NameLoc::get(builder.getStringAttr(output.name()), fileLoc);
      entry->value = train::Build(builder, loc).constant(entry->constant->toAttr());
    }
    results.push_back(entry->value);
    resultAttrs.push_back(
        builder.getDictionaryAttr({builder.getNamedAttr(train::kName, builder.getStringAttr(output.name())),
                                   builder.getNamedAttr(train::kRole, builder.getStringAttr("output"))}));
  }
  if (results.empty())
    return error() << "model has no outputs";
  func::ReturnOp::create(builder, fileLoc, results);
  func.setFunctionType(
      builder.getFunctionType(func.getBody().front().getArgumentTypes(), ValueRange(results).getTypes()));
  func.setArgAttrsAttr(builder.getArrayAttr(argAttrs));
  func.setResAttrsAttr(builder.getArrayAttr(resultAttrs));
  return success();
}

} // namespace tessera::onnx_import
