//===- CudaGemm.cpp - matrix products by cuBLASLt ---------------------------===//

#include "runtime/device/cuda/CudaGemm.h"

#include "runtime/base/Log.h"
#include "runtime/device/cuda/CudaEpilogue.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace tessera::cuda {
namespace {

using artifact::DataType;

static_assert(sizeof(cublasLtMatmulAlgo_t) == GemmCache::algorithmBytes);

Status check(const char *what, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return Status::ok();
  return TESSERA_ERROR(IoError, std::string("cuBLASLt ") + what + ": " + cublasLtGetStatusString(status));
}

Result<cudaDataType_t> typeOf(DataType dtype) {
  switch (dtype) {
  case DataType::F32:
    return CUDA_R_32F;
  case DataType::BF16:
    return CUDA_R_16BF;
  case DataType::F16:
    return CUDA_R_16F;
  case DataType::F8E4M3FN:
    return CUDA_R_8F_E4M3;
  case DataType::F8E5M2:
    return CUDA_R_8F_E5M2;
  default:
    return TESSERA_ERROR(Unsupported, std::string("a product of type ") + artifact::EnumNameDataType(dtype));
  }
}

/// Bytes to which all addresses of an operand are multiples; what the library asks for at most.
uint32_t alignmentOf(const Operand &operand, int64_t batchStride, const std::vector<GemmLoop> &loops,
                     int64_t GemmLoop::*stride) {
  auto width = static_cast<int64_t>(byteWidth(operand.view.dtype));
  uint64_t bits = reinterpret_cast<uintptr_t>(operand.view.data) | static_cast<uint64_t>(operand.strideBits()) |
                  static_cast<uint64_t>(batchStride * width) | 256;
  for (const GemmLoop &loop : loops)
    bits |= static_cast<uint64_t>(loop.*stride * width);
  return static_cast<uint32_t>(bits & (~bits + 1));
}

cublasLtEpilogue_t epilogueOf(artifact::Epilogue epilogue) {
  using artifact::Epilogue;
  switch (epilogue) {
  case Epilogue::Bias:
    return CUBLASLT_EPILOGUE_BIAS;
  case Epilogue::Gelu:
    return CUBLASLT_EPILOGUE_GELU;
  case Epilogue::GeluAux:
    return CUBLASLT_EPILOGUE_GELU_AUX;
  case Epilogue::GeluBias:
    return CUBLASLT_EPILOGUE_GELU_BIAS;
  case Epilogue::GeluAuxBias:
    return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  case Epilogue::GeluGrad:
    return CUBLASLT_EPILOGUE_DGELU;
  case Epilogue::GeluGradBiasGrad:
    return CUBLASLT_EPILOGUE_DGELU_BGRAD;
  case Epilogue::BiasGradA: // our a is the library's second operand
    return CUBLASLT_EPILOGUE_BGRADB;
  case Epilogue::BiasGradB:
    return CUBLASLT_EPILOGUE_BGRADA;
  case Epilogue::None:
    break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

/// Scales by row and by block are newer than those by tensor.
constexpr size_t scaleModesVersion = 120900;

cublasLtMatmulMatrixScale_t scaleModeOf(artifact::ScaleMode mode) {
  using artifact::ScaleMode;
  switch (mode) {
  case ScaleMode::Row:
    return CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
  case ScaleMode::Block128:
    return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
  case ScaleMode::Block128x128:
    return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
  case ScaleMode::Block32:
    return CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
  case ScaleMode::Tensor:
  case ScaleMode::None:
    break;
  }
  return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
}

/// Bytes to which an address is a multiple; what the library asks for at most.
uintptr_t alignmentOf(const void *address) {
  auto bits = reinterpret_cast<uintptr_t>(address) | 256;
  return bits & (~bits + 1);
}

/// Of two addresses the one that is a multiple of less: the library plans for the alignment that it sees.
void *lessAligned(void *first, void *second) { return alignmentOf(second) < alignmentOf(first) ? second : first; }

/// Of all addresses of an operand the same: a step of one loop shows what that loop does to it.
void *leastAligned(const Operand &operand) {
  void *found = operand.at({});
  for (size_t loop = 0; loop < operand.strides.size(); ++loop) {
    Iteration second;
    second.of[loop] = 1;
    found = lessAligned(found, operand.at(second));
  }
  return found;
}

/// Memory like that of the operands, for timing: the run's own is not touched.
class TuningMemory {
public:
  TuningMemory() = default;
  TuningMemory(const TuningMemory &) = delete;
  TuningMemory &operator=(const TuningMemory &) = delete;
  ~TuningMemory() {
    for (CUdeviceptr address : taken)
      cuMemFree(address);
  }

  Status take(const GemmOperands &operands, CUstream stream) {
    constexpr size_t count = 7;
    void *made[count] = {};
    const Operand *all[count] = {&operands.a,      &operands.b,       &operands.c,      &operands.input,
                                 &operands.output, &operands.aScales, &operands.bScales};
    for (size_t index = 0; index < count; ++index)
      if (const TensorView &view = all[index]->view; view.data) {
        int64_t last = 0;
        for (size_t dim = 0; dim < view.shape.size(); ++dim)
          last += (view.shape[dim] - 1) * view.strides[dim];
        constexpr uintptr_t page = 256; // alignments beyond it do not count
        uintptr_t offset = reinterpret_cast<uintptr_t>(view.data) % page;
        size_t bytes = static_cast<size_t>(last + 1) * byteWidth(view.dtype) + offset;
        CUdeviceptr address = 0;
        TESSERA_CU(cuMemAlloc(&address, bytes));
        taken.push_back(address);
        TESSERA_CU(cuMemsetD8Async(address, 0x3c, bytes, stream)); // small numbers in floats of all types
        made[index] = std::bit_cast<void *>(address + offset);
      }
    at = {made[0], made[1], made[2], made[3], made[4], made[5], made[6]};
    return Status::ok();
  }

  GemmAddresses at;

private:
  std::vector<CUdeviceptr> taken;
};

class LtGemm : public GemmPlan {
public:
  ~LtGemm() override {
    for (cublasLtMatrixLayout_t matrix : {first, second, target})
      if (matrix)
        cublasLtMatrixLayoutDestroy(matrix);
    if (product)
      cublasLtMatmulDescDestroy(product);
  }

  Status prepare(const GemmOperands &operands) {
    const Operand &a = operands.a, &b = operands.b, &c = operands.c;
    alpha = operands.alpha;
    beta = operands.beta;
    epilogue = operands.epilogue;
    scaling = operands.scaling;
    TESSERA_ASSIGN_OR_RETURN(layout, gemmLayout(a.view, b.view, c.view));
    widths[0] = static_cast<int64_t>(byteWidth(a.view.dtype));
    widths[1] = static_cast<int64_t>(byteWidth(b.view.dtype));
    widths[2] = static_cast<int64_t>(byteWidth(c.view.dtype));
    TESSERA_RETURN_IF_ERROR(check("matmul", cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F)));
    if (const int32_t count = operands.multiprocessors; count > 0)
      TESSERA_RETURN_IF_ERROR(
          check("matmul",
                cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &count, sizeof(count))));
    TESSERA_RETURN_IF_ERROR(setTransposed(CUBLASLT_MATMUL_DESC_TRANSA, layout.first));
    TESSERA_RETURN_IF_ERROR(setTransposed(CUBLASLT_MATMUL_DESC_TRANSB, layout.second));
    TESSERA_RETURN_IF_ERROR(describeEpilogue(operands));
    TESSERA_RETURN_IF_ERROR(describeScaling(operands));
    TESSERA_RETURN_IF_ERROR(describe(first, layout.first, b.view.dtype));
    TESSERA_RETURN_IF_ERROR(describe(second, layout.second, a.view.dtype));
    TESSERA_RETURN_IF_ERROR(describe(target, layout.target, c.view.dtype));
    const uint32_t alignments[] = {alignmentOf(b, layout.first.batchStride, layout.loops, &GemmLoop::b),
                                   alignmentOf(a, layout.second.batchStride, layout.loops, &GemmLoop::a),
                                   alignmentOf(c, layout.target.batchStride, layout.loops, &GemmLoop::c)};
    key = keyOf({layout,
                 a.view.dtype,
                 b.view.dtype,
                 c.view.dtype,
                 epilogue,
                 scaling,
                 beta != 0,
                 {alignments[0], alignments[1], alignments[2]},
                 GemmPlanner::workspaceBytes,
                 operands.multiprocessors});
    // The library sees the addresses of an epilogue, too.
    if (epilogue != artifact::Epilogue::None)
      key += " bias " + std::to_string(alignmentOf(biasAddress)) + " aux " + std::to_string(alignmentOf(auxAddress));
    auto [found, isNew] = known->try_emplace(key, TESSERA_ERROR(Internal, "not looked for"));
    if (isNew)
      found->second = choose(operands, alignments);
    TESSERA_ASSIGN_OR_RETURN(algorithm, found->second);
    return Status::ok();
  }

  Status start(const GemmAddresses &at, CUstream stream) override {
    TESSERA_RETURN_IF_ERROR(setAddresses(at.input, at.output));
    TESSERA_RETURN_IF_ERROR(setScales(at.aScales, at.bScales));
    return loop(0, static_cast<const char *>(at.a), static_cast<const char *>(at.b), static_cast<char *>(at.c), stream);
  }

  cublasLtHandle_t handle = nullptr;
  void *workspace = nullptr;
  GemmTuner *tuner = nullptr;
  GemmPlanner::Algorithms *known = nullptr;
  std::string key; ///< of the cache, when prepared

private:
  Status setTransposed(cublasLtMatmulDescAttributes_t attribute, const MatrixLayout &matrix) {
    cublasOperation_t operation = matrix.isTransposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    return check("transpose", cublasLtMatmulDescSetAttribute(product, attribute, &operation, sizeof(operation)));
  }

  /// The library's defaults are what is meant: bias and pre-activation of the result's type.
  Status describeEpilogue(const GemmOperands &operands) {
    if (epilogue == artifact::Epilogue::None)
      return Status::ok();
    TESSERA_ASSIGN_OR_RETURN(EpilogueLayout made, epilogueLayout(epilogue, layout));
    cublasLtEpilogue_t value = epilogueOf(epilogue);
    TESSERA_RETURN_IF_ERROR(set("epilogue", CUBLASLT_MATMUL_DESC_EPILOGUE, value));
    if (made.auxLeading)
      TESSERA_RETURN_IF_ERROR(set("epilogue", CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, made.auxLeading));
    return setAddresses(leastAligned(operands.input), leastAligned(operands.output));
  }

  /// The library's first operand is b.
  Status describeScaling(const GemmOperands &operands) {
    if (scaling.isNone())
      return Status::ok();
    const bool isNew = scaling.a != artifact::ScaleMode::Tensor || scaling.b != artifact::ScaleMode::Tensor;
    if (isNew && cublasLtGetVersion() < scaleModesVersion)
      return TESSERA_ERROR(Unsupported, std::string("scales of mode ") + artifact::EnumNameScaleMode(scaling.a) +
                                            " need cuBLASLt 12.9, this is version " +
                                            std::to_string(cublasLtGetVersion()));
    if (isNew) {
      TESSERA_RETURN_IF_ERROR(
          set("scales", CUBLASLT_MATMUL_DESC_A_SCALE_MODE, static_cast<int32_t>(scaleModeOf(scaling.b))));
      TESSERA_RETURN_IF_ERROR(
          set("scales", CUBLASLT_MATMUL_DESC_B_SCALE_MODE, static_cast<int32_t>(scaleModeOf(scaling.a))));
    }
    TESSERA_RETURN_IF_ERROR(
        set("accumulation", CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<int8_t>(scaling.accumulatesFast ? 1 : 0)));
    return setScales(leastAligned(operands.aScales), leastAligned(operands.bScales));
  }

  Status setScales(const void *a, const void *b) {
    if (b != scaleAddresses[0])
      TESSERA_RETURN_IF_ERROR(set("scales", CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, b));
    if (a != scaleAddresses[1])
      TESSERA_RETURN_IF_ERROR(set("scales", CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a));
    scaleAddresses[0] = b;
    scaleAddresses[1] = a;
    return Status::ok();
  }

  template <typename Value> Status set(const char *what, cublasLtMatmulDescAttributes_t attribute, Value value) {
    return check(what, cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof(value)));
  }

