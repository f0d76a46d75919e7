//===- AttentionParts.h - attention to all keys and to parts of them -------===//

#ifndef TESSERA_TESTS_RUNTIME_DEVICE_ATTENTIONPARTS_H
#define TESSERA_TESTS_RUNTIME_DEVICE_ATTENTIONPARTS_H

#include "runtime/device/cpu/Attention.h"

#include "tests/runtime/device/HostTensor.h"
#include "tests/runtime/device/KeyRanges.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <list>

namespace tessera::test {

/// Computes an attention, or its gradients.
using RunAttention = std::function<void(const cpu::AttentionGradArguments &, bool isBackward)>;

/// Expects that attention to two parts of the keys, merged by their log-sum-exps, is attention to all of them, and that
/// the gradients of both add up to the gradients of the whole. Results are f32; operands are bf16 if `isHalf`.
class AttentionParts {
public:
  AttentionParts(bool isHalf, float scale)
      : ranges(Ranges::Documents, RangesOf::EachSample, batch, queries, keys), scale(scale) {
    HostTensor *operands[] = {&q, &k, &v, &dout};
    for (uint32_t index = 0; index < 4; ++index) {
      operands[index]->random(index + 1);
      halves.emplace_back(*operands[index]);
      views.push_back(isHalf ? halves.back().view() : operands[index]->view());
    }
    // Some queries see both parts, some one of them, some nothing.
    for (int64_t sample = 0; sample < batch; ++sample)
      for (int64_t query = 0; query < queries; query += 3) {
        ranges.begin(sample, query) = query % 2 * 70;
        ranges.end(sample, query) = query % 5 == 0 ? 0 : 70 + query % 2 * (keys - 70);
      }
  }

  void check(const RunAttention &run, double tolerance) {
    cpu::AttentionGradArguments whole = arguments(0, keys, ranges);
    Results all, sum;
    all.bind(whole);
    run(whole, false);
    run(whole, true);

    KeyRanges firstRanges = ranges, lastRanges = ranges;
    for (int64_t sample = 0; sample < batch; ++sample)
      for (int64_t query = 0; query < queries; ++query) {
        lastRanges.begin(sample, query) -= middle;
        lastRanges.end(sample, query) -= middle;
      }
    cpu::AttentionGradArguments parts[] = {arguments(0, middle, firstRanges),
                                           arguments(middle, keys - middle, lastRanges)};
    Results of[2];
    for (int part = 0; part < 2; ++part) {
      of[part].bind(parts[part]);
      run(parts[part], false);
    }
    merge(of, sum);
    compare(all.out, sum.out, tolerance, "out");
    compare(all.lse, sum.lse, tolerance, "lse");

    for (int part = 0; part < 2; ++part) {
      const int64_t first = part * middle, count = part == 0 ? middle : keys - middle;
      parts[part].out = sum.out.view();
      parts[part].lse = sum.lse.view();
      parts[part].dk = rowsOf(sum.dk.view(), first, count);
      parts[part].dv = rowsOf(sum.dv.view(), first, count);
      parts[part].isPartial = true;
      run(parts[part], true);
    }
    sum.dq.forEach([&](const std::vector<int64_t> &at) { sum.dq.at(at) = of[0].dq.at(at) + of[1].dq.at(at); });
    compare(all.dq, sum.dq, tolerance, "dq");
    compare(all.dk, sum.dk, tolerance, "dk");
    compare(all.dv, sum.dv, tolerance, "dv");
  }

private:
  static constexpr int64_t batch = 2, heads = 4, groups = 2, queries = 90, keys = 150, depth = 8, middle = 83;

  struct Results {
    HostTensor out{{batch, heads, queries, depth}}, lse{{batch, heads, queries}}, dq{{batch, heads, queries, depth}},
        dk{{batch, groups, keys, depth}}, dv{{batch, groups, keys, depth}};
    void bind(cpu::AttentionGradArguments &arguments) {
      const int64_t count = arguments.k.shape[2];
      arguments.out = out.view();
      arguments.lse = lse.view();
      arguments.dq = dq.view();
      arguments.dk = rowsOf(dk.view(), 0, count);
      arguments.dv = rowsOf(dv.view(), 0, count);
    }
  };

  static TensorView rowsOf(TensorView view, int64_t first, int64_t count) {
    view.data = view.as<uint8_t>() + first * view.strides[2] * static_cast<int64_t>(byteWidth(view.dtype));
    view.shape[2] = count;
    return view;
  }

  /// Attention to keys [first, +count).
  cpu::AttentionGradArguments arguments(int64_t first, int64_t count, KeyRanges &seen) {
    bounds.push_back({seen.beginView(), seen.endView()});
    cpu::AttentionGradArguments made;
    made.q = views[0];
    made.k = rowsOf(views[1], first, count);
    made.v = rowsOf(views[2], first, count);
    made.dout = views[3];
    made.begin = &bounds.back()[0];
    made.end = &bounds.back()[1];
    made.scale = scale;
    return made;
  }

  static void merge(Results (&of)[2], Results &sum) {
    sum.lse.forEach([&](const std::vector<int64_t> &at) {
      const double a = of[0].lse.at(at), b = of[1].lse.at(at), top = std::max(a, b);
      const double lse = top == -INFINITY ? top : top + std::log(std::exp(a - top) + std::exp(b - top));
      sum.lse.at(at) = static_cast<float>(lse);
      for (int64_t column = 0; column < depth; ++column) {
        const std::vector<int64_t> place = {at[0], at[1], at[2], column};
        sum.out.at(place) =
            top == -INFINITY
                ? 0
                : static_cast<float>(std::exp(a - lse) * of[0].out.at(place) + std::exp(b - lse) * of[1].out.at(place));
      }
    });
  }

  static void compare(HostTensor &expected, HostTensor &found, double tolerance, const char *name) {
    std::vector<double> wanted;
    expected.forEach([&](const std::vector<int64_t> &at) { wanted.push_back(expected.at(at)); });
    EXPECT_LT(relativeError(found, wanted), tolerance) << name;
  }

  HostTensor q{{batch, heads, queries, depth}}, k{{batch, groups, keys, depth}}, v{{batch, groups, keys, depth}},
      dout{{batch, heads, queries, depth}};
  std::vector<HalfTensor> halves;
  std::vector<TensorView> views; ///< q, k, v, dout
  std::list<std::array<TensorView, 2>> bounds;
  KeyRanges ranges;
  float scale;
};

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_DEVICE_ATTENTIONPARTS_H
