//===- CpuCodegen.cpp - kernels to a shared object ------------------------===//
//
// Loops of scalars go through MLIR's conversions and approximations of math functions to LLVM, whose vectoriser does
// the rest; the object is linked in process.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/CpuCodegen.h"

#include "passes/lower/codegen/KernelEmitter.h"
#include "passes/lower/codegen/Link.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
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
    auto plan = codegen::planKernel(body, why);
    if (!plan)
      return kernel.emitError("cannot generate a kernel: ") << why;
    codegen::KernelEmitter emitter(body, *plan, tables, kernel.getLoc());
    if (failed(emitter.emit(*module, kernel.getSymName(), why)))
      return kernel.emitError("cannot generate a kernel: ") << why;
  }
  return module;
}

namespace {

/// Replaces math functions by polynomials that LLVM can vectorise, and bf16 casts by integer code.
struct ExpandMath : PassWrapper<ExpandMath, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMath)
  void getDependentDialects(DialectRegistry &registry) const override { registerCodegenDialects(registry); }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    // Sine and cosine stay library calls: one step of range reduction is not enough for large positions.
    auto approximated = [](StringRef name) {
      return llvm::is_contained({"math.exp", "math.log", "math.tanh", "math.erf"}, name);
    };
    populateMathF32ExpansionPatterns(patterns, approximated);
    populateMathPolynomialApproximationPatterns(patterns, approximated);
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), GreedyRewriteConfig().enableFolding(false))))
      signalPassFailure();
  }
};

LogicalResult lowerToLlvmDialect(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(std::make_unique<ExpandMath>());
  passes.addPass(createCSEPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertMathToLibmPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

std::unique_ptr<llvm::TargetMachine> makeTargetMachine(const CpuTarget &target, Location loc) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *llvmTarget = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvmTarget) {
    emitError(loc, "no x86 code generator: ") << error;
    return nullptr;
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(llvmTarget->createTargetMachine(triple, target.cpu, target.features,
                                                                              options, llvm::Reloc::PIC_, std::nullopt,
                                                                              llvm::CodeGenOptLevel::Aggressive));
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine, const CpuTarget &target) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (machine.getTargetCPU().starts_with("znver") || machine.getTargetFeatureString().contains("+avx512f"))
      function.addFnAttr("prefer-vector-width", "512");
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
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

FailureOr<CodegenResult> tessera::generateCpuCode(ModuleOp kernels, const CpuTarget &target) {
  Location loc = kernels.getLoc();
  auto loops = emitKernelLoops(kernels);
  if (failed(loops))
    return failure();
  CodegenResult result;
  for (auto function : (*loops)->getOps<func::FuncOp>())
    result.symbols.push_back(function.getSymName().str());
  if (failed(lowerToLlvmDialect(**loops)))
    return emitError(loc, "cannot lower the kernels to LLVM");

  llvm::LLVMContext context;
  auto module = translateModuleToLLVMIR(**loops, context, "kernels");
  auto machine = makeTargetMachine(target, loc);
  if (!module || !machine)
    return emitError(loc, "cannot translate the kernels to LLVM");
  optimize(*module, *machine, target);

  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emit;
  if (machine->addPassesToEmitFile(emit, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return emitError(loc, "cannot write object code");
  emit.run(*module);

  std::string error;
  if (!codegen::linkSharedObject({object.data(), object.size()}, result.sharedObject, error))
    return emitError(loc, "cannot link the kernels: ") << error;
  if (!codegen::checkUndefinedSymbols(result.sharedObject, error))
    return emitError(loc, "the kernels' code refers to ") << error;
  return result;
}
