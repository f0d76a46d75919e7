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

#include "tests/runtime/device/AttentionParts.h"
#include "tests/runtime/device/HostTensor.h"
#include "tests/runtime/device/KeyRanges.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using artifact::DataType;
using test::HalfTensor;
using test::HostTensor;
using test::Ranges;
using test::RangesOf;

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
  int64_t window = 0;
  Ranges ranges = Ranges::None;
  RangesOf rangesOf = RangesOf::All;
  bool hasWideResults = false; ///< f32, whatever the operands are

  /// Of q, k, v, out, dout, dq, dk, dv.
  bool isWide(size_t tensor) const { return hasWideResults && (tensor == 3 || tensor >= 5); }
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

/// The GPU's body instead of the CPU's kernels.
void runBody(const cpu::AttentionGradArguments &a, bool isReversed, bool backward) {
  cuda::AttentionViews given;
  given.q = a.q, given.k = a.k, given.v = a.v, given.out = a.out, given.lse = a.lse;
  given.dout = a.dout, given.dq = a.dq, given.dk = a.dk, given.dv = a.dv;
  for (auto [from, to] :
       {std::pair(a.mask, &given.mask), std::pair(a.begin, &given.begin), std::pair(a.end, &given.end)})
    if (from)
      *to = *from;
  given.scale = a.scale;
  given.causal = a.causal;
  given.isPartial = a.isPartial;
  given.window = a.window;
  auto made = cuda::attentionLayout(given);
  ASSERT_TRUE(made.isOk()) << made.status();
  std::vector<float> delta(static_cast<size_t>(2 * made->batch * made->heads * made->queries));
  made->delta = delta.data();
  if (a.q.dtype == DataType::BF16)
    runOnHost<HostHalf>(*made, isReversed, backward);
  else
    runOnHost<float>(*made, isReversed, backward);
}

