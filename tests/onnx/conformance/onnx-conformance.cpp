//===- onnx-conformance.cpp - runs the ONNX backend node tests ------------===//
//
// Imports every node test below the given folders, evaluates it on the stored
// inputs with the reference interpreter and with the CPU backend (the driver's
// passes, generated code, the runtime) and compares with the stored outputs.
// Inputs that the importer must know (integers: shapes, axes) are given as
// constants if it does not accept them as data.
//
// usage: onnx-conformance FOLDER... [--only=TEST] [--expect=LIST] [--list=FILE] [--table=FILE]
//   --list    write the names of the tests that pass, one per line; " interpreter" follows a name that fails on the CPU
//   --table   write the support table (Markdown)
//   --expect  fail if a test of this list does not pass as it says (tests that the folders lack are counted and left
//             out)
//
//===----------------------------------------------------------------------===//

#include "compiler/interp/Interp.h"
#include "frontends/onnx/Import.h"
#include "frontends/onnx/OpTable.h"
#include "frontends/onnx/Proto.h"
#include "passes/Register.h"
#include "tests/onnx/CpuBackend.h"

#include "onnx/defs/schema.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <cmath>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace tessera;
using onnx_import::HostTensor;
namespace cl = llvm::cl;

namespace {
constexpr int kSecondsPerTest = 60;

enum class Backend { Interpreter, Cpu };
constexpr Backend kBackends[] = {Backend::Interpreter, Backend::Cpu};
constexpr const char *kBackendNames[] = {"interpreter", "cpu"};

struct Outcome {
  enum Kind { Passed, Unsupported, Failed } kind = Failed;
  std::string why;
};
/// By backend.
using Outcomes = std::array<Outcome, std::size(kBackends)>;

bool passed(const Outcomes &outcomes, Backend backend) {
  return outcomes[static_cast<size_t>(backend)].kind == Outcome::Passed;
}

struct Case {
  std::string name, folder, op; ///< op: empty if the model has several nodes
  int opset = 0;
};

std::string slurp(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

std::optional<HostTensor> readTensorFile(MLIRContext &context, const std::string &path, onnx::TensorProto &proto) {
  if (!proto.ParseFromString(slurp(path)))
    return std::nullopt;
  auto tensor = onnx_import::readTensor(&context, proto, "");
  if (!tensor) {
    llvm::consumeError(tensor.takeError());
    return std::nullopt;
  }
  return std::move(*tensor);
}

interp::Tensor toInterp(const HostTensor &host) {
  interp::Tensor tensor(host.type);
  for (int64_t i = 0; i < host.size(); ++i) {
    if (host.isFloat())
      tensor.set(i, host.floats[i]);
    else
      tensor.setInt(i, host.ints[i]);
  }
  return tensor;
}

/// f32: kernels may sum in another order than the reference and contract to fused multiply-adds, and the stored values
/// were themselves computed in f32. f16, bf16: about four units in the last place of a number near one.
bool isClose(double got, double expected, Type type) {
  if (std::isnan(expected) || std::isnan(got))
    return std::isnan(expected) && std::isnan(got);
  if (got == expected)
    return true;
  const bool narrow = type.isF16() || type.isBF16();
  return std::abs(got - expected) <= (narrow ? 2e-2 : 1e-6) + (narrow ? 2e-2 : 1e-3) * std::abs(expected);
}

/// One attempt: with `constants`, integer and boolean inputs and scalars are given as initializers.
Outcome attempt(const Case &test, onnx::ModelProto model, Backend backend, bool constants) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string messages;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
      messages += diagnostic.str();
      for (Diagnostic &note : diagnostic.getNotes())
        messages += "; " + note.str();
    }
    return success();
  });
  const std::string data = test.folder + "/test_data_set_0/";
  std::map<std::string, HostTensor> values;
  for (int i = 0; i < model.graph().input_size(); ++i) {
    onnx::TensorProto proto;
    auto tensor = readTensorFile(context, data + "input_" + std::to_string(i) + ".pb", proto);
    if (!tensor)
      return {Outcome::Unsupported, "input " + std::to_string(i) + " is not a tensor of a supported type"};
    auto &input = *model.mutable_graph()->mutable_input(i);
    auto *shape = input.mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->clear_dim();
    for (int64_t size : proto.dims())
      shape->add_dim()->set_dim_value(size);
    if (constants && (!tensor->isFloat() || tensor->type.getRank() == 0)) {
      proto.set_name(input.name());
      *model.mutable_graph()->add_initializer() = proto;
    }
    values.emplace(input.name(), std::move(*tensor));
  }
  ImportOptions options;
  options.constants = ".";
  const bool trains = llvm::any_of(model.graph().node(), [](const onnx::NodeProto &node) {
    return llvm::any_of(node.attribute(), [](const auto &a) { return a.name() == "training_mode" && a.i() != 0; });
  });
  options.batchNorm = trains ? "train" : "inference"; // the form that the node has
  auto module = importOnnxBytes(model.SerializeAsString(), false, options, context);
  if (!module)
    return {Outcome::Unsupported, messages};
  auto step = module->lookupSymbol<func::FuncOp>("step");
  std::vector<interp::Tensor> arguments;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    auto name = step.getArgAttrOfType<StringAttr>(i, "train.name");
    auto value = values.find(name.getValue().str());
    if (value == values.end())
      return {Outcome::Unsupported, "needs the argument '" + name.getValue().str() + "'"};
    arguments.push_back(toInterp(value->second));
  }
  std::vector<interp::Tensor> results;
  if (backend == Backend::Interpreter) {
    auto evaluated = interp::evaluateOnOneRank(step, std::move(arguments));
    if (failed(evaluated))
      return {Outcome::Failed, messages};
    results = std::move(*evaluated);
  } else {
    test::CpuRun run = test::runOnCpu(*module, arguments);
    if (run.kind == test::CpuRun::Unsupported && messages.empty())
      return {Outcome::Failed, "compilation failed without a diagnostic"};
    if (run.kind != test::CpuRun::Ran)
      return {run.kind == test::CpuRun::Unsupported ? Outcome::Unsupported : Outcome::Failed, messages + run.why};
    results = std::move(run.results);
  }
  for (auto [i, result] : llvm::enumerate(results)) {
    onnx::TensorProto proto;
    auto expected = readTensorFile(context, data + "output_" + std::to_string(i) + ".pb", proto);
    if (!expected)
      return {Outcome::Unsupported, "output " + std::to_string(i) + " is not a tensor of a supported type"};
    if (expected->type != result.getType()) {
      std::string text;
      llvm::raw_string_ostream(text) << "output " << i << " has type " << result.getType() << ", expected "
                                     << expected->type;
      return {Outcome::Failed, text};
    }
    for (int64_t j = 0; j < result.size(); ++j)
      if (!isClose(result.at(j), expected->number(j), result.getElementType()))
        return {Outcome::Failed, "output " + std::to_string(i) + " element " + std::to_string(j) + " is " +
                                     std::to_string(result.at(j)) + ", expected " +
                                     std::to_string(expected->number(j))};
  }
  return {Outcome::Passed, ""};
}

