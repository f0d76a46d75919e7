//===- DataTypesTest.cpp - conversions of stored elements --------------------===//

#include "runtime/state/DataTypes.h"
#include "tests/runtime/TestSupport.h"

#include <cmath>
#include <cstring>

namespace tessera {
namespace {

TEST(DataTypes, HalfCoversAllClassesOfNumbers) {
  EXPECT_EQ(halfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(halfToFloat(0xc000), -2.0f);
  EXPECT_EQ(halfToFloat(0x7bff), 65504.0f);
  EXPECT_EQ(halfToFloat(0x0400), 0x1p-14f);
  EXPECT_EQ(halfToFloat(0x0001), 0x1p-24f);
  EXPECT_EQ(halfToFloat(0x83ff), -1023 * 0x1p-24f);
  EXPECT_TRUE(std::signbit(halfToFloat(0x8000)));
  EXPECT_TRUE(std::isinf(halfToFloat(0x7c00)));
  EXPECT_TRUE(std::isnan(halfToFloat(0x7e00)));
  EXPECT_EQ(bfloat16ToFloat(0x4049), 3.140625f);
}

TEST(DataTypes, ConvertsUnalignedBytes) {
  char buffer[1 + 3 * 2];
  uint16_t halves[] = {0x3c00, 0x4000, 0x4200};
  std::memcpy(buffer + 1, halves, sizeof(halves));
  float values[3];
  ASSERT_STATUS_OK(convertElements(DataType::F16, buffer + 1, DataType::F32, values, 3));
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[2], 3.0f);
}

TEST(DataTypes, NarrowingIntegersIsChecked) {
  int64_t values[] = {1, 1ll << 40};
  int32_t narrow[2];
  ASSERT_STATUS_OK(convertElements(DataType::I64, values, DataType::I32, narrow, 1));
  EXPECT_EQ(narrow[0], 1);
  EXPECT_ERROR(convertElements(DataType::I64, values, DataType::I32, narrow, 2), "1099511627776 at element 1");
  EXPECT_ERROR(convertElements(DataType::F32, values, DataType::I32, narrow, 1), "no conversion from F32 to I32");
}

TEST(DataTypes, ElementCountsDoNotOverflow) {
  int64_t shape[] = {1ll << 32, 1ll << 32}, negative[] = {3, -1}, good[] = {2, 3};
  EXPECT_FALSE(checkedElements(shape));
  EXPECT_FALSE(checkedElements(negative));
  EXPECT_EQ(checkedElements(good, 4), 6);
  EXPECT_EQ(shapeToString(good), "[2,3]");
}

} // namespace
} // namespace tessera
