//===- CudaAttentionKernels.cpp - launches of our own attention kernels --===//

#include "runtime/device/cuda/CudaAttentionKernels.h"

#include "runtime/device/cuda/TensorAttentionLayout.h"

#include <algorithm>

namespace tessera::cuda {

/// PTX of Attention.cu and TensorAttention.cu, with a zero at its end; made by the build.
extern const char attentionKernels[];
extern const char tensorAttentionBF16x64[];
extern const char tensorAttentionBF16x128[];
extern const char tensorAttentionF16x64[];
extern const char tensorAttentionF16x128[];

using artifact::DataType;

static std::string scalarSymbol(std::string_view name, std::string_view type) {
  return std::string("tesseraAttention").append(name).append(type);
}
/// Of the kernel for heads of up to `depth`.
static std::string tensorSymbol(std::string_view name, std::string_view type, int depth) {
  return std::string("tesseraTensorAttention").append(name).append(type).append("x").append(std::to_string(depth));
}

/// Heads up to which size the kernel for this attention has.
static int tensorDepth(const AttentionLayout &layout) {
  return std::max(layout.depth, layout.valueDepth) <= tensorDepths[0] ? tensorDepths[0] : tensorDepths[1];
}
static const char *tensorPtx(DataType dtype, int depth) {
  if (depth == tensorDepths[0])
    return dtype == DataType::BF16 ? tensorAttentionBF16x64 : tensorAttentionF16x64;
  return dtype == DataType::BF16 ? tensorAttentionBF16x128 : tensorAttentionF16x128;
}

AttentionKernels::~AttentionKernels() {
  for (auto [ptx, library] : libraries)
    if (library)
      cuLibraryUnload(library);
}

Status AttentionKernels::load(const AttentionLayout &layout, DataType dtype, AttentionUnits units) {
  const int depth = tensorDepth(layout);
  const char *ptx = units == AttentionUnits::Tensor ? tensorPtx(dtype, depth) : attentionKernels;
  const std::string type = artifact::EnumNameDataType(dtype);
  CUlibrary &library = libraries[ptx];
  if (!library)
    TESSERA_CU(cuLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  if (units == AttentionUnits::Tensor) {
    TESSERA_RETURN_IF_ERROR(loadFunction(library, tensorSymbol("", type, depth), tensorForwardBytes(depth)));
    for (const char *name : {"QueryGrad", "KeyGrad"})
      TESSERA_RETURN_IF_ERROR(loadFunction(library, tensorSymbol(name, type, depth), tensorGradBytes(depth)));
    return Status::ok();
  }
  for (const char *name : {"", "RowSum", "QueryGrad", "KeyGrad"})
    TESSERA_RETURN_IF_ERROR(loadFunction(library, scalarSymbol(name, type), sizeof(AttentionScratch)));
  return Status::ok();
}

Status AttentionKernels::loadFunction(CUlibrary library, const std::string &symbol, int sharedBytes) {
  if (functions.count(symbol) > 0)
    return Status::ok();
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  TESSERA_CU(cuLibraryGetKernel(&kernel, library, symbol.c_str()));
  TESSERA_CU(cuKernelGetFunction(&function, kernel));
  // More than what kernels may have unasked.
  TESSERA_CU(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, sharedBytes));
  functions[symbol] = function;
  return Status::ok();
}

Status AttentionKernels::launch(const std::string &symbol, int64_t blocks, int64_t sections, int threads,
                                int sharedBytes, const AttentionLayout &layout, CUstream stream) const {
  if (blocks == 0 || sections == 0)
    return Status::ok();
  void *arguments[] = {const_cast<AttentionLayout *>(&layout)};
  TESSERA_CU(cuLaunchKernel(functions.at(symbol), static_cast<unsigned>(blocks), static_cast<unsigned>(sections), 1,
                            static_cast<unsigned>(threads), 1, 1, static_cast<unsigned>(sharedBytes), stream, arguments,
                            nullptr));
  return Status::ok();
}

Status AttentionKernels::startTensor(const AttentionLayout &layout, const std::string &type, bool isBackward,
                                     CUstream stream) const {
  const int depth = tensorDepth(layout);
  if (!isBackward)
    return launch(tensorSymbol("", type, depth), tensorForwardBlocks(layout), 1, tensorThreads,
                  tensorForwardBytes(depth), layout, stream);
  // In this order: the second reads the row sums that the first one writes.
  TESSERA_RETURN_IF_ERROR(launch(tensorSymbol("QueryGrad", type, depth), tensorQueryGradBlocks(layout), 1,
                                 tensorThreads, tensorGradBytes(depth), layout, stream));
  return launch(tensorSymbol("KeyGrad", type, depth), tensorKeyGradBlocks(layout), 1, tensorThreads,
                tensorGradBytes(depth), layout, stream);
}

Status AttentionKernels::start(const AttentionLayout &layout, DataType dtype, AttentionUnits units, bool isBackward,
                               CUstream stream) const {
  const std::string type = artifact::EnumNameDataType(dtype);
  if (units == AttentionUnits::Tensor)
    return startTensor(layout, type, isBackward, stream);
  auto start = [&](const char *name, const AttentionGrid &grid, int sharedBytes) {
    return launch(scalarSymbol(name, type), grid.blocks, grid.sections, attentionThreads, sharedBytes, layout, stream);
  };
  constexpr int sharedBytes = sizeof(AttentionScratch);
  if (!isBackward)
    return start("", forwardGrid(layout), sharedBytes);
  const int64_t rows = layout.batch * layout.heads * layout.queries;
  TESSERA_RETURN_IF_ERROR(start("RowSum", {attentionParts(rows, attentionThreads), rows > 0 ? 1 : 0}, 0));
  TESSERA_RETURN_IF_ERROR(start("QueryGrad", queryGradGrid(layout), sharedBytes));
  return start("KeyGrad", keyGradGrid(layout), sharedBytes);
}

} // namespace tessera::cuda
