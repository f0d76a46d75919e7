//===- ConvTest.cpp - convolutions against a double reference --------------===//

#include "runtime/device/cpu/Conv.h"

#include "runtime/device/cpu/Team.h"
#include "tests/runtime/device/HostTensor.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using artifact::ConvKind;
using test::HostTensor;

struct Case {
  std::vector<int64_t> x, w;
  std::vector<int64_t> strides = {1, 1}, padding = {0, 0, 0, 0}, dilations = {1, 1};
  int64_t groups = 1;
  std::vector<size_t> order = {}; ///< of x and y in memory
};

void check(const Case &c) {
  std::vector<int64_t> yShape = {c.x[0], c.w[0], 0, 0};
  for (size_t dim = 0; dim < 2; ++dim)
    yShape[2 + dim] = (c.x[2 + dim] + c.padding[dim] + c.padding[dim + 2] - (c.w[2 + dim] - 1) * c.dilations[dim] - 1) /
                          c.strides[dim] +
                      1;
  HostTensor x(c.x, c.order), w(c.w), y(yShape, c.order), dx(c.x, c.order), dw(c.w), dy(yShape, c.order);
  x.random(1);
  w.random(2);
  dy.random(3);
  std::vector<double> wantedY(y.view().numElements(), 0), wantedDx(x.view().numElements(), 0),
      wantedDw(w.view().numElements(), 0);
  auto flat = [](const HostTensor &tensor, const std::vector<int64_t> &index) {
    int64_t position = 0;
    for (size_t dim = 0; dim < index.size(); ++dim)
      position = position * tensor.shape()[dim] + index[dim];
    return position;
  };
  int64_t outPerGroup = c.w[0] / c.groups;
  y.forEach([&](const std::vector<int64_t> &out) {
    for (int64_t i = 0; i < c.w[1]; ++i)
      for (int64_t kh = 0; kh < c.w[2]; ++kh)
        for (int64_t kw = 0; kw < c.w[3]; ++kw) {
          int64_t h = out[2] * c.strides[0] + kh * c.dilations[0] - c.padding[0],
                  v = out[3] * c.strides[1] + kw * c.dilations[1] - c.padding[1];
          if (h < 0 || h >= c.x[2] || v < 0 || v >= c.x[3])
            continue;
          std::vector<int64_t> in = {out[0], out[1] / outPerGroup * c.w[1] + i, h, v}, filter = {out[1], i, kh, kw};
          wantedY[flat(y, out)] += static_cast<double>(x.at(in)) * w.at(filter);
          wantedDx[flat(x, in)] += static_cast<double>(dy.at(out)) * w.at(filter);
          wantedDw[flat(w, filter)] += static_cast<double>(dy.at(out)) * x.at(in);
        }
  });
  cpu::Team(2).adopt();
  cpu::ConvPlanner planner;
  auto run = [&](ConvKind kind, HostTensor &xs, HostTensor &ws, HostTensor &ys) {
    auto plan = planner.plan({kind, c.strides, c.padding, c.dilations, c.groups}, xs.view(), ws.view(), ys.view());
    ASSERT_TRUE(plan.isOk()) << plan.status();
    Status status = (*plan)->run(xs.view().data, ws.view().data, ys.view().data);
    ASSERT_TRUE(status.isOk()) << status;
  };
  run(ConvKind::Forward, x, w, y);
  run(ConvKind::InputGrad, dx, w, dy);
  run(ConvKind::FilterGrad, x, dw, dy);
  EXPECT_LT(relativeError(y, wantedY), 2e-6);
  EXPECT_LT(relativeError(dx, wantedDx), 2e-6);
  EXPECT_LT(relativeError(dw, wantedDw), 2e-6);
}

TEST(Conv, Plain) { check({{2, 3, 9, 8}, {5, 3, 3, 3}}); }
TEST(Conv, StridesAndPadding) { check({{2, 4, 11, 9}, {6, 4, 3, 5}, {2, 1}, {1, 2, 1, 2}}); }
TEST(Conv, UnevenPadding) { check({{1, 3, 8, 8}, {4, 3, 3, 3}, {2, 2}, {0, 1, 1, 0}}); }
TEST(Conv, Dilations) { check({{1, 3, 12, 12}, {4, 3, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}}); }
TEST(Conv, Groups) { check({{2, 6, 7, 7}, {4, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2}); }
TEST(Conv, Depthwise) { check({{2, 16, 7, 7}, {16, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 16}); }
TEST(Conv, PointwiseAndChannelsLast) {
  check({{2, 16, 6, 6}, {32, 16, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, {0, 2, 3, 1}});
}
TEST(Conv, Large) { check({{4, 16, 16, 16}, {32, 16, 3, 3}, {1, 1}, {1, 1, 1, 1}}); }

} // namespace
} // namespace tessera
