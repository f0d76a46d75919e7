//===- AttentionTest.cpp - the backend's own attention on tensor cores --------===//
//
// What nvcc made of TensorAttention.cu runs on the simulated driver: fragments, permuted tiles and copies are those
// that the hardware would see. Compared with the CPU's attention to the same numbers, in f32.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/Attention.h"
#include "runtime/base/Half.h"
#include "runtime/device/cuda/AttentionPlan.h"
#include "runtime/device/cuda/CudaAttentionKernels.h"

#include "tests/runtime/device/AttentionParts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace tessera::cuda {
namespace {

using artifact::DataType;
using test::HostTensor;
using test::KeyRanges;
using test::Ranges;
using test::RangesOf;

struct Case {
  const char *name;
  int64_t batch, heads, groups, queries, keys, depth, valueDepth;
  bool causal = false;
  int64_t window = 0;
  Ranges ranges = Ranges::None;
  RangesOf rangesOf = RangesOf::All;
  bool isInterleaved = false; ///< [B, H, T, D] stored as [B, T, H, D], with gaps
  bool hasWideResults = false;
  float scale = 0.3F;
};

/// Memory of the GPU that stands for a host's while a kernel runs.
class Mirror {
public:
  Mirror() = default;
  Mirror(const Mirror &) = delete;
  ~Mirror() {
    for (const Copy &copy : copies)
      cuMemFree(copy.device);
  }
  TensorView add(TensorView view) {
    int64_t last = 0;
    for (size_t dim = 0; dim < view.shape.size(); ++dim)
      last += (view.shape[dim] - 1) * view.strides[dim];
    const size_t bytes = static_cast<size_t>(last + 1) * byteWidth(view.dtype);
    CUdeviceptr device = 0;
    EXPECT_EQ(cuMemAlloc(&device, bytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyHtoD(device, view.data, bytes), CUDA_SUCCESS);
    copies.push_back({device, view.data, bytes});
    view.data = std::bit_cast<void *>(device);
    return view;
  }
  void *scratch(size_t bytes) {
    copies.push_back({0, nullptr, bytes});
    EXPECT_EQ(cuMemAlloc(&copies.back().device, bytes), CUDA_SUCCESS);
    return std::bit_cast<void *>(copies.back().device);
  }
  void fetch() {
    for (const Copy &copy : copies)
      if (copy.host) {
        EXPECT_EQ(cuMemcpyDtoH(copy.host, copy.device, copy.bytes), CUDA_SUCCESS);
      }
  }

private:
  struct Copy {
    CUdeviceptr device;
    void *host;
    size_t bytes;
  };
  std::vector<Copy> copies;
};

class Gpu {
public:
  Gpu() {
    setenv("TESSERA_SIM_RACES", "1", 0);
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    char name[256] = "";
    EXPECT_EQ(cuDeviceGetName(name, sizeof(name), 0), CUDA_SUCCESS);
    std::printf("device %s\n", name); // attention.py wants to know which driver was loaded
  }
  ~Gpu() { cuStreamDestroy(stream); }

