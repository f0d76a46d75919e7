//===- StateViewTest.cpp - views of a program's state table -------------------------===//

#include "runtime/state/StateView.h"
#include "tests/runtime/ProgramFixture.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/state/StateFixture.h"

namespace tessera {
namespace {

Result<RankState> viewsOf(const artifact::PackageT &program, int rank, std::vector<float> &memory) {
  TESSERA_ASSIGN_OR_RETURN(auto artifact, test::makeArtifact(program));
  memory.assign(64, 0.0f);
  return makeRankState(*artifact, rank, [&](size_t state) { return memory.data() + 16 * state; });
}

TEST(StateView, ReadsUnitsSegmentsAndRanges) {
  std::vector<float> memory;
  auto views = viewsOf(test::makePackage(), 1, memory);
  ASSERT_STATUS_OK(views);
  ASSERT_EQ(views->size(), 2u);
  const StateView &parameter = (*views)[0], &moment = (*views)[1];
  EXPECT_EQ(parameter.unit, "h.0");
  EXPECT_EQ(parameter.begin, 16);
  EXPECT_EQ(parameter.end, 32);
  EXPECT_TRUE(parameter.saves);
  ASSERT_EQ(parameter.segments.size(), 2u);
  EXPECT_EQ(parameter.segments[0].shape, (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(parameter.segments[0].init->b, 0.02);
  EXPECT_EQ(overlap(parameter, parameter.segments[0]).begin, 16);
  EXPECT_EQ(overlap(parameter, parameter.segments[0]).end, 24);
  // The moment belongs to the unit and takes its segments.
  EXPECT_EQ(moment.unit, "h.0");
  EXPECT_EQ(moment.kind, test::moment1);
  EXPECT_EQ(moment.segments.size(), 2u);
  EXPECT_EQ(moment.data, reinterpret_cast<uint8_t *>(memory.data() + 16));
}

TEST(StateView, OneOfTheRanksWithCopiesSaves) {
  artifact::PackageT program = test::makePackage();
  auto replicate = std::make_unique<artifact::MeshAxisT>();
  replicate->name = "replicate";
  replicate->size = 2;
  program.mesh.insert(program.mesh.begin(), std::move(replicate));
  std::vector<float> memory;
  for (int rank = 0; rank < 4; ++rank) {
    auto views = viewsOf(program, rank, memory);
    ASSERT_STATUS_OK(views);
    EXPECT_EQ((*views)[0].saves, rank < 2) << rank; // rank = replicate * 2 + shard
    EXPECT_EQ((*views)[0].begin, rank % 2 * 16);
  }
}

TEST(StateView, SegmentsThatLieAreErrors) {
  std::vector<float> memory;
  artifact::PackageT program = test::makePackage();
  program.state[0]->segments[1]->offset = 23;
  EXPECT_FALSE(viewsOf(program, 0, memory).isOk());
  program.state[0]->segments[1]->offset = 30;
  EXPECT_FALSE(viewsOf(program, 0, memory).isOk());
}

} // namespace
} // namespace tessera
