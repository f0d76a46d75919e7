//===- Simulate.cpp - streams, events and a clock -------------------------===//

#include "compiler/cost/Simulate.h"

#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <array>

using namespace mlir;

namespace tessera::cost {

namespace {
/// What a stream does next: work of some seconds, a record, or a wait.
struct Task {
  enum Kind { Work, Record, Wait } kind = Work;
  double seconds = 0;
  bool collective = false;
  bool leavesNode = false; ///< a collective over the network between nodes, which shares nothing with those inside
  int64_t event = 0;
  int64_t count = 0; ///< the record that a wait is for, or the number of this record of its event, from 1
};

class Simulator {
public:
  Simulator(const LatencyModel &latency, StepTime &time) : latency(latency), time(time) {}

  void issue(Block &block) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<exec::LoopOp>(op)) {
        for (auto left = static_cast<int64_t>(loop.getCount()); left > 0; --left)
          issue(loop.getBody().front());
        continue;
      }
      if (exec::isInstruction(&op))
        issue(&op);
    }
  }

  void run() {
    while (settle()) {
      // Every stream with work left advances until the first of them is done.
      const bool computes = busy(exec::kComputeStream) && !front(exec::kComputeStream).collective;
      std::array<int64_t, 2> collectives{}; // inside of nodes, between nodes
      for (int64_t stream = 0; stream < exec::kNumStreams; ++stream)
        if (busy(stream) && front(stream).collective)
          ++collectives[front(stream).leavesNode];
      const bool communicates = collectives[0] + collectives[1] > 0 || busy(exec::kCopyStream);
      std::array<double, exec::kNumStreams> rates{};
      double step = 0;
      bool first = true;
      for (int64_t stream = 0; stream < exec::kNumStreams; ++stream) {
        if (!busy(stream))
          continue;
        double &rate = rates[stream] = 1;
        const Target &target = latency.getTarget();
        if (stream == exec::kComputeStream && computes)
          rate = communicates ? target.overlapCompute : 1;
        else if (computes)
          rate = target.overlapCommunication;
        if (front(stream).collective)
          rate /= static_cast<double>(collectives[front(stream).leavesNode]);
        const double needed = front(stream).seconds / rate;
        step = first ? needed : std::min(step, needed);
        first = false;
      }
      time.total += step;
      (computes ? time.compute : time.exposed) += step;
      if (computes && communicates) {
        time.hidden += step;
        time.contention += step * (1 - rates[exec::kComputeStream]);
      }
      for (int64_t stream = 0; stream < exec::kNumStreams; ++stream)
        if (busy(stream))
          front(stream).seconds -= step * rates[stream];
    }
  }

private:
  void issue(Operation *op) {
    const int64_t stream = exec::streamOf(op);
    Task task;
    if (auto record = dyn_cast<exec::RecordOp>(op)) {
      task = {Task::Record,
              0,
              false,
              false,
              static_cast<int64_t>(record.getEvent()),
              ++issuedRecords[static_cast<int64_t>(record.getEvent())]};
    } else if (auto wait = dyn_cast<exec::WaitOp>(op)) {
      const auto event = static_cast<int64_t>(wait.getEvent());
      task = {Task::Wait, 0, false, false, event, issuedRecords[event]}; // the latest record before it in program order
    } else {
      auto [known, inserted] = seconds.try_emplace(op, 0.0);
      if (inserted)
        known->second = latency.seconds(op);
      task.seconds = known->second;
      task.collective = LatencyModel::isCollective(op);
      if (auto collective = dyn_cast<exec::CollectiveOp>(op))
        task.leavesNode = latency.placement(collective.getAxes()).nodes > 1;
      if (!task.collective)
        classify(op, task.seconds);
    }
    queues[stream].push_back(task);
  }

  void classify(Operation *op, double duration) {
    if (isa<exec::GemmOp, exec::ConvOp>(op))
      time.gemm += duration;
    else if (isa<exec::AttentionOp, exec::AttentionGradOp>(op))
      time.attention += duration;
    else if (isa<exec::LaunchOp>(op))
      time.kernels += duration;
    else
      time.other += duration;
  }

  /// Removes what takes no time from the fronts of the queues. False if all are empty.
  bool settle() {
    constexpr double kDone = 1e-15; // seconds: rounding of the clock
    bool changed = true, left = false;
    while (changed) {
      changed = left = false;
      for (int64_t stream = 0; stream < exec::kNumStreams; ++stream) {
        while (heads[stream] < queues[stream].size()) {
          Task &task = front(stream);
          if (task.kind == Task::Work ? task.seconds > kDone
                                      : task.kind == Task::Wait && recorded[task.event] < task.count)
            break;
          if (task.kind == Task::Record)
            recorded[task.event] = std::max(recorded[task.event], task.count);
          ++heads[stream];
          changed = true;
        }
        left |= busy(stream);
      }
    }
    return left;
  }

  Task &front(int64_t stream) { return queues[stream][heads[stream]]; }
  bool busy(int64_t stream) { return heads[stream] < queues[stream].size() && front(stream).kind == Task::Work; }

  const LatencyModel &latency;
  StepTime &time;
  std::array<std::vector<Task>, exec::kNumStreams> queues;
  std::array<size_t, exec::kNumStreams> heads{};
  llvm::DenseMap<int64_t, int64_t> issuedRecords, recorded;
  llvm::DenseMap<Operation *, double> seconds;
};
} // namespace

StepTime simulate(exec::ProgramOp program, const LatencyModel &latency) {
  StepTime time;
  Simulator simulator(latency, time);
  simulator.issue(program.getBody().front());
  simulator.run();
  return time;
}

} // namespace tessera::cost