  /// By tensor cores. Each call's memory is new, that is NaN where nobody writes.
  void run(const cpu::AttentionGradArguments &a, bool isBackward) {
    Mirror mirror;
    AttentionViews views;
    views.q = mirror.add(a.q), views.k = mirror.add(a.k), views.v = mirror.add(a.v);
    views.out = mirror.add(a.out), views.lse = mirror.add(a.lse);
    if (isBackward) {
      views.dout = mirror.add(a.dout);
      views.dq = mirror.add(a.dq), views.dk = mirror.add(a.dk), views.dv = mirror.add(a.dv);
    }
    if (a.begin) {
      views.begin = mirror.add(*a.begin);
      views.end = mirror.add(*a.end);
    }
    views.scale = a.scale;
    views.causal = a.causal;
    views.isPartial = a.isPartial;
    views.window = a.window;
    ASSERT_EQ(tensorRefusal(views, isBackward), "");
    Result<AttentionLayout> layout = attentionLayout(views);
    ASSERT_TRUE(layout.isOk()) << layout.status();
    if (isBackward)
      layout->delta = static_cast<float *>(
          mirror.scratch(static_cast<size_t>(2 * layout->batch * layout->heads * layout->queries) * sizeof(float)));
    Status loaded = kernels.load(*layout, a.q.dtype, AttentionUnits::Tensor);
    ASSERT_TRUE(loaded.isOk()) << loaded;
    Status started = kernels.start(*layout, a.q.dtype, AttentionUnits::Tensor, isBackward, stream);
    ASSERT_TRUE(started.isOk()) << started;
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    mirror.fetch();
  }

private:
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  AttentionKernels kernels;
};

/// A 16-bit copy of a tensor, which is itself rounded to what the copy holds.
class Narrow {
public:
  Narrow(HostTensor &tensor, DataType dtype) : tensor(tensor), made(tensor.view()), bits(tensor.raw().size()) {
    made.dtype = dtype;
    for (size_t at = 0; at < bits.size(); ++at)
      bits[at] = dtype == DataType::BF16 ? toBFloat16(tensor.raw()[at]) : toHalf(tensor.raw()[at]);
    made.data = bits.data();
    widen();
  }
  const TensorView &view() const { return made; }
  void widen() {
    const float *first = tensor.raw().data();
    tensor.forEach([&](const std::vector<int64_t> &index) {
      const uint16_t each = bits[static_cast<size_t>(&tensor.at(index) - first)];
      tensor.at(index) = made.dtype == DataType::BF16 ? widenBFloat16(each) : widenHalf(each);
    });
  }

private:
  HostTensor &tensor;
  TensorView made;
  std::vector<uint16_t> bits;
};

/// q, k, v, out, dout, dq, dk, dv, and lse.
struct Tensors {
  explicit Tensors(const Case &c) : lse({c.batch, c.heads, c.queries}) {
    const std::vector<size_t> order = c.isInterleaved ? std::vector<size_t>{0, 2, 1, 3} : std::vector<size_t>{};
    const std::vector<int64_t> q = {c.batch, c.heads, c.queries, c.depth}, k = {c.batch, c.groups, c.keys, c.depth},
                               v = {c.batch, c.groups, c.keys, c.valueDepth},
                               out = {c.batch, c.heads, c.queries, c.valueDepth};
    for (const auto &shape : {q, k, v, out, out, q, k, v})
      all.emplace_back(shape, order, c.isInterleaved ? 8 : 0);
    for (size_t index : {0, 1, 2, 4})
      all[index].random(static_cast<uint32_t>(index) + 1);
  }
  cpu::AttentionGradArguments arguments(const Case &c, const std::vector<TensorView> &views) {
    cpu::AttentionGradArguments a;
    a.q = views[0], a.k = views[1], a.v = views[2], a.out = views[3], a.dout = views[4];
    a.dq = views[5], a.dk = views[6], a.dv = views[7], a.lse = lse.view();
    a.scale = c.scale;
    a.causal = c.causal;
    a.window = c.window;
    return a;
  }
  std::vector<HostTensor> all;
  HostTensor lse;
};

class TensorAttention : public testing::TestWithParam<std::tuple<Case, DataType>> {};

TEST_P(TensorAttention, EqualsTheCpu) {
  const auto &[c, dtype] = GetParam();
  std::optional<KeyRanges> ranges;
  TensorView begin, end;
  if (c.ranges != Ranges::None) {
    ranges.emplace(c.ranges, c.rangesOf, c.batch, c.queries, c.keys);
    begin = ranges->beginView(), end = ranges->endView();
  }
  auto withRanges = [&](cpu::AttentionGradArguments a) {
    if (ranges)
      a.begin = &begin, a.end = &end;
    return a;
  };
  Tensors expected(c), found(c);
  std::vector<Narrow> narrow;
  std::vector<TensorView> wideViews, views;
  narrow.reserve(8);
  for (size_t index = 0; index < 8; ++index) {
    Narrow(expected.all[index], dtype); // rounds it
    wideViews.push_back(expected.all[index].view());
    narrow.emplace_back(found.all[index], dtype);
    const bool isResult = index == 3 || index >= 5;
    views.push_back(isResult && c.hasWideResults ? found.all[index].view() : narrow.back().view());
  }
  cpu::Scratch scratch;
  cpu::Team team(1);
  const cpu::AttentionGradArguments wanted = withRanges(expected.arguments(c, wideViews)),
                                    given = withRanges(found.arguments(c, views));
  cpu::attention(wanted, scratch, team);
  cpu::attentionGrad(wanted, scratch, team);
  Gpu gpu;
  for (bool isBackward : {false, true})
    gpu.run(given, isBackward);

  // Probabilities and their gradients are rounded to 8 and 11 bits before products; where scores are large, what the
  // roundings of f32 do to them is seen, too.
  const double tolerance = dtype == DataType::BF16 ? 1e-2 : 2e-3;
  auto compare = [&](HostTensor &reference, HostTensor &result, double most, const char *name) {
    std::vector<double> values;
    double largest = 0, found = 0;
    reference.forEach([&](const std::vector<int64_t> &at) {
      values.push_back(reference.at(at));
      largest = std::max(largest, std::abs(values.back()));
      found = std::max(found, std::abs(double(result.at(at))));
    });
    // Of one key the scores do not count: their gradient is 0 but for the rounding of terms near 1.
    if (constexpr double rounding = 1e-6; largest < rounding)
      EXPECT_LT(found, rounding) << name;
    else
      EXPECT_LT(test::relativeError(result, values), most) << name;
  };
  const char *names[] = {"q", "k", "v", "out", "dout", "dq", "dk", "dv"};
  for (size_t index : {3, 5, 6, 7}) {
    if (!c.hasWideResults)
      narrow[index].widen();
    compare(expected.all[index], found.all[index], tolerance, names[index]);
    EXPECT_TRUE(found.all[index].gapsAreUntouched()) << names[index];
  }
  compare(expected.lse, found.lse, 2e-6, "lse");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TensorAttention,
    testing::Combine(
        testing::Values(
            Case{"Plain", 1, 2, 2, 128, 128, 64, 64}, Case{"Depth128", 1, 1, 1, 130, 70, 128, 128},
            Case{"Causal", 2, 2, 1, 200, 200, 64, 64, true}, Case{"Causal128", 1, 2, 1, 140, 140, 128, 128, true},
            Case{"MoreKeys", 1, 2, 2, 70, 210, 64, 64, true}, Case{"MoreQueries", 1, 2, 2, 210, 70, 64, 64, true},
            Case{"One", 1, 1, 1, 1, 1, 8, 8},
            Case{"Odd", 2, 6, 2, 77, 45, 24, 72, true}, Case{"Narrow", 1, 2, 1, 66, 129, 112, 40},
            Case{"Window", 1, 2, 1, 300, 300, 64, 64, true, 70}, Case{"Window2", 1, 1, 1, 150, 150, 32, 32, true, 2},
            Case{"WindowMoreKeys", 2, 2, 2, 90, 250, 64, 64, true, 100},
            Case{"WindowMoreQueries", 1, 2, 2, 200, 90, 128, 128, true, 40},
            Case{"Ragged", 2, 2, 2, 150, 170, 64, 64, false, 0, Ranges::Ragged, RangesOf::EachSample},
            Case{"Documents", 2, 4, 2, 230, 230, 64, 64, true, 0, Ranges::Documents, RangesOf::EachSample},
            Case{"Documents128", 2, 2, 1, 150, 150, 128, 128, false, 0, Ranges::Documents, RangesOf::EndsOfEachSample},
            Case{"Wide", 1, 4, 2, 140, 100, 64, 64, false, 0, Ranges::Ragged, RangesOf::All, true, true},
            Case{"Wide128", 1, 2, 2, 100, 140, 128, 128, true, 60, Ranges::None, RangesOf::All, true, true},
            Case{"Large", 1, 2, 1, 70, 130, 64, 64, true, 0, Ranges::None, RangesOf::All, false, true, 60},
            Case{"Interleaved", 2, 2, 2, 100, 100, 64, 64, true, 0, Ranges::None, RangesOf::All, true}),
        testing::Values(DataType::BF16, DataType::F16)),
    [](const auto &info) {
      return std::get<0>(info.param).name + std::string(artifact::EnumNameDataType(std::get<1>(info.param)));
    });

/// Chance runs blocks and warps in another order each time.
TEST(TensorAttentionOrder, GivesTheSameBits) {
  const Case c{"", 1, 4, 2, 200, 150, 64, 64, true};
  Gpu gpu;
  std::vector<Tensors> made;
  for (int time = 0; time < 2; ++time) {
    Tensors &tensors = made.emplace_back(c);
    std::vector<Narrow> narrow;
    std::vector<TensorView> views;
    narrow.reserve(8);
    for (HostTensor &tensor : tensors.all)
      views.push_back(narrow.emplace_back(tensor, DataType::BF16).view());
    for (bool isBackward : {false, true})
      gpu.run(tensors.arguments(c, views), isBackward);
    for (Narrow &each : narrow)
      each.widen();
  }
  for (size_t index : {3, 5, 6, 7})
    EXPECT_EQ(made[0].all[index].raw(), made[1].all[index].raw());
  EXPECT_EQ(made[0].lse.raw(), made[1].lse.raw());
}

/// Tiles of keys outside of all ranges hold NaN, which a sum would show; queries without keys give zeros.
TEST(TensorAttentionRanges, HideTheRest) {
  constexpr int64_t rows = 150, keys = 300;
  const Case c{"", 1, 1, 1, rows, keys, 64, 64};
  Tensors tensors(c);
  for (size_t index : {1, 2})
    tensors.all[index].forEach([&](const std::vector<int64_t> &at) {
      if (at[2] < 64 || at[2] >= 256)
        tensors.all[index].at(at) = NAN;
    });
  KeyRanges ranges(Ranges::Documents, RangesOf::All, 1, rows, keys);
  for (int64_t query = 0; query < rows; ++query) {
    ranges.begin(0, query) = 70;
    ranges.end(0, query) = query < 70 ? 70 : 200;
  }
  const TensorView begin = ranges.beginView(), end = ranges.endView();
  std::vector<Narrow> narrow;
  std::vector<TensorView> views;
  narrow.reserve(8);
  for (HostTensor &tensor : tensors.all)
    views.push_back(narrow.emplace_back(tensor, DataType::F16).view());
  cpu::AttentionGradArguments a = tensors.arguments(c, views);
  a.begin = &begin, a.end = &end;
  Gpu gpu;
  for (bool isBackward : {false, true})
    gpu.run(a, isBackward);
  for (Narrow &each : narrow)
    each.widen();
  for (int64_t row = 0; row < rows; ++row) {
    EXPECT_EQ(tensors.lse.at({0, 0, row}) == -INFINITY, row < 70);
    EXPECT_EQ(tensors.all[3].at({0, 0, row, 5}) == 0, row < 70);
    EXPECT_EQ(tensors.all[5].at({0, 0, row, 5}) == 0, row < 70);
  }
  for (int64_t key = 0; key < keys; ++key)
    for (size_t index : {6, 7})
      EXPECT_EQ(tensors.all[index].at({0, 0, key, 5}) == 0, key < 70 || key >= 200) << key;
}

TEST(TensorAttentionParts, AddUp) {
  Gpu gpu;
  auto run = [&](const cpu::AttentionGradArguments &arguments, bool isBackward) { gpu.run(arguments, isBackward); };
  test::AttentionParts(true, 0.37F).check(run, 1e-2);
  // Log-sum-exps that are rounded visibly.
  test::AttentionParts(true, 60).check(run, 1e-2);
}

} // namespace
} // namespace tessera::cuda
