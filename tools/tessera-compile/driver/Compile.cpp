//===- Compile.cpp - runs the phases --------------------------------------===//

#include "tools/tessera-compile/driver/Compile.h"

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/train/Fp8Policy.h"
#include "compiler/dialect/train/Initializer.h"
#include "compiler/dialect/train/Program.h"
#include "frontends/Frontend.h"
#include "passes/differentiate/BatchSizes.h"
#include "passes/lower/ScaledProducts.h"
#include "passes/lower/codegen/GpuCodegen.h"
#include "runtime/base/File.h"
#include "tools/tessera-compile/driver/CheckStep.h"
#include "tools/tessera-compile/driver/ChooseAttention.h"
#include "tools/tessera-compile/driver/Computation.h"
#include "tools/tessera-compile/driver/Emit.h"
#include "tools/tessera-compile/driver/Fit.h"
#include "tools/tessera-compile/driver/GlobalBatch.h"
#include "tools/tessera-compile/driver/LongestSequence.h"
#include "tools/tessera-compile/driver/MemoryLimit.h"
#include "tools/tessera-compile/driver/Tensors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

#include <chrono>

using namespace mlir;

namespace tessera {

namespace {
/// One compilation: the module and where it stands.
class Compilation {
public:
  /// `chosen`: what was taken for `--attention auto`, if it was asked.
  Compilation(const CompileOptions &options, MLIRContext &context,
              std::optional<artifact::SequenceChoiceT> chosen = std::nullopt)
      : options(options), context(context), sequence(std::move(chosen)) {}

  /// Runs a phase and leaves its snapshot, or the artifact.
  LogicalResult run(Phase phase);
  ModuleOp get() { return *module; }
  const StepSize &getSize() const { return size; }
  LoweredStep take() { return {std::move(module), size}; }
  /// The IR with its locations: later phases name nodes and buffers by them.
  std::string text();

  std::vector<std::pair<std::string, double>> timings; ///< seconds by phase

private:
  LogicalResult import();
  FailureOr<bool> findBatchSizes(const Frontend &frontend, ImportOptions import);
  LogicalResult runPasses(Phase phase);
  LogicalResult dump(Phase phase);
  InFlightDiagnostic error() { return emitError(UnknownLoc::get(&context)); }
  LogicalResult setMesh();

