//===- StartUpTest.cpp - ranks that meet, and what may disturb them --------===//

#include "runtime/comm/RankMessage.h"
#include "runtime/comm/tcp/Messages.h"
#include "runtime/comm/tcp/Reception.h"
#include "runtime/comm/tcp/Waiting.h"
#include "tests/runtime/comm/WorldFixture.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using Opened = Result<std::unique_ptr<Transport>>;

Status goOn() { return Status::ok(); }
Status goOnWithout(const std::vector<int> &) { return Status::ok(); }

double secondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::future<Opened> openLater(const TcpOptions &options) {
  return std::async(std::launch::async, [options] { return openTcpTransport(options); });
}

tcp::Socket connected(int port) {
  std::string reason;
  for (int tries = 0; tries < 100; ++tries) {
    auto socket = tcp::connectOnce("127.0.0.1", port, goOn, reason);
    if (socket.isOk() && socket->isOpen())
      return *std::move(socket);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ADD_FAILURE() << reason;
  return {};
}

TEST(RankMessage, TheRankIsSaidOnce) {
  auto told = [](const char *text) { return toldByRank(TESSERA_ERROR(IoError, text), 1).message(); };
  EXPECT_EQ(told("no space"), "rank 1: no space");
  EXPECT_EQ(told("rank 1: no space"), "rank 1: no space");
  EXPECT_EQ(told("rank 2 has ended"), "rank 2 has ended");
  EXPECT_EQ(told("stalled: rank 2 did not reach"), "stalled: rank 2 did not reach");
  EXPECT_EQ(told("ranking failed"), "rank 1: ranking failed");
  auto seen = [](const char *text) { return seenByRank(TESSERA_ERROR(IoError, text), 1).message(); };
  EXPECT_EQ(seen("no space"), "rank 1: no space");
  EXPECT_EQ(seen("rank 1: no space"), "rank 1: no space");
  EXPECT_EQ(seen("rank 1 and rank 0 differ"), "rank 1 and rank 0 differ");
  EXPECT_EQ(seen("rank 12 has ended"), "rank 1: rank 12 has ended");
  EXPECT_EQ(seen("stalled: rank 2 did not reach"), "rank 1: stalled: rank 2 did not reach");
}

TEST(Waiting, RanksInARowAreARange) {
  EXPECT_EQ(tcp::listRanks({}), "");
  EXPECT_EQ(tcp::listRanks({3}), "3");
  EXPECT_EQ(tcp::listRanks({1, 2}), "1, 2");
  EXPECT_EQ(tcp::listRanks({1, 2, 3}), "1-3");
  EXPECT_EQ(tcp::listRanks({1, 3, 4, 7, 8, 9, 11}), "1, 3, 4, 7-9, 11");
}

TEST(Reception, HearsAllConnectionsAtOnce) {
  auto listener = tcp::listenOn(0);
  ASSERT_TRUE(listener.isOk()) << listener.status();
  tcp::Reception reception(*std::move(listener));
  std::vector<tcp::Socket> silent;
  for (int each = 0; each < 600; ++each)
    silent.push_back(connected(reception.port()));
  tcp::Socket garbage = connected(reception.port()), slow = connected(reception.port()),
              rank = connected(reception.port());
  tcp::Hello hello;
  hello.rank = 5;
  ASSERT_TRUE(tcp::sendAll(garbage, "GET / HTTP/1.1", 14, goOn).isOk());
  ASSERT_TRUE(tcp::sendAll(slow, &hello, 9, goOn).isOk());
  ASSERT_TRUE(tcp::sendAll(rank, &hello, sizeof(hello), goOn).isOk());
  Clock::time_point begin = Clock::now();
  std::vector<int> ranks;
  while (ranks.empty() && secondsSince(begin) < 5) {
    auto guests = reception.receive();
    ASSERT_TRUE(guests.isOk()) << guests.status();
    for (const tcp::Guest &guest : *guests)
      ranks.push_back(guest.hello.rank);
  }
  EXPECT_EQ(ranks, std::vector<int>{5});
  EXPECT_LT(secondsSince(begin), 2);
  char answer = 0;
  EXPECT_FALSE(tcp::receiveAll(garbage, &answer, 1, goOn).isOk()); // it is closed
  EXPECT_TRUE(tcp::tryReceive(slow, &answer, 1).isOk());
  const char *rest = reinterpret_cast<const char *>(&hello) + 9;
  ASSERT_TRUE(tcp::sendAll(slow, rest, sizeof(hello) - 9, goOn).isOk());
  auto guests = reception.receive();
  ASSERT_TRUE(guests.isOk());
  EXPECT_EQ(guests->size(), 1u);
}

/// Every wait of the start-up ends when this process is asked to end, and the others hear why.
TEST(StartUp, ASignalEndsTheOpeningOfConnections) {
  for (int asked : {0, 1, 2}) {
    std::atomic<int> signal{0}, endedBy[3] = {0, 0, 0};
    int port = test::freePort();
    auto options = [&](int rank) {
      return TcpOptions{rank, 3, "127.0.0.1", port, 60, rank == asked ? &signal : nullptr, &endedBy[rank]};
    };
    std::future<Opened> opening[3] = {openLater(options(0)), openLater(options(1)), openLater(options(2))};
    std::vector<std::unique_ptr<Transport>> transports;
    for (std::future<Opened> &each : opening) {
      Opened opened = each.get();
      ASSERT_TRUE(opened.isOk()) << opened.status();
      transports.push_back(*std::move(opened));
    }
    // Rank 2 opens no link, but looks whether it is to begin.
    std::vector<std::future<Status>> waits;
    for (int rank : {0, 1, 2})
      waits.push_back(std::async(std::launch::async, [&, rank]() -> Status {
        if (rank == 2)
          return transports[2]->begin();
        return transports[rank]->open({0, 1, 2}, goOnWithout).status();
      }));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    Clock::time_point begin = Clock::now();
    signal = 15;
    for (int rank : {0, 1, 2}) {
      EXPECT_EQ(waits[rank].get().message(), "rank " + std::to_string(asked) + " was asked to end by signal 15");
      EXPECT_EQ(endedBy[rank], 15);
    }
    EXPECT_LT(secondsSince(begin), 1);
  }
}

TEST(StartUp, ARankThatEndsIsNamed) {
  int port = test::freePort();
  std::future<Opened> opening[3] = {openLater({0, 3, "127.0.0.1", port, 60}), openLater({1, 3, "127.0.0.1", port, 60}),
                                    openLater({2, 3, "127.0.0.1", port, 60})};
  Opened first = opening[0].get(), second = opening[1].get();
  ASSERT_TRUE(first.isOk() && second.isOk());
  opening[2].get() = TESSERA_ERROR(Internal, "the transport of rank 2 is destroyed here");
  for (Opened *each : {&first, &second})
    EXPECT_EQ((**each)->open({0, 1, 2}, goOnWithout).status().message(), "rank 2 has ended before the first step");
}

/// A rank that fails between two collectives must not be waited for by those that open connections for the next.
TEST(StartUp, ConnectionsOfARunThatFailedAreNotWaitedFor) {
  Clock::time_point begin = Clock::now();
  test::onRanks(test::WorldKind::Tcp, 2, [&](Communicator &communicator) {
    if (communicator.rank() == 1) {
      communicator.abort(TESSERA_ERROR(IoError, "disk on fire"));
      return;
    }
    EXPECT_EQ(communicator.prepare({0, 1}, 7).message(), "rank 1: disk on fire");
  });
  EXPECT_LT(secondsSince(begin), 5);
}

} // namespace
} // namespace tessera
