//===- Device.h - where a rank computes ------------------------------------===//
//
// One object per rank: its memory, its streams, and commands made of an artifact's instructions. The memory may be of
// another address space than the process's: then state, batches, results, dumps and checkpoints go by transfers.
//
// Everything is called on the rank's thread, except transfers, which any thread may ask for while no step runs.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_DEVICE_H
#define TESSERA_RUNTIME_DEVICE_DEVICE_H

#include "runtime/base/Status.h"
#include "runtime/device/Command.h"
#include "runtime/device/GpuOptions.h"
#include "runtime/device/RankContext.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera {

/// Orders streams with CUDA's meaning: a wait covers the latest record issued before it, and none if there is none.
class DeviceEvent {
public:
  virtual ~DeviceEvent() = default;
};

/// A place in the order of a stream whose time can be told, at once or after `synchronise`: see Device::timeOf.
using TimeMark = int64_t;

/// An in-order queue. Work is issued by the rank's thread.
class DeviceStream {
public:
  virtual ~DeviceStream() = default;
  /// True: `issue` runs the task before it returns, on the calling thread.
  virtual bool runsAtOnce() const = 0;
  /// Runs the task, which runs commands, in the order of the stream.
  virtual void issue(std::function<void()> task) = 0;
  virtual Status record(DeviceEvent &event) = 0;
  /// `observer`, if there is one, is told the marks before and after the wait, on the thread of the stream.
  using WaitObserver = std::function<void(TimeMark begin, TimeMark end)>;
  virtual Status wait(DeviceEvent &event, WaitObserver observer) = 0;
  virtual TimeMark mark() = 0;
  /// Blocks until all that was issued is complete.
  virtual Status synchronise() = 0;
};

/// How the executor is to issue a step.
enum class StepMode {
  Issue,  ///< Instruction by instruction.
  Replay, ///< Not at all: the device has done it, with what it kept of an earlier step.
};

/// Bytes that go from the host to the device, or back.
struct HostCopy {
  void *target;
  const void *source;
  size_t bytes;
};

class Device {
public:
  virtual ~Device() = default;

  /// For reports: "cpu", "NVIDIA H200".
  virtual std::string name() const = 0;
  /// What decides the bits of its results besides programs and inputs: devices of the same text compute the same.
  virtual std::string arithmetic() const = 0;
  /// Threads of the host that compute.
  virtual int threads() const = 0;

  /// Learns which other ranks share what it computes on; all ranks call it together, before memory is taken.
  virtual Status meetRanks(Communicator &communicator) {
    static_cast<void>(communicator);
    return Status::ok();
  }

  // --- Memory
  /// Whether the plan fits, before anything is allocated.
  virtual Status checkMemory(const artifact::Package &package) const = 0;
  /// Zeroed memory that lives as long as the device.
  virtual Result<ArenaMemory> allocate(const artifact::Arena &arena) = 0;
  /// Host memory from which transfers are fast; lives as long as the device.
  virtual Result<std::byte *> allocateStaging(size_t bytes) = 0;
  virtual Status copyToDevice(void *target, const void *source, size_t bytes) = 0;
  virtual Status copyToHost(void *target, const void *source, size_t bytes) = 0;
  /// Several at once: a device that can wait for all of them together does.
  virtual Status copyAllToDevice(std::span<const HostCopy> all) {
    for (const HostCopy &each : all)
      TESSERA_RETURN_IF_ERROR(copyToDevice(each.target, each.source, each.bytes));
    return Status::ok();
  }
  virtual Status copyAllToHost(std::span<const HostCopy> all) {
    for (const HostCopy &each : all)
      TESSERA_RETURN_IF_ERROR(copyToHost(each.target, each.source, each.bytes));
    return Status::ok();
  }
  /// Scratch of library calls, outside the arenas.
  virtual size_t workspaceBytes() const = 0;

  // --- Code
  /// Loads the code objects and joins the groups that collectives need; all ranks call it together, once, before
  /// `compile`. The context outlives the device.
  virtual Status prepare(RankContext &context) = 0;
  /// The command of an instruction that is not Record, Wait or Repeat.
  virtual Result<std::unique_ptr<Command>> compile(const artifact::Instruction &instruction) = 0;
  /// The orderly end of the groups; all ranks call it together, each on its own thread, when no step will follow. What
  /// was joined and not left is aborted when the device goes.
  virtual Status leaveRanks() { return Status::ok(); }

  // --- Execution
  virtual Result<std::unique_ptr<DeviceStream>> createStream(int number) = 0;
  virtual Result<std::unique_ptr<DeviceEvent>> createEvent() = 0;
  /// A step of a program begins; `isObserved`: somebody wants to know of each instruction or to read gradients in
  /// between.
  virtual Result<StepMode> beginStep(size_t program, bool isObserved) = 0;
  /// What is issued now is kept for replays: its marks get new times with each.
  virtual bool isRecording() const { return false; }
  /// All of the step has been issued. Blocks until it is complete; an error names what failed if that is known.
  virtual Status endStep() = 0;
  /// Nanoseconds of the clock of TraceEvent; of a mark whose stream is synchronised unless `marksAreTimes`.
  virtual bool marksAreTimes() const = 0;
  /// Unless `marksAreTimes`: of the last step that was not observed.
  virtual TimeMark stepBegin() const { return 0; }
  virtual TimeMark stepEnd() const { return 0; }
  virtual int64_t timeOf(TimeMark mark) const = 0;
};

struct DeviceOptions {
  int threads = 1;
  int ranksInProcess = 1; ///< or on this host, if each is a process
  int rankOnHost = 0;     ///< below ranksInProcess
  GpuOptions gpu;
  double stallTimeoutSeconds = 60;
};

/// Calls `body` for every instruction of all programs, loops and what is in them, in order.
void forEachInstruction(const artifact::Package &package,
                        const std::function<void(const artifact::Instruction &)> &body);

/// By the stream of an instruction and the group of its collective: what must be prepared before the first step.
std::vector<std::pair<uint32_t, int>> collectiveChannels(const artifact::Package &package);

/// Of the flattened lists of all programs: loops count as one, with their bodies once.
size_t numInstructions(const artifact::Package &package);

/// Why a collective's buffers do not lie at the same offset on all ranks; empty if all do. A part at the place of the
/// rank is a reason, also one of the other operand, as collectives in place have it.
std::string asymmetricCollective(const artifact::Package &package);

/// Name of the source node; empty if the artifact has none.
std::string_view locationOf(const artifact::Package &package, const artifact::Instruction &instruction);

} // namespace tessera

#endif // TESSERA_RUNTIME_DEVICE_DEVICE_H
