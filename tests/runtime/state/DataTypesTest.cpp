//===- DataTypesTest.cpp - conversions of stored elements --------------------===//

#include "runtime/state/DataTypes.h"

#include "runtime/base/BFloat16.h"
#include "runtime/base/Half.h"
#include "tests/runtime/TestSupport.h"

#include <cmath>
#include <cstring>

namespace tessera {
namespace {

TEST(DataTypes, HalfCoversAllClassesOfNumbers) {
  EXPECT_EQ(widenHalf(0x3c00), 1.0f);
  EXPECT_EQ(widenHalf(0xc000), -2.0f);
  EXPECT_EQ(widenHalf(0x7bff), 65504.0f);
  EXPECT_EQ(widenHalf(0x0400), 0x1p-14f);
  EXPECT_EQ(widenHalf(0x0001), 0x1p-24f);
  EXPECT_EQ(widenHalf(0x83ff), -1023 * 0x1p-24f);
  EXPECT_TRUE(std::signbit(widenHalf(0x8000)));
  EXPECT_TRUE(std::isinf(widenHalf(0x7c00)));
  EXPECT_TRUE(std::isnan(widenHalf(0x7e00)));
  EXPECT_EQ(widenBFloat16(0x4049), 3.140625f);
}

TEST(DataTypes, EveryHalfIsKept) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = widenHalf(static_cast<uint16_t>(bits));
    EXPECT_EQ(toHalf(value), std::isnan(value) ? bits | 0x200 : bits);
  }
}

TEST(DataTypes, HalfRoundsToNearestTiesToEven) {
  // Between two neighbours: the lower below the middle, the upper above it, and at it the even one.
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float low = widenHalf(static_cast<uint16_t>(bits)),
                high = bits == 0x7bff ? 0x1p16f : widenHalf(static_cast<uint16_t>(bits + 1)),
                middle = low + (high - low) / 2;
    EXPECT_EQ(toHalf(std::nextafter(middle, 0.0f)), bits);
    EXPECT_EQ(toHalf(std::nextafter(middle, 1e6f)), bits + 1);
    EXPECT_EQ(toHalf(-middle), (bits % 2 == 0 ? bits : bits + 1) | 0x8000);
  }
  EXPECT_EQ(toHalf(1e30f), 0x7c00);
  EXPECT_EQ(toHalf(-HUGE_VALF), 0xfc00);
  EXPECT_EQ(toHalf(0x1p-149f), 0);
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

TEST(DataTypes, NarrowingKeepsNumbersFinite) {
  const double wide[] = {-HUGE_VAL, 1.0, -1e300};
  float values[3];
  ASSERT_STATUS_OK(convertElements(DataType::F64, wide, DataType::F32, values, 2));
  EXPECT_EQ(values[0], -HUGE_VALF);
  EXPECT_ERROR(convertElements(DataType::F64, wide, DataType::F32, values, 3, 10),
               "-1e+300 at element 12 does not fit");

  const float masks[] = {HUGE_VALF, 70000.0f, std::numeric_limits<float>::lowest()};
  uint16_t narrow[3];
  ASSERT_STATUS_OK(roundElements(masks, DataType::BF16, narrow, 2));
  EXPECT_EQ(narrow[0], 0x7f80);
  EXPECT_ERROR(roundElements(masks, DataType::BF16, narrow, 3), "-3.40282e+38 at element 2 does not fit");
  EXPECT_ERROR(roundElements(masks, DataType::F16, narrow, 3), "70000 at element 1 does not fit");
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
