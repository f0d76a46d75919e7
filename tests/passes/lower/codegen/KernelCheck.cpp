//===- KernelCheck.cpp - kernel-check: generated code against the interpreter -===//
//
// Takes each function of a module (or of its nested module @kernels) as the body of a kernel, generates code for it,
// runs that over several splits of its extent, once more with results in place of operands, and compares every result
// with what the reference interpreter gives. With --gpu the code is that of GPU threads, run by an emulator, and with
// --ptx=<architecture> it is printed as PTX (and assembled, where ptxas is installed).
//
//===----------------------------------------------------------------------===//

#include "SimtEmulator.h"

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/exec/Exec.h"
#include "compiler/interp/Inputs.h"
#include "compiler/interp/Interp.h"
#include "passes/lower/codegen/CpuCodegen.h"
#include "passes/lower/codegen/GpuCodegen.h"
#include "passes/lower/codegen/KernelPlan.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

#include <cmath>
#include <dlfcn.h>

using namespace mlir;
using namespace tessera;
using interp::Tensor;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<module.mlir>"), cl::init("-"));
static cl::opt<std::string> targetCpu("target-cpu", cl::desc("host or an LLVM CPU name"), cl::init("host"));
static cl::opt<double> relative("rtol", cl::desc("Relative tolerance (f32)"), cl::init(2e-5));
static cl::opt<double> absolute("atol", cl::desc("Absolute tolerance (f32)"), cl::init(2e-6));
static cl::opt<std::string> sharedObject("shared-object",
                                         cl::desc("Write the code to this file instead of running it"));
static cl::opt<bool> loopsOnly("loops", cl::desc("Print the loops instead of running the kernels"));
static cl::opt<bool> gpu("gpu", cl::desc("Run the code of GPU threads in an emulator"));
static cl::opt<std::string> gpuTarget("gpu-target", cl::init("sm_90"),
                                      cl::desc("With --gpu: the architecture whose code is run"));
static cl::opt<unsigned> unitsSeed("units-seed", cl::init(1),
                                   cl::desc("With --gpu: which results of inexact units are too large or too small"));
static cl::opt<std::string> ptx("ptx", cl::desc("Print PTX for this architecture instead of running the kernels"));

static cl::opt<unsigned>
    sweep("sweep", cl::init(0),
          cl::desc("Arguments of f32 run over all exponents and signs, and results may be this many "
                   "units in the last place from the exact ones"));

/// The flags that are read after code generation: linking in process resets LLVM's options.
struct Settings {
  double relative, absolute;
  bool gpu;
  unsigned sweep;
  uint32_t unitsSeed;
};
static Settings settings;

/// Runs elements [begin, end) of the kernel's extent; says what went wrong.
using Runner = std::function<std::string(void *const *, int64_t, int64_t)>;
using KernelFunction = void (*)(void *const *, int64_t, int64_t);
using Bytes = std::vector<uint8_t>;

static size_t elementBytes(Type type) { return (type.getIntOrFloatBitWidth() + 7) / 8; }

static Bytes encode(const Tensor &tensor) {
  Type type = tensor.getElementType();
  size_t width = elementBytes(type);
  // One spare vector at the end: a kernel that wrote beyond its buffer would change it.
  Bytes bytes(tensor.size() * width + 64, 0xAB);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    uint64_t raw;
    if (auto floating = dyn_cast<FloatType>(type)) {
      APFloat value(tensor.at(i));
      bool lost;
      value.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
      raw = value.bitcastToAPInt().getZExtValue();
    } else {
      raw = static_cast<uint64_t>(tensor.intAt(i));
    }
    memcpy(bytes.data() + i * width, &raw, width);
  }
  return bytes;
}

