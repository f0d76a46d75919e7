//===- Run.h - the ranks of this process in a training run -----------------===//
//
// A process holds all ranks as threads (`local`) or one rank (MPI, TCP). Its first rank is the leader: it reads the
// data for its process and writes its part of checkpoints. Rank 0 besides reports and writes what there is one of.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_RUN_H
#define TESSERA_RUNTIME_STEP_RUN_H

#include "runtime/base/Lease.h"
#include "runtime/comm/Communicator.h"
#include "runtime/data/Loader.h"
#include "runtime/state/Adapters.h"
#include "runtime/state/Checkpoint.h"
#include "runtime/state/InitialValues.h"
#include "runtime/state/ModelFolder.h"
#include "runtime/step/Dump.h"
#include "runtime/step/Evaluation.h"
#include "runtime/step/EvaluationHistory.h"
#include "runtime/step/FaultInjection.h"
#include "runtime/step/NonFinite.h"
#include "runtime/step/Replicas.h"
#include "runtime/step/Session.h"
#include "runtime/step/StagedState.h"
#include "runtime/step/Trainer.h"
#include "runtime/telemetry/ChromeTrace.h"
#include "runtime/telemetry/MemorySnapshot.h"
#include "runtime/telemetry/RunFolder.h"
#include "runtime/telemetry/StageMemory.h"
#include "runtime/telemetry/StepTimes.h"
#include "runtime/telemetry/TensorBoard.h"

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>

namespace tessera {

/// In a checkpoint's extra fields: it was written only because it was the best.
inline constexpr const char *bestKey = "written as the best";

class Run {
public:
  /// `connection`: of this process, if it is one of several.
  Run(const TrainOptions &options, std::unique_ptr<Communicator> connection);

  /// Everything that can be refused before memory is taken.
  Status open();
  /// One thread per rank of this process, `index` from 0.
  Status runRank(int index);

