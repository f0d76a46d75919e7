//===- CudaAttentionTest.cpp - the body of the GPU's attention, on the host --===//
//
// The kernels' body runs with a team of one thread that takes the indices of each phase in some order. Orders that give
// other bits would be races on a GPU.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/BFloat16.h"
#include "runtime/device/cpu/Attention.h"
#include "runtime/device/cuda/AttentionBody.h"
#include "runtime/device/cuda/AttentionPlan.h"

#include "tests/runtime/device/HostTensor.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using artifact::DataType;
using test::HalfTensor;
using test::HostTensor;

struct HostHalf {
  uint16_t bits;
  explicit HostHalf(float value) : bits(toBFloat16(value)) {}
  explicit operator float() const { return widenBFloat16(bits); }
};

struct HostTeam {
  bool isReversed = false;
  template <typename Phase> void each(int count, const Phase &phase) const {
    for (int index = 0; index < count; ++index)
      phase(isReversed ? count - 1 - index : index);
  }
};

template <typename T> void runOnHost(const cuda::AttentionLayout &layout, bool isReversed, bool backward) {
  auto scratch = std::make_unique<cuda::AttentionScratch>();
  HostTeam team{isReversed};
  cuda::AttentionBody<T, HostTeam> body(layout, *scratch, team);
  auto blocks = [&](const cuda::AttentionGrid &grid, auto run) {
    for (int64_t section = 0; section < grid.sections; ++section)
      for (int64_t block = 0; block < grid.blocks; ++block) {
        // What another block left behind, or nobody ever wrote.
        std::fill_n(reinterpret_cast<float *>(scratch.get()), sizeof(*scratch) / sizeof(float), NAN);
        run(isReversed ? grid.blocks - 1 - block : block, section);
      }
  };
  if (!backward) {
    blocks(forwardGrid(layout), [&](int64_t block, int64_t section) { body.forward(block, section); });
    return;
  }
  for (int64_t row = 0; row < layout.batch * layout.heads * layout.queries; ++row)
    body.rowSum(row);
  blocks(queryGradGrid(layout), [&](int64_t block, int64_t section) { body.queryGrad(block, section); });
  blocks(keyGradGrid(layout), [&](int64_t block, int64_t section) { body.keyGrad(block, section); });
}

enum class Mask { None, Boolean, Additive };

struct Case {
  int64_t batch, heads, groups, queries, keys, depth, valueDepth;
  bool causal = false;
  Mask mask = Mask::None;
  std::vector<int64_t> maskShape = {};
  bool interleaved = false; ///< [B, H, T, D] stored as [B, T, H, D]
};

class CudaAttention : public ::testing::TestWithParam<std::tuple<Case, bool>> {};

struct Tensors {
  explicit Tensors(const Case &c) {
    std::vector<size_t> order = c.interleaved ? std::vector<size_t>{0, 2, 1, 3} : std::vector<size_t>{};
    std::vector<int64_t> q = {c.batch, c.heads, c.queries, c.depth}, k = {c.batch, c.groups, c.keys, c.depth},
                         v = {c.batch, c.groups, c.keys, c.valueDepth},
                         out = {c.batch, c.heads, c.queries, c.valueDepth};
    for (const auto &shape : {q, k, v, out, out, q, k, v})
      all.emplace_back(shape, order, c.interleaved ? 3 : 0);
    for (size_t index : {0, 1, 2, 4})
      all[index].random(static_cast<uint32_t>(index) + 1);
  }
  std::vector<HostTensor> all; ///< q, k, v, out, dout, dq, dk, dv
};

/// The CPU's kernels or the GPU's body; the results replace those in `tensors`.
void run(const Case &c, bool isHalf, Tensors &tensors, HostTensor &lse, const TensorView *mask, int variant) {
  std::vector<HalfTensor> halves;
  std::vector<TensorView> views;
  for (HostTensor &tensor : tensors.all)
    halves.emplace_back(tensor);
  for (size_t index = 0; index < tensors.all.size(); ++index)
    views.push_back(isHalf ? halves[index].view() : tensors.all[index].view());
  cpu::AttentionGradArguments a;
  a.q = views[0], a.k = views[1], a.v = views[2], a.out = views[3], a.dout = views[4];
  a.dq = views[5], a.dk = views[6], a.dv = views[7], a.lse = lse.view();
  a.mask = mask;
  a.scale = 0.37F;
  a.causal = c.causal;
  if (variant == 0) {
    cpu::Scratch scratch;
    cpu::Team team(1);
    cpu::attention(a, scratch, team);
    cpu::attentionGrad(a, scratch, team);
  } else {
    std::vector<float> delta(static_cast<size_t>(2 * c.batch * c.heads * c.queries));
    cuda::AttentionViews given{a.q, a.k, a.v, a.out, a.lse, mask, a.dout, a.dq, a.dk, a.dv};
    auto made = cuda::attentionLayout(given, a.scale, a.causal);
    ASSERT_TRUE(made.isOk()) << made.status();
    made->delta = delta.data();
    for (bool backward : {false, true})
      if (isHalf)
        runOnHost<HostHalf>(*made, variant == 2, backward);
      else
        runOnHost<float>(*made, variant == 2, backward);
  }
  if (isHalf)
    for (HalfTensor &half : halves)
      half.copyBack();
}

