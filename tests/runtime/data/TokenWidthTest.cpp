//===- TokenWidthTest.cpp - token files that are read with the wrong width --------------===//

#include "runtime/data/TokenSource.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/data/DataFixture.h"

namespace tessera {
namespace {

using test::rawBytes;

class TokenWidth : public ::testing::Test {
protected:
  template <typename T> auto open(const std::vector<T> &tokens, int tokenBytes = 0) {
    test::writeFile(path, rawBytes(tokens));
    return TokenSource::open(path, {.tokenBytes = tokenBytes});
  }
  /// 1, 2, … below 50000, again and again.
  template <typename T> static std::vector<T> counting(size_t count) {
    std::vector<T> tokens(count);
    for (size_t i = 0; i < count; ++i)
      tokens[i] = static_cast<T>(1 + i % 49999);
    return tokens;
  }

  test::ScratchFolder scratch;
  std::string path = scratch.path("a.bin");
};

TEST_F(TokenWidth, WideTokensThatWouldBeReadAsNarrowOnesAreRefused) {
  for (size_t count : {64, 1000, 65536, 300000}) {
    EXPECT_ERROR(open(counting<uint32_t>(count)),
                 "token file '" + path +
                     "' has no header and would be read as uint16, but every second word is 0: it looks like uint32, "
                     "give --token-bytes 4 (or --token-bytes 2 if it is uint16)");
    EXPECT_TRUE(open(counting<uint32_t>(count), 4).isOk());
    EXPECT_TRUE(open(counting<uint32_t>(count), 2).isOk());
  }
}

TEST_F(TokenWidth, NoFalseAlarms) {
  EXPECT_TRUE(open(counting<uint32_t>(63)).isOk()) << "too few to tell";
  EXPECT_TRUE(open(counting<uint16_t>(300000)).isOk());
  EXPECT_TRUE(open(std::vector<uint16_t>(300000)).isOk()) << "zeros are of any width";
  auto tokens = counting<uint32_t>(1000);
  tokens[500] = 1 << 16;
  EXPECT_TRUE(open(tokens).isOk()) << "a high half";
  auto odd = counting<uint16_t>(1001);
  for (size_t i = 1; i < odd.size(); i += 2)
    odd[i] = 0;
  EXPECT_TRUE(open(odd).isOk()) << "no whole number of uint32";
  std::vector<uint16_t> sparse(1000);
  sparse[4] = 7;
  EXPECT_TRUE(open(sparse).isOk()) << "mostly zeros";
}

TEST_F(TokenWidth, NarrowTokensThatAreReadAsWideOnesGetAHint) {
  auto source = open(counting<uint16_t>(3000), 4);
  ASSERT_STATUS_OK(source);
  uint32_t token;
  ASSERT_STATUS_OK((*source)->read(0, 1, &token));
  EXPECT_EQ(token, 0x20001u);
  EXPECT_ERROR((*source)->unigramEntropy(), "more than any vocabulary; is the file uint16? Then give --token-bytes 2");
}

} // namespace
} // namespace tessera