/// The CPU's kernels or the GPU's body; the results replace those in `tensors`.
void run(const Case &c, bool isHalf, Tensors &tensors, HostTensor &lse, const TensorView *mask, int variant) {
  std::vector<HalfTensor> halves;
  std::vector<TensorView> views;
  for (HostTensor &tensor : tensors.all)
    halves.emplace_back(tensor);
  for (size_t index = 0; index < tensors.all.size(); ++index)
    views.push_back(isHalf && !c.isWide(index) ? halves[index].view() : tensors.all[index].view());
  cpu::AttentionGradArguments a;
  a.q = views[0], a.k = views[1], a.v = views[2], a.out = views[3], a.dout = views[4];
  a.dq = views[5], a.dk = views[6], a.dv = views[7], a.lse = lse.view();
  a.mask = mask;
  a.scale = 0.37F;
  a.causal = c.causal;
  a.window = c.window;
  TensorView begin, end;
  std::optional<test::KeyRanges> ranges;
  if (c.ranges != Ranges::None) {
    ranges.emplace(c.ranges, c.rangesOf, c.batch, c.queries, c.keys);
    begin = ranges->beginView(), end = ranges->endView();
    a.begin = &begin, a.end = &end;
  }
  if (variant == 0) {
    cpu::Scratch scratch;
    cpu::Team team(1);
    cpu::attention(a, scratch, team);
    cpu::attentionGrad(a, scratch, team);
  } else {
    for (bool backward : {false, true})
      runBody(a, variant == 2, backward);
  }
  for (size_t index = 0; isHalf && index < halves.size(); ++index)
    if (!c.isWide(index))
      halves[index].copyBack();
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
    compare(tensors[0].all[index], tensors[1].all[index], tensors[2].all[index],
            isHalf && !c.hasWideResults ? 1e-2 : 3e-6, names[index]);
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

Case windowed(Case c, int64_t window) {
  c.causal = true;
  c.window = window;
  return c;
}
Case ranged(Case c, Ranges ranges, RangesOf of) {
  c.ranges = ranges;
  c.rangesOf = of;
  return c;
}
Case wide(Case c) {
  c.hasWideResults = true;
  return c;
}
INSTANTIATE_TEST_SUITE_P(
    Ranges, CudaAttention,
    ::testing::Combine(
        ::testing::Values(windowed({1, 2, 1, 100, 100, 8, 8}, 2), windowed({1, 2, 1, 100, 100, 8, 8}, 32),
                          windowed({2, 2, 2, 40, 100, 12, 8}, 45), windowed({1, 2, 2, 100, 40, 8, 8}, 20),
                          windowed({1, 2, 2, 50, 50, 8, 8}, INT64_MAX),
                          ranged({2, 2, 2, 70, 70, 8, 8}, Ranges::Ragged, RangesOf::All),
                          ranged({2, 4, 2, 70, 120, 8, 20, true}, Ranges::Ragged, RangesOf::EachSample),
                          ranged({2, 2, 2, 120, 70, 8, 8}, Ranges::Documents, RangesOf::EachSample),
                          ranged({3, 2, 1, 80, 100, 8, 8}, Ranges::Documents, RangesOf::EndsOfEachSample),
                          ranged({2, 4, 1, 150, 150, 8, 8, true}, Ranges::Documents, RangesOf::All),
                          ranged({2, 2, 2, 50, 37, 8, 8, false, Mask::Boolean, {2, 1, 1, 37}}, Ranges::Ragged,
                                 RangesOf::EachSample),
                          windowed(ranged({2, 2, 2, 90, 90, 8, 8}, Ranges::Documents, RangesOf::All), 20),
                          wide({1, 6, 2, 70, 70, 20, 12, true, Mask::None, {}, true}),
                          wide(windowed(ranged({2, 4, 2, 70, 90, 8, 8}, Ranges::Ragged, RangesOf::EachSample), 30))),
        ::testing::Bool()));

TEST(CudaAttentionLayout, PartsOfTheKeysAddUp) {
  auto run = [](const cpu::AttentionGradArguments &arguments, bool isBackward) {
    runBody(arguments, false, isBackward);
  };
  for (bool isHalf : {false, true}) {
    test::AttentionParts(isHalf, 0.37F).check(run, 5e-6);
    // Log-sum-exps that are rounded visibly.
    test::AttentionParts(isHalf, 60).check(run, 1e-3);
  }
}

/// Tiles of keys outside of all ranges hold NaN, which a sum would show.
TEST(CudaAttentionLayout, RowsOutsideOfAllRangesAreZero) {
  constexpr int64_t rows = 80, keys = 130, depth = 8;
  std::vector<HostTensor> all(8, HostTensor({1, 1, keys, depth}));
  HostTensor lse({1, 1, rows});
  for (size_t index : {0, 1, 2, 4})
    all[index].random(static_cast<uint32_t>(index) + 1);
  for (size_t index : {1, 2})
    all[index].forEach([&](const std::vector<int64_t> &at) {
      if (at[2] < 64 || at[2] >= 96)
        all[index].at(at) = NAN;
    });
  cpu::AttentionGradArguments a;
  TensorView *of[] = {&a.q, &a.k, &a.v, &a.out, &a.dout, &a.dq, &a.dk, &a.dv};
  for (size_t index = 0; index < 8; ++index) {
    *of[index] = all[index].view();
    if (index == 0 || (index >= 3 && index <= 5))
      of[index]->shape[2] = rows;
  }
  a.lse = lse.view();
  std::vector<int64_t> begins(rows, 70), ends(rows, 75);
  std::fill_n(ends.begin(), 40, 70);
  TensorView begin, end;
  begin.dtype = DataType::I64, begin.shape = {1, rows}, begin.strides = {rows, 1};
  end = begin;
  begin.data = begins.data(), end.data = ends.data();
  a.begin = &begin, a.end = &end;
  for (bool backward : {false, true})
    runBody(a, false, backward);
  for (int64_t row = 0; row < rows; ++row) {
    EXPECT_EQ(lse.at({0, 0, row}) == -INFINITY, row < 40);
    EXPECT_EQ(all[3].at({0, 0, row, 0}) == 0, row < 40);
    EXPECT_EQ(all[5].at({0, 0, row, 0}) == 0, row < 40);
  }
  for (int64_t key = 0; key < keys; ++key)
    for (size_t index : {6, 7})
      EXPECT_EQ(all[index].at({0, 0, key, 0}) == 0, key < 70 || key >= 75);
}

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
  auto status = [&](const TensorView &q, const TensorView &k, const TensorView *mask, const TensorView &result) {
    cuda::AttentionViews views;
    views.q = q, views.k = k, views.v = views.dout = k, views.lse = rows;
    views.out = views.dq = views.dk = views.dv = result;
    if (mask)
      views.mask = *mask;
    return cuda::attentionLayout(views).status();
  };
  EXPECT_TRUE(status(wide, wide, nullptr, wide).isOk());
  EXPECT_TRUE(status(narrow, narrow, nullptr, narrow).isOk());
  EXPECT_TRUE(status(narrow, narrow, nullptr, wide).isOk());
  EXPECT_FALSE(status(wide, wide, nullptr, narrow).isOk());
  EXPECT_FALSE(status(narrow, wide, nullptr, wide).isOk());
  EXPECT_FALSE(status(odd, wide, nullptr, wide).isOk());
  TensorView half = HostTensor({1, 1, 3, 3}).view();
  half.dtype = DataType::BF16;
  EXPECT_FALSE(status(wide, wide, &half, wide).isOk());
}

} // namespace
} // namespace tessera
