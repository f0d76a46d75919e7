//===- Options.h - what a compilation is asked to do ------------*- C++ -*-===//
//
// Everything that tessera-compile can be told, as plain data, and the checks
// that need no model. Names are those of the command line.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_OPTIONS_H
#define TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_OPTIONS_H

#include "compiler/dialect/dist/AxisRole.h"
#include "runtime/artifact/LearningRate.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// Phases in order. Each ends in verification, is a stop for `--compile-to` and a snapshot for `--dump-phases`.
enum class Phase { Import, Differentiate, Optimize, Precision, Shard, Schedule, Lower, Artifact };
inline constexpr const char *kPhaseNames[] = {"import", "differentiate", "optimize", "precision",
                                              "shard",  "schedule",      "lower",    "artifact"};

/// One axis of the mesh.
struct MeshAxis {
  std::string name;
  int64_t size;
  dist::AxisRole role;

  bool operator==(const MeshAxis &) const = default;
};

struct CompileOptions {
  std::string input;  ///< .onnx, .onnxtxt, or .mlir (train dialect, a module with @step)
  std::string output; ///< artifact; empty if compileTo stops earlier
  Phase compileTo = Phase::Artifact;
  std::string dumpPhases; ///< directory of numbered snapshots; empty: none
  bool timing = false;
  bool remarks = false; ///< print remarks: what was not applied, and why
  bool verbose = false; ///< list the model's tensors: what each is, and who decided so
  bool embedIr = false;
  bool keepGradients = false; ///< no kernel computes a gradient only to update with it

  // Import.
  std::map<std::string, int64_t> dims; ///< symbolic dimension = value
  int64_t batch = 0;                   ///< samples of one micro-batch over all ranks; 0: as in the file
  int64_t globalBatch = 0;             ///< samples of one step over all ranks and micro-batches; 0: not asked for
  bool isMicroBatchOpen = false;       ///< `batch` is to be found, so that the step fits
  int64_t sequence = 0;                ///< tokens of one sample; 0: as in the file
  std::vector<std::string> dimRoles;   ///< "<input>:<dimension>=<batch|sequence|none>[,…]"
  // Regular expressions of tensors' names, see frontends/Frontend.h.
  std::string parameters, constants, frozen, tied;
  std::vector<std::string> paddingIdx;  ///< "<regex>=<row>"
  std::string batchNorm;                ///< train | inference; empty: as the file's record says
  std::string recognizeByValues = "on"; ///< on | off: whether GELU in no known form is recognised by its values
  std::vector<std::string> place;       ///< "<regex>=<dimension>[:<axis>+…]" that model axes split, first match wins
  std::vector<std::string> init;        ///< "<regex>=<zeros|constant:a|normal:std|uniform:a:b>", first match wins

  std::string lora; ///< "rank=<r>,alpha=<a>,targets=<regex>[,train=<regex>]"; empty: no adapters

  // Differentiate.
  std::string loss = "cross-entropy"; ///< cross-entropy | mse | output:<name>
  int64_t ignoreIndex = -100;
  double labelSmoothing = 0.0;

  std::string indexCheck = "error";       ///< error | clamp
  std::string documentIds = "contiguous"; ///< contiguous | any
  std::string remat = "none";             ///< none | full | attention | selective | budget=<bytes>
  std::string rematReport;                ///< file for JSON, "-": a table on stderr; empty: a table for a budget

