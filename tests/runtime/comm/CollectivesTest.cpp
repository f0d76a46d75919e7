//===- CollectivesTest.cpp - the same collectives over threads and sockets -===//
//
// Every test runs on both kinds of worlds: the sums must be equal bit for bit.
//
//===----------------------------------------------------------------------===//

#include "tests/runtime/comm/WorldFixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tessera {
namespace {

using artifact::CollectiveKind;
using artifact::DataType;
using artifact::ReductionKind;
using test::allOf;
using test::call;
using test::Floats;
using test::onRanks;
using test::values;
using test::WorldKind;

struct World {
  WorldKind kind;
  int numRanks;
};

class Ranks : public testing::TestWithParam<World> {
protected:
  int numRanks() const { return GetParam().numRanks; }
  void onRanks(const std::function<void(Communicator &)> &body) { test::onRanks(GetParam().kind, numRanks(), body); }
};
std::string nameOf(const testing::TestParamInfo<World> &info) {
  return (info.param.kind == WorldKind::Local ? "Local" : "Tcp") + std::to_string(info.param.numRanks);
}
INSTANTIATE_TEST_SUITE_P(Collectives, Ranks,
                         testing::Values(World{WorldKind::Local, 1}, World{WorldKind::Local, 2},
                                         World{WorldKind::Local, 3}, World{WorldKind::Local, 4},
                                         World{WorldKind::Tcp, 1}, World{WorldKind::Tcp, 2}, World{WorldKind::Tcp, 3},
                                         World{WorldKind::Tcp, 4}),
                         nameOf);

class Worlds : public testing::TestWithParam<WorldKind> {};
INSTANTIATE_TEST_SUITE_P(Collectives, Worlds, testing::Values(WorldKind::Local, WorldKind::Tcp),
                         [](const auto &info) { return info.param == WorldKind::Local ? "Local" : "Tcp"; });

TEST_P(Ranks, AllGatherPutsPartsInGroupOrder) {
  std::vector<int> group = allOf(numRanks());
  onRanks([&](Communicator &communicator) {
    Floats input = values(communicator.rank(), 5), output(5 * group.size());
    ASSERT_TRUE(call(communicator, CollectiveKind::AllGather, group, input.data(), output.data(), 5).isOk());
    for (int rank : group)
      EXPECT_EQ(Floats(output.begin() + rank * 5, output.begin() + rank * 5 + 5), values(rank, 5));
  });
}

TEST_P(Ranks, AllGatherInPlace) {
  std::vector<int> group = allOf(numRanks());
  onRanks([&](Communicator &communicator) {
    Floats output(5 * group.size()), mine = values(communicator.rank(), 5);
    float *part = output.data() + communicator.rank() * 5;
    std::copy(mine.begin(), mine.end(), part);
    ASSERT_TRUE(call(communicator, CollectiveKind::AllGather, group, part, output.data(), 5).isOk());
    for (int rank : group)
      EXPECT_EQ(Floats(output.begin() + rank * 5, output.begin() + rank * 5 + 5), values(rank, 5));
  });
}

/// Sums in group order, as floats.
Floats sums(int numRanks, size_t count) {
  Floats total = values(0, count);
  for (int rank = 1; rank < numRanks; ++rank) {
    Floats next = values(rank, count);
    for (size_t index = 0; index < count; ++index)
      total[index] += next[index];
  }
  return total;
}

TEST_P(Ranks, AllReduceEqualsReduceScatterAndAllGatherBitForBit) {
  std::vector<int> group = allOf(numRanks());
  size_t part = 3001, count = part * group.size();
  Floats expected = sums(numRanks(), count);
  onRanks([&](Communicator &communicator) {
    Floats input = values(communicator.rank(), count), whole(count), scattered(part), gathered(count);
    ASSERT_TRUE(call(communicator, CollectiveKind::AllReduce, group, input.data(), whole.data(), count).isOk());
    EXPECT_EQ(whole, expected);
    ASSERT_TRUE(call(communicator, CollectiveKind::ReduceScatter, group, input.data(), scattered.data(), count).isOk());
    ASSERT_TRUE(call(communicator, CollectiveKind::AllGather, group, scattered.data(), gathered.data(), part).isOk());
    EXPECT_EQ(gathered, whole);
    // In place: all_reduce on the input, reduce_scatter into the rank's own part.
    Floats copy = input;
    ASSERT_TRUE(call(communicator, CollectiveKind::AllReduce, group, input.data(), input.data(), count).isOk());
    EXPECT_EQ(input, expected);
    float *own = copy.data() + part * communicator.rank();
    ASSERT_TRUE(call(communicator, CollectiveKind::ReduceScatter, group, copy.data(), own, count).isOk());
    EXPECT_EQ(Floats(own, own + part), scattered);
  });
}

TEST_P(Ranks, AllReduceOfFewElements) {
  std::vector<int> group = allOf(numRanks());
  onRanks([&](Communicator &communicator) {
    Floats input = values(communicator.rank(), 1), output(1);
    ASSERT_TRUE(call(communicator, CollectiveKind::AllReduce, group, input.data(), output.data(), 1).isOk());
    EXPECT_EQ(output, sums(numRanks(), 1));
  });
}

TEST_P(Ranks, AllToAllTransposesParts) {
  std::vector<int> group = allOf(numRanks());
  onRanks([&](Communicator &communicator) {
    size_t count = group.size();
    Floats input = values(communicator.rank(), 4 * count), output(4 * count);
    ASSERT_TRUE(call(communicator, CollectiveKind::AllToAll, group, input.data(), output.data(), 4 * count).isOk());
    for (int rank : group) {
      Floats theirs = values(rank, 4 * count);
      for (size_t index = 0; index < 4; ++index)
        EXPECT_EQ(output[rank * 4 + index], theirs[communicator.rank() * 4 + index]);
    }
  });
}

TEST_P(Ranks, PermuteShiftsBothWays) {
  std::vector<int> group = allOf(numRanks());
  onRanks([&](Communicator &communicator) {
    for (int64_t shift : {1, -1, 2, 0}) {
      Floats input = values(communicator.rank(), 6), output(6);
      ASSERT_TRUE(call(communicator, CollectiveKind::Permute, group, input.data(), output.data(), 6, shift).isOk());
      int64_t size = numRanks(), from = ((communicator.rank() - shift) % size + size) % size;
      EXPECT_EQ(output, values(static_cast<int>(from), 6));
    }
  });
}

TEST_P(Worlds, GroupsOfAMeshWorkIndependently) {
  // A 2x2 mesh: each rank sums over its row, then over its column.
  onRanks(GetParam(), 4, [&](Communicator &communicator) {
    int rank = communicator.rank(), row = rank / 2, column = rank % 2;
    std::vector<int> rowGroup = {row * 2, row * 2 + 1}, columnGroup = {column, column + 2};
    ASSERT_TRUE(communicator.prepare(rowGroup, 0).isOk());
    ASSERT_TRUE(communicator.prepare(columnGroup, 0).isOk());
    for (int round = 0; round < 50; ++round) {
      float value = static_cast<float>(rank + round), rowSum = 0, total = 0;
      ASSERT_TRUE(call(communicator, CollectiveKind::AllReduce, rowGroup, &value, &rowSum, 1).isOk());
      EXPECT_EQ(rowSum, static_cast<float>(rowGroup[0] + rowGroup[1] + 2 * round));
      ASSERT_TRUE(call(communicator, CollectiveKind::AllReduce, columnGroup, &rowSum, &total, 1).isOk());
      EXPECT_EQ(total, static_cast<float>(6 + 4 * round));
    }
  });
}

TEST_P(Worlds, ChannelsDoNotWaitForEachOther) {
  // Rank 0 issues channel 1 before channel 2, rank 1 the other way round, each from its own thread.
  std::vector<int> group = {0, 1};
  onRanks(GetParam(), 2, [&](Communicator &communicator) {
    ASSERT_TRUE(communicator.prepare(group, 1).isOk());
    ASSERT_TRUE(communicator.prepare(group, 2).isOk());
    float value = 1, first = 0, second = 0;
    int early = communicator.rank() == 0 ? 1 : 2;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_TRUE(call(communicator, CollectiveKind::AllReduce, group, &value, &second, 1, 0, 3 - early).isOk());
    });
    EXPECT_TRUE(call(communicator, CollectiveKind::AllReduce, group, &value, &first, 1, 0, early).isOk());
    other.join();
    EXPECT_EQ(first + second, 4.0f);
  });
}

