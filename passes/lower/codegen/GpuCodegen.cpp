//===- GpuCodegen.cpp - kernels to PTX and machine code -------------------===//
//
// The GPU dialect's pipeline is not used: kernels are emitted for a thread, with NVVM intrinsics, and go the same way
// to LLVM as on a CPU. ptxas, where it is installed, turns the PTX into machine code, so that nothing is compiled at
// start.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/GpuCodegen.h"

#include "passes/lower/codegen/CpuCodegen.h"
#include "passes/lower/codegen/Float8.h"
#include "passes/lower/codegen/GpuFloat8.h"
#include "passes/lower/codegen/GpuMathFunctions.h"
#include "passes/lower/codegen/LlvmLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Triple.h"

#include <mutex>

using namespace mlir;
using namespace tessera;

FailureOr<GpuTarget> GpuTarget::parse(StringRef name, Location loc) {
  if (llvm::is_contained({"sm_80", "sm_90", "sm_100"}, name))
    return GpuTarget{name.str()};
  return emitError(loc, "unknown GPU target '") << name << "', expected sm_80, sm_90 or sm_100";
}

FailureOr<GpuThreads> tessera::emitGpuKernels(ModuleOp kernels, const GpuTarget &target, unsigned sharedAddressSpace,
                                              const KernelAlignments &alignments) {
  DialectRegistry registry;
  registerCodegenDialects(registry);
  registry.insert<NVVM::NVVMDialect>();
  registerNVVMDialectTranslation(registry);
  kernels.getContext()->appendDialectRegistry(registry);
  kernels.getContext()->loadAllAvailableDialects();

  GpuThreads threads;
  threads.module = ModuleOp::create(kernels.getLoc());
  ModuleOp module = *threads.module;
  codegen::ConstantTables tables(module);
  for (auto kernel : kernels.getOps<func::FuncOp>()) {
    auto body = codegen::KernelBody::ofRegion(kernel.getBody());
    std::string why;
    auto plan = codegen::planKernel(body, /*isGpu=*/true, why);
    if (!plan)
      return kernel.emitError("cannot generate a kernel: ") << why;
    codegen::GpuKernelOptions options;
    options.sharedAddressSpace = sharedAddressSpace;
    if (alignments)
      options.alignments = alignments(kernel.getSymName());
    codegen::GpuKernelEmitter emitter(body, *plan, tables, kernel.getLoc(), std::move(options));
    auto launch = emitter.emit(module, kernel.getSymName(), why);
    if (failed(launch))
      return kernel.emitError("cannot generate a kernel: ") << why;
    threads.kernels.push_back({kernel.getSymName().str(), *launch});
  }
  if (target.hasFloat8())
    threads.usesFloat8 = codegen::useGpuFloat8(module);
  else
    codegen::expandFloat8(module);
  if (failed(codegen::useGpuMath(module)))
    return kernels.emitError("cannot expand the functions of the kernels");
  return threads;
}

namespace {

std::vector<std::string> toolkitFolders() {
  std::vector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"})
    if (const char *value = std::getenv(variable); value && *value)
      folders.push_back(value);
  // NVIDIA's Python packages beside ours, whose tools lie in site-packages/tessera/native/bin.
  static int anchor;
  llvm::SmallString<256> packages(llvm::sys::fs::getMainExecutable(nullptr, &anchor));
  llvm::sys::path::remove_filename(packages);
  llvm::sys::path::append(packages, "../../../nvidia/cu13");
  folders.push_back(packages.str().str());
  folders.push_back("/usr/local/cuda");
  return folders;
}

std::string findLibdevice() {
  for (const std::string &folder : toolkitFolders()) {
    std::string path = folder + "/nvvm/libdevice/libdevice.10.bc";
    if (llvm::sys::fs::exists(path))
      return path;
  }
  return {};
}

std::string findPtxas() {
  std::vector<std::string> bins;
  for (const std::string &folder : toolkitFolders())
    bins.push_back(folder + "/bin");
  std::vector<StringRef> paths(bins.begin(), bins.end());
  if (auto found = llvm::sys::findProgramByName("ptxas", paths))
    return *found;
  auto found = llvm::sys::findProgramByName("ptxas");
  return found ? *found : std::string();
}

std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const GpuTarget &target, bool usesFloat8, Location loc) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  // Blackwell needs a PTX version of CUDA 12.8; for the others an old one runs with old drivers too.
  StringRef features = target.chip == "sm_100" ? "+ptx86" : usesFloat8 ? "+ptx81" : "+ptx80";
  return codegen::createTargetMachine("nvptx64-nvidia-cuda", target.chip, features, std::nullopt, loc);
}

/// Functions that are called but not defined.
std::vector<std::string> undefinedFunctions(const llvm::Module &module) {
  std::vector<std::string> names;
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty())
      names.push_back(function.getName().str());
  return names;
}

