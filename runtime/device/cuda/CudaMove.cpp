//===- CudaMove.cpp - copies, fills and reductions on a GPU -----------------===//

#include "runtime/device/cuda/CudaMove.h"

#include <algorithm>

namespace tessera::cuda {

/// PTX of Kernels.cu, with a zero at its end; made by the build.
extern const char moveKernels[];

using artifact::DataType;
using artifact::ReductionKind;

/// Those that Kernels.cu reduces.
constexpr DataType reduced[] = {DataType::F32, DataType::F64, DataType::BF16,
                                DataType::F16, DataType::I32, DataType::I64};

static std::string reductionKernel(ReductionKind kind, DataType dtype) {
  return std::string("tessera") + artifact::EnumNameReductionKind(kind) + artifact::EnumNameDataType(dtype);
}

bool Mover::canReduce(DataType dtype) {
  return std::find(std::begin(reduced), std::end(reduced), dtype) != std::end(reduced);
}

Mover::~Mover() {
  if (library)
    cuLibraryUnload(library);
}

Status Mover::load() {
  TESSERA_CU(cuLibraryLoadData(&library, moveKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  std::vector<std::string> names;
  for (const char *width : {"1", "2", "4", "8"}) {
    names.push_back(std::string("tesseraCopy") + width);
    names.push_back(std::string("tesseraFill") + width);
  }
  for (DataType dtype : reduced)
    for (ReductionKind kind : artifact::EnumValuesReductionKind())
      names.push_back(reductionKernel(kind, dtype));
  names.insert(names.end(), {"tesseraOrderF32", "tesseraOrderF64"});
  for (const std::string &name : names) {
    CUkernel kernel = nullptr;
    TESSERA_CU(cuLibraryGetKernel(&kernel, library, name.c_str()));
    TESSERA_CU(cuKernelGetFunction(&functions[name], kernel));
  }
  return Status::ok();
}

Status Mover::launch(const std::string &name, int64_t elements, void **arguments, CUstream stream) const {
  constexpr int64_t threads = 256, most = 4096;
  auto blocks = static_cast<unsigned>(std::clamp<int64_t>((elements + threads - 1) / threads, 1, most));
  TESSERA_CU(cuLaunchKernel(functions.at(name), blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr));
  return Status::ok();
}

Status Mover::copy(void *target, const void *source, const MoveLayout &layout, size_t width, CUstream stream) const {
  if (layout.elements == 0)
    return Status::ok();
  if (isDense(layout)) {
    TESSERA_CU(cuMemcpyAsync(deviceAddress(target), deviceAddress(source), static_cast<size_t>(layout.elements) * width,
                             stream));
    return Status::ok();
  }
  MoveLayout argument = layout;
  void *arguments[] = {&target, &source, &argument};
  return launch("tesseraCopy" + std::to_string(width), layout.elements, arguments, stream);
}

Status Mover::fill(void *target, uint64_t bits, const MoveLayout &layout, size_t width, CUstream stream) const {
  if (layout.elements == 0)
    return Status::ok();
  MoveLayout argument = layout;
  void *arguments[] = {&target, &bits, &argument};
  return launch("tesseraFill" + std::to_string(width), layout.elements, arguments, stream);
}

Status Mover::reduce(ReductionKind kind, void *target, const std::vector<const void *> &inputs, DataType dtype,
                     int64_t elements, CUstream stream) const {
  struct {
    const void *data[64];
  } list{};
  if (!canReduce(dtype) || inputs.size() > std::size(list.data))
    return TESSERA_ERROR(Unsupported, std::string("a ") + artifact::EnumNameReductionKind(kind) + " of " +
                                          std::to_string(inputs.size()) + " inputs of type " +
                                          artifact::EnumNameDataType(dtype));
  std::copy(inputs.begin(), inputs.end(), list.data);
  int count = static_cast<int>(inputs.size());
  void *arguments[] = {&target, &list, &count, &elements};
  return elements == 0 ? Status::ok() : launch(reductionKernel(kind, dtype), elements, arguments, stream);
}

Status Mover::order(ReductionKind kind, void *target, const void *source, DataType dtype, int64_t elements, bool isBack,
                    CUstream stream) const {
  if (dtype != DataType::F32 && dtype != DataType::F64)
    return TESSERA_ERROR(Unsupported, std::string("the order of numbers of type ") + artifact::EnumNameDataType(dtype));
  int isMax = kind == ReductionKind::Max, back = isBack;
  void *arguments[] = {&target, &source, &elements, &isMax, &back};
  return elements == 0
             ? Status::ok()
             : launch(std::string("tesseraOrder") + artifact::EnumNameDataType(dtype), elements, arguments, stream);
}

} // namespace tessera::cuda
