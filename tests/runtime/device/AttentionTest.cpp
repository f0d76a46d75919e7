//===- AttentionTest.cpp - attention against a double reference ------------===//

#include "runtime/device/cpu/Attention.h"

#include "tests/runtime/device/AttentionParts.h"
#include "tests/runtime/device/HostTensor.h"
#include "tests/runtime/device/KeyRanges.h"

#include <gtest/gtest.h>

#include <optional>

namespace tessera {
namespace {

using test::HostTensor;
using test::Ranges;
using test::RangesOf;

struct Case {
  int64_t batch, heads, groups, queries, keys, depth, valueDepth;
  bool causal = false;
  enum { NoMask, Boolean, Additive } mask = NoMask;
  std::vector<int64_t> maskShape = {};
  bool interleaved = false; ///< [B, H, T, D] stored as [B, T, H, D]
  int threads = 2;
  bool isHalf = false;
  int64_t window = 0;
  Ranges ranges = Ranges::None;
  RangesOf rangesOf = RangesOf::All;
  bool hasWideResults = false; ///< f32, whatever the operands are
};

/// Everything of one case: inputs, the results of the kernels and of the reference.
struct Fixture {
  explicit Fixture(const Case &c)
      : c(c), order(c.interleaved ? std::vector<size_t>{0, 2, 1, 3} : std::vector<size_t>{}),
        q({c.batch, c.heads, c.queries, c.depth}, order), k({c.batch, c.groups, c.keys, c.depth}, order),
        v({c.batch, c.groups, c.keys, c.valueDepth}, order), out({c.batch, c.heads, c.queries, c.valueDepth}, order),
        lse({c.batch, c.heads, c.queries}), dout({c.batch, c.heads, c.queries, c.valueDepth}, order),
        dq(q.shape(), order), dk(k.shape(), order), dv(v.shape(), order) {
    q.random(1);
    k.random(2);
    v.random(3);
    dout.random(4);
    if (c.ranges != Ranges::None) {
      ranges.emplace(c.ranges, c.rangesOf, c.batch, c.queries, c.keys);
      beginView = ranges->beginView();
      endView = ranges->endView();
    }
    if (c.mask == Case::NoMask)
      return;
    additive.emplace(c.maskShape);
    additive->random(5);
    boolean.resize(additive->view().numElements());
    size_t position = 0;
    additive->forEach([&](const std::vector<int64_t> &index) {
      boolean[position++] = additive->at(index) > -0.3f;
      if (additive->at(index) < -1.5f)
        additive->at(index) = -INFINITY;
    });
    maskView = additive->view();
    if (c.mask == Case::Boolean) {
      maskView.data = boolean.data();
      maskView.dtype = artifact::DataType::Bool;
    }
  }

  double score(int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t last = i + c.keys - c.queries;
    if (c.causal && (j > last || (c.window > 0 && last - j >= c.window)))
      return -INFINITY;
    if (ranges && !ranges->sees(b, i, j))
      return -INFINITY;
    double sum = 0;
    for (int64_t d = 0; d < c.depth; ++d)
      sum += static_cast<double>(q.at({b, h, i, d})) * k.at({b, h / (c.heads / c.groups), j, d});
    sum *= scale;
    if (c.mask == Case::NoMask)
      return sum;
    std::vector<int64_t> at = {b, h, i, j};
    for (size_t dim = 0; dim < 4; ++dim)
      at[dim] = c.maskShape[dim] == 1 ? 0 : at[dim];
    if (c.mask == Case::Additive)
      return static_cast<float>(sum + additive->at(at)); // which a large number needs not to be told from others
    const TensorView &m = maskView;
    return boolean[at[0] * m.strides[0] + at[1] * m.strides[1] + at[2] * m.strides[2] + at[3] * m.strides[3]]
               ? sum
               : -INFINITY;
  }

