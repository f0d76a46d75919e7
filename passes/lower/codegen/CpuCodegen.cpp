//===- CpuCodegen.cpp - kernels to a shared object ------------------------===//
//
// Loops of scalars go through MLIR's conversions and approximations of math functions to LLVM, whose vectoriser does
// the rest; the object is linked in process.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/CpuCodegen.h"

#include "passes/lower/codegen/Float8.h"
#include "passes/lower/codegen/KernelEmitter.h"
#include "passes/lower/codegen/Link.h"
#include "passes/lower/codegen/LlvmLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include "llvm/ADT/StringExtras.h"

#include <mutex>

using namespace mlir;
using namespace tessera;

void tessera::registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

FailureOr<OwningOpRef<ModuleOp>> tessera::emitKernelLoops(ModuleOp kernels) {
  DialectRegistry registry;
  registerCodegenDialects(registry);
  kernels.getContext()->appendDialectRegistry(registry);
  kernels.getContext()->loadAllAvailableDialects();

  OwningOpRef<ModuleOp> module = ModuleOp::create(kernels.getLoc());
  codegen::ConstantTables tables(*module);
  for (auto kernel : kernels.getOps<func::FuncOp>()) {
    auto body = codegen::KernelBody::ofRegion(kernel.getBody());
    std::string why;
    auto plan = codegen::planKernel(body, /*isGpu=*/false, why);
    if (!plan)
      return kernel.emitError("cannot generate a kernel: ") << why;
    codegen::KernelEmitter emitter(body, *plan, tables, kernel.getLoc());
    if (failed(emitter.emit(*module, kernel.getSymName(), why)))
      return kernel.emitError("cannot generate a kernel: ") << why;
  }
  codegen::expandFloat8(*module);
  return module;
}

namespace {

std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const CpuTarget &target, Location loc) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  return codegen::createTargetMachine("x86_64-unknown-linux-gnu", target.cpu, target.features, llvm::Reloc::PIC_, loc);
}

void setTarget(llvm::Module &module, llvm::TargetMachine &machine, const CpuTarget &target) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (machine.getMCSubtargetInfo()->checkFeatures("+avx512f"))
      function.addFnAttr("prefer-vector-width", "512");
  }
}

} // namespace

CpuTarget CpuTarget::host() {
  CpuTarget target{llvm::sys::getHostCPUName().str(), ""};
  std::vector<std::string> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    features.push_back((feature.getValue() ? "+" : "-") + feature.getKey().str());
  llvm::sort(features);
  target.features = llvm::join(features, ",");
  return target;
}

FailureOr<CpuTarget> CpuTarget::parse(StringRef name, Location loc) {
  if (name == "host")
    return host();
  CpuTarget target{name.str(), ""};
  auto machine = makeTargetMachine({"x86-64", ""}, loc);
  if (!machine)
    return failure();
  if (!machine->getMCSubtargetInfo()->isCPUStringValid(name))
    return emitError(loc, "unknown target cpu '") << name << "', expected host, x86-64, x86-64-v3, x86-64-v4 or a name "
                                                  << "that LLVM knows";
  return target;
}

FailureOr<std::string> tessera::compileForCpu(ModuleOp functions, const CpuTarget &target) {
  Location loc = functions.getLoc();
  if (failed(codegen::lowerToLlvmDialect(functions, codegen::Processor::Cpu)))
    return emitError(loc, "cannot lower the kernels to LLVM");

  llvm::LLVMContext context;
  auto module = translateModuleToLLVMIR(functions, context, "kernels");
  auto machine = makeTargetMachine(target, loc);
  if (!module || !machine)
    return emitError(loc, "cannot translate the kernels to LLVM");
  setTarget(*module, *machine, target);
  codegen::optimize(*module, *machine);

  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emit;
  if (machine->addPassesToEmitFile(emit, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return emitError(loc, "cannot write object code");
  emit.run(*module);

  std::string error, sharedObject;
  if (!codegen::linkSharedObject({object.data(), object.size()}, sharedObject, error))
    return emitError(loc, "cannot link the kernels: ") << error;
  if (!codegen::checkUndefinedSymbols(sharedObject, error))
    return emitError(loc, "the kernels' code refers to ") << error;
  return sharedObject;
}

/// Adds the number of buffers that a kernel takes, under its symbol and "_buffers".
static void addNumBuffers(ModuleOp module, func::FuncOp kernel) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  const unsigned number = kernel.getNumArguments() + kernel.getNumResults();
  LLVM::GlobalOp::create(builder, kernel.getLoc(), builder.getI32Type(), /*isConstant=*/true, LLVM::Linkage::External,
                         kernel.getSymName().str() + "_buffers", builder.getI32IntegerAttr(number));
}

FailureOr<CodegenResult> tessera::generateCpuCode(ModuleOp kernels, const CpuTarget &target) {
  auto loops = emitKernelLoops(kernels);
  if (failed(loops))
    return failure();
  CodegenResult result;
  for (auto function : (*loops)->getOps<func::FuncOp>())
    result.symbols.push_back(function.getSymName().str());
  for (auto kernel : kernels.getOps<func::FuncOp>())
    addNumBuffers(**loops, kernel);
  auto sharedObject = compileForCpu(**loops, target);
  if (failed(sharedObject))
    return failure();
  result.sharedObject = std::move(*sharedObject);
  return result;
}
