//===- Importer.cpp - walks an ONNX graph and builds @step ----------------===//

#include "frontends/onnx/Importer.h"

#include "frontends/onnx/Proto.h"

#include "llvm/Support/Path.h"

using namespace mlir;

namespace tessera {
namespace onnx_import {

namespace {
/// Limits on what a hostile file can make us do; real models stay far below them.
constexpr int kMaxDepth = 32;
constexpr int64_t kMaxNodes = 1 << 20;

StringRef canonicalDomain(StringRef domain) { return domain == "ai.onnx" ? StringRef() : domain; }

std::string keyOf(StringRef domain, StringRef name) { return (canonicalDomain(domain) + ":" + name).str(); }
} // namespace

Importer::Importer(const onnx::ModelProto &model, const ImportOptions &options, MLIRContext &context,
                   const std::string &path, std::string folder)
    : model(model), options(options), context(context), folder(std::move(folder)),
      fileLoc(FileLineColLoc::get(&context, path.empty() ? "model.onnx" : path, 0, 0)), step(fileLoc),
      roles(options, fileLoc) {}

Location Importer::locOf(const onnx::NodeProto &node, const Frame &frame) {
  std::string name = node.name();
  if (name.empty())
    name = node.output_size() > 0 && !node.output(0).empty() ? node.output(0) : node.op_type();
  return NameLoc::get(step.builder.getStringAttr(frame.prefix + name), fileLoc);
}

LogicalResult Importer::readOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &imports,
                                   Frame &frame) {
  for (const auto &entry : imports) {
    StringRef domain = canonicalDomain(entry.domain());
    if (domain.empty() && (entry.version() < kMinOpset || entry.version() > kMaxOpset))
      return error() << "model uses opset " << entry.version() << ", expected " << kMinOpset << " to " << kMaxOpset;
    frame.opsets[domain] = static_cast<int>(entry.version());
  }
  return success();
}

OwningOpRef<ModuleOp> Importer::run() {
  if (failed(readOpsets(model.opset_import(), root)))
    return {};
  if (!root.opsets.count("") && !model.graph().node().empty())
    root.opsets[""] = kMinOpset;
  for (const auto &function : model.functions())
    functions[keyOf(function.domain(), function.name())] = &function;

  for (const auto &output : model.graph().output())
    used.insert(output.name());
  if (failed(readRoles()) || failed(collectUses(model.graph().node(), 0)) || failed(addInitializers()) ||
      failed(addInputs()) || failed(importNodes(model.graph().node(), top, root)) || failed(step.reportUnsupported()) ||
      failed(checkPlaced()) || failed(addResults()))
    return {};
  OwningOpRef<ModuleOp> module = step.finish();
  if (!module)
    return {};
  if (!roles.getRecord() && step.hasTensors())
    emitWarning(fileLoc)
        << "the file has no record of the module that it was exported from (python -m tessera export writes "
           "one): padding_idx, frozen parameters, detached values and dropout that the exporter left "
           "out cannot be known";
  if (const auto &record = roles.getRecord(); record && record->clearedDropouts > 0)
    emitWarning(fileLoc)
        << "the step has no dropout: " << record->clearedDropouts
        << (record->clearedDropouts == 1 ? " rate was" : " rates were")
        << " set to 0 when the model was exported (python -m tessera export --keep-dropout keeps them)";
  return module;
}

void Importer::report(const onnx::NodeProto &node, const Frame &frame, const Twine &reason) {
  StringRef domain = canonicalDomain(node.domain());
  Location loc = locOf(node, frame);
  std::string what;
  llvm::raw_string_ostream stream(what);
  stream << "node '" << cast<NameLoc>(loc).getName().getValue() << "': " << (domain.empty() ? "" : domain)
         << (domain.empty() ? "" : ".") << node.op_type();
  if (auto found = frame.opsets.find(domain); found != frame.opsets.end())
    stream << " (opset " << found->second << ")";
  stream << ": " << reason;
  step.addUnsupported(loc, what);
}

LogicalResult Importer::importNodes(const Nodes &nodes, Scope &scope, const Frame &frame) {
  for (const auto &node : nodes) {
    if (++nodeCount > kMaxNodes)
      return error() << "model has more than " << kMaxNodes << " nodes after inlining its functions";
    if (failed(importNode(node, scope, frame)))
      return failure();
  }
  return success();
}

void Importer::define(const onnx::NodeProto &node, std::vector<Entry> outputs, Scope &scope) {
  for (Entry &entry : outputs)
    entry.constant = calls.intern(std::move(entry.constant));
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty())
      scope.names[node.output(i)] = std::move(outputs[i]);
}

