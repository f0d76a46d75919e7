//===- Importer.cpp - walks an exported program and builds @step -----------===//

#include "frontends/pt2/Importer.h"

#include "compiler/dialect/train/Signature.h"
#include "frontends/common/Evaluate.h"
#include "frontends/pt2/Reader.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace tessera {
namespace pt2 {

namespace {
constexpr size_t kMaxNodes = 1 << 20;
constexpr int64_t kMaxWork = int64_t{1} << 26; ///< elements that are computed at import

/// "torch.ops.aten.linear.default" without the module that all operators are in.
StringRef shortTarget(StringRef target) {
  target.consume_front("torch.ops.");
  return target;
}
} // namespace

Importer::Importer(const Program &program, const ImportOptions &options, MLIRContext &context)
    : program(program), options(options), context(context), fileLoc(FileLineColLoc::get(&context, program.file, 0, 0)),
      builder(&context), roles(options, fileLoc) {}

/// "/model/layers.3/mlp/up_proj/linear_5": the modules that the call is in, by what each adds to the path.
Location Importer::locOf(const Node &node) {
  std::string name;
  StringRef before;
  for (const ModuleFrame &frame : node.modules) {
    StringRef path = frame.path, added = path;
    if (path.empty())
      continue;
    if (added.consume_front(before))
      added.consume_front(".");
    name += "/" + added.str();
    before = path;
  }
  return NameLoc::get(builder.getStringAttr(name.empty() ? node.name : name + "/" + node.name), fileLoc);
}

OwningOpRef<ModuleOp> Importer::run() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(fileLoc);
  builder.setInsertionPointToStart(module->getBody());
  func = func::FuncOp::create(builder, fileLoc, "step", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(func.addEntryBlock());
  for (const std::string &warning : program.warnings)
    emitWarning(fileLoc) << warning;
  if (!llvm::is_contained(program.verifiers, "TRAINING")) {
    error() << "the program was decomposed (run_decompositions), which drops detach() and no_grad() from it: save what "
               "torch.export.export gives";
    return {};
  }
  if (failed(roles.readFlags()))
    return {};
  collectReaders();
  if (failed(checkStorages()) || failed(addTensors()) || failed(addInputs()) || failed(importNodes()) ||
      failed(reportAll()) || failed(addResults()))
    return {};
  if (runningPairs > 0)
    emitWarning(fileLoc) << "the running mean and variance are not updated by training (" << runningPairs
                         << (runningPairs == 1 ? " node" : " nodes")
                         << "); the exported weights hold their initial values";
  if (!tensors.empty())
    (*module)->setAttr(train::kTensors, builder.getArrayAttr(tensors));
  if (failed(verify(*module)))
    return {};
  return module;
}

void Importer::report(const Node &node, const Twine &reason) {
  std::string what;
  llvm::raw_string_ostream stream(what);
  stream << "node '" << cast<NameLoc>(locOf(node)).getName().getValue() << "': " << shortTarget(node.target) << ": "
         << reason;
  if (node.source) {
    stream << " (" << node.source->file << ":" << node.source->line;
    if (!node.source->text.empty())
      stream << ": " << node.source->text;
    stream << ")";
  }
  unsupported.push_back({locOf(node), what});
}

LogicalResult Importer::reportAll() {
  if (unsupported.empty())
    return success();
  InFlightDiagnostic diagnostic = error();
  diagnostic << unsupported.size() << (unsupported.size() == 1 ? " node" : " nodes") << " cannot be imported";
  for (const Unsupported &node : unsupported)
    diagnostic.attachNote(node.loc) << node.what;
  return diagnostic;
}

LogicalResult Importer::importNodes() {
  if (program.graph.nodes.size() > kMaxNodes)
    return error() << "the program has more than " << kMaxNodes << " nodes";
  for (const Node &node : program.graph.nodes)
    importNode(node);
  return success();
}

/// Looks the arguments' names up. False if one is broken or not there, which has been reported then.
bool Importer::fill(const Node &node, Call &call) {
  bool broken = false;
  auto look = [&](const std::string &name) -> Entry {
    auto found = names.find(name);
    if (found == names.end()) {
      report(node, "'" + name + "' is not defined before it");
      broken = true;
      return {};
    }
    broken |= found->second.broken;
    return found->second;
  };
  for (const NamedArgument &named : node.inputs) {
    Given &given = call.given[named.name];
    const Argument &argument = named.argument;
    auto number = [](double value) { return Entry{{}, {}, value}; };
    if (const auto *tensor = argument.as<TensorArg>()) {
      given.tensors = {look(tensor->name)};
    } else if (const auto *optional = argument.as<OptionalTensorArg>()) {
      given.tensors = {*optional ? look((*optional)->name) : Entry()};
    } else if (const auto *list = argument.as<std::vector<TensorArg>>()) {
      given.isList = true;
      for (const TensorArg &entry : *list)
        given.tensors.push_back(look(entry.name));
    } else if (const auto *list = argument.as<std::vector<OptionalTensorArg>>()) {
      given.isList = true;
      for (const OptionalTensorArg &entry : *list)
        given.tensors.push_back(entry ? look(entry->name) : Entry());
    } else if (const auto *size = argument.as<SymIntArg>()) {
      given.tensors = {size->name.empty() ? number(static_cast<double>(size->value)) : look(size->name)};
    } else if (const auto *sizes = argument.as<std::vector<SymIntArg>>()) {
      given.isList = true;
      for (const SymIntArg &entry : *sizes)
        given.tensors.push_back(entry.name.empty() ? number(static_cast<double>(entry.value)) : look(entry.name));
    } else if (const auto *value = argument.as<SymFloatArg>()) {
      given.tensors = {value->name.empty() ? number(value->value) : look(value->name)};
    } else if (const auto *value = argument.as<SymBoolArg>()) {
      given.tensors = {value->name.empty() ? number(value->value ? 1 : 0) : look(value->name)};
    } else {
      given.plain = &argument;
    }
  }
  return !broken;
}

void Importer::markBroken(const Node &node) {
  for (const Argument &output : node.outputs)
    for (const std::string &name : namesOf(output))
      names[name].broken = true;
}

/// Results must be what the program says they are: what a handler took for something else is found here.
LogicalResult Importer::checkResults(const Node &node, Call &call) {
  for (auto [output, entries] : llvm::zip_equal(node.outputs, call.outputs)) {
    const std::vector<std::string> wanted = namesOf(output);
    for (auto [name, entry] : llvm::zip(wanted, entries)) {
      auto meta = program.graph.tensors.find(name);
      if (meta == program.graph.tensors.end() || !entry.isTensor())
        continue;
      RankedTensorType type = call.typeOf(entry);
      bool fits = type.getElementType() == elementOf(&context, meta->second.dtype) &&
                  static_cast<size_t>(type.getRank()) == meta->second.sizes.size();
      for (size_t dim = 0; fits && dim < meta->second.sizes.size(); ++dim)
        fits = !meta->second.sizes[dim].isConstant() || meta->second.sizes[dim].value == type.getDimSize(dim);
      if (!fits) {
        std::string text;
        llvm::raw_string_ostream(text) << "it would give " << type << ", not what the program says of '" << name
                                       << "' (" << scalarTypeName(meta->second.dtype) << ", "
                                       << meta->second.sizes.size() << " dimensions)";
        return call.fail(text);
      }
    }
  }
  return success();
}

void Importer::importNode(const Node &node) {
  auto giveUp = [&](const Twine &reason) {
    report(node, reason);
    markBroken(node);
  };
  if (isCounter(node))
    return; // of batches: the step does not depend on it
  const OpRow *row = findOp(shortTarget(node.target));
  Call call(node, train::Build(builder, locOf(node)));
  call.meta = [this](const std::string &name) -> const TensorMeta * {
    auto found = program.graph.tensors.find(name);
    return found == program.graph.tensors.end() ? nullptr : &found->second;
  };
  call.seed = [this] { return seedArgument(); };
  call.randomStreams = &randomStreams;
  call.runningPairs = &runningPairs;
  if (!row)
    return giveUp("the operator is not supported");
  if (!fill(node, call))
    return markBroken(node);
  SmallVector<StringRef> needed;
  StringRef(row->needs).split(needed, ',', -1, false);
  for (StringRef name : needed)
    if (!call.isTensor(name))
      return giveUp("'" + name + "' is not a tensor");

  if (!evaluateCall(*row, call)) {
    call.reason.clear();
    call.outputs.assign(call.outputs.size(), {});
    Block *block = builder.getInsertionBlock();
    Operation *last = block->empty() ? nullptr : &block->back();
    if (failed(row->handler(call)) || failed(checkResults(node, call))) {
      // Drop what the handler built before it failed; nothing else uses it.
      while (!block->empty() && &block->back() != last)
        block->back().erase();
      return giveUp(call.reason);
    }
  }
  define(node, call);
}

void Importer::define(const Node &node, Call &call) {
  for (auto [output, entries] : llvm::zip_equal(node.outputs, call.outputs)) {
    const std::vector<std::string> wanted = namesOf(output);
    if (entries.size() < wanted.size()) {
      report(node, "a result is not supported");
      return markBroken(node);
    }
    for (auto [name, entry] : llvm::zip(wanted, entries)) {
      if (!entry.isTensor() && !entry.number) {
        report(node, "result '" + name + "' is not supported");
        return markBroken(node);
      }
      names[name] = entry;
    }
  }
}

/// Runs the handler in a scratch block on known tensors, or none, and evaluates what it built. False: build it in the
/// function.
bool Importer::evaluateCall(const OpRow &row, Call &call) {
  bool hasTensors = false;
  for (auto &given : call.given)
    for (const Entry &entry : given.second.tensors) {
      if (entry.value && !entry.constant)
        return false;
      hasTensors |= entry.constant != nullptr;
    }
  if (work > kMaxWork || call.node.outputs.empty())
    return false;
  Block scratch;
  frontend::ConstantMap values;
  llvm::StringMap<Given> originals = call.given;
  for (auto &given : call.given)
    for (Entry &entry : given.second.tensors)
      if (entry.constant) {
        entry.value = scratch.addArgument(entry.constant->type, call.b.loc);
        values[entry.value] = entry.constant;
      }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&scratch);
  auto isRandom = [&] { return llvm::any_of(scratch, [](Operation &op) { return isa<train::RngUniformOp>(op); }); };
  const int64_t streams = randomStreams;
  bool done = succeeded(row.handler(call)) && succeeded(checkResults(call.node, call)) && !isRandom();
  // Without tensors it is a number, or a tensor from nothing, which is only worth computing if it is small.
  if (done && !hasTensors)
    for (const auto &entries : call.outputs)
      for (const Entry &entry : entries)
        done &= !entry.value || train::tensorType(entry.value).getNumElements() <= (1 << 16);
  done = done && evaluate(scratch, values, work);
  if (done)
    for (auto &entries : call.outputs)
      for (Entry &entry : entries) {
        if (!entry.value)
          continue;
        entry.constant = values.lookup(entry.value);
        entry.value = {};
        done &= entry.constant != nullptr;
        work += entry.constant ? entry.constant->size() : 0;
      }
  randomStreams = streams;
  call.given = std::move(originals);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(scratch)))
    op.erase();
  return done;
}

} // namespace pt2

OwningOpRef<ModuleOp> importPt2(const std::string &path, const ImportOptions &options, MLIRContext &context) {
  context.loadDialect<train::TrainDialect, func::FuncDialect>();
  llvm::Expected<pt2::Program> program = pt2::readProgram(path);
  if (!program) {
    emitError(FileLineColLoc::get(&context, path, 0, 0)) << llvm::toString(program.takeError());
    return {};
  }
  return pt2::Importer(*program, options, context).run();
}

std::vector<std::string> supportedPt2Ops() { return pt2::opNames(); }

} // namespace tessera