static Tensor decode(const Bytes &bytes, RankedTensorType tensorType) {
  Tensor tensor(tensorType);
  Type type = tensorType.getElementType();
  size_t width = elementBytes(type);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    uint64_t raw = 0;
    memcpy(&raw, bytes.data() + i * width, width);
    if (auto floating = dyn_cast<FloatType>(type)) {
      APFloat value(floating.getFloatSemantics(), APInt(type.getIntOrFloatBitWidth(), raw));
      bool lost;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      tensor.set(i, value.convertToDouble());
    } else {
      tensor.setInt(i, static_cast<int64_t>(raw));
    }
  }
  return tensor;
}

/// Bit patterns in order, every other one with zeros below, so that powers of two, zero and infinity are among them.
static void fillWithSweep(Tensor &tensor, size_t argument) {
  const auto step = static_cast<uint32_t>((uint64_t{1} << 32) / tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    // A second argument goes through the patterns in another order.
    const auto place = static_cast<uint32_t>(argument == 0 ? i : i * 40503 % tensor.size());
    const uint32_t low = i % 2 == 0 ? 0 : static_cast<uint32_t>(i * 2654435761u) % step;
    tensor.set(i, APFloat(APFloat::IEEEsingle(), APInt(32, place * step + low)).convertToFloat());
  }
}

/// How many f32 lie between two numbers.
static int64_t unitsBetween(double a, double b) {
  auto place = [](double value) -> int64_t {
    const uint32_t bits = llvm::bit_cast<uint32_t>(static_cast<float>(value));
    return bits >> 31 ? -static_cast<int64_t>(bits & 0x7FFFFFFF) : static_cast<int64_t>(bits);
  };
  return std::abs(place(a) - place(b));
}

static LogicalResult compare(func::FuncOp kernel, const Twine &run, size_t number, const Tensor &got,
                             const Tensor &expected) {
  // Narrow floats: both sides round values that agree as f32 does, so that they are at most one unit in the last place
  // apart; half of one would be too strict, as they may lie on two sides of a tie.
  double scale = 1.0, rounding = 0.0;
  if (auto type = dyn_cast<FloatType>(expected.getElementType())) {
    if (type.getWidth() < 32)
      rounding = std::ldexp(1.0, 1 - static_cast<int>(type.getFPMantissaWidth()));
    if (type.getWidth() == 64)
      scale = 1e-6;
  }
  for (int64_t i = 0; i < got.size(); ++i) {
    double a = got.at(i), b = expected.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    if (settings.sweep) {
      if (!std::isnan(a) && !std::isnan(b) && unitsBetween(a, b) <= settings.sweep)
        continue;
      return kernel.emitError() << run << ": element " << i << " of result " << number << " is " << a << ", expected "
                                << b << ", " << unitsBetween(a, b) << " units apart";
    }
    double tolerance = scale * (settings.relative * std::abs(b) + settings.absolute) + rounding * std::abs(b);
    if (expected.isFloat() && std::abs(a - b) <= tolerance)
      continue;
    return kernel.emitError() << run << ": element " << i << " of result " << number << " is " << a << ", expected "
                              << b;
  }
  return success();
}

/// Splits of [0, extent) into launches.
static std::vector<std::vector<int64_t>> splitsOf(int64_t extent) {
  std::vector<std::vector<int64_t>> splits = {{0, extent}};
  if (extent > 1)
    splits.push_back({0, extent / 3, extent / 3, extent / 2 + 1, extent});
  if (extent > 1 && extent <= 64) {
    splits.emplace_back();
    for (int64_t i = 0; i <= extent; ++i)
      splits.back().push_back(i);
  }
  return splits;
}