  const CompileOptions &options;
  MLIRContext &context;
  OwningOpRef<ModuleOp> module;
  StepSize size;                                     ///< known after the optimize phase
  std::optional<artifact::SequenceChoiceT> sequence; ///< complete when the step is to be sharded
  PhaseSnapshots snapshots;                          ///< filled with --embed-ir
};

/// All or nothing.
LogicalResult writeText(StringRef path, StringRef text, Location loc) {
  llvm::SmallString<128> target;
  if (llvm::sys::fs::real_path(path, target)) // of a link, what it names is replaced
    target = path;
  Status written = writeFileAtomically(target.str().str(), text.str());
  return written.isOk() ? success() : LogicalResult(emitError(loc) << written.message());
}

LogicalResult Compilation::run(Phase phase) {
  if (phase == Phase::Import && failed(import()))
    return failure();
  if (failed(runPasses(phase)))
    return failure();
  return phase == Phase::Artifact ? emitArtifact(options, *module, size, sequence, snapshots) : dump(phase);
}

/// Where --dump-phases writes the IR after a phase.
std::string pathOfDump(const CompileOptions &options, Phase phase) {
  const int number = static_cast<int>(phase);
  llvm::SmallString<128> path(options.dumpPhases);
  llvm::sys::path::append(path, std::to_string(number + 1) + "-" + kPhaseNames[number] + ".mlir");
  return path.str().str();
}

/// A path from the root, without what leads back.
std::string normalised(StringRef path) {
  llvm::SmallString<128> made(path);
  llvm::sys::fs::make_absolute(made);
  llvm::sys::path::remove_dots(made, /*remove_dot_dot=*/true);
  return made.str().str();
}

/// Fails if an output would replace an input, a device, a pipe or a folder.
LogicalResult checkOutputs(const CompileOptions &options, Location loc) {
  SmallVector<std::pair<const char *, std::string>> outputs = {
      {"-o", options.output}, {"--report", options.report.value_or("")}, {"--remat-report", options.rematReport}};
  if (!options.dumpPhases.empty())
    for (int phase = 0; phase < static_cast<int>(Phase::Artifact); ++phase)
      outputs.emplace_back("--dump-phases", pathOfDump(options, static_cast<Phase>(phase)));
  for (size_t first = 0; first < outputs.size(); ++first)
    for (size_t second = first + 1; second < outputs.size(); ++second)
      if (const StringRef path = outputs[first].second;
          !path.empty() && path != "-" && normalised(path) == normalised(outputs[second].second))
        return emitError(loc) << outputs[first].first << " and " << outputs[second].first << " are one file, '" << path
                              << "'";
  for (const auto &[flag, path] : outputs) {
    llvm::sys::fs::file_status status;
    if (path.empty() || path == "-" || llvm::sys::fs::status(path, status))
      continue;
    if (!llvm::sys::fs::is_regular_file(status))
      return emitError(loc) << flag << ": '" << path << "' is not a regular file"
                            << (StringRef(flag) == "-o" ? "; -o names the artifact" : "");
    for (StringRef read : {StringRef(options.input), StringRef(options.target)})
      if (bool isSame = false; !llvm::sys::fs::equivalent(path, read, isSame) && isSame)
        return emitError(loc) << flag << ": '" << path << "' is read, too, and would be replaced";
  }
  return success();
}

LogicalResult Compilation::import() {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(options.input, status))
    return error() << options.input << ": no such file";
  if (!llvm::sys::fs::is_regular_file(status) && !llvm::sys::fs::is_directory(status))
    return error() << options.input << ": not a regular file";
  if (llvm::sys::fs::is_directory(options.input))
    return error() << options.input << " is a folder, expected a file of a model: " << frontendKinds()
                   << ", MLIR (.mlir); python -m tessera export hf:" << options.input
                   << " -o net.pt2 makes one of a Hugging Face folder";
  if (StringRef(options.input).ends_with(".mlir")) {
    if (!options.dimRoles.empty())
      return error() << "--dim-role: " << options.input << " says by train.dims what its dimensions count";
    const std::pair<const char *, bool> others[] = {{"--dim", !options.dims.empty()},
                                                    {"--parameters", !options.parameters.empty()},
                                                    {"--constants", !options.constants.empty()},
                                                    {"--frozen", !options.frozen.empty()},
                                                    {"--tied", !options.tied.empty()},
                                                    {"--padding-idx", !options.paddingIdx.empty()},
                                                    {"--batch-norm", !options.batchNorm.empty()}};
    for (auto [flag, isGiven] : others)
      if (isGiven)
        return error() << flag << ": " << options.input << " says so itself: it is a step already";
    module = parseSourceFile<ModuleOp>(options.input, &context);
  } else {
    const Frontend *frontend = frontendOf(options.input);
    if (!frontend)
      return error() << options.input << ": not a model of a kind that is known: " << frontendKinds()
                     << ", MLIR (.mlir); a file of another name is known by its first bytes";
    std::string computation;
    ImportOptions import;
    import.dims = options.dims;
    import.batch = options.batch;
    import.sequence = options.sequence;
    import.dimRoles = options.dimRoles;
    import.parameters = options.parameters;
    import.constants = options.constants;
    import.frozen = options.frozen;
    import.tied = options.tied;
    import.paddingIdx = options.paddingIdx;
    import.batchNorm = options.batchNorm;
    module = frontend->import(options.input, import, context);
    if (module) // before anything is marked
      if (auto imported = module->lookupSymbol<func::FuncOp>("step"))
        computation = fingerprintOf(imported);
    if (module && frontend->keepsSizes && (options.accumulate > 1 || options.evaluate)) {
      FailureOr<bool> isKnown = findBatchSizes(*frontend, import);
      if (failed(isKnown))
        return failure();
      if (!*isKnown && options.accumulate > 1) {
        import.isPartOfBatch = true; // whatever follows from the size of the batch is refused
        ScopedDiagnosticHandler again(&context, [](Diagnostic &diagnostic) { // warnings have been said
          return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
        });
        module = frontend->import(options.input, import, context);
      }
    }
    if (module) {
      (*module)->setAttr(train::kModelFile, StringAttr::get(&context, options.input));
      (*module)->setAttr(train::kComputation, StringAttr::get(&context, computation));
    }
  }
  if (!module)
    return failure();
  auto step = module->lookupSymbol<func::FuncOp>("step");
  if (!step)
    return error() << options.input << ": module has no function @step";
  if (failed(checkStep(step)))
    return failure();
  remarkAssumedDims(step);
  auto mode = (*module)->getAttrOfType<StringAttr>(train::kMode);
  if (mode && mode.getValue() == train::kEvaluationMode && !options.evaluate)
    emitWarning(module->getLoc()) << options.input
                                  << " is a module in evaluation mode (evaluation=True), which trains "
                                     "without dropout and with the statistics of batch norms as they are";
  return setMesh();
}

/// What of the step follows from the size of its batch, by the step of the whole one. An evaluation is of several, too.
/// False: it is not known. Fails where the larger step is another computation.
FailureOr<bool> Compilation::findBatchSizes(const Frontend &frontend, ImportOptions import) {
  const int64_t times = std::max<int64_t>(options.accumulate, 2);
  if (import.batch <= 0 || llvm::MulOverflow(import.batch, times, import.batch))
    return false;
  OwningOpRef<ModuleOp> larger;
  {
    ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {}); // what is wrong with it is not wrong with the step
    larger = frontend.import(options.input, import, context);
  }
  auto step = module->lookupSymbol<func::FuncOp>("step");
  auto whole = larger ? larger->lookupSymbol<func::FuncOp>("step") : func::FuncOp();
  return step && whole ? markBatchSizes(step, whole, times) : false;
}

