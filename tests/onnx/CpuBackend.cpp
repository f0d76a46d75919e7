#include "tests/onnx/CpuBackend.h"

#include "compiler/artifact/Writer.h"
#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/train/Train.h"
#include "passes/lower/codegen/CpuCodegen.h"
#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/step/Session.h"
#include "tools/tessera-compile/driver/Compile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/APFloat.h"

#include <cstring>
#include <map>

using namespace mlir;
using tessera::interp::Tensor;

namespace tessera::test {

namespace {
LogicalResult runPhase(ModuleOp module, Phase phase) {
  PassManager manager(module.getContext());
  addPasses(manager, phase, CompileOptions());
  return manager.run(module);
}

/// The phases of a forward function on one rank: nothing to differentiate, to optimize, to shard or to overlap.
FailureOr<std::string> compileForward(ModuleOp module) {
  MLIRContext *context = module.getContext();
  module->setAttr(dist::kMesh, dist::MeshAttr::get(context, ArrayAttr::get(context, StringAttr::get(context, "shard")),
                                                   llvm::ArrayRef<int64_t>{1}));
  if (failed(runPhase(module, Phase::Import)) || failed(runPhase(module, Phase::Lower)))
    return failure();
  ArtifactMetadata metadata;
  const CpuTarget target = CpuTarget::host();
  metadata.producer = "test";
  metadata.target = "cpu:" + target.cpu + ":" + target.features;
  std::string code;
  if (auto kernels = module.lookupSymbol<ModuleOp>("kernels")) {
    auto generated = generateCpuCode(kernels, target);
    if (failed(generated))
      return failure();
    code = std::move(generated->sharedObject);
  }
  return serializeArtifact(module, code, metadata);
}

/// Calls `visit(element, linear)` for the address of each element of a view in row-major order.
void forEachElement(const TensorView &view, llvm::function_ref<void(char *, int64_t)> visit) {
  const size_t width = byteWidth(view.dtype);
  interp::forEachIndex(view.shape, [&](llvm::ArrayRef<int64_t> index, int64_t linear) {
    visit(static_cast<char *>(view.data) + interp::linearIndex(index, view.strides) * static_cast<int64_t>(width),
          linear);
  });
}

/// An element's bits, as memory holds them.
uint64_t toBits(const Tensor &tensor, int64_t index) {
  auto type = dyn_cast<FloatType>(tensor.getElementType());
  if (!type)
    return static_cast<uint64_t>(tensor.intAt(index)); // the low bytes are stored
  llvm::APFloat value(tensor.at(index));
  bool losesInfo = false;
  value.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return value.bitcastToAPInt().getZExtValue();
}

void setFromBits(Tensor &tensor, int64_t index, uint64_t bits, unsigned width) {
  if (auto type = dyn_cast<FloatType>(tensor.getElementType())) {
    llvm::APFloat value(type.getFloatSemantics(), llvm::APInt(width * 8, bits));
    bool losesInfo = false;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    tensor.set(index, value.convertToDouble());
    return;
  }
  const bool isUnsigned = tensor.getElementType().isUnsignedInteger() || tensor.getElementType().isInteger(1);
  const llvm::APInt value(width * 8, bits);
  tensor.setInt(index, isUnsigned ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue());
}

void store(const Tensor &tensor, const TensorView &view) {
  forEachElement(view, [&](char *element, int64_t linear) {
    const uint64_t bits = toBits(tensor, linear);
    std::memcpy(element, &bits, byteWidth(view.dtype));
  });
}

Tensor load(RankedTensorType type, const TensorView &view) {
  Tensor tensor(type);
  forEachElement(view, [&](char *element, int64_t linear) {
    uint64_t bits = 0;
    const size_t width = byteWidth(view.dtype);
    std::memcpy(&bits, element, width);
    setFromBits(tensor, linear, bits, static_cast<unsigned>(width));
  });
  return tensor;
}

/// Fills the session's memory by name, runs one step and reads the results, which the artifact has in order.
Status execute(const std::string &bytes, const std::map<std::string, const Tensor *> &arguments,
               llvm::ArrayRef<Type> resultTypes, std::vector<Tensor> &results) {
  TESSERA_ASSIGN_OR_RETURN(auto artifact,
                           Artifact::fromBytes(std::vector<uint8_t>(bytes.begin(), bytes.end()), "test artifact"));
  auto world = createLocalWorld(1);
  SessionOptions options;
  options.threads = 2;
  TESSERA_ASSIGN_OR_RETURN(auto session, Session::create(artifact, *world[0], options));
  const artifact::Package &package = artifact->package();
  auto give = [&](const std::string &name, const TensorView &view) -> Status {
    auto found = arguments.find(name);
    if (found == arguments.end() || found->second->size() != view.numElements())
      return TESSERA_ERROR(Internal, "the artifact's argument '" + name + "' is not one of the function's");
    store(*found->second, view);
    return Status::ok();
  };
  if (artifact->training().batch())
    for (uint32_t i = 0; i < artifact->training().batch()->size(); ++i)
      TESSERA_RETURN_IF_ERROR(give(artifact->training().batch()->Get(i)->name()->str(), session->batchBuffer(i)));
  if (package.state())
    for (uint32_t i = 0; i < package.state()->size(); ++i)
      TESSERA_RETURN_IF_ERROR(give(package.state()->Get(i)->name()->str(), session->stateBuffer(i)));
  TESSERA_RETURN_IF_ERROR(session->step(1));
  const uint32_t count = artifact->training().results() ? artifact->training().results()->size() : 0;
  if (count != resultTypes.size())
    return TESSERA_ERROR(Internal, "the artifact has " + std::to_string(count) + " results, the function " +
                                       std::to_string(resultTypes.size()));
  for (uint32_t i = 0; i < count; ++i) {
    auto type = cast<RankedTensorType>(resultTypes[i]);
    TensorView view = session->resultBuffer(i);
    if (llvm::ArrayRef<int64_t>(view.shape) != type.getShape())
      return TESSERA_ERROR(Internal, "result " + std::to_string(i) + " has another shape in the artifact");
    results.push_back(load(type, view));
  }
  return Status::ok();
}
} // namespace

CpuRun runOnCpu(ModuleOp module, llvm::ArrayRef<Tensor> arguments) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  llvm::SmallVector<Type> resultTypes(step.getResultTypes());
  std::map<std::string, const Tensor *> byName;
  for (auto [i, argument] : llvm::enumerate(arguments))
    byName[step.getArgAttrOfType<StringAttr>(i, train::kName).str()] = &argument;
  CpuRun run;
  auto bytes = compileForward(module); // the pipeline erases @step
  if (failed(bytes)) {
    run.kind = CpuRun::Unsupported;
    return run;
  }
  Status status = execute(*bytes, byName, resultTypes, run.results);
  run.kind = status.isOk() ? CpuRun::Ran : CpuRun::Broken;
  if (!status.isOk())
    run.why = status.toString();
  return run;
}

} // namespace tessera::test