  // Optimize.
  std::string optimizer = "adamw";                 ///< a row of compiler/dialect/train/Optimizer.h
  std::map<std::string, double> optimizerSettings; ///< by name; what is not given is the optimizer's own
  std::string moments = "fp32";                    ///< fp32 | bf16: what optimizer states are stored in
  double learningRate = 1e-3;
  std::optional<double> weightDecay; ///< none: as the optimizer has it (weightDecayOf)
  std::string noDecay;               ///< regular expression; empty: of one dimension or none
  double clipNorm = 0.0;             ///< 0: no clipping
  double clipValue = 0.0;            ///< 0: no clipping; after clipNorm
  double ema = 0.0;                  ///< decay of the parameters' moving averages; 0: none
  std::string guardUpdates = "on";   ///< on | off: whether a step that is not finite changes nothing
  std::string schedule = "constant"; ///< a row of runtime/artifact/LearningRate.cpp
  int64_t warmup = 0;                ///< steps of linear warm-up
  double minLearningRate = 0.0;      ///< where the schedule ends
  int64_t decaySteps = 0;            ///< of a schedule with a plateau: the last steps, in which it decays
  std::string decayCurve = "linear"; ///< linear | cosine | 1-sqrt
  int64_t accumulate = 1;            ///< micro-batches per step
  bool evaluate = false;             ///< the artifact has a program that evaluates, too
  std::vector<std::string> metrics;  ///< what it computes besides the loss: accuracy, output:<name>
  std::string wrap = "module";       ///< module | size:<bytes> | none

  std::string precision = "fp32";         ///< fp32 | bf16 | fp8 (bf16 with products in 8 bits); masters stay f32
  std::string fp8Recipe = "rowwise";      ///< a row of compiler/dialect/train/Fp8Policy.cpp
  std::string fp8Filter;                  ///< regular expression of parameters whose products are cast; empty: all
  std::string fp8KeepBf16;                ///< first:<n>,last:<n>: blocks of the model that stay in bf16; empty: none
  std::string fp8Amax = "global";         ///< global | local | local:<groups>: whose tokens share a scale
  std::string fp8Select;                  ///< all | rules | auto: which layers gain; empty: rules on GPUs, all on CPUs
  std::string fp8Nonfinite = "propagate"; ///< propagate | scale1: the scale of what is not finite
  std::vector<std::string> fp8Flags;      ///< those of the --fp8-… that were given, which only --precision fp8 heeds
  std::string frozenDtype = "fp32";       ///< fp32 | bf16: what f32 parameters that are not trained are held in
  std::string keepF32;                    ///< regular expression of parameters that bf16 computes in f32; empty: none

  std::string reduceDtype = "fp32"; ///< fp32 | bf16: in which gradients are added up over ranks

  // Shard and schedule.
  std::vector<MeshAxis> mesh;          ///< empty: one rank
  std::string strategy = "ddp";        ///< a row of passes/shard/Strategy.h
  std::string attention = "auto";      ///< over a split sequence: a row of passes/shard/SequenceStrategy.h, or auto
  bool isAttentionChosen = false;      ///< `attention` is what was taken for auto
  std::string attentionMemory = "all"; ///< bytes that gathered keys and values of a rank may take | all: of all heads
  std::string attentionGather = "compute"; ///< compute | fp32: what keys, values and their gradients cross ranks in
  std::string sequenceOrder = "auto";      ///< how positions are dealt to ranks, as of shard::parseOrder
  std::string lossTile = "auto";           ///< bytes of f32 logits that a rank computes at a time | none: all | auto
  std::string mlpTile = "auto";            ///< bytes of a wide value that a rank computes at a time | none: all | auto
  std::string keepGathered; ///< regular expression of units that zero3 gathers once per step; empty: none; auto
  std::string prefetch = "forward=1,backward=pre"; ///< none | forward=<k>,backward=pre|post|none | auto
  std::string memoryLimit;                         ///< of one rank ("40GiB", "80e9"); empty: none
  int64_t aheadBytes = 0;                          ///< of units gathered ahead by `prefetch=auto`; 0: any
  int64_t combineBytes = 0;                        ///< collectives up to so many bytes are joined; 0: none

  std::vector<std::string> offload; ///< optimizer | parameters | activations: live on the host

  // Lower.
  std::string target =
      "cpu"; ///< cpu, sm_80, sm_90, sm_100, a target that ships with the compiler, or a target file (*.json)
  std::string architecture; ///< GPU to generate code for (sm_90), else empty; resolveTarget() sets it
  std::string attentionGradient = "deterministic"; ///< deterministic | fast: what reports assume of tessera-run's flag
  std::string targetCpu = "host";                  ///< host | x86-64-v4 | x86-64-v3 | x86-64

