//===- LlvmLowering.cpp - loops of scalars to the LLVM dialect ------------===//

#include "passes/lower/codegen/LlvmLowering.h"

#include "passes/lower/codegen/CpuCodegen.h"
#include "passes/lower/codegen/MathFunctions.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetOptions.h"

using namespace mlir;

namespace tessera::codegen {

namespace {

/// Replaces math functions of f32 by arithmetic that LLVM can vectorise, and on a CPU bf16 casts by integer code.
struct ExpandMath : PassWrapper<ExpandMath, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMath)
  explicit ExpandMath(Processor processor) : processor(processor) {}
  void getDependentDialects(DialectRegistry &registry) const override { registerCodegenDialects(registry); }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    // Sine and cosine stay library calls: one step of range reduction is not enough for large positions.
    addMathFunctions(patterns);
    if (processor == Processor::Cpu)
      arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), GreedyRewriteConfig().enableFolding(false))))
      signalPassFailure();
  }
  Processor processor;
};

/// `math.x` -> `call @__nv_x` (f64) or `@__nv_xf` (f32).
template <typename MathOp> struct CallLibdevice : OpRewritePattern<MathOp> {
  CallLibdevice(MLIRContext *context, StringRef name) : OpRewritePattern<MathOp>(context), name(name) {}
  LogicalResult matchAndRewrite(MathOp op, PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!type.isF32() && !type.isF64())
      return failure();
    std::string symbol = ("__nv_" + name + (type.isF32() ? "f" : "")).str();
    auto module = op->template getParentOfType<ModuleOp>();
    if (!module.lookupSymbol(symbol)) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(module.getBody());
      func::FuncOp::create(rewriter, op.getLoc(), symbol,
                           rewriter.getFunctionType(op->getOperandTypes(), op->getResultTypes()))
          .setPrivate();
    }
    rewriter.replaceOpWithNewOp<func::CallOp>(op, symbol, op->getResultTypes(), op->getOperands());
    return success();
  }
  StringRef name;
};

struct CallDeviceMath : PassWrapper<CallDeviceMath, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CallDeviceMath)
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    MLIRContext *context = &getContext();
    patterns.add<CallLibdevice<math::SinOp>>(context, "sin");
    patterns.add<CallLibdevice<math::CosOp>>(context, "cos");
    patterns.add<CallLibdevice<math::PowFOp>>(context, "pow");
    patterns.add<CallLibdevice<math::ExpOp>>(context, "exp");
    patterns.add<CallLibdevice<math::LogOp>>(context, "log");
    patterns.add<CallLibdevice<math::TanhOp>>(context, "tanh");
    patterns.add<CallLibdevice<math::ErfOp>>(context, "erf");
    patterns.add<CallLibdevice<math::ExpM1Op>>(context, "expm1");
    patterns.add<CallLibdevice<math::Log1pOp>>(context, "log1p");
    patterns.add<CallLibdevice<math::AtanOp>>(context, "atan");
    patterns.add<CallLibdevice<math::AsinOp>>(context, "asin");
    patterns.add<CallLibdevice<math::AcosOp>>(context, "acos");
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), GreedyRewriteConfig().enableFolding(false))))
      signalPassFailure();
  }
};

} // namespace

LogicalResult lowerToLlvmDialect(ModuleOp module, Processor processor) {
  PassManager passes(module.getContext());
  passes.addPass(std::make_unique<ExpandMath>(processor));
  passes.addPass(createCSEPass());
  if (processor == Processor::Gpu)
    passes.addPass(std::make_unique<CallDeviceMath>());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertMathToLibmPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

std::unique_ptr<llvm::TargetMachine> createTargetMachine(StringRef triple, StringRef cpu, StringRef features,
                                                         std::optional<llvm::Reloc::Model> relocation, Location loc) {
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(llvm::Triple(triple), error);
  if (!target) {
    emitError(loc, "this LLVM cannot generate code for ") << triple << ": " << error;
    return nullptr;
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      llvm::Triple(triple), cpu, features, options, relocation, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Sums have been split among lanes by now. In a sum that may be reassociated, the selection of instructions multiplies
/// constant factors in front of it with each other, (x * a) * b + y to x * (a * b) + y, which may overflow or vanish.
static void keepProducts(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (isa<llvm::BinaryOperator>(instruction) && isa<llvm::FPMathOperator>(instruction))
          instruction.setHasAllowReassoc(false);
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  // Of the C library LLVM may call what moves memory, and nothing else: no exp2 for pow(2, x).
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  for (llvm::LibFunc function : {llvm::LibFunc_memcpy, llvm::LibFunc_memmove, llvm::LibFunc_memset})
    library.setAvailable(function);
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
  keepProducts(module);
}

} // namespace tessera::codegen
