//===- CudaStream.h - streams and events of a GPU ---------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_CUDASTREAM_H
#define TESSERA_RUNTIME_DEVICE_CUDA_CUDASTREAM_H

#include "runtime/device/cuda/CudaDevice.h"

namespace tessera::cuda {

class CudaEvent : public DeviceEvent {
public:
  ~CudaEvent() override {
    if (event)
      cuEventDestroy(event);
  }
  CUevent event = nullptr;
  int64_t recordedIn = -1; ///< the step; those of earlier steps are complete
};

/// Work is issued by the rank's thread, which goes on at once.
class CudaStream : public DeviceStream {
public:
  CudaStream(CudaShared &shared, int number) : shared(shared), number(number) {}
  ~CudaStream() override;
  Status open();

  bool runsAtOnce() const override { return true; }
  void issue(std::function<void()> task) override { task(); }
  Status record(DeviceEvent &event) override;
  Status wait(DeviceEvent &event, WaitObserver observer) override;
  TimeMark mark() override;
  /// Blocks, but not longer than the other ranks live and collectives move on.
  Status synchronise() override;
  /// CUDA tells that earlier work failed with whatever is called next: then what was under way, else the status itself.
  Status blame(Status status) const;

  CUstream handle = nullptr;

private:
  Status gpuFailure(CUresult result) const;

  CudaShared &shared;
  int number;
  CUresult markError = CUDA_SUCCESS; ///< told when the stream is synchronised
};

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_CUDASTREAM_H