LogicalResult Compilation::setMesh() {
  SmallVector<Attribute> names;
  SmallVector<int64_t> sizes;
  SmallVector<dist::AxisRole> roles;
  auto addAxis = [&](StringRef name, int64_t size, dist::AxisRole role) {
    names.push_back(StringAttr::get(&context, name));
    sizes.push_back(size);
    roles.push_back(role);
  };
  for (const MeshAxis &axis : options.mesh)
    addAxis(axis.name, axis.size, axis.role);
  if (names.empty())
    addAxis(dist::getInfo(dist::AxisRole::Data).defaultNames.front(), 1, dist::AxisRole::Data);
  (*module)->setAttr(dist::kMesh, dist::MeshAttr::get(&context, ArrayAttr::get(&context, names), sizes, roles));
  return success();
}

LogicalResult Compilation::runPasses(Phase phase) {
  if (phase == Phase::Shard) {
    auto described = describeSequence(options, *module, sequence);
    if (failed(described))
      return failure();
    sequence = std::move(*described);
  }
  PassManager manager(&context);
  manager.enableVerifier(true);
  addPasses(manager, phase, options);
  if (failed(manager.run(*module)))
    return failure();
  if (phase == Phase::Optimize)
    size = measureStep(*module);
  return success();
}

std::string Compilation::text() {
  std::string ir;
  llvm::raw_string_ostream stream(ir);
  OpPrintingFlags flags;
  flags.enableDebugInfo(/*enable=*/true, /*prettyForm=*/false).useLocalScope(); // what is dumped can be parsed again
  module->print(stream, flags);
  return ir;
}

LogicalResult Compilation::dump(Phase phase) {
  const char *name = kPhaseNames[static_cast<int>(phase)];
  if (options.embedIr)
    snapshots.emplace_back(name, text());
  if (options.dumpPhases.empty())
    return success();
  if (std::error_code code = llvm::sys::fs::create_directories(options.dumpPhases))
    return error() << options.dumpPhases << ": " << code.message();
  return writeText(pathOfDump(options, phase), text() + "\n", UnknownLoc::get(&context));
}

/// Prints one row per phase to stderr, where it does not mix with IR on stdout.
void printTimings(const std::vector<std::pair<std::string, double>> &timings) {
  double total = 0;
  for (const auto &[name, seconds] : timings)
    total += seconds;
  llvm::errs() << "phase            seconds   share\n";
  for (const auto &[name, seconds] : timings)
    llvm::errs() << llvm::format("%-15s %8.3f  %5.1f %%\n", name.c_str(), seconds,
                                 total > 0 ? 100 * seconds / total : 0.0);
  llvm::errs() << llvm::format("%-15s %8.3f\n", "total", total);
}
} // namespace

FailureOr<LoweredStep> compileToLower(const CompileOptions &options, MLIRContext &context) {
  Compilation compilation(options, context);
  for (int index = 0; index <= static_cast<int>(Phase::Lower); ++index)
    if (failed(compilation.run(static_cast<Phase>(index))))
      return failure();
  return compilation.take();
}

namespace {
/// Prints and writes what `--report` and `--fit` ask for.
FailureOr<CompileOutcome> report(const CompileOptions &options, ModuleOp module, const StepSize &size,
                                 const cost::Target &target, const std::optional<LongestSequence> &longest,
                                 raw_ostream &out) {
  StepReport step = makeReport(options, module, size, target);
  if (options.report)
    printReport(step, options, target, out);
  llvm::json::Object json = reportJson(step, options, target);
  if (longest)
    json["longest_sequence"] = longestSequenceJson(*longest);
  CompileOutcome outcome = CompileOutcome::Done;
  if (options.fit) {
    FitReport fit = checkFit(options, step, target, *module.getContext());
    printFit(fit, step, out);
    json["fit"] = fitJson(fit);
    outcome = fit.fits ? CompileOutcome::Done : CompileOutcome::DoesNotFit;
  }
  if (options.report && !options.report->empty()) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::formatv("{0:2}", llvm::json::Value(std::move(json))) << "\n";
    if (failed(writeText(*options.report, text, module.getLoc())))
      return failure();
  }
  return outcome;
}
} // namespace

