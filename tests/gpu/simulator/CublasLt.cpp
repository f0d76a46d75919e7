//===- CublasLt.cpp - cuBLASLt, literally ------------------------------------===//
//
// A product is evaluated from what its descriptors say, in f32, with NVIDIA's epilogues. What the library refuses, or
// what a kernel of it would not survive, is refused.
//
//===----------------------------------------------------------------------===//

#include "CublasLtProduct.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

using namespace tessera::sim;

#define TESSERA_LT extern "C" TESSERA_SIM_API cublasStatus_t CUBLASWINAPI

namespace {

/// A descriptor of any kind: its attributes by number.
struct Descriptor {
  const char *kind;
  std::map<int, std::vector<std::byte>> values;
  template <typename T> T get(int attribute, T otherwise) const {
    auto found = values.find(attribute);
    if (found != values.end() && found->second.size() == sizeof(T))
      std::memcpy(&otherwise, found->second.data(), sizeof(T));
    return otherwise;
  }
  template <typename T> void put(int attribute, T value) {
    auto *bytes = reinterpret_cast<const std::byte *>(&value);
    values[attribute].assign(bytes, bytes + sizeof(T));
  }
};

std::map<const void *, std::unique_ptr<Descriptor>> descriptors;

template <typename Handle> cublasStatus_t create(Handle *made, const char *kind, Descriptor **descriptor = nullptr) {
  Lock lock(sim().mutex);
  auto owned = std::make_unique<Descriptor>();
  owned->kind = kind;
  if (descriptor)
    *descriptor = owned.get();
  *made = reinterpret_cast<Handle>(owned.get());
  ++sim().handles[kind];
  descriptors[owned.get()] = std::move(owned);
  return CUBLAS_STATUS_SUCCESS;
}

Descriptor *find(const void *handle, const char *kind) {
  auto found = descriptors.find(handle);
  if (found != descriptors.end() && std::strcmp(found->second->kind, kind) == 0)
    return found->second.get();
  sim().report(std::string("cuBLASLt: not a ") + kind);
  return nullptr;
}

cublasStatus_t destroy(const void *handle, const char *kind) {
  Lock lock(sim().mutex);
  if (!find(handle, kind))
    return CUBLAS_STATUS_INVALID_VALUE;
  --sim().handles[kind];
  descriptors.erase(handle);
  return CUBLAS_STATUS_SUCCESS;
}

constexpr const char *library = "cuBLASLt handle", *product = "product descriptor", *matrix = "matrix layout",
                     *preference = "matmul preference";

/// Attributes have sizes that the caller must know too.
size_t sizeOf(const char *kind, int attribute) {
  if (kind == product)
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return 8;
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return 1;
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
    case CUBLASLT_MATMUL_DESC_TRANSA:
    case CUBLASLT_MATMUL_DESC_TRANSB:
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
      return 4;
    default:
      return 0;
    }
  if (kind == matrix)
    return attribute == CUBLASLT_MATRIX_LAYOUT_TYPE || attribute == CUBLASLT_MATRIX_LAYOUT_ORDER ||
                   attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT
               ? 4
           : attribute <= CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET ? 8
                                                                      : 0;
  return attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8
         : attribute <= CUBLASLT_MATMUL_PREF_IMPL_MASK         ? 4
                                                               : 0;
}

