//===- WeightsTest.cpp - values of weights --------------------------------===//

#include "ArchiveFile.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace tessera::pt2;

namespace {
Program readFile(const std::string &name) {
  auto program = readProgram(programPath(name));
  if (program)
    return std::move(*program);
  ADD_FAILURE() << toString(program.takeError());
  return {};
}

std::vector<float> floats(const Program &program, const std::string &name) {
  auto bytes = readWeight(program, name);
  if (!bytes) {
    ADD_FAILURE() << toString(bytes.takeError());
    return {};
  }
  std::vector<float> values(bytes->size() / sizeof(float));
  std::memcpy(values.data(), bytes->data(), values.size() * sizeof(float));
  return values;
}
} // namespace

TEST(Pt2Weights, Contiguous) {
  const Program program = readFile("mlp");
  ASSERT_EQ(program.weights.size(), 3u);
  EXPECT_TRUE(program.weights.at("up.weight").isParameter);
  EXPECT_EQ(program.weights.at("up.weight").sizes, (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(floats(program, "up.weight"), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(floats(program, "up.bias"), (std::vector<float>{100, 101, 102, 103}));
  EXPECT_TRUE(program.tied.empty());
}

TEST(Pt2Weights, TiedAndStrided) {
  const Program program = readFile("tied");
  EXPECT_EQ(program.tied, (std::vector<std::vector<std::string>>{{"embed.weight", "head.weight"}, {"first", "last"}}));
  EXPECT_EQ(floats(program, "embed.weight"), floats(program, "head.weight"));
  EXPECT_EQ(program.weights.at("turned").strides, (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(floats(program, "turned"), (std::vector<float>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(floats(program, "first"), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(program.weights.at("last").storageOffset, 8);
  EXPECT_EQ(floats(program, "last"), (std::vector<float>{8, 9, 10, 11}));
  EXPECT_EQ(floats(program, "repeated"), (std::vector<float>{0, 0, 1, 1, 2, 2}));
}

TEST(Pt2Weights, StrideOfASingleElement) {
  Program program = readFile("mlp");
  Weight &weight = program.weights.at("up.weight");
  weight.sizes = {3, 1, 4};
  weight.strides = {1, INT64_MAX, 3};
  EXPECT_EQ(floats(program, "up.weight"), (std::vector<float>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
  // What a caller changed is checked again.
  weight.sizes = {3, 2, 4};
  auto bytes = readWeight(program, "up.weight");
  ASSERT_FALSE(static_cast<bool>(bytes));
  EXPECT_EQ(toString(bytes.takeError()), "the sizes of 'up.weight' are out of range");
}

TEST(Pt2Weights, ScalarsAndConstants) {
  const Program program = readFile("norm");
  EXPECT_EQ(program.weights.at("norm.num_batches_tracked").dtype, ScalarType::Long);
  auto count = readWeight(program, "norm.num_batches_tracked");
  ASSERT_TRUE(static_cast<bool>(count));
  EXPECT_EQ(*count, std::vector<char>(8, 0));
  EXPECT_EQ(floats(program, "mask"), (std::vector<float>{1, 0, 1, 1}));
  EXPECT_EQ(floats(program, "lifted_tensor_0"), (std::vector<float>{1, 2, 3, 4}));
}

TEST(Pt2Weights, WithoutData) {
  const Program program = readFile("fake");
  for (const auto &[name, weight] : program.weights)
    EXPECT_FALSE(weight.hasData) << name;
  EXPECT_TRUE(program.tied.empty());
  auto bytes = readWeight(program, "up.weight");
  ASSERT_FALSE(static_cast<bool>(bytes));
  EXPECT_EQ(toString(bytes.takeError()), "'" + programPath("fake") +
                                             "' has no values of 'up.weight': it was exported with fake tensors, so "
                                             "weights must come from elsewhere");
}

TEST(Pt2Weights, NoSuchName) {
  auto bytes = readWeight(readFile("mlp"), "down.bias");
  ASSERT_FALSE(static_cast<bool>(bytes));
  EXPECT_EQ(toString(bytes.takeError()), "'" + programPath("mlp") + "' has no weight 'down.bias'");
}

TEST(Pt2Weights, DamagedBytes) {
  std::string bytes = fileBytes(programPath("mlp"));
  // The values 100, 101 of up.bias.
  const std::string values("\0\0\xc8\x42\0\0\xca\x42", 8);
  const size_t at = bytes.find(values);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 1;
  auto archive = Archive::openBytes(bytes, "test");
  ASSERT_TRUE(static_cast<bool>(archive));
  auto program = readProgram(*archive);
  ASSERT_TRUE(static_cast<bool>(program));
  auto bias = readWeight(*archive, *program, "up.bias");
  ASSERT_FALSE(static_cast<bool>(bias));
  EXPECT_EQ(toString(bias.takeError()), "'test', entry 'data/weights/weight_1' is damaged: CRC error");
}