  Status setAddresses(const void *input, const void *output) {
    const void *bias = takesBias(epilogue)       ? input
                       : givesBiasGrad(epilogue) ? output
                                                 : nullptr,
               *aux = takesPreActivation(epilogue)   ? input
                      : givesPreActivation(epilogue) ? output
                                                     : nullptr;
    if (bias != biasAddress)
      TESSERA_RETURN_IF_ERROR(set("bias", CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    if (aux != auxAddress)
      TESSERA_RETURN_IF_ERROR(set("pre-activation", CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux));
    biasAddress = bias;
    auxAddress = aux;
    return Status::ok();
  }

  Status describe(cublasLtMatrixLayout_t &made, const MatrixLayout &matrix, DataType dtype) {
    TESSERA_ASSIGN_OR_RETURN(cudaDataType_t type, typeOf(dtype));
    TESSERA_RETURN_IF_ERROR(
        check("matrix", cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(matrix.rows),
                                                   static_cast<uint64_t>(matrix.columns), matrix.leading)));
    auto count = static_cast<int32_t>(layout.batch);
    TESSERA_RETURN_IF_ERROR(check(
        "batch", cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count))));
    return check("batch", cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                           &matrix.batchStride, sizeof(matrix.batchStride)));
  }

  /// What the library proposes, its favourite first.
  Result<std::vector<cublasLtMatmulHeuristicResult_t>> candidatesFor(std::span<const uint32_t> alignments) {
    cublasLtMatmulPreference_t preference = nullptr;
    TESSERA_RETURN_IF_ERROR(check("preference", cublasLtMatmulPreferenceCreate(&preference)));
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, decltype(&cublasLtMatmulPreferenceDestroy)>
        owner(preference, &cublasLtMatmulPreferenceDestroy);
    auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      return check("preference", cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)));
    };
    TESSERA_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{GemmPlanner::workspaceBytes}));
    // Parts of a sum are added in f32, never in the type of a bf16 result.
    TESSERA_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                   uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}));
    const std::pair<cublasLtMatmulPreferenceAttributes_t, uint32_t> wanted[] = {
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[0]},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[1]},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[2]},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[2]}};
    for (auto [attribute, alignment] : wanted)
      TESSERA_RETURN_IF_ERROR(prefer(attribute, alignment));
    std::vector<cublasLtMatmulHeuristicResult_t> candidates(tuner ? GemmPlanner::maxCandidates : 1);
    int found = 0;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, product, first, second, target, target, preference,
                                       static_cast<int>(candidates.size()), candidates.data(), &found);
    candidates.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<size_t>(found) : 0);
    std::erase_if(candidates, [](const auto &candidate) { return candidate.state != CUBLAS_STATUS_SUCCESS; });
    if (candidates.empty())
      return TESSERA_ERROR(Unsupported, "cuBLASLt has no algorithm for the product" + particulars() + " (" +
                                            cublasLtGetStatusString(status) + ")");
    return candidates;
  }

  /// What of a product a library may not have, for errors.
  std::string particulars() const {
    if (!scaling.isNone())
      return std::string(" of 8-bit floats with scales of modes ") + artifact::EnumNameScaleMode(scaling.a) + " and " +
             artifact::EnumNameScaleMode(scaling.b);
    if (epilogue != artifact::Epilogue::None)
      return std::string(" with epilogue ") + artifact::EnumNameEpilogue(epilogue);
    return "";
  }

  /// The library's first choice, or the fastest.
  Result<cublasLtMatmulAlgo_t> choose(const GemmOperands &operands, std::span<const uint32_t> alignments) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<cublasLtMatmulHeuristicResult_t> candidates, candidatesFor(alignments));
    if (!tuner)
      return candidates.front().algo;
    std::vector<GemmTuner::Candidate> named;
    named.reserve(candidates.size());
    for (const cublasLtMatmulHeuristicResult_t &candidate : candidates)
      named.push_back({toDigits(&candidate.algo, sizeof(candidate.algo)),
                       "algorithm " + std::to_string(named.size() + 1) + " of " + std::to_string(candidates.size())});
    TuningMemory memory;
    auto run = [&](size_t number, CUstream stream) -> Status {
      if (!memory.at.a)
        TESSERA_RETURN_IF_ERROR(memory.take(operands, stream));
      algorithm = candidates[number].algo;
      return start(memory.at, stream);
    };
    TESSERA_ASSIGN_OR_RETURN(size_t chosen, tuner->choose(key, named, run));
    return candidates[chosen].algo;
  }

  Status loop(size_t level, const char *a, const char *b, char *c, CUstream stream) {
    if (level == layout.loops.size())
      return check("matmul", cublasLtMatmul(handle, product, &alpha, b, first, a, second, &beta, c, target, c, target,
                                            &algorithm, workspace, GemmPlanner::workspaceBytes, stream));
    const GemmLoop &step = layout.loops[level];
    for (int64_t index = 0; index < step.size; ++index)
      TESSERA_RETURN_IF_ERROR(loop(level + 1, a + index * step.a * widths[0], b + index * step.b * widths[1],
                                   c + index * step.c * widths[2], stream));
    return Status::ok();
  }

  GemmLayout layout;
  int64_t widths[3] = {};
  float alpha = 1, beta = 0;
  artifact::Epilogue epilogue = artifact::Epilogue::None;
  GemmScaling scaling;
  const void *biasAddress = nullptr, *auxAddress = nullptr;
  const void *scaleAddresses[2] = {}; ///< of the library's operands
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, target = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

