//===- Metadata.cpp - what an ONNX file says beside its graph -------------===//

#include "frontends/onnx/Metadata.h"

#include "llvm/ADT/StringSwitch.h"

using namespace tessera::frontend;
using llvm::Expected;
using llvm::StringRef;

namespace tessera::onnx_import {

namespace {
constexpr StringRef kKindKey = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr StringRef kScopesKey = "pkg.torch.onnx.name_scopes";
constexpr StringRef kHierarchyKey = "pkg.torch.onnx.class_hierarchy";
/// `metadata_props` of values and nodes, which libonnx 1.12 does not know yet and keeps as unknown fields.
constexpr int kValueMetadata = 4, kNodeMetadata = 9;

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
} // namespace

Expected<std::optional<ModelRecord>> readRecord(const onnx::ModelProto &model) {
  const std::string *text = nullptr;
  for (const auto &entry : model.metadata_props())
    if (entry.key() == kRecordKey) {
      if (text)
        return malformedRecord("there are two");
      text = &entry.value();
    }
  if (!text)
    return std::nullopt;
  Expected<ModelRecord> record = parseRecord(*text);
  if (!record)
    return record.takeError();
  return std::move(*record);
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
