//===- FailureTest.cpp - ranks that stall, fail or end ---------------------===//

#include "tests/runtime/comm/WorldFixture.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace tessera {
namespace {

using artifact::CollectiveKind;
using test::allOf;
using test::call;
using test::Floats;
using test::onRanks;
using test::WorldKind;

class Failures : public testing::TestWithParam<WorldKind> {};
INSTANTIATE_TEST_SUITE_P(Worlds, Failures, testing::Values(WorldKind::Local, WorldKind::Tcp),
                         [](const auto &info) { return info.param == WorldKind::Local ? "Local" : "Tcp"; });

void sleepFor(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

Status namedCall(Communicator &communicator, const std::vector<int> &group) {
  float value = 0;
  CollectiveCall request;
  request.kind = CollectiveKind::AllReduce;
  request.group = &group;
  request.input = request.output = &value;
  request.elements = 1;
  request.info = {7, "h.0", "/h.0/attn"};
  return communicator.run(request);
}

TEST_P(Failures, AStalledRankIsNamed) {
  std::vector<int> group = {0, 1};
  onRanks(
      GetParam(), 2,
      [&](Communicator &communicator) {
        if (communicator.rank() == 1) {
          sleepFor(600);
          EXPECT_FALSE(communicator.abortReason().isOk());
          return;
        }
        Status status = namedCall(communicator, group);
        ASSERT_FALSE(status.isOk());
        EXPECT_EQ(status.code(), StatusCode::Aborted);
        std::string expected =
            "stalled: rank 1 did not reach all_reduce 'h.0' of step 7 (node /h.0/attn) within 0.2 s, "
            "rank 0 waits there";
        if (GetParam() == WorldKind::Tcp)
          expected += "; its process is alive";
        EXPECT_EQ(status.message(), expected);
      },
      0.2);
}

TEST_P(Failures, ABusyRankIsWaitedFor) {
  std::vector<int> group = {0, 1};
  onRanks(
      GetParam(), 2,
      [&](Communicator &communicator) {
        ASSERT_TRUE(communicator.barrier("begin").isOk());
        if (communicator.rank() == 1) {
          BusyScope busy(communicator);
          sleepFor(900);
        }
        Status status = namedCall(communicator, group);
        EXPECT_TRUE(status.isOk()) << status;
        // Once it is no longer busy, the timeout counts again.
        if (communicator.rank() == 1) {
          sleepFor(900);
          EXPECT_FALSE(communicator.abortReason().isOk());
          return;
        }
        EXPECT_FALSE(namedCall(communicator, group).isOk());
      },
      0.3);
}

TEST_P(Failures, TheOneWhoIsMissingIsNamedNotTheOneWhoWaits) {
  // On a 2x2 mesh rank 3 is stuck; rank 2 waits for it, and rank 0 then for rank 2.
  std::vector<std::vector<int>> rows = {{0, 1}, {2, 3}}, columns = {{0, 2}, {1, 3}};
  onRanks(
      GetParam(), 4,
      [&](Communicator &communicator) {
        int rank = communicator.rank();
        ASSERT_TRUE(communicator.prepare(rows[rank / 2], 1).isOk());
        ASSERT_TRUE(communicator.prepare(columns[rank % 2], 1).isOk());
        if (rank == 3) {
          sleepFor(1200);
          EXPECT_NE(communicator.abortReason().message().find("rank 3 did not reach"), std::string::npos);
          return;
        }
        float value = 0;
        Status first = call(communicator, CollectiveKind::AllReduce, rows[rank / 2], &value, &value, 1, 0, 1);
        Status status = first.isOk()
                            ? call(communicator, CollectiveKind::AllReduce, columns[rank % 2], &value, &value, 1, 0, 1)
                            : first;
        EXPECT_NE(status.message().find("rank 3 did not reach"), std::string::npos) << status;
      },
      0.3);
}

TEST_P(Failures, AbortEndsWaitingRanksAndLaterCalls) {
  std::vector<int> group = {0, 1, 2};
  onRanks(GetParam(), 3, [&](Communicator &communicator) {
    if (communicator.rank() == 2) {
      sleepFor(30);
      communicator.abort(TESSERA_ERROR(IoError, "rank 2: disk on fire"));
      communicator.abort(TESSERA_ERROR(IoError, "a later reason that is not reported"));
    }
    float value = 0;
    Status status = call(communicator, CollectiveKind::AllReduce, group, &value, &value, 1);
    EXPECT_EQ(status.message(), "rank 2: disk on fire");
    EXPECT_EQ(communicator.barrier("end").message(), "rank 2: disk on fire");
  });
}

TEST_P(Failures, WaitsElsewhereSeeThatOthersLive) {
  onRanks(
      GetParam(), 2,
      [&](Communicator &communicator) {
        ASSERT_TRUE(communicator.barrier("begin").isOk());
        sleepFor(500); // longer than the timeout, but both are heard of
        EXPECT_TRUE(communicator.checkOthers("all_reduce 'h.0'").isOk());
        ASSERT_TRUE(communicator.barrier("end").isOk());
      },
      0.3);
}

TEST(RemoteCommunicator, WaitsElsewhereSeeThatARankHasEnded) {
  int port = test::freePort();
  std::thread other([port] {
    // A process that is killed: the connections break, and no reason is told.
    pid_t child = ::fork();
    if (child == 0) {
      auto transport = openTcpTransport({1, 2, "127.0.0.1", port, 20});
      auto made = createRemoteCommunicator(std::move(*transport), {30, nullptr});
      ::_exit((*made)->barrier("begin").isOk() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
  auto transport = openTcpTransport({0, 2, "127.0.0.1", port, 20});
  ASSERT_TRUE(transport.isOk()) << transport.status();
  auto made = createRemoteCommunicator(std::move(*transport), {30, nullptr});
  ASSERT_TRUE(made.isOk()) << made.status();
  ASSERT_TRUE((*made)->barrier("begin").isOk());
  other.join();
  Status status = Status::ok();
  for (int tries = 0; tries < 500 && status.isOk(); ++tries) {
    sleepFor(10);
    status = (*made)->checkOthers("all_reduce 'h.0'");
  }
  EXPECT_EQ(status.code(), StatusCode::Aborted);
  EXPECT_EQ(status.message(), "rank 1 has ended: rank 0 waits in all_reduce 'h.0'");
  EXPECT_EQ((*made)->abortReason().message(), status.message());
}

TEST(LocalCommunicator, DifferentCollectivesAreAnErrorOnAllRanks) {
  std::vector<int> group = {0, 1};
  onRanks(WorldKind::Local, 2, [&](Communicator &communicator) {
    Floats input(4), output(8);
    Status status = call(communicator, CollectiveKind::AllGather, group, input.data(), output.data(),
                         communicator.rank() == 0 ? 4 : 3);
    EXPECT_FALSE(status.isOk());
    EXPECT_EQ(output, Floats(8));
  });
}

TEST(TcpTransport, MissingRanksAreNamed) {
  auto transport = openTcpTransport({0, 3, "127.0.0.1", test::freePort(), 0.2});
  EXPECT_NE(transport.status().message().find("rank 1, 2 of 3 did not come to 127.0.0.1"), std::string::npos)
      << transport.status();
  transport = openTcpTransport({1, 3, "127.0.0.1", test::freePort(), 0.2});
  EXPECT_NE(transport.status().message().find("rank 1 cannot meet rank 0 at 127.0.0.1"), std::string::npos)
      << transport.status();
}

} // namespace
} // namespace tessera
