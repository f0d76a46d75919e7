//===- Record.cpp - what a file says about its tensors --------------------===//

#include "frontends/onnx/Record.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"

using llvm::Expected;
using llvm::StringRef;

namespace tessera::onnx_import {

namespace {
constexpr StringRef kRecordKey = "tessera";
constexpr int64_t kRecordVersion = 1;
constexpr int kMaxDepth = 64;
constexpr StringRef kKindKey = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr StringRef kScopesKey = "pkg.torch.onnx.name_scopes";
constexpr StringRef kHierarchyKey = "pkg.torch.onnx.class_hierarchy";
/// `metadata_props` of values and nodes, which libonnx 1.12 does not know yet and keeps as unknown fields.
constexpr int kValueMetadata = 4, kNodeMetadata = 9;

llvm::Error malformed(const llvm::Twine &what) {
  return llvm::createStringError(std::make_error_code(std::errc::invalid_argument),
                                 "the record of the model (metadata 'tessera') is malformed: " + what);
}

/// The parser recurses on brackets. Those in strings do not count.
bool isTooDeep(StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (inString && c == '\\')
      ++at; // what follows is escaped
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '[' || c == '{') && ++depth > kMaxDepth)
      return true;
    else if (!inString && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

/// The value of a key among metadata that are unknown fields, or nothing.
std::optional<std::string> findMetadata(const google::protobuf::UnknownFieldSet &fields, int number, StringRef key) {
  for (int i = 0; i < fields.field_count(); ++i) {
    onnx::StringStringEntryProto entry;
    if (fields.field(i).number() == number &&
        fields.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
        entry.ParseFromString(fields.field(i).length_delimited()) && entry.key() == key)
      return entry.value();
  }
  return std::nullopt;
}

/// Reads the fields that parameters and buffers share. Every field has its type checked; unknown ones are skipped, so
/// that a newer exporter may add some that change no meaning.
llvm::Error readTensorEntry(const llvm::json::Value &value, RecordedTensor &tensor) {
  const llvm::json::Object *entry = value.getAsObject();
  const auto name = entry ? entry->getString("name") : std::nullopt;
  const llvm::json::Array *shape = entry ? entry->getArray("shape") : nullptr;
  if (!name || name->empty() || !shape)
    return malformed("a tensor needs a name and a shape");
  tensor.name = name->str();
  for (const llvm::json::Value &size : *shape) {
    auto number = size.getAsInteger();
    if (!number || *number < 0)
      return malformed("'" + *name + "' has a shape that is no shape");
    tensor.shape.push_back(*number);
  }
  if (!tensor.isParameter)
    return llvm::Error::success();
  const auto trained = entry->getBoolean("trained");
  if (!trained)
    return malformed("parameter '" + *name + "' needs 'trained', true or false");
  tensor.trained = *trained;
  auto flag = [&](StringRef key, bool &target) {
    const llvm::json::Value *given = entry->get(key);
    const auto boolean = given ? given->getAsBoolean() : std::nullopt;
    target = boolean.value_or(false);
    return !given || boolean;
  };
  if (!flag("unused", tensor.unused))
    return malformed("'unused' of '" + *name + "' is neither true nor false");
  if (const llvm::json::Value *index = entry->get("padding_idx")) {
    tensor.paddingIdx = index->getAsInteger();
    if (!tensor.paddingIdx || tensor.shape.empty() || *tensor.paddingIdx < 0 || *tensor.paddingIdx >= tensor.shape[0])
      return malformed("'padding_idx' of '" + *name + "' is no row of it");
  }
  return llvm::Error::success();
}

llvm::Error readTensors(const llvm::json::Object &record, StringRef key, bool areParameters, ModelRecord &result) {
  const llvm::json::Array *list = record.getArray(key);
  if (!list)
    return malformed("it has no list '" + key + "'");
  for (const llvm::json::Value &entry : *list) {
    RecordedTensor tensor;
    tensor.isParameter = areParameters;
    if (llvm::Error error = readTensorEntry(entry, tensor))
      return error;
    if (!result.byName.try_emplace(tensor.name, result.tensors.size()).second)
      return malformed("'" + tensor.name + "' is listed twice");
    result.tensors.push_back(std::move(tensor));
  }
  return llvm::Error::success();
}

llvm::Error readNormalisations(const llvm::json::Object &record, ModelRecord &result) {
  const llvm::json::Array *list = record.getArray("batch_norm");
  if (!list)
    return malformed("it has no list 'batch_norm'");
  for (const llvm::json::Value &value : *list) {
    const llvm::json::Object *entry = value.getAsObject();
    const auto mean = entry ? entry->getString("running_mean") : std::nullopt;
    const auto training = entry ? entry->getBoolean("training") : std::nullopt;
    if (!mean || !training)
      return malformed("an entry of 'batch_norm' needs 'running_mean' and 'training'");
    if (auto [found, inserted] = result.batchNorms.try_emplace(*mean, *training);
        !inserted && found->second != *training)
      return malformed("'" + *mean + "' is in 'batch_norm' twice, with and without 'training'");
  }
  return llvm::Error::success();
}

llvm::Error readDropouts(const llvm::json::Object &record, ModelRecord &result) {
  const llvm::json::Array *list = record.getArray("dropout");
  if (!list)
    return malformed("it has no list 'dropout'");
  for (const llvm::json::Value &value : *list) {
    const llvm::json::Object *entry = value.getAsObject();
    const auto count = entry ? entry->getInteger("count") : std::nullopt;
    if (!count || *count < 1 || *count > (1 << 20))
      return malformed("an entry of 'dropout' needs 'count', at least 1");
    result.activeDropouts += *count;
  }
  if (const llvm::json::Value *cleared = record.get("dropout_cleared")) {
    if (!cleared->getAsInteger() || *cleared->getAsInteger() < 0)
      return malformed("'dropout_cleared' is no number of rates");
    result.clearedDropouts = *cleared->getAsInteger();
  }
  return llvm::Error::success();
}
} // namespace

Expected<std::optional<ModelRecord>> readRecord(const onnx::ModelProto &model) {
  const std::string *text = nullptr;
  for (const auto &entry : model.metadata_props())
    if (entry.key() == kRecordKey) {
      if (text)
        return malformed("there are two");
      text = &entry.value();
    }
  if (!text)
    return std::optional<ModelRecord>();
  if (isTooDeep(*text))
    return malformed("its brackets are nested deeper than " + llvm::Twine(kMaxDepth));
  Expected<llvm::json::Value> parsed = llvm::json::parse(*text);
  if (!parsed)
    return malformed(llvm::toString(parsed.takeError()));
  const llvm::json::Object *object = parsed->getAsObject();
  const auto version = object ? object->getInteger("version") : std::nullopt;
  if (!version)
    return malformed("it has no version");
  if (*version != kRecordVersion)
    return malformed("it has version " + llvm::Twine(*version) + ", this compiler reads " +
                     llvm::Twine(kRecordVersion));
  ModelRecord record;
  record.exporter = object->getString("exporter").value_or("").str();
  if (llvm::Error error = readTensors(*object, "parameters", true, record))
    return error;
  if (llvm::Error error = readTensors(*object, "buffers", false, record))
    return error;
  if (llvm::Error error = readNormalisations(*object, record))
    return error;
  if (llvm::Error error = readDropouts(*object, record))
    return error;
  return record;
}

llvm::StringMap<SignatureKind> readSignature(const onnx::GraphProto &graph) {
  llvm::StringMap<SignatureKind> kinds;
  for (const auto &value : graph.value_info()) {
    std::optional<std::string> kind = findMetadata(value.unknown_fields(), kValueMetadata, kKindKey);
    if (!kind)
      continue;
    auto known = llvm::StringSwitch<std::optional<SignatureKind>>(*kind)
                     .Case("PARAMETER", SignatureKind::Parameter)
                     .Case("BUFFER", SignatureKind::Buffer)
                     .Case("CONSTANT_TENSOR", SignatureKind::Constant)
                     .Default(std::nullopt);
    if (known)
      kinds[value.name()] = *known;
  }
  return kinds;
}

std::string scopeOf(const onnx::NodeProto &node) {
  // ['', 'h.0', 'h.0.ln_1', 'layer_norm']: the modules from the outermost on, then the node.
  if (auto scopes = findMetadata(node.unknown_fields(), kNodeMetadata, kScopesKey)) {
    auto [outer, own] = StringRef(*scopes).rsplit(", '");
    auto [rest, module] = outer.rsplit('\'').first.rsplit('\'');
    if (!own.empty())
      return module.str();
  }
  const StringRef name = node.name();
  if (name.contains('/'))
    return name.rsplit('/').first.str();
  return !name.empty() ? name.str() : node.output_size() > 0 ? node.output(0) : node.op_type();
}

std::optional<std::string> torchOpOf(const onnx::NodeProto &node) {
  // "['Net', 'Block', 'aten.max.dim']"
  const auto classes = findMetadata(node.unknown_fields(), kNodeMetadata, kHierarchyKey);
  StringRef last = classes ? StringRef(*classes).rsplit('\'').first.rsplit('\'').second : "";
  return last.consume_front("aten.") ? std::optional(last.str()) : std::nullopt;
}

} // namespace tessera::onnx_import