  void runReference() {
    int64_t perGroup = c.heads / c.groups;
    wantedDq.assign(q.view().numElements(), 0);
    wantedDk.assign(k.view().numElements(), 0);
    wantedDv.assign(v.view().numElements(), 0);
    for (int64_t b = 0; b < c.batch; ++b)
      for (int64_t h = 0; h < c.heads; ++h)
        for (int64_t i = 0; i < c.queries; ++i) {
          std::vector<double> p(c.keys);
          double top = -INFINITY, total = 0;
          for (int64_t j = 0; j < c.keys; ++j)
            top = std::max(top, p[j] = score(b, h, i, j));
          for (double &value : p)
            total += value = top == -INFINITY ? 0 : std::exp(value - top);
          wantedLse.push_back(total > 0 ? top + std::log(total) : -INFINITY);
          std::vector<double> o(c.valueDepth, 0);
          int64_t g = h / perGroup;
          for (int64_t j = 0; j < c.keys; ++j) {
            p[j] = total > 0 ? p[j] / total : 0;
            if (p[j] == 0)
              continue;
            for (int64_t d = 0; d < c.valueDepth; ++d)
              o[d] += p[j] * v.at({b, g, j, d});
          }
          wantedOut.insert(wantedOut.end(), o.begin(), o.end());
          double delta = 0;
          for (int64_t d = 0; d < c.valueDepth; ++d)
            delta += o[d] * dout.at({b, h, i, d});
          for (int64_t j = 0; j < c.keys; ++j) {
            if (p[j] == 0)
              continue;
            double dp = 0;
            int64_t key = (b * c.groups + g) * c.keys + j, query = (b * c.heads + h) * c.queries + i;
            for (int64_t d = 0; d < c.valueDepth; ++d) {
              dp += static_cast<double>(dout.at({b, h, i, d})) * v.at({b, g, j, d});
              wantedDv[key * c.valueDepth + d] += p[j] * dout.at({b, h, i, d});
            }
            double ds = p[j] * (dp - delta) * scale;
            for (int64_t d = 0; d < c.depth; ++d) {
              wantedDq[query * c.depth + d] += ds * k.at({b, g, j, d});
              wantedDk[key * c.depth + d] += ds * q.at({b, h, i, d});
            }
          }
        }
  }

  void run(const cpu::AttentionKernel &kernel, int threads) {
    cpu::AttentionGradArguments arguments;
    arguments.q = q.view();
    arguments.k = k.view();
    arguments.v = v.view();
    arguments.out = out.view();
    arguments.lse = lse.view();
    arguments.mask = c.mask == Case::NoMask ? nullptr : &maskView;
    arguments.scale = scale;
    arguments.causal = c.causal;
    arguments.window = c.window;
    arguments.begin = ranges ? &beginView : nullptr;
    arguments.end = ranges ? &endView : nullptr;
    arguments.dout = dout.view();
    arguments.dq = dq.view();
    arguments.dk = dk.view();
    arguments.dv = dv.view();
    if (c.isHalf)
      return runHalf(arguments, kernel, threads);
    cpu::Team team(threads);
    cpu::Scratch scratch;
    cpu::attention(arguments, scratch, team, kernel);
    cpu::attentionGrad(arguments, scratch, team, kernel);
  }

  /// All but lse, masks and wide results in bf16.
  void runHalf(cpu::AttentionGradArguments &arguments, const cpu::AttentionKernel &kernel, int threads) {
    std::vector<test::HalfTensor> halves;
    halves.reserve(8);
    for (auto [tensor, view] :
         {std::pair(&q, &arguments.q), std::pair(&k, &arguments.k), std::pair(&v, &arguments.v),
          std::pair(&dout, &arguments.dout), std::pair(&out, &arguments.out), std::pair(&dq, &arguments.dq),
          std::pair(&dk, &arguments.dk), std::pair(&dv, &arguments.dv)})
      if (!c.hasWideResults || halves.size() < 4)
        *view = halves.emplace_back(*tensor).view();
    cpu::Team team(threads);
    cpu::Scratch scratch;
    cpu::attention(arguments, scratch, team, kernel);
    cpu::attentionGrad(arguments, scratch, team, kernel);
    for (test::HalfTensor &half : halves)
      half.copyBack();
  }