cublasStatus_t set(const void *handle, const char *kind, int attribute, const void *value, size_t bytes) {
  Lock lock(sim().mutex);
  Descriptor *found = find(handle, kind);
  if (!found)
    return CUBLAS_STATUS_INVALID_VALUE;
  size_t wanted = sizeOf(kind, attribute);
  if (wanted != bytes) {
    sim().report(
        std::string("cuBLASLt: attribute ") + std::to_string(attribute) + " of a " + kind +
        (wanted ? " has " + std::to_string(wanted) + " bytes, not " + std::to_string(bytes) : " is not simulated"));
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  auto *data = static_cast<const std::byte *>(value);
  found->values[attribute].assign(data, data + bytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool readMatrix(const void *handle, Matrix &made) {
  Descriptor *found = find(handle, matrix);
  if (!found)
    return false;
  made.type = static_cast<cudaDataType>(found->get<int32_t>(CUBLASLT_MATRIX_LAYOUT_TYPE, CUDA_R_32F));
  made.rows = found->get<int64_t>(CUBLASLT_MATRIX_LAYOUT_ROWS, 0);
  made.columns = found->get<int64_t>(CUBLASLT_MATRIX_LAYOUT_COLS, 0);
  made.leading = found->get<int64_t>(CUBLASLT_MATRIX_LAYOUT_LD, 0);
  made.batch = found->get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1);
  made.batchStride = found->get<int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0);
  int order = found->get<int32_t>(CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_COL);
  made.isRowMajor = order == CUBLASLT_ORDER_ROW;
  return order == CUBLASLT_ORDER_COL || order == CUBLASLT_ORDER_ROW;
}

/// Empty, or why the library would not take it.
std::string readProduct(const void *description, const void *a, const void *b, const void *c, const void *d,
                        Product &made) {
  Descriptor *found = find(description, product);
  if (!found || !readMatrix(a, made.a) || !readMatrix(b, made.b) || !readMatrix(c, made.c) || !readMatrix(d, made.d))
    return "a descriptor is missing";
  if (found->get<int32_t>(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 0) != CUBLAS_COMPUTE_32F ||
      found->get<int32_t>(CUBLASLT_MATMUL_DESC_SCALE_TYPE, 0) != CUDA_R_32F ||
      found->get<int32_t>(CUBLASLT_MATMUL_DESC_POINTER_MODE, 0) != CUBLASLT_POINTER_MODE_HOST)
    return "only products with f32 sums, f32 factors and host pointers are simulated";
  int32_t first = found->get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N),
          second = found->get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  made.isATransposed = first != CUBLAS_OP_N;
  made.isBTransposed = second != CUBLAS_OP_N;
  made.m = made.isATransposed ? made.a.columns : made.a.rows;
  made.k = made.isATransposed ? made.a.rows : made.a.columns;
  made.n = made.isBTransposed ? made.b.rows : made.b.columns;
  int64_t depth = made.isBTransposed ? made.b.columns : made.b.rows;
  auto size = [](int64_t rows, int64_t columns) { return std::to_string(rows) + "x" + std::to_string(columns); };
  if (depth != made.k || made.d.rows != made.m || made.d.columns != made.n || made.c.rows != made.m ||
      made.c.columns != made.n)
    return "shapes do not fit: " + size(made.m, made.k) + ", " + size(depth, made.n) + ", " +
           size(made.d.rows, made.d.columns);
  if (made.m == 0 || made.n == 0 || made.k == 0)
    return "an empty product";
  for (const Matrix *one : {&made.a, &made.b, &made.c, &made.d}) {
    if (one->leading < (one->isRowMajor ? one->columns : one->rows))
      return "leading dimension " + std::to_string(one->leading) + " of " + size(one->rows, one->columns);
    if (one->batch != made.a.batch || one->batch < 1)
      return "batches of several sizes";
    if (!isKnownType(one->type))
      return "type " + std::to_string(one->type);
  }
  if (made.d.batch > 1 && made.d.batchStride == 0)
    return "the products of a batch are written to one place";
  made.aScales = {found->get<int32_t>(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, 0),
                  found->get<uint64_t>(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 0)};
  made.bScales = {found->get<int32_t>(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, 0),
                  found->get<uint64_t>(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 0)};
  made.accumulatesFast = found->get<int8_t>(CUBLASLT_MATMUL_DESC_FAST_ACCUM, 0) != 0;
  if (isFloat8(made.a.type) || isFloat8(made.b.type)) {
    if (std::string why = problemOfFloat8(made, sim().libraryCapability); !why.empty())
      return why;
  } else if (made.aScales.address || made.bScales.address || made.aScales.mode || made.bScales.mode ||
             made.accumulatesFast) {
    return "scales or fast accumulation of a product that is not of 8-bit floats";
  } else if (made.a.type != made.b.type || made.c.type != made.d.type ||
             (made.d.type != made.a.type && made.d.type != CUDA_R_32F)) {
    return "this combination of types";
  }
  made.epilogue = found->get<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  made.multiprocessors = found->get<int32_t>(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, 0);
  if (made.multiprocessors < 0 || made.multiprocessors > 132)
    return "a product counts on multiprocessors that the GPU does not have";
  made.bias = found->get<uint64_t>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 0);
  made.biasStride = found->get<int64_t>(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, 0);
  made.aux = found->get<uint64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 0);
  made.auxLeading = found->get<int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 0);
  made.auxStride = found->get<int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, 0);
  int32_t biasType = found->get<int32_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, -1),
          auxType = found->get<int32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, -1);
  made.biasType = biasType < 0 ? made.d.type : static_cast<cudaDataType>(biasType);
  made.auxType = auxType < 0 ? made.d.type : static_cast<cudaDataType>(auxType);
  if (!isKnownType(made.biasType) || !isKnownType(made.auxType))
    return "the type of an epilogue's operand";
  uint32_t epilogue = made.epilogue;
  bool isSum = epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB;
  if (epilogue & isReluGrad || ((epilogue & isRelu) && (epilogue & hasAux)) || (epilogue > 255 && !isSum))
    return "epilogue " + std::to_string(epilogue) + " is not simulated";
  if (made.d.isRowMajor && epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    return "an epilogue on a row-major matrix";
  if ((epilogue & hasAux) && !isSum && (made.auxLeading < made.m || made.auxLeading % 8 != 0))
    return "the leading dimension " + std::to_string(made.auxLeading) + " of the epilogue's matrix";
  if (made.d.batch > 1 && ((epilogue & givesBiasGrad) || isSum) && made.biasStride == 0)
    return "the bias gradients of a batch are written to one place";
  return "";
}

