//===- Stream.cpp - in-order queues and events -----------------------------===//

#include "runtime/device/cpu/Stream.h"

#include <utility>

namespace tessera::cpu {

Stream::~Stream() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isEnding = true;
  }
  wake.notify_one();
  worker.join();
}

void Stream::push(std::function<void()> task) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    queue.push_back(std::move(task));
  }
  wake.notify_one();
}

void Stream::drain() {
  std::unique_lock<std::mutex> lock(mutex);
  idle.wait(lock, [this] { return queue.empty() && !isBusy; });
}

void Stream::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    wake.wait(lock, [this] { return !queue.empty() || isEnding; });
    if (queue.empty())
      return;
    std::function<void()> task = std::move(queue.front());
    queue.pop_front();
    isBusy = true;
    lock.unlock();
    task();
    lock.lock();
    isBusy = false;
    if (queue.empty())
      idle.notify_all();
  }
}

} // namespace tessera::cpu
