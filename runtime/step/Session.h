//===- Session.h - one rank of a training run ------------------------------===//
//
// A session holds one rank's memory and executes steps of an artifact's programs on it. It knows nothing of files of
// data or state: callers fill the state and batch buffers, set the hyper scalars, call step() and read the results.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_SESSION_H
#define TESSERA_RUNTIME_STEP_SESSION_H

#include "runtime/artifact/Reader.h"
#include "runtime/artifact/TensorView.h"
#include "runtime/base/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/Open.h"
#include "runtime/step/Trace.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct SessionOptions {
  /// Threads of this rank's team; 0: the cores divided by the ranks in this process, at least 1.
  int threads = 0;
  /// Ranks that share this process's cores (for the default of `threads`).
  int ranksInProcess = 1;
  /// Number of this rank among them.
  int rankOnHost = 0;
  GpuOptions gpu;
  /// A rank whose GPU waits longer than this for another one ends all ranks. 0: wait for ever.
  double stallTimeoutSeconds = 60;
  /// Opens the device of the rank; if empty, the one that the artifact is for.
  DeviceOpener openDevice = nullptr;
};

struct MemoryStats {
  struct ArenaStats {
    std::string name;
    artifact::ArenaKind kind;
    uint64_t bytes;
  };
  std::vector<ArenaStats> arenas;
  uint64_t plannedBytes = 0;   ///< sum over the arenas
  uint64_t allocatedBytes = 0; ///< what was taken from the device for them (rounded up to pages)
  uint64_t hostBytes = 0;      ///< what was taken from the host for that of --offload
  uint64_t workspaceBytes = 0; ///< scratch of library calls, outside the arenas
  uint64_t reservedBytes() const { return allocatedBytes + workspaceBytes; } ///< of the device
  /// Bytes live at the peak by memory class, from the plan: index = artifact::MemoryClass.
  std::vector<uint64_t> slotBytesByClass;
};

/// Index = artifact::MemoryClass: the bytes that are live where the sum over all classes is largest.
std::vector<uint64_t> peakBytesByClass(const artifact::Program &program);

struct StepOptions {
  TraceSink *trace = nullptr;
  /// Called when the gradient of a state tensor can be read (index into the training's Program.probes; the view is of
  /// this rank's part).
  std::function<Status(size_t probe, const TensorView &gradient)> onGradient;
};

class Session {
public:
  /// Compares fingerprint and collective hash with all ranks, allocates and loads code. All ranks call it together.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Artifact> artifact, Communicator &communicator,
                                                 const SessionOptions &options = {});
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const Artifact &artifact() const;
  Communicator &communicator() const;
  int rank() const;
  int threads() const;
  /// As of Device::arithmetic.
  std::string arithmetic() const;

  /// Buffers by their index in the package's and the program's tables, without an address where the device has memory
  /// of its own. A batch buffer under accumulation has all micro-batches: its view is this rank's part of
  /// BatchTensor.global_shape.
  TensorView stateBuffer(size_t state) const;
  TensorView batchBuffer(size_t batch, size_t program = trainingProgram) const;
  TensorView resultBuffer(size_t result, size_t program = trainingProgram) const;

  /// Where this rank's part of a batch tensor is to be written, densely, before the next step.
  void *batchToWrite(size_t batch, size_t program = trainingProgram);
  /// Transfers of a whole state buffer, for those without an address.
  Status readState(size_t state, void *target) const;
  Status writeState(size_t state, const void *source);
  /// Makes what the step keeps of the state in a narrower type. The first step does it, and the first after
  /// `writeState`; to be called by who writes to a state buffer's address later. Errors: of the device's transfers.
  Status deriveState();

  /// Sets a scalar of the training, by its number in the table: one that is no seed, and one that is (HyperKind::Seed).
  void setHyper(uint32_t index, double value);
  void setSeed(uint32_t index, uint64_t value);
  /// First element of a result (loss, metrics) as a number, as the program's last step left it.
  double resultValue(size_t result, size_t program = trainingProgram) const;

  /// Runs one step of the training, or of another program. After an error the session is unusable; all ranks get one.
  Status step(int64_t number, const StepOptions &options = {}) { return step(trainingProgram, number, options); }
  Status step(size_t program, int64_t number, const StepOptions &options = {});

  /// The orderly end of what connects the ranks' devices; all ranks call it together after their last step, each on its
  /// own thread. Errors: not all ranks came. A session that is only destroyed breaks the connection off.
  Status leave();

  /// When the last step had been given to the device, on the clock of `threadSeconds` of the thread that runs it.
  double lastIssued() const;
  /// Whether the device works on its own once it has been given a step.
  bool issuesAhead() const;

  MemoryStats memory() const;

private:
  std::byte *hyper(uint32_t index);
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_SESSION_H
