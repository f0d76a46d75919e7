//===- main.cpp - tessera-run: trains a compiled step -----------------------===//

#include "runtime/step/Trainer.h"

#include <CLI/CLI.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {
std::atomic<int> stopSignal{0};
static_assert(std::atomic<int>::is_always_lock_free);

/// The first SIGINT, SIGTERM or SIGUSR1 (which mpirun forwards and Slurm can send ahead of a time limit) ends the run
/// after its step; the handler is then gone, so that a second one kills.
void stopOnSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { stopSignal.store(number); };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
}
} // namespace

int main(int argc, char **argv) {
  tessera::TrainOptions options;
  CLI::App app(
      "Trains a compiled step. Ranks are threads of this process, as many as the artifact's mesh has; under mpirun, "
      "srun or torchrun each process is one rank.");
  app.footer("Example:\n"
             "  tessera-compile gpt.onnx -o gpt.tessera --mesh shard=2 --strategy zero3 --batch 8 --seq 256\n"
             "  tessera-run gpt.tessera --data text/ --steps 200 --out runs/gpt --checkpoint-every 100");
  app.set_version_flag("--version", TESSERA_VERSION);
  app.get_formatter()->column_width(34);
  app.add_option("artifact", options.artifact, "File made by tessera-compile")->required();
  app.add_option("--data", options.data,
                 "Token file (.bin), text (.txt, .json, .jsonl, or a folder of them), or arrays (.npz, .safetensors)")
      ->required();
  app.add_option("--steps", options.steps, "Number of the last step; a resumed run counts on")->capture_default_str();
  app.add_option("--out", options.out, "Folder for metrics, checkpoints, trace and final weights")->required();
  app.add_option("--comm", options.comm,
                 "How ranks talk: local (threads of this process), mpi, tcp (RANK, WORLD_SIZE, MASTER_ADDR, "
                 "MASTER_PORT), or auto, by the environment")
      ->check(CLI::IsMember({"auto", "local", "mpi", "tcp"}))
      ->capture_default_str();
  app.add_option("--ranks", options.ranks, "Number of ranks, to check that it is the artifact's");
  app.add_option("--threads", options.threads, "Threads per rank (default: cores / ranks)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", options.seed, "Seed of initial values and of the order of the data (default 0)");

  app.add_option("--lr", options.schedule.learningRate, "Peak learning rate, instead of the artifact's");
  app.add_option("--min-lr", options.schedule.minLearningRate, "Where a cosine ends");
  app.add_option("--warmup", options.schedule.warmup, "Steps of linear warm-up");
  app.add_option("--schedule", options.schedule.schedule, "constant or cosine");

  app.add_option("--weights", options.weights, "Initial parameters: .safetensors or .onnx");
  app.add_option("--resume", options.resume, "Run folder or checkpoint to go on from")->excludes("--weights");
  app.add_option("--checkpoint-every", options.checkpointEvery, "Steps between checkpoints (default: none)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--keep", options.keepCheckpoints, "Newest checkpoints that stay (default: all)")
      ->check(CLI::NonNegativeNumber);
  CLI::Option *exportPath =
      app.add_option("--export", options.exportPath, "File of the final weights (default: <out>/model.safetensors)");
  app.add_flag("--no-export", options.noExport, "Do not write the final weights")->excludes(exportPath);

  std::string order = "shuffled";
  app.add_option("--order", order, "Order of the samples: shuffled (anew in each epoch) or sequential")
      ->check(CLI::IsMember({"shuffled", "sequential"}))
      ->capture_default_str();
  app.add_option("--text-field", options.textField, "Field of JSON documents that holds the text")
      ->capture_default_str();
  app.add_option("--token-bytes", options.tokenBytes, "Bytes per token of a .bin file without header: 2 (default) or 4")
      ->check(CLI::IsMember({2, 4}));

  app.add_option("--log-every", options.logEvery, "Steps between progress lines; 0: only the first and the last")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--trace-steps", options.traceSteps, "Steps to write to <out>/trace.json, for ui.perfetto.dev")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--memory-snapshot", options.memorySnapshot,
               "Write <out>/memory.json: allocated and reserved memory over a step, for tools/plot-memory.py");
  app.add_flag("--tensorboard", options.tensorBoard, "Write event files to <out>/tensorboard/");
  app.add_option("--dump", options.dump,
                 "Write gradients, parameters, losses (comma-separated) of a step to <out>/dump-<step>/");
  app.add_option("--dump-step", options.dumpStep, "The step of --dump")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  double peakGflops = 0;
  app.add_option("--peak-gflops", peakGflops, "Peak GFLOP/s of all ranks together, to report utilisation");
  app.add_option("--stall-timeout", options.stallTimeoutSeconds,
                 "Seconds after which a rank that does not arrive ends the run; 0: never")
      ->capture_default_str();
  bool noGraph = false;
  app.add_flag("--no-graph", noGraph, "On a GPU: give it one instruction after the other, not each step as one graph");
  CLI11_PARSE(app, argc, argv);
  options.usesGraphs = !noGraph;

  options.shuffle = order == "shuffled";
  options.peakFlops = peakGflops * 1e9;
  options.commandLine.assign(argv, argv + argc);
  for (const CLI::Option *option : app.get_options())
    if (option->count() > 0)
      options.settings[option->get_single_name()] = CLI::detail::join(option->results(), " ");

  stopOnSignals();
  options.stopSignal = &stopSignal;
  tessera::Result<tessera::TrainOutcome> outcome = tessera::train(options);
  if (outcome.isOk())
    return outcome->stopped ? 128 + stopSignal.load() : 0;
  std::fprintf(stderr, "error: %s\n", outcome.status().toString().c_str());
  std::fflush(nullptr);
  std::_Exit(1); // a rank that stalled may still be running
}