/// Raises the model's opset to the importer's oldest if all its ops mean the same there: many stored tests name the
/// opset in which the op last changed.
void raiseOpset(onnx::ModelProto &model) {
  for (auto &opset : *model.mutable_opset_import()) {
    if (!opset.domain().empty() || opset.version() >= onnx_import::kMinOpset)
      continue;
    auto isSame = [&](const onnx::NodeProto &node) {
      const auto *old = onnx::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(opset.version()));
      return old && old == onnx::OpSchemaRegistry::Schema(node.op_type(), onnx_import::kMinOpset);
    };
    if (llvm::all_of(model.graph().node(), isSame))
      opset.set_version(onnx_import::kMinOpset);
  }
}

bool loadModel(const Case &test, onnx::ModelProto &model) {
  if (!model.ParseFromString(slurp(test.folder + "/model.onnx")))
    return false;
  raiseOpset(model);
  return true;
}

Outcome run(const Case &test, Backend backend) {
  onnx::ModelProto model;
  if (!loadModel(test, model))
    return {Outcome::Unsupported, "cannot be parsed"};
  Outcome first = attempt(test, model, backend, false);
  if (first.kind == Outcome::Passed)
    return first;
  Outcome second = attempt(test, model, backend, true);
  return second.kind == Outcome::Passed || first.kind == Outcome::Unsupported ? second : first;
}

