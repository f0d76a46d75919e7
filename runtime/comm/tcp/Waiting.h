//===- Waiting.h - how long one waits, and telling of it -------------------===//

#ifndef TESSERA_RUNTIME_COMM_TCP_WAITING_H
#define TESSERA_RUNTIME_COMM_TCP_WAITING_H

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace tessera::tcp {

/// A wait with a limit. After 5 seconds, and then ever more rarely, a log line says for what.
class Waiting {
public:
  /// 0: without a limit.
  explicit Waiting(double limitSeconds) : limitSeconds(limitSeconds) {}

  /// "600 s (--start-timeout)"
  std::string limit() const;
  bool isOver() const { return limitSeconds > 0 && seconds() >= limitSeconds; }
  /// `what`: "waits for rank 2, 3 of 4 at node1:29500"; only called when a line is due.
  void tell(const std::function<std::string()> &what);

private:
  using Clock = std::chrono::steady_clock;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }

  Clock::time_point begin = Clock::now();
  double limitSeconds;
  double nextLine = 5, interval = 5; ///< seconds
};

/// "1", "1, 3", or "1-3, 7" of ranks in ascending order.
std::string listRanks(const std::vector<int> &ranks);

} // namespace tessera::tcp

#endif // TESSERA_RUNTIME_COMM_TCP_WAITING_H