FailureOr<cost::Target> resolveTarget(CompileOptions &options, MLIRContext &context) {
  auto target = cost::Target::load(options.target, UnknownLoc::get(&context));
  if (succeeded(target)) {
    options.architecture = target->architecture;
    target->deterministicAttention = options.attentionGradient == "deterministic";
  }
  return target;
}

/// Fails if the target's GPU does not multiply what the recipe makes.
static LogicalResult checkRecipe(const CompileOptions &options, Location loc) {
  const train::Fp8Recipe recipe = *train::symbolizeFp8Recipe(options.fp8Recipe);
  SmallVector<StringRef> having = lower::architecturesOf(recipe);
  if (llvm::is_contained(having, options.architecture))
    return success();
  return emitError(loc) << "--fp8-recipe " << options.fp8Recipe << ": the GPUs that multiply what it makes are "
                        << llvm::join(having, ", ") << "; target " << options.target << " is "
                        << (options.architecture.empty() ? "of no known architecture" : options.architecture);
}

FailureOr<CompileOutcome> compile(const CompileOptions &asked, MLIRContext &context, llvm::raw_ostream &out) {
  CompileOptions options = asked;
  const Location unknown = UnknownLoc::get(&context);
  if (failed(checkOutputs(options, unknown)))
    return failure();
  const bool reports = options.report || options.fit;
  auto target = resolveTarget(options, context);
  if (failed(target))
    return failure();
  std::optional<LongestSequence> longest;
  std::optional<artifact::SequenceChoiceT> chosen;
  if (sequenceFit(options)) {
    auto found = findLongestSequence(options, *target, context, out);
    if (failed(found))
      return failure();
    longest = std::move(*found);
    if (!longest->longest)
      return CompileOutcome::DoesNotFit;
    options.sequence = longest->tried[*longest->longest].length;
    options.isAttentionChosen = choosesAttention(options);
    options.attention = longest->tried[*longest->longest].attention;
    chosen = longest->tried[*longest->longest].chosen;
    options.fit.reset();
    if (!options.report && options.output.empty())
      return CompileOutcome::Done;
  }
  if (options.isMicroBatchOpen && options.fit && failed(fitGlobalBatch(options, *target, context, out)))
    return failure();
  const bool isGpu = target->kind == "cuda";
  if (isGpu && options.targetCpu != CompileOptions().targetCpu) {
    emitError(unknown) << "--target-cpu: the kernels of --target " << options.target << " are for GPUs";
    return failure();
  }
  if (isGpu && options.compileTo == Phase::Artifact && !options.isReportOnly()) {
    if (options.architecture.empty()) {
      emitError(unknown) << "--target " << options.target
                         << ": the target file names no 'architecture' (sm_90, …) to generate code for";
      return failure();
    }
    if (failed(GpuTarget::parse(options.architecture, unknown)))
      return failure();
  }
  if (isGpu && options.precision == "fp8" && options.compileTo >= Phase::Lower && failed(checkRecipe(options, unknown)))
    return failure();
  if (choosesAttention(options) && options.compileTo >= Phase::Shard)
    chosen = chooseAttention(options, *target, context, llvm::errs());
  if (needsMemoryPlan(options)) {
    auto planned = planUnderLimit(options, *target, context);
    if (failed(planned))
      return failure();
    options = std::move(*planned);
  }
  const Phase last = options.isReportOnly() ? Phase::Lower : options.compileTo;
  CompileOutcome outcome = CompileOutcome::Done;
  Compilation compilation(options, context, std::move(chosen));
  for (int index = 0; index <= static_cast<int>(last); ++index) {
    const auto phase = static_cast<Phase>(index);
    const auto start = std::chrono::steady_clock::now();
    if (failed(compilation.run(phase)))
      return failure();
    compilation.timings.emplace_back(kPhaseNames[index],
                                     std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (phase == std::min(last, Phase::Optimize))
      printTensorSummary(compilation.get(), options.input, llvm::errs());
    if (phase == Phase::Import && options.verbose)
      printTensors(compilation.get(), llvm::errs());
    if (phase == Phase::Lower && failed(checkMemoryLimit(options, isGpu, compilation.get())))
      return failure();
    if (phase == Phase::Lower && reports) {
      auto reported = report(options, compilation.get(), compilation.getSize(), *target, longest, out);
      if (failed(reported))
        return failure();
      outcome = *reported;
    }
  }
  if (options.compileTo != Phase::Artifact && options.output.empty())
    out << compilation.text() << "\n";
  else if (options.compileTo != Phase::Artifact &&
           failed(writeText(options.output, compilation.text() + "\n", UnknownLoc::get(&context))))
    return failure();
  if (options.timing)
    printTimings(compilation.timings);
  return outcome;
}

} // namespace tessera