/// Runs one test in a process of its own, so that a crash is one test's failure.
Outcome runIsolated(const Case &test, Backend backend) {
  int ends[2];
  if (pipe(ends) != 0)
    return {Outcome::Failed, "no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSecondsPerTest);
    Outcome outcome = run(test, backend);
    std::string text = std::to_string(outcome.kind) + outcome.why.substr(0, 1000);
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text(2000, '\0');
  const ssize_t size = read(ends[0], text.data(), text.size());
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (size < 1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return {Outcome::Failed, "crashed or took more than " + std::to_string(kSecondsPerTest) + " s"};
  text.resize(size);
  return {static_cast<Outcome::Kind>(text[0] - '0'), text.substr(1)};
}

std::vector<Case> findCases(llvm::ArrayRef<std::string> folders, llvm::StringRef only) {
  std::map<std::string, Case> cases;
  for (const std::string &folder : folders) {
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(folder, code), end; it != end && !code; it.increment(code)) {
      Case test;
      test.folder = it->path();
      test.name = llvm::sys::path::filename(it->path()).str();
      onnx::ModelProto model;
      if ((!only.empty() && only != test.name) || !loadModel(test, model))
        continue;
      if (model.graph().node_size() == 1)
        test.op = model.graph().node(0).op_type();
      for (const auto &opset : model.opset_import())
        if (opset.domain().empty())
          test.opset = static_cast<int>(opset.version());
      // The first folder wins; another version of the same test gets its opset in the name.
      if (auto [known, added] = cases.try_emplace(test.name, test); !added && known->second.opset != test.opset) {
        test.name += "@" + std::to_string(test.opset);
        cases.try_emplace(test.name, test);
      }
    }
  }
  std::vector<Case> sorted;
  for (auto &[name, test] : cases)
    sorted.push_back(std::move(test));
  return sorted;
}

struct Counts {
  int interpreter = 0, cpu = 0, all = 0;
  void add(const Outcomes &outcomes) {
    interpreter += passed(outcomes, Backend::Interpreter);
    cpu += passed(outcomes, Backend::Cpu);
    ++all;
  }
};

void writeTable(llvm::raw_ostream &out, llvm::ArrayRef<Case> cases, llvm::ArrayRef<Outcomes> outcomes) {
  std::map<std::string, Counts> counts;
  Counts total;
  for (auto [test, outcome] : llvm::zip_equal(cases, outcomes)) {
    counts[test.op].add(outcome);
    total.add(outcome);
  }
  out << "# ONNX ops\n\nGenerated by `tests/onnx/conformance/update.sh`; do not edit.\n\n"
      << "Opsets: of the model, within which the importer takes the op. Node tests: tests of the ONNX project with "
         "that "
         "one\nnode, as far as their opset is in the importer's range. Passed means imported, evaluated and equal to "
         "the "
         "stored\noutputs: by the reference interpreter, and by the CPU backend (the compiler's passes, generated code "
         "and "
         "the runtime, on\none rank). Tests that do not pass use what an op does not support here (see "
         "`docs/onnx.md`), "
         "such as sizes that are known\nat run time only or element types that training does not have.\n\n"
      << "| op | opsets | node tests | interpreter | CPU |\n|---|---|---|---|---|\n";
  for (const OnnxOpSupport &op : supportedOnnxOps()) {
    const Counts &count = counts[op.name];
    out << "| " << (op.domain.empty() ? "" : op.domain + ".") << op.name << " | " << op.minOpset << "–" << op.maxOpset
        << " | " << count.all << " | " << count.interpreter << " | " << count.cpu << " |\n";
  }
  out << "\nOf " << total.all << " tests, " << total.interpreter << " pass in the interpreter and " << total.cpu
      << " on the CPU. " << counts[""].all << " of them are functions written out\nas several nodes; of these "
      << counts[""].interpreter << " and " << counts[""].cpu << " pass.\n";
}

/// A line of the list: the test, and whether it passes on the CPU too.
std::pair<std::string, bool> parseLine(llvm::StringRef line) {
  auto [name, rest] = line.split(' ');
  return {name.str(), rest.empty()};
}

int checkExpected(const std::string &path, llvm::ArrayRef<Case> cases, llvm::ArrayRef<Outcomes> outcomes) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    llvm::errs() << path << ": " << buffer.getError().message() << "\n";
    return 1;
  }
  std::map<std::string, const Outcomes *> byName;
  for (auto [test, outcome] : llvm::zip_equal(cases, outcomes))
    byName[test.name] = &outcome;
  int broken = 0, absent = 0, fine = 0;
  for (llvm::line_iterator line(**buffer, /*SkipBlanks=*/true, '#'); !line.is_at_eof(); ++line) {
    auto [name, onCpu] = parseLine(*line);
    auto found = byName.find(name);
    if (found == byName.end()) {
      ++absent;
      continue;
    }
    bool good = true;
    for (Backend backend : kBackends) {
      if (passed(*found->second, backend) || (backend == Backend::Cpu && !onCpu))
        continue;
      good = false;
      const auto index = static_cast<size_t>(backend);
      llvm::errs() << name << " passed before (" << kBackendNames[index] << "): " << (*found->second)[index].why
                   << "\n";
    }
    ++(good ? fine : broken);
  }
  llvm::outs() << fine << " listed tests pass, " << broken << " do not, " << absent << " are not installed\n";
  return broken > 0 || fine == 0;
}

