//===- Executor.h - walks the instruction list -----------------------------===//

#ifndef TESSERA_RUNTIME_STEP_EXECUTOR_H
#define TESSERA_RUNTIME_STEP_EXECUTOR_H

#include "runtime/step/Command.h"
#include "runtime/step/Session.h"
#include "runtime/step/Stream.h"

#include <memory>
#include <mutex>
#include <vector>

namespace tessera {

/// Issues the commands of a step in program order: those of stream 0 run at once on the calling thread, those of other
/// streams go to their queues. The order is fixed at compile time, so that all ranks issue the same collectives in the
/// same order on each stream. With one rank nothing is gained by other threads, and all streams run inline.
class Executor {
public:
  /// `context` outlives the executor.
  static Result<std::unique_ptr<Executor>> create(CommandContext &context);
  ~Executor();

  /// After a failure all streams have stopped and the executor is unusable.
  Status step(int64_t number, const StepOptions &options);

private:
  /// A command, a record, a wait, or a loop over items.
  struct Item {
    std::unique_ptr<Command> command;
    Event *record = nullptr, *wait = nullptr;
    int64_t count = 0; ///< of a loop
    std::vector<Item> body;
    int stream = 0;
    uint32_t number = 0; ///< in the flattened list
    std::string_view location;
  };

  explicit Executor(CommandContext &context) : context(context) {}
  Result<std::vector<Item>> build(const flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>> &instructions,
                                  uint32_t &number);
  Status runItems(const std::vector<Item> &items, int64_t iteration, bool isLast, const StepOptions &options);
  Status issue(const Item &item, int64_t iteration, const StepOptions &options);
  /// Runs one command on the current thread and remembers its failure.
  void execute(Command &command, int64_t iteration, TraceSink *trace);
  void traceWait(const Item &item, int64_t iteration, int64_t begin, TraceSink *trace) const;
  void drain();
  Status failure();

  CommandContext &context;
  std::vector<Item> items;
  std::vector<std::unique_ptr<Event>> events;
  std::vector<std::vector<size_t>> probes;      ///< by instruction number
  std::vector<std::unique_ptr<Stream>> streams; ///< by number; none for 0, none at all if everything runs inline
  std::atomic<bool> hasFailed{false};
  std::mutex failureMutex;
  Status firstFailure;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_EXECUTOR_H