static LogicalResult check(func::FuncOp kernel, const Runner &run) {
  auto body = codegen::KernelBody::ofRegion(kernel.getBody());
  std::string why;
  auto plan = codegen::planKernel(body, settings.gpu, why);
  interp::NamedTensors known;
  auto arguments = interp::makeArguments(kernel, 1, known);
  if (!plan || failed(arguments))
    return failure();
  for (auto [i, argument] : llvm::enumerate(*arguments))
    if (settings.sweep && argument.getElementType().isF32())
      fillWithSweep(argument, i);
  auto expected = interp::evaluateOnOneRank(kernel, *arguments);
  if (failed(expected))
    return failure();

  auto execute = [&](const std::vector<int64_t> &split, bool inplace, const Twine &what) -> LogicalResult {
    std::vector<Bytes> inputs, outputs;
    for (const Tensor &argument : *arguments)
      inputs.push_back(encode(argument));
    std::vector<void *> buffers;
    for (Bytes &input : inputs)
      buffers.push_back(input.data());
    std::vector<int64_t> shared;
    for (size_t i = 0; i < expected->size(); ++i) {
      shared.push_back(-1);
      if (inplace)
        for (unsigned input : plan->outputs[i].mayOverwrite)
          if (shared.back() < 0 && !llvm::is_contained(ArrayRef(shared).drop_back(), static_cast<int64_t>(input)))
            shared.back() = input;
      const Tensor &tensor = (*expected)[i];
      outputs.emplace_back(tensor.size() * elementBytes(tensor.getElementType()) + 64, 0xCD);
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      buffers.push_back(shared[i] >= 0 ? inputs[shared[i]].data() : outputs[i].data());
    for (size_t i = 0; i + 1 < split.size(); ++i)
      if (std::string error = run(buffers.data(), split[i], split[i + 1]); !error.empty())
        return kernel.emitError() << what << ": " << error;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Bytes &bytes = shared[i] >= 0 ? inputs[shared[i]] : outputs[i];
      for (size_t j = bytes.size() - 64; j < bytes.size(); ++j)
        if (bytes[j] != (shared[i] >= 0 ? 0xAB : 0xCD))
          return kernel.emitError() << what << ": wrote beyond the end of result " << i;
      if (failed(compare(kernel, what, i, decode(bytes, (*expected)[i].getType()), (*expected)[i])))
        return failure();
    }
    return success();
  };
  unsigned sharing = llvm::count_if(plan->outputs, [](const auto &output) { return !output.mayOverwrite.empty(); });
  auto splits = splitsOf(plan->extent);
  if (settings.gpu) // a launch is always whole
    splits.resize(1);
  for (auto [i, split] : llvm::enumerate(splits)) {
    if (failed(execute(split, false, "split " + Twine(i))))
      return failure();
    if (sharing && failed(execute(split, true, "in place, split " + Twine(i))))
      return failure();
  }
  llvm::outs() << kernel.getSymName() << ": ok, " << codegen::kindName(plan->kind) << ", extent " << plan->extent
               << ", grain " << plan->grain << ", passes " << plan->passes << ", in place " << sharing << "\n";
  return success();
}

static void *load(StringRef sharedObject) {
  SmallString<64> path;
  int descriptor;
  if (llvm::sys::fs::createTemporaryFile("kernels", "so", descriptor, path)) {
    llvm::errs() << "error: no temporary file\n";
    return nullptr;
  }
  llvm::raw_fd_ostream(descriptor, /*shouldClose=*/true) << sharedObject;
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  llvm::sys::fs::remove(path);
  if (!library)
    llvm::errs() << "error: " << dlerror() << "\n";
  return library;
}

static int printPtx(ModuleOp kernels) {
  auto target = GpuTarget::parse(ptx, kernels.getLoc());
  if (failed(target))
    return 1;
  auto code = generateGpuCode(kernels, *target, nullptr);
  if (failed(code))
    return 1;
  auto again = generateGpuCode(kernels, *target, nullptr);
  if (failed(again) || again->ptx != code->ptx || again->cubin != code->cubin) {
    llvm::errs() << "error: two runs of code generation differ\n";
    return 1;
  }
  llvm::outs() << code->ptx;
  for (const GpuCode::Kernel &kernel : code->kernels)
    llvm::outs() << "// " << kernel.symbol << ": " << kernel.launch.blocks << " blocks of " << kernel.launch.threadsX
                 << " x " << kernel.launch.threadsY << "\n";
  llvm::outs() << "// cubin: " << (code->cubin.empty() ? "none" : "assembled") << "\n";
  return 0;
}

