//===- CudaEpilogue.cpp - epilogues by kernels of our own -------------------===//

#include "runtime/device/cuda/CudaEpilogue.h"

#include "runtime/artifact/Epilogue.h"

#include <algorithm>
#include <bit>

namespace tessera::cuda {

/// PTX of Epilogue.cu, with a zero at its end; made by the build.
extern const char epilogueKernels[];

using artifact::DataType;
using artifact::Epilogue;

/// That a thread reads or writes at a time where addresses and rows allow it.
static constexpr int64_t vectorBytes = 16;

EpilogueKernels::~EpilogueKernels() {
  if (library)
    cuLibraryUnload(library);
}

Status EpilogueKernels::load(CUdeviceptr memory, size_t bytes) {
  workspace = memory;
  workspaceBytes = bytes;
  if (library)
    return Status::ok();
  TESSERA_CU(cuLibraryLoadData(&library, epilogueKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  for (const char *name :
       {"ApplyF32", "ApplyBF16", "ApplyF16", "ApplyVectorsF32", "ApplyVectorsBF16", "ApplyVectorsF16", "SumTermsF32F32",
        "SumTermsBF16F32", "SumTermsBF16BF16", "SumTermsF16F32", "SumTermsF16F16", "SumTermsF32BF16", "SumTermsF32F16",
        "SumPartsF32", "SumPartsBF16", "SumPartsF16"}) {
    CUkernel kernel = nullptr;
    TESSERA_CU(cuLibraryGetKernel(&kernel, library, (std::string("tessera") + name).c_str()));
    TESSERA_CU(cuKernelGetFunction(&functions[name], kernel));
  }
  return Status::ok();
}

Result<CUfunction> EpilogueKernels::find(const std::string &name) const {
  auto found = functions.find(name);
  if (found == functions.end())
    return TESSERA_ERROR(Unsupported, "an epilogue without the kernel " + name);
  return found->second;
}

Status EpilogueKernels::start(const GemmOperands &operands, const GemmAddresses &at, CUstream stream) const {
  DataType dtype = operands.c.view.dtype;
  switch (operands.epilogue) {
  case Epilogue::BiasGradA:
    return sum(operands.a.view, 0, at.a, dtype, at.output, stream);
  case Epilogue::BiasGradB:
    return sum(operands.b.view, 1, at.b, dtype, at.output, stream);
  default:
    TESSERA_RETURN_IF_ERROR(apply(operands, at, stream));
    return givesBiasGrad(operands.epilogue) ? sum(operands.c.view, 1, at.c, dtype, at.output, stream) : Status::ok();
  }
}

Status EpilogueKernels::apply(const GemmOperands &operands, const GemmAddresses &at, CUstream stream) const {
  const TensorView &c = operands.c.view;
  void *target = at.c, *kept = givesPreActivation(operands.epilogue) ? at.output : nullptr;
  const void *bias = takesBias(operands.epilogue) ? at.input : nullptr,
             *before = takesPreActivation(operands.epilogue) ? at.input : nullptr;
  int isGelu = appliesGelu(operands.epilogue) ? 1 : 0;
  int64_t elements = c.numElements(), columns = c.shape.back();
  if (elements == 0)
    return Status::ok();
  const auto bytes = static_cast<int64_t>(byteWidth(c.dtype));
  uintptr_t places = static_cast<uintptr_t>(columns * bytes);
  for (const void *address : {static_cast<const void *>(target), static_cast<const void *>(kept), bias, before})
    places |= reinterpret_cast<uintptr_t>(address);
  const bool hasVectors = places % vectorBytes == 0;
  TESSERA_ASSIGN_OR_RETURN(CUfunction function, find(std::string(hasVectors ? "ApplyVectors" : "Apply") +
                                                     artifact::EnumNameDataType(c.dtype)));
  constexpr int64_t threads = 256, most = 4096;
  const int64_t words = hasVectors ? elements * bytes / vectorBytes : elements;
  auto blocks = static_cast<unsigned>(std::min((words + threads - 1) / threads, most));
  void *arguments[] = {&target, &bias, &kept, &before, &isGelu, &elements, &columns};
  TESSERA_CU(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr));
  return Status::ok();
}

Result<int64_t> EpilogueKernels::sumParts(const TensorView &matrix, size_t kept, const void *source,
                                          CUstream stream) const {
  constexpr int64_t vectors = 32, leastRows = 64, wantedBlocks = 768; // as `decompose` cuts
  const auto bytes = static_cast<int64_t>(byteWidth(matrix.dtype));
  int64_t count = matrix.shape[kept], terms = matrix.shape[1 - kept], termStride = matrix.strides[1 - kept];
  if (matrix.strides[kept] != 1 || terms <= leastRows || count * bytes % vectorBytes != 0 ||
      termStride * bytes % vectorBytes != 0 || reinterpret_cast<uintptr_t>(source) % vectorBytes != 0)
    return 0;
  const int64_t columnsOfBlock = vectors * (vectorBytes / bytes),
                blocks = (count + columnsOfBlock - 1) / columnsOfBlock;
  const int64_t most = std::min(terms / leastRows, static_cast<int64_t>(workspaceBytes) / (4 * count));
  const int64_t wanted = std::min((wantedBlocks + blocks - 1) / blocks, most);
  if (wanted < 1)
    return 0;
  int64_t rows = (terms + wanted - 1) / wanted;
  const int64_t parts = (terms + rows - 1) / rows;
  TESSERA_ASSIGN_OR_RETURN(CUfunction function,
                           find(std::string("SumParts") + artifact::EnumNameDataType(matrix.dtype)));
  CUdeviceptr partial = workspace;
  void *arguments[] = {&partial, &source, &count, &terms, &termStride, &rows};
  TESSERA_CU(cuLaunchKernel(function, static_cast<unsigned>(blocks), static_cast<unsigned>(parts), 1, vectors, 8, 1, 0,
                            stream, arguments, nullptr));
  return parts;
}

Status EpilogueKernels::sum(const TensorView &matrix, size_t kept, const void *source, DataType dtype, void *output,
                            CUstream stream) const {
  int64_t count = matrix.shape[kept], terms = matrix.shape[1 - kept], stride = matrix.strides[kept],
          termStride = matrix.strides[1 - kept];
  if (count == 0)
    return Status::ok();
  DataType from = matrix.dtype;
  TESSERA_ASSIGN_OR_RETURN(int64_t parts, sumParts(matrix, kept, source, stream));
  if (parts > 0) {
    from = DataType::F32;
    source = std::bit_cast<const void *>(workspace);
    terms = parts;
    termStride = count;
  }
  TESSERA_ASSIGN_OR_RETURN(CUfunction function, find(std::string("SumTerms") + artifact::EnumNameDataType(from) +
                                                     artifact::EnumNameDataType(dtype)));
  auto blocks = static_cast<unsigned>((count + 31) / 32);
  void *arguments[] = {&output, &source, &count, &terms, &stride, &termStride};
  TESSERA_CU(cuLaunchKernel(function, blocks, 1, 1, 32, 8, 1, 0, stream, arguments, nullptr));
  return Status::ok();
}

} // namespace tessera::cuda
