//===- CodeObject.h - generated kernels in memory --------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_CODEOBJECT_H
#define TESSERA_RUNTIME_DEVICE_CPU_CODEOBJECT_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera::cpu {

/// A generated kernel: computes [begin, end) of its outer extent.
using KernelFunction = void (*)(void *const *buffers, int64_t begin, int64_t end);

/// A kernel, and how many buffers it takes: it reads so many addresses.
struct Kernel {
  KernelFunction function = nullptr;
  uint32_t numBuffers = 0;
};

/// A shared object that is loaded from memory (memfd and dlopen: the file system is not touched).
class CodeObject {
public:
  static Result<CodeObject> load(const uint8_t *bytes, size_t size, const std::string &name);
  CodeObject(CodeObject &&other) noexcept : handle(other.handle), file(other.file) { other.handle = nullptr; }
  CodeObject &operator=(CodeObject &&) = delete;
  ~CodeObject();

  /// Of the kernel `symbol` and the number `symbol`_buffers.
  Result<Kernel> find(const std::string &symbol) const;

private:
  CodeObject(void *handle, int file) : handle(handle), file(file) {}
  void *handle;
  int file; ///< open as long as the object: the loader knows it by its number
};

/// Fails with the missing features if this machine cannot run code for `target` ("cpu:<name>:<+feature,…>").
Status checkTarget(const std::string &target);

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_CODEOBJECT_H
