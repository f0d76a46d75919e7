//===- StreamOrder.cpp - orders in which streams may run ------------------===//
//
// See StreamOrder.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/interp/StreamOrder.h"

#include <array>

using namespace mlir;

namespace tessera::interp {

namespace {

/// How many instructions of a stream come before a point of it.
struct Mark {
  int64_t stream = 0;
  size_t position = 0;
};

struct Issue {
  InstructionRun run;
  std::optional<Mark> awaited; ///< of a wait
};

class Streams {
public:
  /// Issues the instructions of a block in program order.
  LogicalResult issue(Block &block, int64_t iteration) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<exec::LoopOp>(op)) {
        for (int64_t i = 0, count = int64_t(loop.getCount()); i < count; ++i)
          if (failed(issue(loop.getBody().front(), i)))
            return failure();
        continue;
      }
      if (!exec::isInstruction(&op))
        continue;
      const int64_t stream = exec::streamOf(&op);
      Issue next{{&op, iteration}, std::nullopt};
      if (auto wait = dyn_cast<exec::WaitOp>(op)) {
        auto event = events.find(wait.getEvent());
        if (event == events.end())
          return wait.emitError("event ") << int64_t(wait.getEvent()) << " has not been recorded before";
        next.awaited = event->second;
      }
      issued[stream].push_back(next);
      inProgramOrder.push_back(next.run);
      if (auto record = dyn_cast<exec::RecordOp>(op))
        events[record.getEvent()] = {stream, issued[stream].size()};
    }
    return success();
  }

  /// Always goes on with the first stream that need not wait.
  std::vector<InstructionRun> runBy(ArrayRef<int64_t> priorities) {
    std::vector<InstructionRun> result;
    std::array<size_t, exec::kNumStreams> done{};
    auto canRun = [&](int64_t stream) {
      if (done[stream] == issued[stream].size())
        return false;
      const std::optional<Mark> &awaited = issued[stream][done[stream]].awaited;
      return !awaited || done[awaited->stream] >= awaited->position;
    };
    // A wait is for what was issued before it: as long as something is left, the first of it can run.
    while (true) {
      const auto *stream = llvm::find_if(priorities, canRun);
      if (stream == priorities.end())
        return result;
      result.push_back(issued[*stream][done[*stream]++].run);
    }
  }

  std::vector<InstructionRun> inProgramOrder;

private:
  std::array<std::vector<Issue>, exec::kNumStreams> issued;
  llvm::DenseMap<int64_t, Mark> events;
};

} // namespace

FailureOr<std::vector<InstructionRun>> orderOf(exec::ProgramOp program, StreamOrder order) {
  Streams streams;
  if (failed(streams.issue(program.getBody().front(), 0)))
    return failure();
  static_assert(exec::kComputeStream == 0);
  std::array<int64_t, exec::kNumStreams> computeFirst{}, computeLast{};
  for (int64_t stream = 0; stream < exec::kNumStreams; ++stream) {
    computeFirst[stream] = stream;
    computeLast[stream] = (stream + 1) % exec::kNumStreams;
  }
  std::vector<InstructionRun> runs = order == StreamOrder::Issued         ? std::move(streams.inProgramOrder)
                                     : order == StreamOrder::ComputeFirst ? streams.runBy(computeFirst)
                                                                          : streams.runBy(computeLast);
  llvm::erase_if(runs, [](const InstructionRun &run) { return isa<exec::RecordOp, exec::WaitOp>(run.op); });
  return runs;
}

} // namespace tessera::interp