TEST_P(Worlds, OtherTypes) {
  std::vector<int> group = {0, 1};
  onRanks(GetParam(), 2, [&](Communicator &communicator) {
    ASSERT_TRUE(communicator.prepare(group, 0).isOk());
    int64_t wide = 1ll << 40, wideSum = 0;
    CollectiveCall request;
    request.kind = CollectiveKind::AllReduce;
    request.group = &group;
    request.elements = 1;
    request.dtype = DataType::I64;
    request.input = &wide;
    request.output = &wideSum;
    EXPECT_TRUE(communicator.run(request).isOk());
    EXPECT_EQ(wideSum, 1ll << 41);
    uint16_t half = 0x3fc0, halfSum = 0; // 1.5
    request.dtype = DataType::BF16;
    request.input = &half;
    request.output = &halfSum;
    EXPECT_TRUE(communicator.run(request).isOk());
    EXPECT_EQ(halfSum, 0x4040); // 3.0
  });
}

TEST_P(Ranks, MaximaAndMinimaKeepNansAndOrderZeros) {
  std::vector<int> group = allOf(numRanks());
  onRanks([&](Communicator &communicator) {
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    const int rank = communicator.rank(), last = numRanks() - 1;
    // Per element: a NaN on the last rank, infinities, zeros of both signs, ranks' numbers.
    Floats input = {rank == last ? nan : 1.0f, rank == 0 ? infinity : -infinity, rank == 0 ? 0.0f : -0.0f,
                    static_cast<float>(rank)};
    auto reduce = [&](ReductionKind kind) {
      Floats output(4);
      CollectiveCall request;
      request.kind = CollectiveKind::AllReduce;
      request.reduction = kind;
      request.group = &group;
      request.input = input.data();
      request.output = output.data();
      request.elements = 4;
      EXPECT_TRUE(communicator.run(request).isOk());
      return output;
    };
    Floats most = reduce(ReductionKind::Max), least = reduce(ReductionKind::Min);
    EXPECT_TRUE(std::isnan(most[0]) && std::isnan(least[0]));
    EXPECT_EQ(most[1], infinity);
    EXPECT_EQ(least[1], last == 0 ? infinity : -infinity);
    EXPECT_FALSE(std::signbit(most[2]));
    EXPECT_EQ(std::signbit(least[2]), last > 0);
    EXPECT_EQ(most[3], static_cast<float>(last));
    EXPECT_EQ(least[3], 0.0f);
  });
}