  Case c;
  float scale = 0.37f;
  std::vector<size_t> order;
  HostTensor q, k, v, out, lse, dout, dq, dk, dv;
  std::optional<HostTensor> additive;
  std::vector<uint8_t> boolean;
  std::optional<test::KeyRanges> ranges;
  TensorView maskView, beginView, endView;
  std::vector<double> wantedOut, wantedLse, wantedDq, wantedDk, wantedDv;
};

void check(const Case &c) {
  Fixture reference(c);
  if (c.isHalf)
    for (HostTensor *input : {&reference.q, &reference.k, &reference.v, &reference.dout})
      test::HalfTensor rounded(*input);
  reference.runReference();
  // In bf16 results are rounded, and gradients are computed from the rounded result.
  const bool isRounded = c.isHalf && !c.hasWideResults;
  const double forward = isRounded ? 0x1p-8 : 2e-6, backward = isRounded ? 0x1p-7 : 5e-6;
  for (const cpu::AttentionKernel *kernel : cpu::attentionKernels()) {
    Fixture fixture(c);
    fixture.run(*kernel, c.threads);
    EXPECT_LT(relativeError(fixture.out, reference.wantedOut), forward);
    EXPECT_LT(relativeError(fixture.lse, reference.wantedLse), 2e-6);
    EXPECT_LT(relativeError(fixture.dq, reference.wantedDq), backward);
    EXPECT_LT(relativeError(fixture.dk, reference.wantedDk), backward);
    EXPECT_LT(relativeError(fixture.dv, reference.wantedDv), backward);
  }
}

TEST(Attention, Plain) { check({2, 2, 2, 64, 64, 32, 32}); }
TEST(Attention, Causal) { check({1, 3, 3, 200, 200, 16, 16, true}); }
TEST(Attention, CausalOverSeveralChunks) { check({1, 1, 1, 300, 300, 8, 8, true}); }
TEST(Attention, OddSizes) { check({1, 2, 2, 67, 131, 13, 7}); }
TEST(Attention, One) { check({1, 1, 1, 1, 1, 1, 1}); }
TEST(Attention, CausalFewerQueries) { check({1, 1, 1, 5, 70, 8, 8, true}); }
TEST(Attention, CausalFewerKeys) { check({1, 1, 1, 70, 5, 8, 8, true}); } // the first rows attend to nothing
TEST(Attention, GroupedQueries) { check({2, 6, 2, 80, 80, 24, 24, true}); }
TEST(Attention, SingleGroup) { check({1, 4, 1, 70, 90, 20, 40, false, Case::NoMask, {}, false, 3}); }
TEST(Attention, Interleaved) { check({2, 3, 3, 66, 66, 16, 16, true, Case::NoMask, {}, true}); }
TEST(Attention, BooleanPaddingMask) { check({2, 2, 2, 30, 70, 8, 8, false, Case::Boolean, {2, 1, 1, 70}}); }
TEST(Attention, BooleanFullMask) { check({2, 2, 1, 30, 70, 8, 8, true, Case::Boolean, {2, 2, 30, 70}}); }
TEST(Attention, AdditiveMask) { check({2, 4, 2, 65, 65, 16, 16, true, Case::Additive, {1, 4, 65, 65}}); }
TEST(Attention, AdditiveRowMask) { check({2, 2, 2, 30, 40, 8, 8, false, Case::Additive, {2, 1, 30, 40}}); }

Case half(Case c) {
  c.isHalf = true;
  return c;
}
TEST(Attention, BFloat16) {
  check(half({2, 2, 2, 64, 64, 32, 32}));
  check(half({1, 2, 2, 67, 131, 13, 7}));
  check(half({2, 6, 2, 80, 80, 24, 24, true, Case::NoMask, {}, true}));
  check(half({1, 4, 1, 300, 300, 16, 16, true, Case::NoMask, {}, false, 3})); // more threads than groups
  check(half({2, 2, 1, 30, 70, 8, 8, true, Case::Boolean, {2, 2, 30, 70}}));
  check(half({2, 4, 2, 65, 65, 16, 16, true, Case::Additive, {1, 4, 65, 65}}));
}

Case windowed(Case c, int64_t window, int threads = 2) {
  c.causal = true;
  c.window = window;
  c.threads = threads;
  return c;
}
TEST(Attention, Windows) {
  for (int64_t window : {int64_t{2}, int64_t{3}, int64_t{64}, int64_t{100}, INT64_MAX})
    check(windowed({1, 1, 1, 300, 300, 8, 8}, window));
  check(windowed({2, 4, 2, 70, 200, 16, 24}, 65));
  check(windowed({1, 2, 2, 200, 70, 8, 8}, 20)); // the first rows attend to nothing
  check(windowed({1, 4, 1, 130, 130, 16, 16}, 40, 3));
  check(windowed({2, 2, 1, 90, 90, 8, 8, true, Case::Boolean, {2, 2, 90, 90}}, 30));
}

Case ranged(Case c, Ranges ranges, RangesOf of, int threads = 2) {
  c.ranges = ranges;
  c.rangesOf = of;
  c.threads = threads;
  return c;
}
TEST(Attention, RangesOfKeys) {
  for (Ranges ranges : {Ranges::Ragged, Ranges::Documents}) {
    for (RangesOf of : {RangesOf::All, RangesOf::EachSample, RangesOf::EndsOfEachSample}) {
      check(ranged({2, 2, 2, 70, 70, 8, 8}, ranges, of));
      check(ranged({2, 2, 1, 70, 130, 8, 16, true}, ranges, of, 3)); // more threads than groups
    }
    const RangesOf of = RangesOf::EachSample;
    check(ranged({2, 1, 1, 300, 90, 8, 8}, ranges, of));
    check(ranged({1, 2, 1, 280, 280, 8, 8, true}, ranges, of, 3));
    check(ranged({2, 2, 1, 40, 70, 8, 8, false, Case::Additive, {2, 1, 40, 70}}, ranges, of));
    check(windowed(ranged({2, 2, 1, 150, 150, 8, 8}, ranges, of), 33));
    check(half(ranged({2, 2, 1, 100, 100, 8, 8, true}, ranges, of, 3)));
  }
}

TEST(Attention, RowsOutsideOfAllRangesGiveZero) {
  for (int threads : {1, 3}) {
    Fixture fixture(ranged({1, 1, 1, 130, 200, 8, 8}, Ranges::Documents, RangesOf::All));
    for (int64_t query = 0; query < 130; ++query) {
      fixture.ranges->begin(0, query) = 70;
      fixture.ranges->end(0, query) = query < 66 ? 70 : 75;
    }
    fixture.run(cpu::attentionKernel(), threads);
    fixture.out.forEach([&](const std::vector<int64_t> &at) {
      const bool seesNone = at[2] < 66;
      EXPECT_EQ(fixture.lse.at({0, 0, at[2]}) == -INFINITY, seesNone);
      EXPECT_EQ(fixture.out.at(at) == 0, seesNone);
      EXPECT_EQ(fixture.dq.at(at) == 0, seesNone);
    });
    fixture.dk.forEach([&](const std::vector<int64_t> &at) {
      const bool isSeen = at[2] >= 70 && at[2] < 75;
      EXPECT_EQ(fixture.dk.at(at) != 0, isSeen);
      EXPECT_EQ(fixture.dv.at(at) != 0, isSeen);
    });
  }
}

TEST(Attention, WideResultsOfBFloat16) {
  for (int threads : {1, 3}) {
    Case c = half({2, 4, 2, 70, 130, 16, 24, true, Case::NoMask, {}, true, threads});
    c.hasWideResults = true;
    check(c);
    check(windowed(c, 40, threads));
  }
}

TEST(Attention, PartsOfTheKeysAddUp) {
  for (int threads : {1, 3})
    for (const cpu::AttentionKernel *kernel : cpu::attentionKernels()) {
      auto run = [&](const cpu::AttentionGradArguments &arguments, bool isBackward) {
        cpu::Team team(threads);
        cpu::Scratch scratch;
        isBackward ? cpu::attentionGrad(arguments, scratch, team, *kernel)
                   : cpu::attention(arguments, scratch, team, *kernel);
      };
      for (bool isHalf : {false, true}) {
        test::AttentionParts(isHalf, 0.37f).check(run, 5e-6);
        // Log-sum-exps that are rounded visibly.
        test::AttentionParts(isHalf, 60).check(run, 1e-3);
      }
    }
}

/// Keys that are hidden by adding a large number: to a query that sees none, f32's scores are all that number.
void checkHidden(float hidden, int threads) {
  Case c{1, 2, 1, 70, 130, 8, 8, false, Case::Additive, {1, 1, 70, 130}};
  Fixture reference(c), fixture(c);
  for (Fixture *each : {&reference, &fixture})
    each->additive->forEach([&](const std::vector<int64_t> &at) {
      const bool seesNone = at[2] % 3 == 0;
      each->additive->at(at) = seesNone || at[3] % 2 == 0 ? hidden : 0;
    });
  reference.runReference();
  fixture.run(cpu::attentionKernel(), threads);
  EXPECT_LT(relativeError(fixture.out, reference.wantedOut), 2e-6);
  EXPECT_LT(relativeError(fixture.dq, reference.wantedDq), 5e-6);
  EXPECT_LT(relativeError(fixture.dk, reference.wantedDk), 5e-6);
  EXPECT_LT(relativeError(fixture.dv, reference.wantedDv), 5e-6);
}

TEST(Attention, KeysHiddenByAddingALargeNumber) {
  for (int threads : {1, 3})
    for (float hidden : {-1e9f, -std::numeric_limits<float>::max()})
      checkHidden(hidden, threads);
}

TEST(Attention, RowsThatAttendToNothingGiveZero) {
  Fixture fixture({1, 1, 1, 4, 6, 8, 8, false, Case::Boolean, {1, 1, 4, 6}});
  std::fill(fixture.boolean.begin() + 6, fixture.boolean.begin() + 12, 0);
  fixture.run(cpu::attentionKernel(), 1);
  EXPECT_EQ(fixture.lse.at({0, 0, 1}), -INFINITY);
  for (int64_t d = 0; d < 8; ++d) {
    EXPECT_EQ(fixture.out.at({0, 0, 1, d}), 0.0f);
    EXPECT_EQ(fixture.dq.at({0, 0, 1, d}), 0.0f);
  }
}

TEST(Attention, SameBitsForAnyNumberOfThreads) {
  for (bool isHalf : {false, true})
    for (Ranges ranges : {Ranges::None, Ranges::Ragged, Ranges::Documents}) {
      Case c = ranged({1, 4, 2, 200, 200, 16, 16, true}, ranges, RangesOf::All);
      c.isHalf = isHalf;
      Fixture one(c), three(c);
      one.run(cpu::attentionKernel(), 1);
      three.run(cpu::attentionKernel(), 3); // more threads than groups: the other split of the backward pass
      EXPECT_EQ(one.out.raw(), three.out.raw());
      EXPECT_EQ(one.dq.raw(), three.dq.raw());
      EXPECT_EQ(one.dk.raw(), three.dk.raw());
      EXPECT_EQ(one.dv.raw(), three.dv.raw());
    }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Case c{1, 1, 1, 66, 66, 8, 8, true};
  Fixture fixture(c);
  fixture.scale = 80;
  fixture.runReference();
  fixture.run(cpu::attentionKernel(), 1);
  EXPECT_LT(relativeError(fixture.out, fixture.wantedOut), 1e-4); // rounding of scores near 1000
}

} // namespace
} // namespace tessera