/// What the simulator puts into an algorithm, so that it is used for what it was chosen for.
struct Choice {
  uint32_t magic;
  uint32_t alignments[4];
  uint32_t m, n, k, batch, epilogue;
  uint64_t workspace;
  uint8_t types[2], scales[2];
  bool accumulatesFast;

  /// Whether it was made for such a product, alignments aside.
  bool isFor(const Product &p) const {
    return m == p.m && n == p.n && k == p.k && batch == static_cast<uint32_t>(p.d.batch) && epilogue == p.epilogue &&
           types[0] == p.a.type && types[1] == p.b.type && scales[0] == p.aScales.mode && scales[1] == p.bScales.mode &&
           accumulatesFast == p.accumulatesFast;
  }
};
static_assert(sizeof(Choice) <= sizeof(cublasLtMatmulAlgo_t));
constexpr uint32_t magic = 0x7e55e7a0;

} // namespace

TESSERA_LT cublasLtCreate(cublasLtHandle_t *handle) {
  if (!sim().current())
    return CUBLAS_STATUS_NOT_INITIALIZED;
  return create(handle, library);
}
extern "C" TESSERA_SIM_API size_t CUBLASWINAPI cublasLtGetVersion() { return 130000; }
TESSERA_LT cublasLtDestroy(cublasLtHandle_t handle) { return destroy(handle, library); }
extern "C" TESSERA_SIM_API const char *CUBLASWINAPI cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  default:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}

TESSERA_LT cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute, cudaDataType_t scale) {
  Descriptor *descriptor = nullptr;
  create(made, product, &descriptor);
  descriptor->put<int32_t>(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute);
  descriptor->put<int32_t>(CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale);
  return CUBLAS_STATUS_SUCCESS;
}
TESSERA_LT cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) { return destroy(handle, product); }
TESSERA_LT cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                          const void *value, size_t bytes) {
  return set(handle, product, attribute, value, bytes);
}

TESSERA_LT cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type, uint64_t rows, uint64_t columns,
                                      int64_t leading) {
  Descriptor *descriptor = nullptr;
  create(made, matrix, &descriptor);
  descriptor->put<int32_t>(CUBLASLT_MATRIX_LAYOUT_TYPE, type);
  descriptor->put<uint64_t>(CUBLASLT_MATRIX_LAYOUT_ROWS, rows);
  descriptor->put<uint64_t>(CUBLASLT_MATRIX_LAYOUT_COLS, columns);
  descriptor->put<int64_t>(CUBLASLT_MATRIX_LAYOUT_LD, leading);
  return CUBLAS_STATUS_SUCCESS;
}
TESSERA_LT cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) { return destroy(handle, matrix); }
TESSERA_LT cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t attribute,
                                            const void *value, size_t bytes) {
  return set(handle, matrix, attribute, value, bytes);
}

TESSERA_LT cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) { return create(made, preference); }
TESSERA_LT cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) { return destroy(handle, preference); }
TESSERA_LT cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                size_t bytes) {
  return set(handle, preference, attribute, value, bytes);
}

