//===- CudaMove.cpp - copies, fills and sums on a GPU -----------------------===//

#include "runtime/device/cuda/CudaMove.h"

#include <algorithm>

namespace tessera::cuda {

/// PTX of Kernels.cu, with a zero at its end; made by the build.
extern const char moveKernels[];

using artifact::DataType;

/// Those of which Kernels.cu has a sum.
constexpr DataType summed[] = {DataType::F32, DataType::F64, DataType::BF16,
                               DataType::F16, DataType::I32, DataType::I64};

static std::string sumKernel(DataType dtype) { return std::string("tesseraSum") + artifact::EnumNameDataType(dtype); }

bool Mover::canSum(DataType dtype) {
  return std::find(std::begin(summed), std::end(summed), dtype) != std::end(summed);
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
  for (DataType dtype : summed)
    names.push_back(sumKernel(dtype));
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

Status Mover::sum(void *target, const std::vector<const void *> &inputs, DataType dtype, int64_t elements,
                  CUstream stream) const {
  struct {
    const void *data[64];
  } list{};
  if (!canSum(dtype) || inputs.size() > std::size(list.data))
    return TESSERA_ERROR(Unsupported, "a sum of " + std::to_string(inputs.size()) + " inputs of type " +
                                          artifact::EnumNameDataType(dtype));
  std::copy(inputs.begin(), inputs.end(), list.data);
  int count = static_cast<int>(inputs.size());
  void *arguments[] = {&target, &list, &count, &elements};
  return elements == 0 ? Status::ok() : launch(sumKernel(dtype), elements, arguments, stream);
}

} // namespace tessera::cuda
