//===- Stream.h - in-order queues and events -------------------------------===//
//
// A stream other than the compute stream is a thread with a queue. Work runs in the order of issue; events order
// streams with CUDA's meaning: a wait covers the latest record issued before it, and none if there is none.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_STREAM_H
#define TESSERA_RUNTIME_DEVICE_CPU_STREAM_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tessera::cpu {

class Event {
public:
  /// Number of the record to be issued now; only the issuing thread calls it.
  uint64_t issueRecord() { return ++issued; }
  uint64_t lastIssued() const { return issued; }

  void complete(uint64_t record) {
    completed.store(record, std::memory_order_release);
    completed.notify_all();
  }
  /// Blocks until record number `record` is complete. Streams run all records, after a failure too, so that this ends.
  void wait(uint64_t record) const {
    uint64_t seen = completed.load(std::memory_order_acquire);
    while (seen < record) {
      completed.wait(seen, std::memory_order_acquire);
      seen = completed.load(std::memory_order_acquire);
    }
  }

private:
  uint64_t issued = 0;
  std::atomic<uint64_t> completed{0};
};

class Stream {
public:
  Stream() : worker([this] { work(); }) {}
  /// Runs what is queued and ends the thread.
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  void push(std::function<void()> task);
  /// Blocks until all that was pushed has run.
  void drain();

private:
  void work();

  std::mutex mutex;
  std::condition_variable wake, idle;
  std::deque<std::function<void()>> queue;
  bool isBusy = false, isEnding = false;
  std::thread worker; // last: it uses the members above
};

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_STREAM_H
