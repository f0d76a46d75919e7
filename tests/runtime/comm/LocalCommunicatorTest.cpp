//===- LocalCommunicatorTest.cpp - collectives between threads -------------===//

#include "runtime/comm/local/LocalCommunicator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

namespace tessera {
namespace {

using artifact::CollectiveKind;
using artifact::DataType;
using Floats = std::vector<float>;

/// Runs `body(communicator)` on every rank of a new world.
void onRanks(int numRanks, const std::function<void(Communicator &)> &body, LocalWorldOptions options = {}) {
  auto world = createLocalWorld(numRanks, options);
  std::vector<std::thread> threads;
  for (auto &communicator : world)
    threads.emplace_back([&body, &communicator] { body(*communicator); });
  for (std::thread &thread : threads)
    thread.join();
}

std::vector<int> allOf(int numRanks) {
  std::vector<int> group(numRanks);
  std::iota(group.begin(), group.end(), 0);
  return group;
}

Floats values(int rank, size_t count) {
  std::mt19937 generator(rank + 1);
  std::normal_distribution<float> normal(0, 100);
  Floats result(count);
  for (float &value : result)
    value = normal(generator);
  return result;
}

Status call(Communicator &communicator, CollectiveKind kind, const std::vector<int> &group, const void *input,
            void *output, int64_t elements, int64_t shift = 0, int channel = 0) {
  CollectiveCall request;
  request.kind = kind;
  request.group = &group;
  request.input = input;
  request.output = output;
  request.elements = elements;
  request.shift = shift;
  request.channel = channel;
  return communicator.run(request);
}

class Ranks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(LocalCommunicator, Ranks, testing::Values(1, 2, 3, 4));

TEST_P(Ranks, AllGatherPutsPartsInGroupOrder) {
  std::vector<int> group = allOf(GetParam());
  onRanks(GetParam(), [&](Communicator &communicator) {
    Floats input = values(communicator.rank(), 5), output(5 * group.size());
    ASSERT_TRUE(call(communicator, CollectiveKind::AllGather, group, input.data(), output.data(), 5).isOk());
    for (int rank : group)
      EXPECT_EQ(Floats(output.begin() + rank * 5, output.begin() + rank * 5 + 5), values(rank, 5));
  });
}

TEST_P(Ranks, AllGatherInPlace) {
  std::vector<int> group = allOf(GetParam());
  onRanks(GetParam(), [&](Communicator &communicator) {
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
  std::vector<int> group = allOf(GetParam());
  size_t part = 3001, count = part * group.size();
  Floats expected = sums(GetParam(), count);
  onRanks(GetParam(), [&](Communicator &communicator) {
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
  std::vector<int> group = allOf(GetParam());
  onRanks(GetParam(), [&](Communicator &communicator) {
    Floats input = values(communicator.rank(), 1), output(1);
    ASSERT_TRUE(call(communicator, CollectiveKind::AllReduce, group, input.data(), output.data(), 1).isOk());
    EXPECT_EQ(output, sums(GetParam(), 1));
  });
}

TEST_P(Ranks, AllToAllTransposesParts) {
  std::vector<int> group = allOf(GetParam());
  onRanks(GetParam(), [&](Communicator &communicator) {
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
  std::vector<int> group = allOf(GetParam());
  onRanks(GetParam(), [&](Communicator &communicator) {
    for (int64_t shift : {1, -1, 2, 0}) {
      Floats input = values(communicator.rank(), 6), output(6);
      ASSERT_TRUE(call(communicator, CollectiveKind::Permute, group, input.data(), output.data(), 6, shift).isOk());
      int64_t size = GetParam(), from = ((communicator.rank() - shift) % size + size) % size;
      EXPECT_EQ(output, values(static_cast<int>(from), 6));
    }
  });
}

TEST(LocalCommunicator, GroupsOfAMeshWorkIndependently) {
  // A 2x2 mesh: each rank sums over its row, then over its column.
  onRanks(4, [&](Communicator &communicator) {
    int rank = communicator.rank(), row = rank / 2, column = rank % 2;
    std::vector<int> rowGroup = {row * 2, row * 2 + 1}, columnGroup = {column, column + 2};
    for (int round = 0; round < 50; ++round) {
      float value = static_cast<float>(rank + round), rowSum = 0, total = 0;
      ASSERT_TRUE(call(communicator, CollectiveKind::AllReduce, rowGroup, &value, &rowSum, 1).isOk());
      EXPECT_EQ(rowSum, static_cast<float>(rowGroup[0] + rowGroup[1] + 2 * round));
      ASSERT_TRUE(call(communicator, CollectiveKind::AllReduce, columnGroup, &rowSum, &total, 1).isOk());
      EXPECT_EQ(total, static_cast<float>(6 + 4 * round));
    }
  });
}

TEST(LocalCommunicator, ChannelsDoNotWaitForEachOther) {
  // Rank 0 issues channel 1 before channel 2, rank 1 the other way round, each from its own thread.
  std::vector<int> group = {0, 1};
  onRanks(2, [&](Communicator &communicator) {
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

TEST(LocalCommunicator, OtherTypes) {
  std::vector<int> group = {0, 1};
  onRanks(2, [&](Communicator &communicator) {
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

TEST(LocalCommunicator, BlobsAndBarrier) {
  onRanks(3, [&](Communicator &communicator) {
    std::string mine(communicator.rank() + 1, static_cast<char>('a' + communicator.rank()));
    auto all = communicator.gatherBlobs(mine, "test");
    ASSERT_TRUE(all.isOk());
    EXPECT_EQ(*all, (std::vector<std::string>{"a", "bb", "ccc"}));
    ASSERT_TRUE(communicator.barrier("test").isOk());
    ASSERT_TRUE(communicator.broadcast(mine, 1, "test").isOk());
    EXPECT_EQ(mine, "bb");
  });
}

TEST(LocalCommunicator, AStalledRankIsNamed) {
  std::vector<int> group = {0, 1};
  onRanks(2,
          [&](Communicator &communicator) {
            if (communicator.rank() == 1) {
              std::this_thread::sleep_for(std::chrono::milliseconds(300));
              EXPECT_FALSE(communicator.abortReason().isOk());
              return;
            }
            float value = 0;
            CollectiveCall request;
            request.group = &group;
            request.input = request.output = &value;
            request.elements = 1;
            request.info = {7, "h.0", "/h.0/attn"};
            Status status = communicator.run(request);
            ASSERT_FALSE(status.isOk());
            EXPECT_EQ(status.code(), StatusCode::Aborted);
            EXPECT_EQ(status.message(),
                      "stalled: rank 1 did not reach all_gather 'h.0' of step 7 (node /h.0/attn) within "
                      "0.1 s, rank 0 waits there");
          },
          {0.1});
}

TEST(LocalCommunicator, AbortEndsWaitingRanksAndLaterCalls) {
  std::vector<int> group = {0, 1, 2};
  onRanks(3, [&](Communicator &communicator) {
    if (communicator.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      communicator.abort(TESSERA_ERROR(IoError, "rank 2: disk on fire"));
      communicator.abort(TESSERA_ERROR(IoError, "a later reason that is not reported"));
    }
    float value = 0;
    Status status = call(communicator, CollectiveKind::AllReduce, group, &value, &value, 1);
    EXPECT_EQ(status.message(), "rank 2: disk on fire");
    EXPECT_EQ(communicator.barrier("end").message(), "rank 2: disk on fire");
  });
}

TEST(LocalCommunicator, DifferentCollectivesAreAnErrorOnAllRanks) {
  std::vector<int> group = {0, 1};
  onRanks(2, [&](Communicator &communicator) {
    Floats input(4), output(8);
    Status status = call(communicator, CollectiveKind::AllGather, group, input.data(), output.data(),
                         communicator.rank() == 0 ? 4 : 3);
    EXPECT_FALSE(status.isOk());
    EXPECT_EQ(output, Floats(8));
  });
}

} // namespace
} // namespace tessera