TEST_P(CudaAttention, EqualsTheCpu) {
  const auto &[c, isHalf] = GetParam();
  std::vector<uint8_t> boolean;
  std::optional<HostTensor> additive;
  std::optional<TensorView> mask;
  if (c.mask != Mask::None) {
    additive.emplace(c.maskShape);
    additive->random(9);
    additive->forEach([&](const std::vector<int64_t> &index) {
      float &value = additive->at(index);
      boolean.push_back(value > -0.3F);
      value = value < -1.5F ? -INFINITY : value;
    });
    mask = additive->view();
    if (c.mask == Mask::Boolean) {
      mask->data = boolean.data();
      mask->dtype = DataType::Bool;
    }
  }
  std::vector<int64_t> rows = {c.batch, c.heads, c.queries};
  std::vector<Tensors> tensors;
  std::vector<HostTensor> lse;
  for (int variant = 0; variant < 3; ++variant) {
    tensors.emplace_back(c);
    lse.emplace_back(rows);
    run(c, isHalf, tensors[variant], lse[variant], mask ? &*mask : nullptr, variant);
  }
  auto compare = [&](HostTensor &expected, HostTensor &found, HostTensor &again, double tolerance, const char *name) {
    std::vector<double> wanted;
    expected.forEach([&](const std::vector<int64_t> &index) { wanted.push_back(expected.at(index)); });
    EXPECT_LT(test::relativeError(found, wanted), tolerance) << name;
    expected.forEach([&](const std::vector<int64_t> &index) {
      ASSERT_EQ(std::bit_cast<uint32_t>(found.at(index)), std::bit_cast<uint32_t>(again.at(index))) << name;
    });
  };
  const char *names[] = {"q", "k", "v", "out", "dout", "dq", "dk", "dv"};
  for (size_t index : {3, 5, 6, 7}) {
    compare(tensors[0].all[index], tensors[1].all[index], tensors[2].all[index], isHalf ? 1e-2 : 3e-6, names[index]);
    EXPECT_TRUE(isHalf || tensors[1].all[index].gapsAreUntouched()) << names[index];
  }
  compare(lse[0], lse[1], lse[2], 2e-6, "lse");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, CudaAttention,
    ::testing::Combine(::testing::Values(Case{2, 2, 2, 64, 64, 16, 16}, Case{1, 1, 1, 1, 1, 1, 1},
                                         Case{2, 3, 3, 45, 45, 33, 33, true},
                                         Case{1, 6, 2, 70, 70, 20, 20, true, Mask::None, {}, true},
                                         Case{1, 4, 1, 33, 97, 8, 40, true}, Case{1, 2, 1, 97, 33, 40, 8, true},
                                         Case{1, 2, 2, 40, 35, 300, 130}, Case{1, 2, 2, 35, 40, 130, 300, true},
                                         Case{2, 4, 2, 50, 37, 12, 12, false, Mask::Boolean, {2, 1, 1, 37}},
                                         Case{2, 4, 2, 37, 50, 12, 12, true, Mask::Boolean, {1, 4, 37, 50}},
                                         Case{2, 4, 4, 37, 50, 12, 12, false, Mask::Additive, {2, 4, 37, 50}, true},
                                         Case{2, 2, 1, 65, 65, 64, 64, true, Mask::Additive, {1, 1, 65, 65}}),
                       ::testing::Bool()));

TEST(CudaAttentionLayout, RowsThatAttendToNothingAreZero) {
  Case c{1, 1, 1, 40, 40, 8, 8, false, Mask::Boolean, {1, 1, 40, 40}};
  std::vector<uint8_t> hidden(1600, 1);
  std::fill_n(hidden.begin() + 3 * 40, 40, uint8_t{0});
  TensorView mask = HostTensor({1, 1, 40, 40}).view();
  mask.data = hidden.data();
  mask.dtype = DataType::Bool;
  Tensors tensors(c);
  HostTensor lse({1, 1, 40});
  run(c, false, tensors, lse, &mask, 1);
  EXPECT_EQ(lse.at({0, 0, 3}), -INFINITY);
  for (int64_t column = 0; column < 8; ++column) {
    EXPECT_EQ(tensors.all[3].at({0, 0, 3, column}), 0);
    EXPECT_EQ(tensors.all[5].at({0, 0, 3, column}), 0);
  }
}

TEST(CudaAttentionLayout, RefusesWhatTheKernelsCannotRead) {
  HostTensor tensor({1, 2, 3, 4}), statistics({1, 2, 3});
  TensorView wide = tensor.view(), rows = statistics.view(), narrow = wide, odd = wide;
  narrow.dtype = DataType::BF16;
  odd.dtype = DataType::I32;
  auto status = [&](const TensorView &q, const TensorView &k, const TensorView *mask) {
    return cuda::attentionLayout({q, k, wide, wide, rows, mask, wide, wide, wide, wide}, 1, false).status();
  };
  EXPECT_TRUE(status(wide, wide, nullptr).isOk());
  EXPECT_FALSE(status(narrow, wide, nullptr).isOk());
  EXPECT_FALSE(status(odd, wide, nullptr).isOk());
  TensorView half = HostTensor({1, 1, 3, 3}).view();
  half.dtype = DataType::BF16;
  EXPECT_FALSE(status(wide, wide, &half).isOk());
}

} // namespace
} // namespace tessera
