//===- CodeObject.cpp - generated kernels in memory ------------------------===//

#include "runtime/device/cpu/CodeObject.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace tessera::cpu {

Result<CodeObject> CodeObject::load(const uint8_t *bytes, size_t size, const std::string &name) {
  int file = ::memfd_create(name.c_str(), MFD_CLOEXEC);
  if (file < 0)
    return TESSERA_ERROR(IoError, "cannot make a memory file for the kernels: " + std::string(std::strerror(errno)));
  for (size_t done = 0; done < size;) {
    ssize_t count = ::write(file, bytes + done, size - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0) {
      int error = errno;
      ::close(file);
      return TESSERA_ERROR(Exhausted, "cannot write the kernels to memory: " + std::string(std::strerror(error)));
    }
    done += static_cast<size_t>(count);
  }
  std::string path = "/proc/self/fd/" + std::to_string(file);
  void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = ::dlerror();
    ::close(file);
    return TESSERA_ERROR(DataLoss, "cannot load the kernels: " + std::string(reason ? reason : "unknown reason"));
  }
  return CodeObject(handle, file);
}

CodeObject::~CodeObject() {
  if (!handle)
    return;
  ::dlclose(handle);
  ::close(file);
}

Result<Kernel> CodeObject::find(const std::string &symbol) const {
  void *address = ::dlsym(handle, symbol.c_str());
  if (!address)
    return TESSERA_ERROR(DataLoss, "the kernels have no symbol '" + symbol + "'");
  const void *number = ::dlsym(handle, (symbol + "_buffers").c_str());
  if (!number)
    return TESSERA_ERROR(DataLoss,
                         "the kernels do not say how many buffers '" + symbol + "' takes; compile the model again");
  Kernel kernel{reinterpret_cast<KernelFunction>(address)};
  std::memcpy(&kernel.numBuffers, number, sizeof(kernel.numBuffers));
  return kernel;
}

static bool hasFeature(std::string_view name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
#define TESSERA_FEATURE(text)                                                                                          \
  if (name == text)                                                                                                    \
    return __builtin_cpu_supports(text);
  TESSERA_FEATURE("avx")
  TESSERA_FEATURE("avx2")
  TESSERA_FEATURE("fma")
  TESSERA_FEATURE("avx512f")
  TESSERA_FEATURE("avx512bw")
  TESSERA_FEATURE("avx512cd")
  TESSERA_FEATURE("avx512dq")
  TESSERA_FEATURE("avx512vl")
  TESSERA_FEATURE("avx512vbmi")
  TESSERA_FEATURE("avx512bf16")
#undef TESSERA_FEATURE
#endif
  return true; // features that only come together with those above
}

Status checkTarget(const std::string &target) {
  if (target.compare(0, 4, "cpu:") != 0)
    return TESSERA_ERROR(Unsupported, "the artifact is for target '" + target + "', this runtime has only the CPU");
  size_t featuresAt = target.find(':', 4);
  std::string_view rest = featuresAt == std::string::npos ? "" : std::string_view(target).substr(featuresAt + 1);
  std::string missing;
  while (!rest.empty()) {
    std::string_view feature = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), feature.size() + 1));
    if (!feature.empty() && feature[0] == '+' && !hasFeature(feature.substr(1)))
      missing += (missing.empty() ? "" : ", ") + std::string(feature.substr(1));
  }
  if (!missing.empty())
    return TESSERA_ERROR(Unsupported, "the artifact's kernels need " + missing +
                                          ", which this processor lacks; compile with --target-cpu for it");
  return Status::ok();
}

} // namespace tessera::cpu