/// Runs every test on both backends and prints what does not pass.
std::vector<Outcomes> runAll(llvm::ArrayRef<Case> cases, bool isolated, bool verbose) {
  std::vector<Outcomes> all;
  int counts[std::size(kBackends)][3] = {};
  for (const Case &test : cases) {
    Outcomes outcomes;
    for (auto [i, backend] : llvm::enumerate(kBackends)) {
      // What the interpreter cannot import or run has no meaning that generated code could be held to.
      outcomes[i] = i > 0 && outcomes[0].kind != Outcome::Passed ? outcomes[0]
                    : isolated                                   ? runIsolated(test, backend)
                                                                 : run(test, backend);
      ++counts[i][outcomes[i].kind];
      const bool unsupported = outcomes[i].kind == Outcome::Unsupported;
      if (outcomes[i].kind == Outcome::Failed || (verbose && unsupported))
        llvm::outs() << test.name << " (" << kBackendNames[i] << "): " << (unsupported ? "unsupported " : "FAILED ")
                     << outcomes[i].why << "\n";
    }
    all.push_back(std::move(outcomes));
  }
  for (auto [i, count] : llvm::enumerate(counts))
    llvm::outs() << kBackendNames[i] << ": " << count[Outcome::Passed] << " passed, " << count[Outcome::Failed]
                 << " failed, " << count[Outcome::Unsupported] << " unsupported\n";
  return all;
}
} // namespace

int main(int argc, char **argv) {
  cl::list<std::string> folders(cl::Positional, cl::desc("<folder>..."));
  cl::opt<std::string> only("only", cl::desc("run one test"));
  cl::opt<std::string> expect("expect", cl::desc("list of tests that must pass"));
  cl::opt<std::string> list("list", cl::desc("write the list of tests that pass"));
  cl::opt<std::string> table("table", cl::desc("write the support table"));
  cl::opt<bool> verbose("verbose", cl::desc("print every test that does not pass"));
  cl::ParseCommandLineOptions(argc, argv);
  registerAllPasses();
  std::vector<Case> cases = findCases(std::vector<std::string>(folders.begin(), folders.end()), only);
  llvm::StringSet<> wanted;
  if (!expect.empty())
    if (auto buffer = llvm::MemoryBuffer::getFile(expect))
      for (llvm::line_iterator line(**buffer, true, '#'); !line.is_at_eof(); ++line)
        wanted.insert(parseLine(*line).first);
  if (!wanted.empty())
    llvm::erase_if(cases, [&](const Case &test) { return !wanted.contains(test.name); });
  llvm::erase_if(cases, [](const Case &test) {
    return test.opset < onnx_import::kMinOpset || test.opset > onnx_import::kMaxOpset;
  });
  const std::vector<Outcomes> outcomes = runAll(cases, /*isolated=*/only.empty(), verbose);
  std::error_code code;
  if (!list.empty()) {
    llvm::raw_fd_ostream out(list, code);
    for (auto [test, outcome] : llvm::zip_equal(cases, outcomes))
      if (passed(outcome, Backend::Interpreter))
        out << test.name << (passed(outcome, Backend::Cpu) ? "" : " interpreter") << "\n";
  }
  if (!table.empty()) {
    llvm::raw_fd_ostream out(table, code);
    writeTable(out, cases, outcomes);
  }
  if (!expect.empty())
    return checkExpected(expect, cases, outcomes);
  return 0;
}
