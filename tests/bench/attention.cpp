//===- attention.cpp - seconds of the CPU's attention ----------------------===//
//
// Forward and backward of one attention, bf16 or f32, as medians; attention.py sets it beside PyTorch.
//
// usage: bench-attention <positions> <depth> [heads=8] [groups=heads] [threads=2] [rounds=5] [f32|bf16] [window=0]
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Attention.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace tessera;
using artifact::DataType;

namespace {

/// A contiguous tensor with memory of its own.
struct Owned {
  Owned(std::vector<int64_t> shape, DataType dtype) {
    view.shape = shape;
    view.dtype = dtype;
    view.strides.assign(shape.size(), 1);
    for (size_t dim = shape.size() - 1; dim-- > 0;)
      view.strides[dim] = view.strides[dim + 1] * shape[dim + 1];
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    memory = static_cast<float *>(std::aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64)); // as an arena's
    if (!memory)
      std::abort();
    for (int64_t index = 0; index < count; ++index)
      put(index, static_cast<float>((index * 2654435761u >> 8) % 2001) / 1000.0f - 1.0f);
    view.data = memory;
  }
  Owned(const Owned &) = delete;
  ~Owned() { std::free(memory); }
  void put(int64_t index, float value) {
    if (view.dtype == DataType::F32)
      memory[index] = value;
    else
      reinterpret_cast<uint16_t *>(memory)[index] = static_cast<uint16_t>(__builtin_bit_cast(uint32_t, value) >> 16);
  }
  float *memory = nullptr;
  TensorView view;
};

template <typename Run> double medianSeconds(int rounds, Run &&run) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds + 1; ++round) {
    const auto start = std::chrono::steady_clock::now();
    run();
    if (round > 0) // the first takes its memory
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return seconds[rounds / 2];
}

} // namespace

int main(int argc, char **argv) {
  auto number = [&](int at, int64_t otherwise) { return argc > at ? std::atoll(argv[at]) : otherwise; };
  const int64_t positions = number(1, 0), depth = number(2, 0), heads = number(3, 8), groups = number(4, heads);
  const int threads = static_cast<int>(number(5, 2)), rounds = static_cast<int>(number(6, 5));
  const DataType dtype = argc > 7 && std::string(argv[7]) == "bf16" ? DataType::BF16 : DataType::F32;
  if (positions < 1 || depth < 1 || heads < 1 || groups < 1 || heads % groups != 0 || threads < 1 || rounds < 1) {
    std::fprintf(
        stderr, "usage: bench-attention <positions> <depth> [heads] [groups] [threads] [rounds] [f32|bf16] [window]\n");
    return 2;
  }
  Owned q({1, heads, positions, depth}, dtype), k({1, groups, positions, depth}, dtype), v(k.view.shape, dtype),
      out(q.view.shape, dtype), lse({1, heads, positions}, DataType::F32), dout(q.view.shape, dtype),
      dq(q.view.shape, dtype), dk(k.view.shape, dtype), dv(k.view.shape, dtype);
  cpu::AttentionGradArguments arguments;
  arguments.q = q.view;
  arguments.k = k.view;
  arguments.v = v.view;
  arguments.out = out.view;
  arguments.lse = lse.view;
  arguments.dout = dout.view;
  arguments.dq = dq.view;
  arguments.dk = dk.view;
  arguments.dv = dv.view;
  arguments.scale = 0.125f;
  arguments.causal = true;
  arguments.window = number(8, 0);
  cpu::Team team(threads);
  team.adopt();
  cpu::Scratch scratch;
  const double forward = medianSeconds(rounds, [&] { cpu::attention(arguments, scratch, team); });
  const double backward = medianSeconds(rounds, [&] { cpu::attentionGrad(arguments, scratch, team); });
  std::printf("%.6f %.6f\n", forward, backward);
  return 0;
}