/// Imports one node. Fails only where going on makes no sense; what is merely unsupported goes into the report.
LogicalResult Importer::importNode(const onnx::NodeProto &original, Scope &scope, const Frame &frame) {
  onnx::NodeProto resolved;
  const onnx::NodeProto *proto = resolveAttributes(original, frame, resolved) ? &resolved : &original;

  std::vector<Entry> inputs;
  bool broken = false;
  for (const std::string &name : proto->input()) {
    Entry *entry = name.empty() ? nullptr : scope.find(name);
    if (!entry && !name.empty()) {
      report(*proto, frame, "input '" + name + "' is not defined before it (nodes must be in topological order)");
      broken = true;
      break;
    }
    inputs.push_back(entry ? *entry : Entry());
    broken |= inputs.back().broken;
  }
  Entry brokenEntry;
  brokenEntry.broken = true;
  std::vector<Entry> none(proto->output_size(), brokenEntry);
  if (broken) {
    define(*proto, none, scope);
    return success();
  }
  auto giveUp = [&](const Twine &reason) {
    report(*proto, frame, reason);
    define(*proto, none, scope);
    return success();
  };

  StringRef domain = canonicalDomain(proto->domain());
  if (auto function = functions.lookup(keyOf(domain, proto->op_type()))) {
    if (frame.depth >= kMaxDepth)
      return giveUp("functions call each other more than " + Twine(kMaxDepth) + " deep");
    return inlineFunction(*function, *proto, std::move(inputs), scope, frame);
  }
  if (domain.empty() && proto->op_type() == "If") {
    const HostTensor *condition = inputs.empty() ? nullptr : inputs[0].constant.get();
    if (!condition || condition->isFloat() || condition->size() != 1)
      return giveUp("the condition must be known at import");
    if (frame.depth >= kMaxDepth)
      return giveUp("branches are nested more than " + Twine(kMaxDepth) + " deep");
    return inlineBranch(*proto, condition->ints[0] != 0, scope, frame);
  }
  const OpRow *row = findOp(domain, proto->op_type());
  if (!row)
    return giveUp(domain.empty() ? Twine("op is not supported") : Twine("op of this domain is not supported"));
  auto opset = frame.opsets.find(domain);
  if (opset == frame.opsets.end())
    return giveUp("model does not import the op's domain");
  if (opset->second < row->minOpset || opset->second > row->maxOpset)
    return giveUp("op is supported for opsets " + Twine(row->minOpset) + " to " + Twine(row->maxOpset));

  Location loc = locOf(*proto, frame);
  Node node(*proto, opset->second, train::Build(step.builder, loc), std::move(inputs));
  node.folder = folder;
  node.step = &step;
  node.activeDropouts = &activeDropouts;
  node.isNormalisedByBatch = [this](StringRef mean, bool asWritten) {
    return roles.isNormalisedByBatch(mean, asWritten);
  };
  for (int i = 0; i < row->minInputs; ++i)
    if (!node.has(i))
      return giveUp("input " + Twine(i) + " is missing");
  if (proto->op_type() != "SequenceAt")
    for (const Entry &entry : node.inputs)
      if (entry.sequence)
        return giveUp("a sequence is only supported as input of SequenceAt");
  auto key = [&] {
    std::string text = keyOf(row->domain, row->name) + ":" + std::to_string(node.opset) + ":" +
                       std::to_string(node.proto.output_size());
    for (const auto &attribute : node.proto.attribute())
      text += attribute.SerializeAsString();
    return text;
  };
  if (failed(calls.run(node, key, [&] { return row->handler(node); })))
    return giveUp(node.reason);
  // Constants that the handler needed as values stay values for later nodes.
  for (int i = 0; i < proto->input_size(); ++i)
    if (node.has(i) && node.inputs[i].value)
      scope.find(proto->input(i))->value = node.inputs[i].value;
  for (int i = 0; i < proto->output_size(); ++i)
    if (!proto->output(i).empty() && !node.outputs[i].exists())
      return giveUp("output " + Twine(i) + " is not supported");
  define(*proto, std::move(node.outputs), scope);
  return success();
}

} // namespace onnx_import

static OwningOpRef<ModuleOp> importModel(llvm::Expected<std::unique_ptr<onnx::ModelProto>> model,
                                         const ImportOptions &options, MLIRContext &context, const std::string &path,
                                         const std::string &folder) {
  if (!model) {
    emitError(FileLineColLoc::get(&context, path, 0, 0)) << llvm::toString(model.takeError());
    return {};
  }
  return onnx_import::Importer(**model, options, context, path, folder).run();
}

OwningOpRef<ModuleOp> importOnnx(const std::string &path, const ImportOptions &options, MLIRContext &context) {
  llvm::SmallString<128> folder(path);
  llvm::sys::path::remove_filename(folder);
  if (folder.empty())
    folder = ".";
  return importModel(onnx_import::readModel(path), options, context, path, folder.str().str());
}

OwningOpRef<ModuleOp> importOnnxBytes(StringRef bytes, bool text, const ImportOptions &options, MLIRContext &context) {
  return importModel(onnx_import::parseModel(bytes, text), options, context, "<memory>", "");
}

} // namespace tessera