  int stopSignal() const { return stoppedBy; }
  /// Whether the first step is at hand: from here on a wish to end is agreed on between two steps.
  bool hasBegun() const { return begun.load(); }
  int numRanks() const { return static_cast<int>(artifact->numRanks()); }
  int ranksHere() const { return static_cast<int>(world.size()); }
  Communicator &communicator(int index) { return *world[index]; }
  /// Others may work in the run folder; this process writes nothing more. Waits for a checkpoint that is being written,
  /// unless a rank may be writing another.
  void releaseFolder(bool isAnyRankRunning);
  /// Ends the connection, and what refers to it; all processes do it together.
  void disconnect() {
    sessions.clear();
    world.clear();
  }

private:
  using Clock = std::chrono::steady_clock;
  static double secondsSince(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  bool isRemote() const { return static_cast<int>(world.size()) != numRanks(); }
  bool isRoot(int index) const { return world[index]->rank() == 0; }
  bool hasRoot() const { return world.empty() || firstRank() == 0; }
  int firstRank() const { return world.front()->rank(); }

  // RunOpen.cpp and RunSetUp.cpp
  Status openInitialValues();
  Status checkExport() const;
  Status checkNotAmongData() const;
  Status openTrainingData();
  Status openCourse();
  /// "--steps ends at 100", or --epochs.
  std::string endOfSteps() const;
  Status checkEpochs() const;
  Status openFolder();
  Result<std::string> chooseCheckpoint() const;
  Status checkFolderIsFree() const;
  std::string findInTheWay() const;
  Status compareSettings(Communicator &self) const;
  /// Whether ranks have parts of parameters at all times, and compute what is not split each for itself.
  bool hasPlacedParameters() const;
  Status compareArithmetic(Communicator &self, const Session &session) const;
  Status setUpRank(int index);
  Status setUpProcess();
  std::string endOfDocument() const;
  /// What gives a position in the data its meaning, by name.
  std::map<std::string, std::string> dataOrder() const;
  void warnOfOtherOrder(const CheckpointInfo &info) const;
  Status setUpReports();
  Status reportSetUp(int index);
  void printHead() const;

  // RunHistory.cpp
  /// The folder of the run that the checkpoint is of; nothing if it lies elsewhere.
  std::optional<RunFolder> folderOfCheckpoint() const;
  /// What a checkpoint says of how it was trained, by name.
  std::map<std::string, std::string> courseAt(int64_t step) const;
  void warnOfOtherCourse(const CheckpointInfo &info) const;
  void printResumed() const;
  void printEvaluated() const;

  // RunEvaluation.cpp
  Status openEvaluation();
  bool isEvaluated(int64_t step) const;
  bool endsEpoch(int64_t step) const;
  /// The signal that ended it before its last batch; 0: it was not.
  Result<int> evaluateAll(int index, int64_t step, EvaluationSums &sums);
  Result<bool> makeUpEvaluation(int index);
  /// Whether the run goes on: --patience is not at its end.
  Result<bool> evaluate(int index, int64_t step);
  Result<bool> judge(int index, int64_t step, std::optional<double> loss);
  Status keepBest(int64_t step);
  Status readHistory();
  void removeSuperseded();
  Status loadBest();
  bool isPatienceOver(int64_t step) const;
  Status evaluateOnly(int index);

  // RunExport.cpp
  Status checkFolderExport();
  Status exportWeights(int index);
  Status exportFiles(int index, const std::vector<RankState> &views);
  Status exportFolders(int index, const std::vector<RankState> &views);
  Status exportFolder(const std::vector<RankState> &views, const std::string &path, StateRole role) const;
  Status exportAdapterFolder(int index, const std::vector<RankState> &views, const std::string &path,
                             StateRole role) const;
  struct ExportedFolder {
    std::string path;
    StateRole role;
    bool isOfAdapters;
  };
  std::vector<ExportedFolder> exportedFolders() const;
  bool isAlreadyExported(const std::string &path) const;
  Status checkExportedFolder(const std::string &path) const;
  Status exportOnly(int index);
  int64_t exportedStep() const;
  bool exportsMerged() const;
  std::vector<StateRole> exportedRoles() const;
  std::string likeFolder() const;
  ModelFolderOptions folderOptions(const std::string &path) const;
  Result<ModelFolderPlan> planFolder(const std::string &path) const;

  // Run.cpp
  /// Why a run ends before its last step: it was asked to by a signal, or there are no data for the next step.
  struct EarlyEnd {
    int signal = 0;
    Status error;
    bool isWanted() const { return signal != 0 || !error.isOk(); }
  };
  Result<EarlyEnd> beginStep(int index, int64_t step);
  Status trainStep(int index, int64_t step);
  /// Waits for all ranks, and ends what connects their devices.
  Status endTogether(int index);
  Status endStep(int index, int64_t step, Clock::time_point begin, double seconds);
  StepOutcome outcomeOf(int index, int64_t step) const;
  Status endNonFinite(int index, const Status &reason);
  StageMemory memoryOf(int index, uint64_t allocated, uint64_t peak) const;
  std::vector<TraceSink *> sinksOf(int64_t step);
  bool isSnapshot(int64_t step) const;
  Status report(int64_t step, double seconds, const std::vector<std::string> &reports);
  Status writeDump(int index, int64_t step);
  Status afterStep(int index, int64_t step);
  Status saveCheckpoint(int64_t step, bool isForBest = false);
  Status checkReplicas(int64_t step, const std::vector<RankState> &views);
  Status finish(int index);
  Status finishEarly(int index, const EarlyEnd &end);
  Status leaveResumable();
  /// Global index of the first sample after a step: of the step, not of the loader, which may be ahead.
  uint64_t dataPositionAfter(int64_t step) const;
  bool isTraced(int64_t step) const;
  void writeTrace() const;
  Status leaveLaterCheckpoints() const;
  bool isReported(int64_t step) const;
  Status reportStage(const std::string &stage, int64_t step, const std::vector<StageMemory> &ranks);
  std::string timesSoFar(int64_t step) const;
  /// The states of the ranks of this process, where the host can reach them.
  Result<std::vector<StagedState>> stageStates(bool reads = true) const;
  /// The views of all ranks at rank 0, elsewhere none; `storage` holds what came from other processes.
  Result<std::vector<RankState>> collectStates(int index, const std::vector<RankState> &mine,
                                               std::vector<std::string> &storage) const;

  const TrainOptions options;
  std::shared_ptr<const Artifact> artifact;
  std::vector<BatchSpec> specs;
  std::unique_ptr<SampleSource> samples;
  uint64_t numSamples = 0;
  uint64_t epochSamples = 0;                  ///< places of the order until a sample comes again
  int64_t totalSteps = 0;                     ///< the number of the last step
  std::string evalData;                       ///< what is evaluated; empty: nothing
  std::string dataFormat;                     ///< SampleSource::format
  std::string dataFingerprint;                ///< SampleSource::fingerprint
  std::optional<InitialValues> initialValues; ///< of a run that continues none
  std::string checkpoint;                     ///< to resume; empty: none
  std::optional<double> unigramEntropy;
  const Clock::time_point launched = Clock::now();
  std::map<std::string, double> launchSeconds; ///< by stage, of the process's first rank
  std::optional<Schedule> schedule;
  std::optional<RunFolder> folder;
  std::unique_ptr<Lease> lease; ///< of the folder; the process of rank 0 has it
  std::mutex leaseMutex;        ///< of `lease` and `isReleased` while the run may still be opening
  bool isReleased = false;
  bool isStartedAgain = false; ///< although it had ended; known before its records begin anew
  std::optional<StepDump> dump;
  std::optional<Replicas> replicas;
  std::unique_ptr<Evaluation> evaluation;
  FaultInjection faults;
  uint64_t seed = 0;
  int lossResult = -1, normResult = -1, updatedResult = -1;
  double tokensPerStep = 0, samplesPerStep = 0, flopsPerStep = 0, peakFlops = 0;
  bool hasPositions = false;               ///< A dimension of the batch counts positions.
  int processesOnHost = 1, rankOnHost = 0; ///< where each rank is a process
  ProcessMemory afterData;                 ///< when the data were open

  // By index of the rank in this process. Sessions are destroyed after all threads have ended.
  std::vector<std::unique_ptr<Communicator>> world;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<RankState> states; ///< addresses where the host sees them; else to be staged
  std::vector<CheckpointInfo> resumed;
  std::vector<double> launcherSeconds; ///< of the last step
  std::vector<NonFinite> nonFinite;

  // The leader's, except that all read `batch` and pass events to `times` between the exchanges of a step.
  std::unique_ptr<Loader> loader;
  std::shared_ptr<const HostBatch> batch;
  std::unique_ptr<CheckpointWriter> checkpoints;
  std::optional<StepTimes> times;
  ChromeTrace trace;
  std::optional<MemorySnapshot> snapshot;
  bool isCheckpointDue = false;   ///< the step of one was skipped
  Clock::time_point stepsBegan;   ///< when the run said what it trains
  Clock::time_point lastReported; ///< when the last line on a step was printed
  int64_t firstStep = 1, lastStep = 0, lastCheckpoint = 0;
  int64_t reachedStep = 0;           ///< after which the run ended: `totalSteps`, or less by --patience
  std::atomic<int64_t> bestStep{-1}; ///< of the lowest evaluated loss, where that is kept; -1: none
  bool exportsBest = false;          ///< the state is that of `bestStep` again
  std::vector<int64_t> keptForBest;  ///< steps whose checkpoints are there for being the best ones only
  int64_t lastCompared = -1;         ///< the step after which replicas were compared
  uint64_t firstSample = 0;          ///< of `firstStep`
  int stoppedBy = 0;                 ///< signal
  bool hasToldZeroLoss = false;      ///< a warning is once in a run
  std::atomic<bool> begun{false};

  // Rank 0's.
  std::unique_ptr<MetricsWriter> metrics;
  std::unique_ptr<TensorBoardWriter> tensorBoard;
  MemorySummary memory;
  EvaluationHistory history;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_RUN_H
