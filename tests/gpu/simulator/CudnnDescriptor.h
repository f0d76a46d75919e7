//===- CudnnDescriptor.h - descriptors of cuDNN's backend, and what they may say --===//
//
// The checks are those that cuDNN 9.19 was seen to make where it finalizes descriptors without a GPU, and some that it
// leaves to chance: attributes that are not set, tensors nobody writes, two descriptions of one tensor.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_CUDNNDESCRIPTOR_H
#define TESSERA_TESTS_GPU_SIMULATOR_CUDNNDESCRIPTOR_H

#include "CudnnProgram.h"

#include <cstring>

namespace tessera::sim {

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool isFinal = false;
  std::map<int, std::vector<std::byte>> values;
  std::shared_ptr<Program> program; ///< of a graph, and of what is made of it
  int engine = 0;

  template <typename T> std::vector<T> list(int attribute) const {
    auto found = values.find(attribute);
    std::vector<T> made(found == values.end() ? 0 : found->second.size() / sizeof(T));
    if (!made.empty())
      std::memcpy(made.data(), found->second.data(), made.size() * sizeof(T));
    return made;
  }
  bool flag(int attribute) const { return get<uint8_t>(attribute) != 0; }
  template <typename T> T get(int attribute, T otherwise = T()) const {
    std::vector<T> all = list<T>(attribute);
    return all.empty() ? otherwise : all[0];
  }
};

using Descriptors = std::map<const void *, std::unique_ptr<Descriptor>>;

/// What a call is refused with.
struct Refusal {
  cudnnStatus_t status;
  std::string why;
};

[[noreturn]] inline void refuse(const std::string &why) { throw Refusal{CUDNN_STATUS_BAD_PARAM, why}; }
[[noreturn]] inline void lack(const std::string &why) {
  throw Refusal{CUDNN_STATUS_NOT_SUPPORTED, why + " is not simulated"};
}
inline void require(bool holds, const char *what) {
  if (!holds)
    refuse(what);
}

/// Bytes of a value, or throws Refusal where a descriptor of this type has no such attribute.
size_t checkAttribute(cudnnBackendDescriptorType_t of, int name, cudnnBackendAttributeType_t type, int64_t count);
/// Throws Refusal where the descriptor cannot be finalized.
void checkDescriptor(const Descriptor &descriptor, const Descriptors &all);
/// What a graph's operations compute, in an order in which they can. Throws Refusal.
Program readGraph(const Descriptor &graph, const Descriptors &all);

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_CUDNNDESCRIPTOR_H
