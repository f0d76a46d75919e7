//===- WorldFixture.h - ranks of one test process --------------------------===//

#ifndef TESSERA_TESTS_RUNTIME_COMM_WORLDFIXTURE_H
#define TESSERA_TESTS_RUNTIME_COMM_WORLDFIXTURE_H

#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/comm/remote/RemoteCommunicator.h"
#include "runtime/comm/tcp/Socket.h"
#include "runtime/comm/tcp/TcpTransport.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

namespace tessera::test {

using artifact::CollectiveKind;
using artifact::DataType;
using Floats = std::vector<float>;

enum class WorldKind { Local, Tcp };

inline std::vector<int> allOf(int numRanks) {
  std::vector<int> group(numRanks);
  std::iota(group.begin(), group.end(), 0);
  return group;
}

/// A port that was free a moment ago.
inline int freePort() {
  auto listener = tcp::listenOn(0);
  EXPECT_TRUE(listener.isOk()) << listener.status();
  return listener.isOk() ? tcp::portOf(*listener) : 0;
}

/// Runs `body(communicator)` on every rank of a new world, with the group of all ranks prepared on channel 0.
inline void onRanks(WorldKind kind, int numRanks, const std::function<void(Communicator &)> &body,
                    double stallTimeoutSeconds = 60) {
  std::vector<std::unique_ptr<Communicator>> world(numRanks);
  if (kind == WorldKind::Local)
    world = createLocalWorld(numRanks, {stallTimeoutSeconds});
  int port = kind == WorldKind::Tcp ? freePort() : 0;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < numRanks; ++rank)
    threads.emplace_back([&, rank] {
      if (kind == WorldKind::Tcp) {
        auto transport = openTcpTransport({rank, numRanks, "127.0.0.1", port, 20});
        ASSERT_TRUE(transport.isOk()) << transport.status();
        auto made = createRemoteCommunicator(std::move(*transport), {stallTimeoutSeconds, nullptr});
        ASSERT_TRUE(made.isOk()) << made.status();
        world[rank] = std::move(*made);
      }
      ASSERT_TRUE(world[rank]->prepare(allOf(numRanks), 0).isOk());
      body(*world[rank]);
      if (kind == WorldKind::Tcp)
        world[rank].reset(); // ranks of processes end together, those of threads after all
    });
  for (std::thread &thread : threads)
    thread.join();
}

inline Floats values(int rank, size_t count) {
  std::mt19937 generator(rank + 1);
  std::normal_distribution<float> normal(0, 100);
  Floats result(count);
  for (float &value : result)
    value = normal(generator);
  return result;
}

inline Status call(Communicator &communicator, CollectiveKind kind, const std::vector<int> &group, const void *input,
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

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_COMM_WORLDFIXTURE_H
