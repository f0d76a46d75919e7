//===- NearestTest.cpp - names like what somebody wrote ------------------------===//

#include "runtime/base/Nearest.h"

#include <gtest/gtest.h>

using namespace tessera;

namespace {

using Names = std::vector<std::string_view>;

TEST(Nearest, LettersUntilItIsAPart) {
  EXPECT_EQ(distanceToPart("", ""), 0u);
  EXPECT_EQ(distanceToPart("ab", ""), 2u);
  EXPECT_EQ(distanceToPart("attn", "h.0.attn.weight"), 0u);
  EXPECT_EQ(distanceToPart("atn", "h.0.attn.weight"), 1u);   // one is missing
  EXPECT_EQ(distanceToPart("attnn", "h.0.attn.weight"), 1u); // one too many
  EXPECT_EQ(distanceToPart("altn", "h.0.attn.weight"), 1u);  // one is another
  EXPECT_EQ(distanceToPart("--stpes", "--steps"), 2u);
}

TEST(Nearest, TheFirstOfEqualOnesIsFirst) {
  const Names names = {"h.0.ln.bias", "h.0.mlp.weight", "h.1.ln.bias", "head"};
  EXPECT_EQ(nearestTo("ln.bais", names, 2), (Names{"h.0.ln.bias", "h.1.ln.bias"}));
  EXPECT_EQ(nearestTo("hxyd", names, 4, 1), (Names{}));
  EXPECT_EQ(nearestTo("haed", names, 4, 2), (Names{"head"}));
  EXPECT_EQ(nearestTo("x", {}, 3), (Names{}));
}

} // namespace
