//===- Importer.cpp - walks an exported program and builds @step -----------===//

#include "frontends/pt2/Importer.h"

#include "frontends/pt2/BatchSize.h"
#include "frontends/pt2/Draws.h"
#include "frontends/pt2/InPlace.h"
#include "frontends/pt2/Masked.h"
#include "frontends/pt2/Out.h"
#include "frontends/pt2/Regions.h"
#include "frontends/pt2/SharedBuffers.h"
#include "frontends/pt2/Unread.h"
#include "frontends/pt2/ValueChecks.h"
#include "frontends/pt2/WeightMap.h"

using namespace mlir;

namespace tessera {
namespace pt2 {

namespace {
constexpr size_t kMaxNodes = 1 << 20;

/// The type of a tensor with dimensions; null for any other entry.
RankedTensorType dimensioned(const Entry &entry) {
  RankedTensorType type = entry.value      ? train::tensorType(entry.value)
                          : entry.constant ? entry.constant->type
                                           : RankedTensorType();
  return type && type.getRank() > 0 ? type : RankedTensorType();
}
} // namespace

Importer::Importer(const Archive &archive, const Program &program, const ImportOptions &options, MLIRContext &context)
    : archive(archive), program(program), options(options), context(context),
      fileLoc(FileLineColLoc::get(&context, program.file, 0, 0)), step(fileLoc), roles(options, fileLoc) {
  step.mode = program.mode;
  step.evaluationDiffers = program.evaluationDiffers;
  if (program.weightMap)
    step.weightMap = attributeOf(*program.weightMap, context);
}

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
  Location where = fileLoc;
  if (node.source)
    where = FileLineColLoc::get(&context, node.source->file, static_cast<unsigned>(node.source->line), 0);
  return NameLoc::get(step.builder.getStringAttr(name.empty() ? node.name : name + "/" + node.name), where);
}

/// The type of an element, of complex numbers that of the parts; null if it is not supported.
Type Importer::typeOf(ScalarType type) const {
  return isComplexType(type) ? partElementOf(&context, type) : elementOf(&context, type);
}

/// The type of a tensor whose sizes are numbers, of complex numbers as pairs; null if one is not, or the element type
/// is not supported.
RankedTensorType Importer::typeOf(const TensorMeta &meta) const {
  Type element = typeOf(meta.dtype);
  SmallVector<int64_t> shape;
  for (const SymInt &size : meta.sizes) {
    if (!size.isConstant())
      return {};
    shape.push_back(size.value);
  }
  if (isComplexType(meta.dtype))
    shape.push_back(2);
  return element && countElements(shape) ? RankedTensorType::get(shape, element) : RankedTensorType();
}

OwningOpRef<ModuleOp> Importer::run() {
  for (const std::string &warning : program.warnings)
    emitWarning(fileLoc) << warning;
  if (!llvm::is_contained(program.verifiers, "TRAINING")) {
    error() << "the program was decomposed (run_decompositions), which drops detach() and no_grad() from it: save what "
               "torch.export.export gives";
    return {};
  }
  findMutations();
  if (failed(roles.readFlags()) || failed(findShared()))
    return {};
  collectReaders();
  if (failed(addTensors()) || failed(addInputs()) || failed(importNodes()) || failed(step.reportUnsupported()) ||
      failed(step.checkPadding("embedding")) || failed(addResults()))
    return {};
  return step.finish();
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
  step.addUnsupported(locOf(node), what);
}

LogicalResult Importer::importNodes() {
  if (program.graph.nodes.size() > kMaxNodes)
    return error() << "the program has more than " << kMaxNodes << " nodes";
  for (const Node &node : program.graph.nodes)
    importNode(node);
  return success();
}

/// Looks the arguments' names up. False if one of them was reported.
bool Importer::fill(const Node &node, std::vector<Entry> &inputs, llvm::StringMap<Given> &given) {
  bool broken = false;
  for (const NamedArgument &named : node.inputs) {
    const Argument &argument = named.argument;
    Given &made = given[named.name];
    made.first = inputs.size();
    const auto *numbers = argument.as<std::vector<SymIntArg>>();
    const auto *size = argument.as<SymIntArg>();
    made.isList = numbers || argument.as<std::vector<TensorArg>>() || argument.as<std::vector<OptionalTensorArg>>();
    if (size || numbers || argument.as<SymFloatArg>() || argument.as<SymBoolArg>())
      made.kind = Given::Kind::Number;
    else if (made.isList || argument.as<TensorArg>() || argument.as<OptionalTensorArg>())
      made.kind = Given::Kind::Tensor;
    else
      made.plain = &argument;
    // A number that the file says beside names of others.
    auto literal = [&](size_t i) -> std::optional<double> {
      if (size || numbers)
        return static_cast<double>((size ? *size : (*numbers)[i]).value);
      if (const auto *value = argument.as<SymFloatArg>())
        return value->value;
      return argument.as<SymBoolArg>()->value ? 1.0 : 0.0;
    };
    for (auto [i, name] : llvm::enumerate(namesOf(argument))) {
      Entry entry;
      if (!name.empty()) {
        entry = names.lookup(name); // the reader has checked that it is defined
        broken |= entry.broken;
      } else if (made.kind == Given::Kind::Number) {
        const bool isFloat = argument.as<SymFloatArg>() != nullptr;
        Type element = isFloat ? Type(step.builder.getF64Type()) : Type(step.builder.getI64Type());
        entry.constant =
            std::make_shared<const HostTensor>(HostTensor::splat(RankedTensorType::get({}, element), *literal(i)));
      }
      inputs.push_back(std::move(entry));
    }
    made.count = inputs.size() - made.first;
  }
  return !broken;
}

/// Results must be what the program says they are: what a handler took for something else is found here.
LogicalResult Importer::checkResults(ArrayRef<std::string> results, Call &call) {
  for (auto [name, entry] : llvm::zip_equal(results, call.outputs)) {
    auto meta = program.graph.tensors.find(name);
    if (meta == program.graph.tensors.end()) {
      if (entry.isComplex)
        return call.fail(kNoComplex);
      continue;
    }
    if (!entry.value && !entry.constant && !isUsed.contains(name) && !isOutput.contains(name))
      continue;
    if (!entry.value && !entry.constant)
      return call.fail("result '" + name + "' is not supported");
    RankedTensorType type = entry.constant ? entry.constant->type : train::tensorType(entry.value);
    const bool isComplex = isComplexType(meta->second.dtype);
    bool fits = entry.isComplex == isComplex && type.getElementType() == typeOf(meta->second.dtype) &&
                static_cast<size_t>(type.getRank()) == meta->second.sizes.size() + (isComplex ? 1 : 0) &&
                (!isComplex || type.getShape().back() == 2);
    for (size_t dim = 0; fits && dim < meta->second.sizes.size(); ++dim) {
      // Nothing for a size that depends on data, which no operator of the table gives.
      std::optional<int64_t> size = meta->second.sizes[dim].evaluate(symbols);
      fits = !size || *size == type.getDimSize(dim);
    }
    if (!fits) {
      std::string text;
      llvm::raw_string_ostream(text) << "it would give " << type << ", not what the program says of '" << name << "' ("
                                     << scalarTypeName(meta->second.dtype) << ", " << meta->second.sizes.size()
                                     << " dimensions)";
      return call.fail(text);
    }
  }
  return success();
}

bool Importer::meetsComplex(const Node &node) const {
  auto isComplex = [&](const Argument &argument) {
    return argument.as<std::complex<double>>() || llvm::any_of(namesOf(argument), [&](const std::string &name) {
             auto meta = program.graph.tensors.find(name);
             auto found = names.find(name);
             return (found != names.end() && found->second.isComplex) ||
                    (meta != program.graph.tensors.end() && isComplexType(meta->second.dtype));
           });
  };
  return llvm::any_of(node.inputs, [&](const NamedArgument &named) { return isComplex(named.argument); }) ||
         llvm::any_of(node.outputs, isComplex);
}

/// What the program says of the results, in the call.
LogicalResult Importer::describeResults(ArrayRef<std::string> results, Call &call) {
  for (auto [i, name] : llvm::enumerate(results)) {
    auto meta = program.graph.tensors.find(name);
    const bool isTensor = meta != program.graph.tensors.end(),
               isRead = isUsed.contains(name) || isOutput.contains(name);
    const auto dtype = isTensor ? meta->second.dtype : ScalarType::Unknown;
    const Type element = typeOf(dtype);
    if (isComplexType(dtype) && !element)
      return call.fail(kNoComplex);
    if (isTensor && !element && (isRead || i == 0))
      return call.fail(Twine("its result is of a type that is not supported: ") + scalarTypeName(dtype));
    call.resultElements.push_back(element);
    call.isComplexResult.push_back(isComplexType(dtype));
    call.isRead.push_back(isRead);
  }
  return success();
}

void Importer::importNode(const Node &node) {
  if (isCounter(node))
    return;
  std::vector<std::string> results;
  for (const Argument &output : node.outputs)
    llvm::append_range(results, namesOf(output));
  auto giveUp = [&](const Twine &reason) {
    if (!reason.isTriviallyEmpty())
      report(node, reason);
    for (const std::string &name : results)
      names[name].broken = true;
  };
  if (std::string number = options.isPartOfBatch ? findNumberOf(batchSymbols, node, program.graph) : "";
      !number.empty())
    return giveUp(
        "'" + number +
        "' is a number that follows from the size of the batch, which --accumulate divides into "
        "micro-batches of another size; with --accumulate 1 and a larger --batch it is that of the whole batch");
  const std::optional<InPlaceFunction> function = mutations.functionOf(node);
  const StringRef target = shortTarget(function ? function->target : node.target);
  const bool isComplex = meetsComplex(node);
  const OpRow *row = isComplex ? findComplexOp(target) : findOp(target);
  if (!row)
    return giveUp(!function && !node.refusal.empty() ? StringRef(node.refusal)
                  : isComplex                        ? StringRef(kNoComplex)
                                                     : whyRefused(shortTarget(node.target)));
  if (StringRef buffer = mutations.staleRead(node); !buffer.empty())
    return giveUp("it reads what may be a view of buffer '" + buffer +
                  "' after the module has changed that: clone() it before");
  std::vector<Entry> inputs;
  llvm::StringMap<Given> given;
  if (!fill(node, inputs, given))
    return giveUp("");
  if (function && function->self != "self")
    given[function->self] = given.lookup("self");
  Call call(node, train::Build(step.builder, locOf(node)), std::move(inputs), std::move(given), results.size(), step);
  if (failed(describeResults(results, call)))
    return giveUp(call.reason);
  call.graph = &program.graph;
  call.symbols = &symbols;
  call.isNormalisedByBatch = isNormalisedByBatch(node);
  for (const NamedArgument &input : node.inputs)
    if (const std::vector<std::string> read = namesOf(input.argument); read.size() == 1)
      if (StringRef name = bufferNames.lookup(mutations.bufferOf(read.front())); !name.empty())
        call.bufferNames[input.name] = name;
  SmallVector<StringRef> needed;
  StringRef(row->needs).split(needed, ',', -1, false);
  for (StringRef name : needed)
    if (!call.isTensor(name))
      return giveUp("'" + name + "' is not a tensor");
  auto isWider = [&](const Entry &entry) {
    RankedTensorType type = dimensioned(entry);
    auto element = dyn_cast_if_present<FloatType>(type ? type.getElementType() : Type());
    return element && call.resultElement() && element.getWidth() > call.resultElement().getIntOrFloatBitWidth();
  };
  const bool isInPlace = (function || node.wasInPlace) && row->target != "aten.copy.default";
  if (isInPlace && llvm::any_of(call.inputs, isWider))
    return giveUp(
        "an operand is wider than what it changes, and the result would be rounded otherwise than in PyTorch");
  auto handler = [&]() -> LogicalResult {
    (void)call.takeNext(); // of an attempt before
    const LogicalResult made = readsMasked(call) ? runMasked(call, *row) : call.run(row->handler);
    if (failed(made))
      return failure();
    return calls.isOfOneRow() ? success() : checkResults(results, call);
  };
  if (failed(calls.run(
          call, [&] { return node.name; }, handler)))
    return giveUp(call.reason);
  for (auto [name, entry] : llvm::zip_equal(results, call.outputs)) {
    entry.constant = calls.intern(std::move(entry.constant));
    names[name] = entry;
  }
  for (auto [argument, value] : call.takeNext())
    if (Entry next; next.value = value, failed(setNext(node, argument, next, call)))
      return giveUp(call.reason);
  if (function && failed(setNext(node, "self", call.outputs.front(), call)))
    return giveUp(call.reason);
}

/// Lets the buffer that an argument is hold `next` from here on.
LogicalResult Importer::setNext(const Node &node, StringRef argument, Entry next, Call &call) {
  if (next.isComplex)
    return call.fail(kNoComplex);
  if (next.mask)
    return call.fail("the number of its elements depends on data");
  const StringRef buffer = mutations.bufferOf(namesOf(*node.input(argument.str())).front());
  auto argumentOf = buffers.find(buffer);
  if (!next.value)
    next.value = train::Build(step.builder, locOf(node)).constant(next.constant->toAttr());
  if (!mutations.isTemporary(buffer)) {
    if (argumentOf == buffers.end())
      return call.fail("'" + argument + "', which it changes, is no buffer of the module");
    if (next.value.getType() != argumentOf->second.getType())
      return call.fail("it does not leave '" + argument + "' as it is, of type " +
                       shapeText(train::shapeOf(argumentOf->second)));
    step.setNext(argumentOf->second, next.value);
  }
  for (const std::string &name : mutations.namesOfBuffer(buffer))
    names[name] = next;
  return success();
}

} // namespace pt2

OwningOpRef<ModuleOp> importPt2Archive(const pt2::Archive &archive, const ImportOptions &options,
                                       MLIRContext &context) {
  llvm::Expected<pt2::Program> program = pt2::readProgram(archive);
  if (program) {
    pt2::mergeBuffers(*program);
    pt2::replaceOut(program->graph);
    pt2::inlineRegions(*program);
    pt2::replaceInPlace(*program);
    pt2::dropValueChecks(*program);
    pt2::numberDraws(*program);
    pt2::dropUnread(*program);
    return pt2::Importer(archive, *program, options, context).run();
  }
  emitError(FileLineColLoc::get(&context, archive.file(), 0, 0)) << llvm::toString(program.takeError());
  return {};
}

OwningOpRef<ModuleOp> importPt2(const std::string &path, const ImportOptions &options, MLIRContext &context) {
  llvm::Expected<pt2::Archive> archive = pt2::Archive::open(path);
  if (archive)
    return importPt2Archive(*archive, options, context);
  emitError(FileLineColLoc::get(&context, path, 0, 0)) << llvm::toString(archive.takeError());
  return {};
}

} // namespace tessera
