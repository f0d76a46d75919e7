//===- PtxBody.h - runs a few instructions of PTX, for tests ----------------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_PTXBODY_H
#define TESSERA_TESTS_GPU_SIMULATOR_PTXBODY_H

#include "Ptx.h"

#include <cstring>

namespace tessera::sim {

/// One buffer, which begins at address 4096 for the kernel.
struct OneBuffer : AddressSpace {
  explicit OneBuffer(size_t words) : data(words) {}
  Window find(uint64_t address) const override {
    Window window{4096, 4096 + data.size() * 4, reinterpret_cast<int64_t>(data.data()) - 4096};
    return address >= window.begin && address < window.end ? window : Window{};
  }
  std::vector<uint32_t> data;
};

/// Runs `body` in one block: %rd1 is the buffer, %r1 the thread, %rd2 the thread's word of it.
inline void runBody(const std::string &body, OneBuffer &buffer, uint32_t threads = 64, uint32_t sharedBytes = 256) {
  Module module =
      parsePtx(".version 8.0\n.target sm_90\n.address_size 64\n"
               ".visible .entry k(.param .u64 k_param_0)\n{\n.reg .pred %p<9>;\n.reg .b16 %rs<9>;\n"
               ".reg .b32 %r<40>;\n.reg .b64 %rd<9>;\n.shared .align 16 .b8 mem[" +
               std::to_string(sharedBytes) +
               "];\n"
               "ld.param.b64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
               "add.s64 %rd2, %rd1, %rd2;\nshl.b32 %r2, %r1, 2;\nmov.b32 %r8, mem;\nadd.s32 %r2, %r2, %r8;\n" +
               body + "\nret;\n}\n");
  Launch launch;
  launch.kernel = &module.kernels.at("k");
  launch.block[0] = threads;
  launch.findsRaces = true;
  uint64_t address = 4096;
  launch.parameters.resize(8);
  std::memcpy(launch.parameters.data(), &address, 8);
  std::mt19937_64 random(1);
  runKernel(launch, buffer, random);
}

/// The error's code and words; 0 if there is none.
inline std::pair<int, std::string> faultOf(const std::string &body, uint32_t threads = 64) {
  OneBuffer buffer(64);
  try {
    runBody(body, buffer, threads);
  } catch (const KernelFault &fault) {
    return {fault.code, fault.what()};
  }
  return {0, ""};
}

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_PTXBODY_H
