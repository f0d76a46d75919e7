//===- AttentionFixture.h - an attention and its double reference ----------===//

#ifndef TESSERA_TESTS_RUNTIME_DEVICE_ATTENTIONFIXTURE_H
#define TESSERA_TESTS_RUNTIME_DEVICE_ATTENTIONFIXTURE_H

#include "runtime/device/cpu/Attention.h"

#include "tests/runtime/device/HostTensor.h"
#include "tests/runtime/device/KeyRanges.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tessera::test {

/// Shapes as train.attention.
struct AttentionCase {
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
  float scale = 0.37f;
};

/// Everything of one case: inputs, the results of the kernels and of the reference.
struct AttentionFixture {
  explicit AttentionFixture(const AttentionCase &c)
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
    if (c.mask == AttentionCase::NoMask)
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
    if (c.mask == AttentionCase::Boolean) {
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
    if (c.mask == AttentionCase::NoMask)
      return sum;
    std::vector<int64_t> at = {b, h, i, j};
    for (size_t dim = 0; dim < 4; ++dim)
      at[dim] = c.maskShape[dim] == 1 ? 0 : at[dim];
    if (c.mask == AttentionCase::Additive)
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
    arguments.mask = c.mask == AttentionCase::NoMask ? nullptr : &maskView;
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
    std::vector<HalfTensor> halves;
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
    for (HalfTensor &half : halves)
      half.copyBack();
  }

  AttentionCase c;
  float scale = c.scale;
  std::vector<size_t> order;
  HostTensor q, k, v, out, lse, dout, dq, dk, dv;
  std::optional<HostTensor> additive;
  std::vector<uint8_t> boolean;
  std::optional<KeyRanges> ranges;
  TensorView maskView, beginView, endView;
  std::vector<double> wantedOut, wantedLse, wantedDq, wantedDk, wantedDv;
};

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_DEVICE_ATTENTIONFIXTURE_H
