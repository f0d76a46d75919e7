//===- StreamTest.cpp - queues and events ----------------------------------===//

#include "runtime/device/cpu/Stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace tessera::cpu {
namespace {

TEST(Stream, RunsInOrderAndDrains) {
  std::vector<int> order;
  Stream stream;
  for (int task = 0; task < 100; ++task)
    stream.push([&order, task] { order.push_back(task); });
  stream.drain();
  ASSERT_EQ(order.size(), 100u);
  for (int task = 0; task < 100; ++task)
    EXPECT_EQ(order[task], task);
}

TEST(Stream, RunsWhatIsQueuedBeforeItEnds) {
  int count = 0;
  {
    Stream stream;
    for (int task = 0; task < 10; ++task)
      stream.push([&count] { ++count; });
  }
  EXPECT_EQ(count, 10);
}

TEST(Stream, EventsOrderStreams) {
  for (int round = 0; round < 200; ++round) {
    int value = 0;
    Event ready, used;
    Stream producer, consumer;
    uint64_t first = ready.issueRecord();
    producer.push([&] { value = 1; });
    producer.push([&, first] { ready.complete(first); });
    int seen = 0;
    consumer.push([&, first] {
      ready.wait(first);
      seen = value;
    });
    uint64_t second = used.issueRecord();
    consumer.push([&, second] { used.complete(second); });
    producer.push([&, second] {
      used.wait(second);
      value = 2;
    });
    producer.drain();
    EXPECT_EQ(seen, 1);
    EXPECT_EQ(value, 2);
  }
}

} // namespace
} // namespace tessera::cpu
