//===- Executor.h - walks the instruction list -----------------------------===//

#ifndef TESSERA_RUNTIME_STEP_EXECUTOR_H
#define TESSERA_RUNTIME_STEP_EXECUTOR_H

#include "runtime/device/Device.h"
#include "runtime/step/Session.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace tessera {

/// Issues the commands of a program's step in order to the streams of a device. The order is fixed at compile time, so
/// that all ranks issue the same collectives in the same order on each stream.
class Executor {
public:
  /// `device` is prepared with `context`; both outlive the executor.
  static Result<std::unique_ptr<Executor>> create(Device &device, RankContext &context);
  ~Executor();

  /// One step of a program. After a failure all streams have stopped and the executor is unusable.
  Status step(size_t program, int64_t number, const StepOptions &options);
  /// When the last step was given to the device, on the clock of `threadSeconds`.
  double lastIssued() const { return issuedAt; }

private:
  /// A command, a record, a wait, or a loop over items.
  struct Item {
    std::unique_ptr<Command> command;
    DeviceEvent *record = nullptr, *wait = nullptr;
    int64_t count = 0; ///< of a loop
    std::vector<Item> body;
    int stream = 0;
    uint32_t number = 0; ///< in the flattened lists of all programs
    std::string_view location;
  };
  using Instructions = flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>>;

  /// A program, ready to run.
  struct Script {
    std::vector<std::unique_ptr<DeviceEvent>> events;
    std::vector<Item> items;
    std::vector<TraceEvent> recorded; ///< those of the step that the device replays
  };

  Executor(Device &device, RankContext &context) : device(device), context(context) {}
  Status add(const artifact::Program &program, uint32_t &number);
  Result<std::vector<Item>> build(const Instructions &instructions, const Script &script, uint32_t &number);
  Result<std::unique_ptr<Command>> makeCommand(const artifact::Instruction &instruction, const Item &item);
  Status runItems(const std::vector<Item> &items, const Iteration &iteration, bool isLast, const StepOptions &options);
  Status issue(const Item &item, const Iteration &iteration, const StepOptions &options);
  /// Runs one command on the current thread and remembers its failure.
  void execute(Command &command, const Iteration &iteration, TraceSink *trace);
  Status giveGradients(const Item &item, const StepOptions &options);
  TraceEvent eventOf(int stream, uint32_t number, std::string_view location, const Iteration &iteration) const;
  /// Tells the sink, now or when the marks are known.
  void tell(TraceSink &trace, TraceEvent event);
  Status synchronise();
  Status failure();

  Device &device;
  RankContext &context;
  std::vector<Script> scripts;             ///< by program
  std::vector<std::vector<size_t>> probes; ///< of the training, by instruction number
  std::vector<std::unique_ptr<DeviceStream>> streams;
  bool summarises = false;        ///< tells of collectives and waits of the compute stream only
  std::vector<TraceEvent> untold; ///< with marks for times
  double issuedAt = 0;            ///< see threadSeconds
  std::atomic<bool> hasFailed{false};
  std::mutex failureMutex;
  Status firstFailure;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_EXECUTOR_H