/// Generates the code of GPU threads for the emulator; `launches` by symbol.
static FailureOr<std::string> emulatedCode(ModuleOp kernels, const CpuTarget &target,
                                           std::vector<GpuCode::Kernel> &launches) {
  auto architecture = GpuTarget::parse(gpuTarget, kernels.getLoc());
  if (failed(architecture))
    return failure();
  auto threads = emitGpuKernels(kernels, *architecture, /*sharedAddressSpace=*/0, nullptr);
  if (failed(threads))
    return failure();
  launches = threads->kernels;
  test::useEmulator(*threads->module);
  return compileForCpu(*threads->module, target);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "Checks generated kernels against the interpreter\n");
  settings = {relative, absolute, gpu, sweep, unitsSeed};
  DialectRegistry registry;
  registry.insert<train::TrainDialect, dist::DistDialect, exec::ExecDialect, func::FuncDialect>();
  registerCodegenDialects(registry);
  MLIRContext context(registry);
  auto sources = std::make_shared<llvm::SourceMgr>();
  std::string error;
  auto file = openInputFile(inputFile, &error);
  if (!file) {
    llvm::errs() << "error: " << error << "\n";
    return 1;
  }
  sources->AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(*sources, &context);
  auto module = parseSourceFile<ModuleOp>(*sources, ParserConfig(&context));
  if (!module)
    return 1;
  ModuleOp kernels = *module;
  for (auto nested : module->getOps<ModuleOp>())
    if (nested.getSymName() == "kernels")
      kernels = nested;
  if (loopsOnly) {
    auto loops = emitKernelLoops(kernels);
    if (failed(loops))
      return 1;
    (*loops)->print(llvm::outs());
    return 0;
  }
  if (!ptx.empty())
    return printPtx(kernels);
  auto target = CpuTarget::parse(targetCpu, kernels.getLoc());
  if (failed(target))
    return 1;
  int status = 0;
  if (settings.gpu) {
    std::vector<GpuCode::Kernel> launches;
    auto code = emulatedCode(kernels, *target, launches);
    void *library = succeeded(code) ? load(*code) : nullptr;
    if (!library || !test::connectEmulator(library, settings.unitsSeed))
      return 1;
    for (auto [kernel, launched] : llvm::zip_equal(kernels.getOps<func::FuncOp>(), launches)) {
      auto function =
          reinterpret_cast<void (*)(void *const *)>(dlsym(library, ("emulated_" + launched.symbol).c_str()));
      auto run = [&, &launch = launched.launch](void *const *buffers, int64_t, int64_t) {
        return test::emulate(function, buffers, launch);
      };
      if (!function || failed(check(kernel, run)))
        status = 1;
    }
    return status;
  }
  const std::string objectPath = sharedObject; // the linker resets all options
  auto code = generateCpuCode(kernels, *target);
  if (failed(code))
    return 1;
  auto again = generateCpuCode(kernels, *target);
  if (failed(again) || again->sharedObject != code->sharedObject) {
    llvm::errs() << "error: two runs of code generation differ\n";
    return 1;
  }
  if (!objectPath.empty()) {
    std::error_code failure;
    llvm::raw_fd_ostream object(objectPath, failure);
    object << code->sharedObject;
    object.close();
    if (failure || object.has_error()) {
      llvm::errs() << "error: cannot write " << objectPath << "\n";
      return 1;
    }
    return 0;
  }

  void *library = load(code->sharedObject);
  if (!library)
    return 1;
  for (auto kernel : kernels.getOps<func::FuncOp>()) {
    auto function = reinterpret_cast<KernelFunction>(dlsym(library, kernel.getSymName().str().c_str()));
    auto run = [&](void *const *buffers, int64_t begin, int64_t end) {
      function(buffers, begin, end);
      return std::string();
    };
    if (!function || failed(check(kernel, run)))
      status = 1;
  }
  return status;
}
