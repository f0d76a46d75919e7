//===- MeshTest.cpp - ranks and their groups -------------------------------===//

#include "runtime/artifact/Mesh.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

const Mesh mesh{{{"replicate", 2}, {"shard", 3}, {"seq", 2}}};

TEST(Mesh, Counts) {
  EXPECT_EQ(mesh.numRanks(), 12);
  EXPECT_EQ(mesh.groupSize({"shard", "seq"}), 6);
  EXPECT_EQ(mesh.groupSize({}), 1);
  EXPECT_EQ(Mesh{}.numRanks(), 1);
}

TEST(Mesh, MembersAreOrderedByTheirPositionOnTheAxes) {
  // rank = (replicate * 3 + shard) * 2 + seq
  EXPECT_EQ(mesh.groupMembers({"shard"}, 1), (std::vector<int>{1, 3, 5}));
  EXPECT_EQ(mesh.groupMembers({"replicate"}, 9), (std::vector<int>{3, 9}));
  EXPECT_EQ(mesh.groupMembers({"replicate", "seq"}, 8), (std::vector<int>{2, 3, 8, 9}));
  // The first axis that a group names is the major one.
  EXPECT_EQ(mesh.groupMembers({"seq", "replicate"}, 8), (std::vector<int>{2, 8, 3, 9}));
  EXPECT_EQ(mesh.groupMembers({}, 7), (std::vector<int>{7}));
}

TEST(Mesh, PositionIsTheIndexInTheGroup) {
  for (int rank = 0; rank < 12; ++rank)
    for (const auto &axes : std::vector<std::vector<std::string>>{
             {"shard"}, {"replicate", "seq"}, {"shard", "seq"}, {"seq", "shard"}, {"seq", "replicate", "shard"}, {}}) {
      std::vector<int> members = mesh.groupMembers(axes, rank);
      EXPECT_EQ(members[mesh.positionInGroup(axes, rank)], rank);
    }
}

} // namespace
} // namespace tessera