LogicalResult linkLibdevice(llvm::Module &module, Location loc) {
  std::vector<std::string> needed = undefinedFunctions(module);
  if (needed.empty())
    return success();
  std::string path = findLibdevice();
  if (path.empty())
    return emitError(loc, "the kernels call ")
           << needed.front() << " of CUDA's libdevice, which was not found: set CUDA_HOME to a CUDA toolkit";
  llvm::SMDiagnostic error;
  auto library = llvm::parseIRFile(path, error, module.getContext());
  if (!library)
    return emitError(loc, "cannot read '") << path << "': " << error.getMessage();
  library->setTargetTriple(module.getTargetTriple());
  library->setDataLayout(module.getDataLayout());
  if (llvm::Linker::linkModules(module, std::move(library), llvm::Linker::LinkOnlyNeeded))
    return emitError(loc, "cannot link '") << path << "'";
  // Whatever is called becomes part of its kernel: libdevice forbids it for a few, as f64's pow.
  for (llvm::Function &function : module)
    if (!function.isDeclaration() &&
        (function.getName().starts_with("__nv_") || function.getName().starts_with("__internal_"))) {
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
      function.removeFnAttr(llvm::Attribute::NoInline);
      function.addFnAttr(llvm::Attribute::AlwaysInline);
    }
  return success();
}

/// Assembles PTX; an empty result means that ptxas is not installed.
FailureOr<std::string> assemble(StringRef ptx, const GpuTarget &target, Location loc) {
  std::string ptxas = findPtxas();
  if (ptxas.empty()) {
    emitRemark(loc, "no cubin: ptxas was not found, the driver will compile the PTX when the artifact is loaded");
    return std::string();
  }
  SmallString<128> source, object, log;
  if (llvm::sys::fs::createTemporaryFile("tessera", "ptx", source) ||
      llvm::sys::fs::createTemporaryFile("tessera", "cubin", object) ||
      llvm::sys::fs::createTemporaryFile("tessera", "log", log))
    return emitError(loc, "cannot create a temporary file for ptxas");
  llvm::FileRemover removeSource(source), removeObject(object), removeLog(log);
  std::error_code failure;
  {
    llvm::raw_fd_ostream stream(source, failure);
    stream << ptx;
    stream.close();
    if (failure || stream.has_error())
      return emitError(loc, "cannot write '") << source << "' for ptxas";
  }
  std::string arch = "-arch=" + target.chip;
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(log), StringRef(log)};
  std::string message;
  int status = llvm::sys::ExecuteAndWait(ptxas, {ptxas, arch, "-O3", "--warn-on-spills", "-o", object, source},
                                         std::nullopt, redirects, 0, 0, &message);
  auto text = llvm::MemoryBuffer::getFile(log);
  StringRef said = text ? (*text)->getBuffer() : StringRef();
  if (status != 0)
    return emitError(loc, "ptxas refuses the generated code: ") << message << said.rtrim();
  for (StringRef line : llvm::split(said, '\n'))
    if (line.contains("spill"))
      emitRemark(loc, "a kernel needs more registers than there are: ") << line.trim();
  auto cubin = llvm::MemoryBuffer::getFile(object);
  if (!cubin)
    return emitError(loc, "cannot read what ptxas wrote");
  return (*cubin)->getBuffer().str();
}

} // namespace

FailureOr<GpuCode> tessera::generateGpuCode(ModuleOp kernels, const GpuTarget &target,
                                            const KernelAlignments &alignments) {
  Location loc = kernels.getLoc();
  auto threads = emitGpuKernels(kernels, target, /*sharedAddressSpace=*/3, alignments);
  if (failed(threads))
    return failure();
  GpuCode code;
  code.kernels = threads->kernels;
  ModuleOp functions = *threads->module;
  if (failed(codegen::lowerToLlvmDialect(functions, codegen::Processor::Gpu)))
    return emitError(loc, "cannot lower the kernels to LLVM");
  for (auto [function, kernel] :
       llvm::zip_equal(llvm::make_filter_range(functions.getOps<LLVM::LLVMFuncOp>(),
                                               [](LLVM::LLVMFuncOp function) { return !function.isExternal(); }),
                       code.kernels)) {
    Builder builder(function.getContext());
    function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                      builder.getDenseI32ArrayAttr({static_cast<int32_t>(kernel.launch.threadsX),
                                                    static_cast<int32_t>(kernel.launch.threadsY), 1}));
    if (const int64_t blocks = kernel.launch.blocksAtOnce)
      function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), builder.getI32IntegerAttr(blocks));
  }

  llvm::LLVMContext context;
  auto module = translateModuleToLLVMIR(functions, context, "kernels");
  auto machine = makeTargetMachine(target, threads->usesFloat8, loc);
  if (!module || !machine)
    return emitError(loc, "cannot translate the kernels to LLVM");
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  if (failed(linkLibdevice(*module, loc)))
    return failure();
  codegen::optimize(*module, *machine);
  if (std::vector<std::string> missing = undefinedFunctions(*module); !missing.empty())
    return emitError(loc, "the kernels' code refers to ") << missing.front();

  llvm::SmallString<0> ptx;
  llvm::raw_svector_ostream stream(ptx);
  llvm::legacy::PassManager emit;
  if (machine->addPassesToEmitFile(emit, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return emitError(loc, "cannot write PTX");
  emit.run(*module);
  code.ptx = ptx.str().str();
  auto cubin = assemble(code.ptx, target, loc);
  if (failed(cubin))
    return failure();
  code.cubin = std::move(*cubin);
  return code;
}