/// Two choices for each product, the second with the whole workspace.
TESSERA_LT cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                          cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                          cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preferred, int wanted,
                                          cublasLtMatmulHeuristicResult_t *results, int *found) {
  Lock lock(sim().mutex);
  *found = 0;
  Product p;
  Descriptor *wishes = find(preferred, preference);
  if (!find(handle, library) || !wishes || wanted < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (std::string why = readProduct(description, a, b, c, d, p); !why.empty()) {
    sim().report("cublasLtMatmulAlgoGetHeuristic: " + why);
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (p.epilogue != CUBLASLT_EPILOGUE_DEFAULT && sim().failureAt("epilogue"))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (isFloat8(p.a.type) && sim().failureAt("fp8"))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  Choice choice{magic,
                {},
                uint32_t(p.m),
                uint32_t(p.n),
                uint32_t(p.k),
                uint32_t(p.d.batch),
                p.epilogue,
                0,
                {uint8_t(p.a.type), uint8_t(p.b.type)},
                {uint8_t(p.aScales.mode), uint8_t(p.bScales.mode)},
                p.accumulatesFast};
  for (int operand = 0; operand < 4; ++operand)
    choice.alignments[operand] = wishes->get<uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + operand, 256);
  for (*found = 0; *found < std::min(wanted, 2); ++*found) {
    cublasLtMatmulHeuristicResult_t &result = results[*found];
    result = {};
    if (*found == 1)
      choice.workspace = wishes->get<uint64_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 0);
    std::memcpy(&result.algo, &choice, sizeof(choice));
    result.workspaceSize = choice.workspace;
    result.wavesCount = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

TESSERA_LT cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void *alpha, const void *a,
                          cublasLtMatrixLayout_t aLayout, const void *b, cublasLtMatrixLayout_t bLayout,
                          const void *beta, const void *c, cublasLtMatrixLayout_t cLayout, void *d,
                          cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                          size_t workspaceBytes, cudaStream_t streamHandle) {
  Lock lock(sim().mutex);
  Stream *stream = sim().stream(streamHandle, "cublasLtMatmul");
  Product p;
  if (!stream || !find(handle, library))
    return CUBLAS_STATUS_INVALID_VALUE;
  auto refuse = [&](const std::string &why) {
    sim().report("cublasLtMatmul: " + why);
    return CUBLAS_STATUS_INVALID_VALUE;
  };
  if (std::string why = readProduct(description, aLayout, bLayout, cLayout, dLayout, p); !why.empty())
    return refuse(why);
  Addresses at{reinterpret_cast<uint64_t>(a), reinterpret_cast<uint64_t>(b), reinterpret_cast<uint64_t>(c),
               reinterpret_cast<uint64_t>(d)};
  Choice choice{};
  if (algorithm) {
    std::memcpy(&choice, algorithm, sizeof(choice));
    if (choice.magic != magic || !choice.isFor(p))
      return refuse("the algorithm was chosen for another product");
    if (choice.workspace > workspaceBytes)
      return refuse("the workspace is smaller than what the algorithm needs");
    const std::array<uint64_t, 4> addresses = addressesOf(at);
    for (int operand = 0; operand < 4; ++operand)
      if (addresses[operand] % choice.alignments[operand] != 0)
        return refuse("operand " + std::string(1, "abcd"[operand]) + " is not aligned to " +
                      std::to_string(choice.alignments[operand]) + " bytes");
  }
  if (choice.workspace && sim().failureAt("algorithm"))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (workspaceBytes && reinterpret_cast<uint64_t>(workspace) % 16 != 0)
    return refuse("the workspace is not aligned to 16 bytes");
  bool isSum = p.epilogue == CUBLASLT_EPILOGUE_BGRADA || p.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  if (!isSum && (p.epilogue & hasAux) && p.aux % 16 != 0)
    return refuse("the epilogue's matrix is not aligned to 16 bytes");
  if (at.c == at.d && (p.c.leading != p.d.leading || p.c.batchStride != p.d.batchStride))
    return refuse("c and d are one matrix with two layouts");
  float alphaValue = *static_cast<const float *>(alpha), betaValue = *static_cast<const float *>(beta);
  auto space = reinterpret_cast<uint64_t>(workspace);
  if (isFloat8(p.a.type)) {
    for (uint64_t address : addressesOf(at))
      if (address % 16 != 0)
        return refuse("an operand of a product of 8-bit floats is not aligned to 16 bytes");
    if (!p.aScales.address || !p.bScales.address || p.aScales.address % 16 != 0 || p.bScales.address % 16 != 0)
      return refuse("scales of 8-bit floats are missing, or not aligned to 16 bytes");
    sim().count("products with scales " + std::to_string(p.aScales.mode) + " x " + std::to_string(p.bScales.mode) +
                (p.accumulatesFast ? " fast" : ""));
  }
  sim().count("products");
  if (p.multiprocessors != 0)
    sim().count("products that leave multiprocessors");
  if (p.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    sim().count("products with epilogue " + std::to_string(p.epilogue));
  const bool isSlow = p.epilogue != CUBLASLT_EPILOGUE_DEFAULT && sim().failureAt("slow-epilogue");
  CUresult result = sim().submit(*stream, [=](Gpu &gpu) {
    if (isSlow)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (workspaceBytes) // the library may write anything there
      std::memset(gpu.resolve(space, workspaceBytes, "the workspace of cublasLtMatmul"), 0x7f,
                  std::min<size_t>(workspaceBytes, 4096));
    evaluate(p, at, alphaValue, betaValue, gpu);
  });
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
