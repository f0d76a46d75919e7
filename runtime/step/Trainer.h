//===- Trainer.h - a whole training run ------------------------------------===//
//
// Ranks are threads of this process, or this process is one rank of several (Launch.h). Each owns a session; between
// steps the data are read, reports and checkpoints written, while the others wait.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_TRAINER_H
#define TESSERA_RUNTIME_STEP_TRAINER_H

#include "runtime/base/Status.h"
#include "runtime/device/GpuOptions.h"
#include "runtime/device/Open.h"
#include "runtime/step/Schedule.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct TrainOptions {
  std::string artifact, data, out;
  std::string comm = "auto"; ///< local, mpi, tcp; auto: by the environment
  int64_t steps = 100;       ///< the number of the last step, resumed ones included
  double epochs = 0;         ///< instead of it: how often each sample of the data comes, at least; 0: not asked for
  int ranks = 0;             ///< must be the artifact's; 0: the artifact's
  int threads = 0;           ///< per rank; 0: the cores divided by the ranks
  std::optional<uint64_t> seed;
  ScheduleOverrides schedule;
  std::string onNonFinite; ///< skip, stop or ignore; empty: skip, or stop where the artifact cannot skip

  std::string resume;  ///< a run folder, a checkpoint, or "auto" (see resumesAuto); empty: a new run
  std::string weights; ///< .safetensors, .onnx or .pt2, "fresh", or empty: see InitialValues
  std::function<bool(const std::string &)> isPartialWeight; ///< parameters that `weights` may lack; none: no such name
  std::string modelFile;       ///< where it is now; empty: where it was when it was compiled
  int64_t checkpointEvery = 0; ///< steps; 0: none
  int keepCheckpoints = 0;     ///< 0: all
  int64_t checkReplicas = 0;   ///< steps between comparisons of ranks' equal copies; 0: only before saving
  std::string exportPath;      ///< of the final weights; empty: <out>/model.safetensors
  bool noExport = false;
  std::string exportHf;    ///< a folder of Hugging Face's that is made, instead of that file; empty: none
  std::string exportLike;  ///< the folder whose files it has; empty: `weights`
  std::string exportDtype; ///< of its floats: bf16, f16 or f32; empty: as in `exportLike`
  bool exportOnly = false; ///< write the weights of the checkpoint `resume`, and train nothing
  std::string exportLora;  ///< adapters | merged | both; empty: adapters
  bool takesOver = false;  ///< the run folder, from a holder that shows no sign of life

  std::string evalData;    ///< what is evaluated; "none": nothing; empty: the validation split of `data`, if it has one
  int64_t evalEvery = 0;   ///< steps between evaluations; 0: after each of `epochs`, or only at the end
  int64_t evalBatches = 0; ///< of each evaluation, at most; 0: all
  bool evalOnly =
      false; ///< evaluate `resume` or what a run begins with, train and write nothing; needs neither data nor out

  bool keepsBest = false;       ///< a checkpoint of the lowest evaluated loss, whose weights are exported
  int64_t patience = 0;         ///< evaluations without a lower loss after which the run ends; 0: none
  bool exportsLastStep = false; ///< although a better one is kept

  bool shuffle = true;
  std::string textField = "text";
  int tokenBytes = 0;
  int64_t endOfDocument = -1;
  bool readsBytes = false; ///< This one and the three before it: as DataOptions.

  int64_t traceSteps = 0;
  bool memorySnapshot = false; ///< write <out>/memory.json
  bool tensorBoard = false;    ///< write event files to <out>/tensorboard/
  std::string dump;            ///< comma-separated: gradients, parameters, losses
  int64_t dumpStep = 1;
  std::optional<int64_t> logEvery; ///< steps between lines on them; none: 10, and at most one line in a second
  bool logsMemory = false;         ///< print the memory of each stage of the start
  double peakFlops = 0;            ///< per second and process, for the model FLOP/s utilisation; 0: unknown
  double stallTimeoutSeconds = 60;
  double startTimeoutSeconds = 600; ///< for all processes to come; 0: for ever
  GpuOptions gpu;
  DeviceOpener openDevice = nullptr;            ///< if empty, the device that the artifact is for
  const std::atomic<int> *stopSignal = nullptr; ///< not 0: end after the current step, with a checkpoint
  /// Set while this process is in a call that only its end can interrupt, and nothing is lost by that.
  std::atomic<bool> *mayEndAtOnce = nullptr;

  std::vector<std::string> commandLine;        ///< for run.json
  std::map<std::string, std::string> settings; ///< for run.json

  bool trainsNothing() const { return evalOnly || exportOnly; }
  /// Go on from the newest whole checkpoint of `out`, or begin if there is none.
  bool resumesAuto() const { return resume == "auto"; }
};

struct TrainOutcome {
  int stopSignal = 0;            ///< that ended the run before its last step, here or in another process; 0: none
  bool isAnyRankRunning = false; ///< the caller must end the process as after an error
};

/// Trains. Where ranks are processes, an error begins with the rank of this one. After an error a rank may still be
/// running (one that stalled cannot be stopped from outside): the caller must then end the process without destroying
/// anything (std::_Exit).
Result<TrainOutcome> train(const TrainOptions &options);

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_TRAINER_H
