//===- GuardTest.cpp - conditions on sizes, as Python has them --------------===//

#include "frontends/pt2/Guard.h"

#include <gtest/gtest.h>

using tessera::pt2::holds;

namespace {
std::optional<int64_t> sizes(llvm::StringRef input, int64_t dim) {
  if ((input == "x" || input == "args_1") && dim < 2)
    return dim == 0 ? 6 : 7;
  return std::nullopt;
}

TEST(Guard, Holds) {
  for (const char *guard : {"(L['x'].size()[0] % 2) == 0", "L['x'].shape[1] == 7", "2 <= L['x'].size()[0] <= 6",
                            "L['x'].size()[0]*2 == 12 and not L['x'].size()[1] < 7", "-7 // 2 == -4 and -7 % 2 == 1",
                            "L[\"x\"].size()[0] + 1 == L[\"x\"].size()[1]", "1 > 2 or 3 != 4", "7 - 2 - 1 == 4",
                            "L['args'][1].size()[0] == L['x'].size()[0]",
                            "(8*torch.sym_max(1, (-L['x'].size()[1]) % 4)) != 2 and torch.sym_min(3, 2, 4) == 2"})
    EXPECT_EQ(holds(guard, sizes), true) << guard;
}

TEST(Guard, DoesNotHold) {
  for (const char *guard : {"(L['x'].size()[1] % 2) == 0", "L['x'].size()[0] > L['x'].size()[1]", "not 1",
                            "2 <= L['x'].size()[1] <= 6", "1 == 1 and 0"})
    EXPECT_EQ(holds(guard, sizes), false) << guard;
}

TEST(Guard, SaysNothingOfWhatItDoesNotKnow) {
  for (const char *guard : {"",
                            "x == 1",
                            "L['y'].size()[0] == 1",
                            "L['x'].size()[2] == 1",
                            "L['x'].stride()[0] == 1",
                            "1 / 2 == 0",
                            "2 ** 3 == 8",
                            "1 == 1)",
                            "(1 == 1",
                            "1 % 0 == 0",
                            "9223372036854775807 + 1 == 0",
                            "99999999999999999999 == 0",
                            "L['x",
                            "L['args'][0].size()[0] == 6",
                            "L['args'][",
                            "1 ==",
                            "Max(1, 2) == 2",
                            "1.5 == 1.5",
                            "torch.sym_max(1, 2 == 2",
                            "torch.sym_max() == 2",
                            "torch.sym_sum(1, 2) == 3"})
    EXPECT_EQ(holds(guard, sizes), std::nullopt) << guard;
  EXPECT_EQ(holds(std::string(100000, '('), sizes), std::nullopt);
  EXPECT_EQ(holds("not " + std::string(1000, '-') + "1", sizes), std::nullopt);
}
} // namespace