  std::string epilogues = "auto"; ///< auto | none | bias | all: what products do besides multiplying

  // Report: memory, communication and time, from the lowered step.
  std::optional<std::string> report; ///< JSON file; empty: only printed
  std::optional<std::string> fit;    ///< bytes of a device ("40GiB", "80e9"); "target": the target's; see sequenceFit

  /// No artifact is asked for, only a report.
  bool isReportOnly() const { return (report || fit) && output.empty(); }
};

/// What `fp8Select` says, or its default for the target.
std::string fp8SelectOf(const CompileOptions &options);
/// Groups of tokens that have scales of their own, of what `fp8Amax` says; none if it says something else.
std::optional<int64_t> fp8Groups(const CompileOptions &options);

/// What `epilogues` means for the target: none, bias or all.
std::string epiloguesOf(const CompileOptions &options);

/// All numbers that the optimizer is told, by name. The options have been checked.
std::map<std::string, double> completeOptimizerSettings(const CompileOptions &options);

/// That which was asked for, or the optimizer's own.
double weightDecayOf(const CompileOptions &options);

/// What the schedule of the learning rate is to be.
ScheduleRequest scheduleRequest(const CompileOptions &options);

/// Ranks of the mesh: the product of its axes.
int64_t numRanks(const CompileOptions &options);
/// Ranks that samples are split over, and ranks that state may be split over.
int64_t numSampleRanks(const CompileOptions &options);
int64_t numStateRanks(const CompileOptions &options);
/// Of `--fit=sequence` and `--fit=sequence:<bytes>` what a rank may take: "target" or the bytes; else nothing.
std::optional<std::string> sequenceFit(const CompileOptions &options);
/// `attentionMemory` in bytes; 0: all heads at once.
int64_t attentionMemoryBytes(const CompileOptions &options);
/// `wrap` with its size in bytes, as passes take it.
std::string wrapPolicy(const CompileOptions &options);
/// `lossTile` in bytes; 0: all logits at once.
int64_t lossTileBytes(const CompileOptions &options);
/// `mlpTile` in bytes; 0: all rows at once.
int64_t mlpTileBytes(const CompileOptions &options);
/// Ranks over which samples or positions are split: each has so many parts of the tokens.
int64_t numTokenRanks(const CompileOptions &options);
/// Ranks that the parameters named by --place are split over.
int64_t numModelRanks(const CompileOptions &options);

/// The shortest decimal text that reads back as `value`.
std::string formatNumber(double value);

/// Parses "dp=2,fsdp=4" or "nodes:replica=2,gpus:data=8". Returns an error text, empty on success.
std::string parseMesh(const std::string &text, std::vector<MeshAxis> &mesh);
/// The same text again; empty for one rank.
std::string meshText(const CompileOptions &options);

/// Parses "80e9", "40GiB", "512 MB". Empty if it is no positive number of bytes that an int64_t holds.
std::optional<double> parseBytes(const std::string &text);

/// Low-rank adapters, see the pass add-adapters.
struct Lora {
  int64_t rank = 0;
  double alpha = 0;
  std::string targets, train;
};
/// Parses --lora: keys in any order; an expression may hold commas. Nothing if a key is missing, unknown or given
/// twice, or a number is none.
std::optional<Lora> parseLora(const std::string &text);

/// When gathers of units start.
struct Prefetch {
  bool isAuto = false;          ///< by the cost model; else
  int64_t forward = 1;          ///< so many units ahead
  std::string backward = "pre"; ///< pre | post | none
};
/// Parses --prefetch; nothing if the text is not one of its forms.
std::optional<Prefetch> parsePrefetch(const std::string &text);

/// Checks what can be checked without a model. Returns an error text that names the flag, empty if all is well.
std::string checkOptions(const CompileOptions &options);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_COMPILE_DRIVER_OPTIONS_H
