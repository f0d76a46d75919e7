//===- CopyTest.cpp - strided copies and fills -----------------------------===//

#include "runtime/device/cpu/Copy.h"

#include "tests/runtime/device/HostTensor.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera {
namespace {

using test::HostTensor;

void check(HostTensor source, HostTensor target, int threads) {
  source.random(7);
  cpu::Team team(threads);
  cpu::CopyPlan(source.view(), target.view()).run(source.view().data, target.view().data, team);
  int64_t wrong = 0;
  target.forEach([&](const std::vector<int64_t> &index) { wrong += target.at(index) != source.at(index); });
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(target.gapsAreUntouched());
}

TEST(Copy, EveryOrderOfFourDimensions) {
  std::vector<size_t> order = {0, 1, 2, 3};
  do {
    check({{3, 5, 2, 7}}, {{3, 5, 2, 7}, order}, 1);
    check({{3, 5, 2, 7}, order, 2}, {{3, 5, 2, 7}, {}, 1}, 2);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Copy, LargeEnoughForThreads) {
  check({{300, 401}}, {{300, 401}, {1, 0}}, 2);
  check({{200, 300}, {}, 3}, {{200, 300}}, 3);
  check({{120000}}, {{120000}}, 2);
  check({{4, 60, 12, 64}}, {{4, 60, 12, 64}, {0, 2, 1, 3}}, 2);
}

TEST(Copy, BroadcastSource) {
  HostTensor source({1, 6}), target({9, 6});
  source.random(1);
  TensorView view = source.view();
  view.shape = {9, 6};
  view.strides = {0, 1};
  cpu::CopyPlan(view, target.view()).run(view.data, target.view().data, cpu::Team(1));
  target.forEach([&](const std::vector<int64_t> &index) { EXPECT_EQ(target.at(index), source.at({0, index[1]})); });
}

TEST(Copy, EveryElementWidth) {
  for (auto dtype :
       {artifact::DataType::U8, artifact::DataType::BF16, artifact::DataType::I32, artifact::DataType::F64}) {
    size_t width = byteWidth(dtype);
    std::vector<uint8_t> source(5 * 9 * width), target(source.size());
    for (size_t position = 0; position < source.size(); ++position)
      source[position] = static_cast<uint8_t>(position * 37 + 11);
    TensorView from{source.data(), dtype, {5, 9}, {9, 1}}, to{target.data(), dtype, {5, 9}, {1, 5}};
    cpu::CopyPlan(from, to).run(from.data, to.data, cpu::Team(1));
    for (size_t row = 0; row < 5; ++row)
      for (size_t column = 0; column < 9; ++column)
        EXPECT_TRUE(std::equal(&source[(row * 9 + column) * width], &source[(row * 9 + column) * width] + width,
                               &target[(column * 5 + row) * width]));
  }
}

TEST(Fill, ContiguousAndStrided) {
  HostTensor dense({100, 70}), strided({10, 7}, {1, 0}, 4);
  cpu::fill(dense.view(), 2.5, cpu::Team(2));
  cpu::fill(strided.view(), -1, cpu::Team(1));
  dense.forEach([&](const std::vector<int64_t> &index) { EXPECT_EQ(dense.at(index), 2.5f); });
  strided.forEach([&](const std::vector<int64_t> &index) { EXPECT_EQ(strided.at(index), -1.0f); });
  EXPECT_TRUE(strided.gapsAreUntouched());
}

TEST(Fill, ConvertsToTheType) {
  int64_t wide[3];
  cpu::fill({wide, artifact::DataType::I64, {3}, {1}}, 7, cpu::Team(1));
  EXPECT_EQ(wide[2], 7);
  uint16_t half[2];
  cpu::fill({half, artifact::DataType::BF16, {2}, {1}}, 1.0, cpu::Team(1));
  EXPECT_EQ(half[1], 0x3f80);
  uint8_t flag[2] = {0, 0};
  cpu::fill({flag, artifact::DataType::Bool, {2}, {1}}, 1.0, cpu::Team(1));
  EXPECT_EQ(flag[0], 1);
}

} // namespace
} // namespace tessera