/// A product, and then its epilogue.
class SplitGemm : public GemmPlan {
public:
  SplitGemm(std::unique_ptr<GemmPlan> product, const GemmOperands &operands, const EpilogueKernels &kernels)
      : product(std::move(product)), operands(operands), kernels(kernels) {}

  Status start(const GemmAddresses &at, CUstream stream) override {
    TESSERA_RETURN_IF_ERROR(product->start({at.a, at.b, at.c}, stream));
    return kernels.start(operands, at, stream);
  }

private:
  std::unique_ptr<GemmPlan> product;
  GemmOperands operands;
  const EpilogueKernels &kernels;
};

} // namespace

GemmPlanner::GemmPlanner() : epilogues(std::make_unique<EpilogueKernels>()) {}

GemmPlanner::~GemmPlanner() {
  if (handle)
    cublasLtDestroy(handle);
  if (workspace)
    cuMemFree(workspace);
}

Status GemmPlanner::open() {
  TESSERA_RETURN_IF_ERROR(check("cannot be initialised", cublasLtCreate(&handle)));
  TESSERA_CU(cuMemAlloc(&workspace, workspaceBytes));
  return Status::ok();
}

Result<std::unique_ptr<GemmPlan>> GemmPlanner::plan(const GemmOperands &operands, std::string_view node) {
  const bool hasEpilogue = operands.epilogue != artifact::Epilogue::None;
  auto together = std::make_unique<LtGemm>();
  together->handle = handle;
  together->workspace = std::bit_cast<void *>(workspace);
  together->tuner = tuner.get();
  together->known = &known;
  Status status = together->prepare(operands);
  if (hasEpilogue && status.code() == StatusCode::Unsupported) {
    log::info("node '{}': epilogue {} by a kernel of our own: {}", node, artifact::EnumNameEpilogue(operands.epilogue),
              status.message());
    return planApart(operands, node);
  }
  if (!status.isOk())
    return node.empty() ? status : status.withContext(node);
  if (!hasEpilogue || !tuner)
    return std::unique_ptr<GemmPlan>(std::move(together));

  Result<std::unique_ptr<GemmPlan>> apart = planApart(operands, node);
  if (apart.status().code() == StatusCode::Unsupported)
    return std::unique_ptr<GemmPlan>(std::move(together));
  TESSERA_RETURN_IF_ERROR(apart.status());
  auto [way, isNew] = knownWays.try_emplace(together->key);
  if (isNew) {
    const GemmTuner::Candidate candidates[] = {{std::string(GemmCache::together), "epilogue by cuBLASLt"},
                                               {std::string(GemmCache::apart), "epilogue by a kernel of our own"}};
    TuningMemory memory;
    auto run = [&](size_t number, CUstream stream) -> Status {
      if (!memory.at.a)
        TESSERA_RETURN_IF_ERROR(memory.take(operands, stream));
      return number == 0 ? together->start(memory.at, stream) : (*apart)->start(memory.at, stream);
    };
    TESSERA_ASSIGN_OR_RETURN(way->second, tuner->choose("epilogue of " + together->key, candidates, run));
  }
  return way->second == 0 ? std::unique_ptr<GemmPlan>(std::move(together)) : std::move(*apart);
}

/// The product, and then its epilogue by our own kernels.
Result<std::unique_ptr<GemmPlan>> GemmPlanner::planApart(const GemmOperands &operands, std::string_view node) {
  GemmOperands plain = operands;
  plain.epilogue = artifact::Epilogue::None;
  plain.input = plain.output = Operand();
  TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<GemmPlan> product, plan(plain, node));
  TESSERA_RETURN_IF_ERROR(epilogues->load(workspace, workspaceBytes));
  return std::unique_ptr<GemmPlan>(std::make_unique<SplitGemm>(std::move(product), operands, *epilogues));
}

} // namespace tessera::cuda
