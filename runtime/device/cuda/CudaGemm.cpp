//===- CudaGemm.cpp - matrix products by cuBLASLt ---------------------------===//

#include "runtime/device/cuda/CudaGemm.h"

#include <bit>
#include <cstdint>
#include <optional>

namespace tessera::cuda {
namespace {

using artifact::DataType;

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
  default:
    return TESSERA_ERROR(Unsupported, std::string("a product of type ") + artifact::EnumNameDataType(dtype));
  }
}

/// Bytes to which all addresses of an operand are multiples; what the library asks for at most.
uint32_t alignmentOf(const Operand &operand, int64_t batchStride, const std::vector<GemmLoop> &loops,
                     int64_t GemmLoop::*stride) {
  auto width = static_cast<int64_t>(byteWidth(operand.view.dtype));
  uint64_t bits = reinterpret_cast<uintptr_t>(operand.view.data) | static_cast<uint64_t>(operand.stride) |
                  static_cast<uint64_t>(batchStride * width) | 256;
  for (const GemmLoop &loop : loops)
    bits |= static_cast<uint64_t>(loop.*stride * width);
  return static_cast<uint32_t>(bits & (~bits + 1));
}

class LtGemm : public GemmPlan {
public:
  ~LtGemm() override {
    for (cublasLtMatrixLayout_t matrix : {first, second, target})
      if (matrix)
        cublasLtMatrixLayoutDestroy(matrix);
    if (product)
      cublasLtMatmulDescDestroy(product);
  }

  Status prepare(const Operand &a, const Operand &b, const Operand &c) {
    TESSERA_ASSIGN_OR_RETURN(layout, gemmLayout(a.view, b.view, c.view));
    widths[0] = static_cast<int64_t>(byteWidth(a.view.dtype));
    widths[1] = static_cast<int64_t>(byteWidth(b.view.dtype));
    widths[2] = static_cast<int64_t>(byteWidth(c.view.dtype));
    TESSERA_RETURN_IF_ERROR(check("matmul", cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F)));
    TESSERA_RETURN_IF_ERROR(setTransposed(CUBLASLT_MATMUL_DESC_TRANSA, layout.first));
    TESSERA_RETURN_IF_ERROR(setTransposed(CUBLASLT_MATMUL_DESC_TRANSB, layout.second));
    TESSERA_RETURN_IF_ERROR(describe(first, layout.first, b.view.dtype));
    TESSERA_RETURN_IF_ERROR(describe(second, layout.second, a.view.dtype));
    TESSERA_RETURN_IF_ERROR(describe(target, layout.target, c.view.dtype));
    return choose(alignmentOf(b, layout.first.batchStride, layout.loops, &GemmLoop::b),
                  alignmentOf(a, layout.second.batchStride, layout.loops, &GemmLoop::a),
                  alignmentOf(c, layout.target.batchStride, layout.loops, &GemmLoop::c));
  }

  Status start(const void *a, const void *b, void *c, CUstream stream) override {
    return loop(0, static_cast<const char *>(a), static_cast<const char *>(b), static_cast<char *>(c), stream);
  }

  cublasLtHandle_t handle = nullptr;
  void *workspace = nullptr;
  float alpha = 1, beta = 0;

private:
  Status setTransposed(cublasLtMatmulDescAttributes_t attribute, const MatrixLayout &matrix) {
    cublasOperation_t operation = matrix.isTransposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    return check("transpose", cublasLtMatmulDescSetAttribute(product, attribute, &operation, sizeof(operation)));
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

  Status choose(uint32_t firstAlignment, uint32_t secondAlignment, uint32_t targetAlignment) {
    cublasLtMatmulPreference_t preference = nullptr;
    TESSERA_RETURN_IF_ERROR(check("preference", cublasLtMatmulPreferenceCreate(&preference)));
    uint64_t bytes = GemmPlanner::workspaceBytes;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes));
    const std::pair<cublasLtMatmulPreferenceAttributes_t, uint32_t> alignments[] = {
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, firstAlignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, secondAlignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, targetAlignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, targetAlignment}};
    for (auto [attribute, alignment] : alignments)
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &alignment, sizeof(alignment));
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, product, first, second, target, target, preference, 1, &best, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    TESSERA_RETURN_IF_ERROR(check("has no algorithm for the product", status));
    if (found == 0)
      return TESSERA_ERROR(Unsupported, "cuBLASLt has no algorithm for the product");
    algorithm = best.algo;
    return Status::ok();
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
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, target = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

} // namespace

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

Result<std::unique_ptr<GemmPlan>> GemmPlanner::plan(const Operand &a, const Operand &b, const Operand &c, float alpha,
                                                    float beta) {
  auto made = std::make_unique<LtGemm>();
  made->handle = handle;
  made->workspace = std::bit_cast<void *>(workspace);
  made->alpha = alpha;
  made->beta = beta;
  TESSERA_RETURN_IF_ERROR(made->prepare(a, b, c));
  return std::unique_ptr<GemmPlan>(std::move(made));
}

} // namespace tessera::cuda
