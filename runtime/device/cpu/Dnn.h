//===- Dnn.h - what the users of oneDNN share ------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_DNN_H
#define TESSERA_RUNTIME_DEVICE_CPU_DNN_H

#include "runtime/base/Status.h"

#include <dnnl.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

namespace tessera::cpu {

inline dnnl::engine &dnnEngine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// Runs `body`; oneDNN's exceptions end here.
template <typename Body> Status guardDnn(const char *what, Body &&body) {
  try {
    body();
  } catch (const dnnl::error &error) {
    return TESSERA_ERROR(Internal, std::string("oneDNN ") + what + ": " + error.what());
  }
  return Status::ok();
}

/// One piece of memory as large as the largest user needs; the users run one after the other.
class Scratch {
public:
  void require(size_t bytes) {
    if (bytes <= size)
      return;
    size_t rounded = (bytes + 63) / 64 * 64;
    memory.reset(static_cast<std::byte *>(std::aligned_alloc(64, rounded)));
    if (!memory)
      throw std::bad_alloc(); // as std::vector does; it becomes the rank's error
    size = rounded;
  }
  void *data() const { return memory.get(); }
  size_t bytes() const { return size; }

private:
  struct Free {
    void operator()(std::byte *pointer) const { std::free(pointer); }
  };
  std::unique_ptr<std::byte, Free> memory;
  size_t size = 0;
};

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_DNN_H