TEST_P(Worlds, RanksThatReduceOtherwiseDoNotMeet) {
  if (GetParam() != WorldKind::Local)
    GTEST_SKIP() << "over sockets the hash of the sequence of collectives is compared before the first";
  std::vector<int> group = {0, 1};
  onRanks(GetParam(), 2, [&](Communicator &communicator) {
    float value = 1, result = 0;
    CollectiveCall request;
    request.kind = CollectiveKind::AllReduce;
    request.reduction = communicator.rank() == 0 ? ReductionKind::Sum : ReductionKind::Max;
    request.group = &group;
    request.input = &value;
    request.output = &result;
    request.elements = 1;
    EXPECT_FALSE(communicator.run(request).isOk());
  });
}

TEST_P(Worlds, BlobsAndBarrier) {
  onRanks(GetParam(), 3, [&](Communicator &communicator) {
    std::string mine(communicator.rank() + 1, static_cast<char>('a' + communicator.rank()));
    auto all = communicator.gatherBlobs(mine, "test");
    ASSERT_TRUE(all.isOk());
    EXPECT_EQ(*all, (std::vector<std::string>{"a", "bb", "ccc"}));
    ASSERT_TRUE(communicator.barrier("test").isOk());
    ASSERT_TRUE(communicator.broadcast(mine, 1, "test").isOk());
    EXPECT_EQ(mine, "bb");
    std::string large(100000 + communicator.rank(), 'x');
    auto atRoot = communicator.collectBlobs(large, 2, "test");
    ASSERT_TRUE(atRoot.isOk());
    ASSERT_EQ(atRoot->size(), communicator.rank() == 2 ? 3u : 0u);
    for (size_t rank = 0; rank < atRoot->size(); ++rank)
      EXPECT_EQ((*atRoot)[rank].size(), 100000 + rank);
  });
}

} // namespace
} // namespace tessera
