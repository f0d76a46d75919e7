//===- main.cpp - tessera-run: trains a compiled step -----------------------===//

#include "runtime/data/Samples.h"
#include "runtime/step/Trainer.h"
#include "tools/common/CommandLine.h"
#include "tools/tessera-run/Flags.h"
#include "tools/tessera-run/Signals.h"
#include "tools/tessera-run/StandardStreams.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <re2/re2.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {
/// What the artifact trains on, in lines of its own; nothing if it cannot be read, which is another matter.
std::string wantedBy(const std::string &path) {
  auto artifact = tessera::Artifact::open(path);
  if (!artifact.isOk())
    return "";
  auto specs = tessera::batchSpecs(**artifact);
  return specs.isOk() ? "\n'" + path + "' takes " + tessera::describeWantedData(*specs) : "";
}
} // namespace

using namespace tessera::flags;

int main(int argc, char **argv) {
  tessera::TrainOptions options;
  CLI::App app(
      "Trains a compiled step. Ranks are threads of this process, as many as the artifact's mesh has; under mpirun, "
      "srun or torchrun each process is one rank.",
      "tessera-run");
  app.footer("Example:\n"
             "  tessera-compile gpt.onnx -o gpt.tessera --mesh shard=2 --strategy zero3 --batch 8 --seq 256\n"
             "  tessera-run gpt.tessera --data text/ --steps 200 --out runs/gpt --checkpoint-every 100");
  app.set_version_flag("--version", TESSERA_VERSION);
  app.get_formatter()->column_width(34);
  constexpr int maxThreads = 1024;
  constexpr double maxSeconds = 1e9, maxRate = 1e30, maxEpochs = 1e9;
  app.add_option("artifact", options.artifact, "File made by tessera-compile")->required()->check(someName());
  app.add_option(
         "--data", options.data,
         "Folder that \"python -m tessera data\" made, token file (.bin), text (.txt, .json, .jsonl, or a folder "
         "of them), or arrays (.npz, .safetensors)")
      ->check(someName());
  CLI::Option *steps = app.add_option("--steps", options.steps, "Number of the last step; a resumed run counts on")
                           ->check(wholeNumber<int64_t>(1))
                           ->capture_default_str();
  app.add_option("--epochs", options.epochs, "Passes over the data, instead of --steps; may be a fraction")
      ->check(amount(maxEpochs))
      ->excludes(steps);
  app.add_option("--out", options.out, "Folder for metrics, checkpoints, trace and final weights")->check(someName());
  app.add_option("--comm", options.comm,
                 "How ranks talk: local (threads of this process), mpi, tcp (RANK, WORLD_SIZE, MASTER_ADDR, "
                 "MASTER_PORT), or auto, by the environment")
      ->check(CLI::IsMember({"auto", "local", "mpi", "tcp"}))
      ->capture_default_str();
  app.add_option("--ranks", options.ranks, "Number of ranks, to check that it is the artifact's")
      ->check(wholeNumber<int>(1));
  app.add_option("--threads", options.threads, "Threads per rank; 0 (default): cores / ranks")
      ->check(wholeNumber<int>(0, maxThreads));
  app.add_option("--seed", options.seed, "Seed of initial values and of the order of the data (default 0)")
      ->check(wholeNumber<uint64_t>(0));

  app.add_option("--lr", options.schedule.learningRate, "Peak learning rate, instead of the artifact's")
      ->check(amount(maxRate));
  app.add_option("--min-lr", options.schedule.minLearningRate, "Where the schedule ends")->check(amount(maxRate));
  std::string warmup, decay;
  app.add_option("--warmup", warmup, "Steps of linear warm-up, or a share of all steps: 5%")->check(stepsOrShare());
  app.add_option("--schedule,--lr-schedule", options.schedule.schedule, tessera::scheduleKinds())
      ->check(oneOf(tessera::scheduleKinds()));
  app.add_option("--decay-steps", decay, "Last steps of the run, or a share of them, in which wsd decays")
      ->check(stepsOrShare());
  app.add_option("--decay-curve", options.schedule.decayCurve, "How wsd decays: " + tessera::decayCurves())
      ->check(oneOf(tessera::decayCurves()));

  app.add_option(
         "--on-nonfinite", options.onNonFinite,
         "A step whose loss or gradient norm is not finite: skip (it changes nothing; 10 in a row end the run), "
         "stop, or ignore. Default: skip, or stop where the artifact cannot skip")
      ->check(CLI::IsMember({"skip", "stop", "ignore"}));

  app.add_option("--weights", options.weights,
                 "Initial parameters: .safetensors, .onnx or .pt2, or fresh: by rule. Default: the values in the model "
                 "file that was compiled, or by rule if it has none")
      ->check(someName());
  std::string partial;
  app.add_option("--weights-partial", partial,
                 "Parameters that --weights may lack or have in another shape, such as a new head: they begin by rule; "
                 "and tensors that may be left over (a regular expression, RE2)")
      ->check(someName());
  app.add_option("--model-file", options.modelFile,
                 "Where the model file is, if it has moved since it was compiled; its values must be the same")
      ->check(someName());
  app.add_option(
         "--resume", options.resume,
         "Run folder or checkpoint to go on from, or auto: the newest whole checkpoint in --out, or a new run if there "
         "is none")
      ->check(someName());
  app.add_option("--checkpoint-every", options.checkpointEvery, "Steps between checkpoints; 0 (default): none")
      ->check(wholeNumber<int64_t>(0));
  app.add_option("--keep", options.keepCheckpoints, "Newest checkpoints that stay, beside the best; 0 (default): all")
      ->check(wholeNumber<int>(0));
  CLI::Option *keepsBest =
      app.add_flag("--keep-best", options.keepsBest,
                   "Keep a checkpoint of the lowest evaluated loss (checkpoints/best), and export its weights");
  CLI::Option *patience = app.add_option("--patience", options.patience,
                                         "Evaluations in a row without a lower loss after which the run ends; implies "
                                         "--keep-best")
                              ->check(wholeNumber<int64_t>(1));
  std::string exportStep;
  CLI::Option *exportsStep = app.add_option("--export-step", exportStep,
                                            "Whose weights are exported with --keep-best: best (default), or last")
                                 ->check(CLI::IsMember({"best", "last"}));
  app.add_option("--check-replicas", options.checkReplicas,
                 "Steps after which ranks compare what they hold equal copies of; 0 (default): only at checkpoints")
      ->check(wholeNumber<int64_t>(0));
  app.add_flag("--take-over", options.takesOver,
               "Take --out over from a run on another host that shows no sign of life for 30 s");
  CLI::Option *exportPath =
      app.add_option("--export", options.exportPath, "File of the final weights (default: <out>/model.safetensors)")
          ->check(someName());
  app.add_option(
         "--export-lora", options.exportLora,
         "What is left of a model with adapters (tessera-compile --lora): adapters (<out>/adapter/, for PEFT; the "
         "default), merged (the model with the adapters added, in the file of --export), or both")
      ->check(CLI::IsMember({"adapters", "merged", "both"}));
  CLI::Option *exportHf =
      app.add_option(
             "--export-hf", options.exportHf,
             "Folder to make of the final weights as Hugging Face has them, with the files and types of the one "
             "that --weights names, its configuration and tokenizer; every rank writes its part. With adapters: "
             "a folder for PEFT, or by --export-lora merged the merged model")
          ->check(someName());
  app.add_option("--export-like", options.exportLike, "Folder whose files --export-hf writes, if not that of --weights")
      ->check(someName())
      ->needs(exportHf);
  app.add_option("--export-dtype", options.exportDtype, "Type of its floats: bf16, f16 or f32 (default: as they were)")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}))
      ->needs(exportHf);
  app.add_flag("--export-only", options.exportOnly, "Write the weights of the checkpoint of --resume, train nothing")
      ->needs(exportHf);
  app.add_flag("--no-export", options.noExport, "Do not write the final weights")
      ->excludes(exportPath)
      ->excludes(exportHf);

  app.add_option(
         "--eval-data", options.evalData,
         "Data to evaluate, as --data, or none; the artifact must have been compiled with --evaluate (default: the "
         "split 'valid' of --data, if it has one and the artifact evaluates)")
      ->check(someName());
  app.add_option("--eval-every", options.evalEvery,
                 "Steps between evaluations; 0 (default): after each of --epochs, or only after the last step")
      ->check(wholeNumber<int64_t>(0));
  app.add_option("--eval-batches", options.evalBatches, "Batches of each evaluation, at most; 0 (default): all")
      ->check(wholeNumber<int64_t>(0));
  app.add_flag("--eval-only", options.evalOnly,
               "Evaluate the checkpoint of --resume, or the initial values, print the loss, and train nothing")
      ->needs("--eval-data");

  std::string order = "shuffled";
  app.add_option("--order", order, "Order of the samples: shuffled (anew in each epoch) or sequential")
      ->check(CLI::IsMember({"shuffled", "sequential"}))
      ->capture_default_str();
  app.add_option("--text-field", options.textField, "Field of JSON documents that holds the text")
      ->capture_default_str();
  app.add_option("--token-bytes", options.tokenBytes,
                 "Bytes per token of .bin files without header: 2 (uint16), 4 (uint32) or 8 (int64); without it, the "
                 "file and the model's vocabulary decide")
      ->check(CLI::IsMember({2, 4, 8}));
  std::string tokenizer, logged;
  app.add_option("--tokenizer", tokenizer,
                 "bytes: read text as bytes also where the model's vocabulary is much larger than 256")
      ->check(CLI::IsMember({"bytes"}));
  app.add_option("--end-of-document", options.endOfDocument,
                 "Token that ends a document: position_ids begin at 0 in each document, document_ids number them")
      ->check(wholeNumber<int64_t>(0, std::numeric_limits<uint32_t>::max()));

  app.add_option("--log-every", options.logEvery,
                 "Steps between progress lines; 0: only the first and the last (default: 10, and at most one line a "
                 "second)")
      ->check(wholeNumber<int64_t>(0));
  app.add_option("--log", logged, "memory: print what memory each rank has after each stage of the start, too")
      ->check(CLI::IsMember({"memory"}));
  app.add_option("--trace-steps", options.traceSteps, "Steps to write to <out>/trace.json, for ui.perfetto.dev")
      ->check(wholeNumber<int64_t>(0));
  app.add_flag("--memory-snapshot", options.memorySnapshot,
               "Write <out>/memory.json: allocated and reserved memory over a step, for tools/plot-memory.py");
  app.add_flag("--tensorboard", options.tensorBoard, "Write event files to <out>/tensorboard/");
  app.add_option("--dump", options.dump,
                 "Write gradients, parameters, losses (comma-separated) of a step to <out>/dump-<step>/")
      ->check(someName());
  app.add_option("--dump-step", options.dumpStep, "The step of --dump")
      ->needs("--dump")
      ->check(wholeNumber<int64_t>(1))
      ->capture_default_str();
  double peakGflops = 0;
  app.add_option("--peak-gflops", peakGflops,
                 "Peak GFLOP/s of all ranks together, to report utilisation (default on GPUs: the target file's)")
      ->check(amount(maxRate));
  app.add_option("--stall-timeout", options.stallTimeoutSeconds,
                 "Seconds after which a rank that does not arrive ends the run; 0: never")
      ->check(amount(maxSeconds))
      ->capture_default_str();
  app.add_option("--start-timeout", options.startTimeoutSeconds,
                 "Seconds that processes wait at the start for all others to come; 0: for ever")
      ->check(amount(maxSeconds))
      ->capture_default_str();
  bool noGraph = false;
  app.add_flag("--no-graph", noGraph, "On a GPU: give it one instruction after the other, not each step as one graph");
  std::string attentionGradient = "deterministic", reproducible = "on";
  app.add_option(
         "--attention-gradient", attentionGradient,
         "On a GPU: deterministic (the same bits each time), or fast (as PyTorch: parts are added in any order)")
      ->check(CLI::IsMember({"deterministic", "fast"}))
      ->capture_default_str();
  app.add_option("--reproducible", reproducible,
                 "On GPUs: on keeps the sums of collectives out of the switches, which may add in another order each "
                 "time; off allows them")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  std::string autotune;
  CLI::Option *tunes = app.add_flag(
      "--autotune{auto}", autotune,
      "On a GPU: time the algorithms of each product at the start and keep the fastest in a file, --autotune=FILE or "
      "the user's (~/.cache/tessera/gemm.json)");
  for (const auto &[group, names] : std::vector<std::pair<const char *, std::vector<const char *>>>{
           {"Ranks", {"--comm", "--ranks", "--threads", "--stall-timeout", "--start-timeout"}},
           {"Learning rate", {"--lr", "--min-lr", "--warmup", "--schedule", "--decay-steps", "--decay-curve"}},
           {"State",
            {"--weights", "--weights-partial", "--model-file", "--resume", "--checkpoint-every", "--keep",
             "--keep-best", "--patience", "--export-step", "--check-replicas", "--take-over", "--export", "--export-hf",
             "--export-like", "--export-dtype", "--export-only", "--export-lora", "--no-export", "--on-nonfinite"}},
           {"Evaluation", {"--eval-data", "--eval-every", "--eval-batches", "--eval-only"}},
           {"Data", {"--order", "--text-field", "--token-bytes", "--tokenizer", "--end-of-document"}},
           {"Telemetry",
            {"--log-every", "--log", "--trace-steps", "--memory-snapshot", "--tensorboard", "--dump", "--dump-step",
             "--peak-gflops"}},
           {"GPUs", {"--no-graph", "--attention-gradient", "--reproducible", "--autotune"}}})
    for (const char *name : names)
      app.get_option(name)->group(group);
  if (std::optional<int> status = tessera::readCommandLine(app, argc, argv))
    return *status;
  if (tunes->count() > 0)
    options.gpu.autotune = autotune == "auto" ? "" : autotune;
  options.gpu.usesGraphs = !noGraph;
  options.gpu.hasFastAttentionGradient = attentionGradient == "fast";
  options.gpu.isReproducible = reproducible == "on";

  // Neither is of use to what trains nothing.
  for (auto [name, what] :
       {std::pair("--data", "what to train on: a folder of \"python -m tessera data\", a token file (.bin), text or a "
                            "folder of it, or arrays (.npz, .safetensors)"),
        std::pair("--out", "a folder for metrics, checkpoints and final weights")})
    if (!options.trainsNothing() && app.count(name) == 0)
      return tessera::failUsage(app, std::string(name) + " is required, " + what +
                                         (std::string_view(name) == "--data" ? wantedBy(options.artifact) : ""));

  if (options.exportOnly)
    for (const char *name : {"--data",
                             "--out",
                             "--steps",
                             "--epochs",
                             "--keep-best",
                             "--patience",
                             "--seed",
                             "--weights",
                             "--weights-partial",
                             "--model-file",
                             "--lr",
                             "--min-lr",
                             "--warmup",
                             "--schedule",
                             "--decay-steps",
                             "--decay-curve",
                             "--export",
                             "--checkpoint-every",
                             "--keep",
                             "--check-replicas",
                             "--take-over",
                             "--eval-data",
                             "--dump",
                             "--trace-steps",
                             "--memory-snapshot",
                             "--tensorboard"})
      if (app.count(name) > 0)
        return tessera::failUsage(app, std::string(name) + " has no meaning with --export-only, which trains nothing");
  if (!partial.empty()) {
    auto regex = std::make_shared<re2::RE2>(partial, re2::RE2::Quiet);
    if (!regex->ok())
      return tessera::failUsage(app,
                                "--weights-partial: '" + partial + "' is no regular expression: " + regex->error());
    options.isPartialWeight = [regex](const std::string &name) { return re2::RE2::PartialMatch(name, *regex); };
  }
  if (app.count("--epochs") > 0 && options.epochs == 0)
    return tessera::failUsage(app, "--epochs must be more than 0");
  if (exportsStep->count() > 0 && keepsBest->count() + patience->count() == 0)
    return tessera::failUsage(app, "--export-step needs --keep-best");
  options.keepsBest |= patience->count() > 0;
  options.exportsLastStep = exportStep == "last";
  options.schedule.warmup = stepCount(warmup);
  options.schedule.decaySteps = stepCount(decay);
  options.shuffle = order == "shuffled";
  options.readsBytes = tokenizer == "bytes";
  options.logsMemory = logged == "memory";
  options.peakFlops = peakGflops * 1e9;
  options.commandLine.assign(argv, argv + argc);
  for (const CLI::Option *option : app.get_options())
    if (option->count() > 0)
      options.settings[option->get_single_name()] = CLI::detail::join(option->results(), " ");

  tessera::guardStandardStreams();
  tessera::SignalState &signals = tessera::handleSignals();
  options.stopSignal = &signals.stopSignal;
  options.mayEndAtOnce = &signals.mayEndAtOnce;
  tessera::Result<tessera::TrainOutcome> outcome = tessera::train(options);
  std::fflush(stdout);
  if (outcome.isOk()) {
    int status = outcome->stopSignal ? 128 + outcome->stopSignal : 0;
    if (!outcome->isAnyRankRunning)
      return status;
    std::fflush(nullptr);
    std::_Exit(status);
  }
  std::fprintf(stderr, "error: %s\n", outcome.status().toString().c_str());
  std::fflush(nullptr);
  std::_Exit(1); // a rank that stalled may still be running
}
