//===- main.cpp - tessera-calibrate: measures the machine at hand ------------------------===//

#include "runtime/base/File.h"
#include "tools/common/CommandLine.h"
#include "tools/tessera-calibrate/Measure.h"
#include "tools/tessera-calibrate/TargetWriter.h"

#include <cstdio>
#include <thread>

int main(int argc, char **argv) {
  tessera::calibrate::Options options;
  std::string output, name = "measured";
  options.ranks = 2;
  options.threads = 0;
  CLI::App app(
      "Measures products by shape, kernels, attention and collectives by size on this machine and writes a target "
      "file, by which tessera-compile schedules and predicts steps.",
      "tessera-calibrate");
  app.set_version_flag("--version", TESSERA_VERSION);
  app.footer(
      "Example:\n"
      "  tessera-calibrate -o here.json --ranks 2\n"
      "  tessera-compile gpt.onnx --batch 8 --seq 256 --mesh shard=2 --strategy zero3 --target here.json --report");
  app.add_option("-o,--output", output, "target file to write (.json)")->required();
  app.add_option("--ranks", options.ranks, "ranks that run together, as threads of this process")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "threads per rank (default: cores / ranks)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--repeats", options.repeats, "measurements of each size; their median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--name", name, "name of the target in reports")->capture_default_str();
  std::string clock = "wall";
  app.add_option(
         "--clock", clock,
         "wall, or cpu: seconds that a rank computes, for a machine that does other things too (one thread per rank; "
         "waiting for other ranks does not count)")
      ->check(CLI::IsMember({"wall", "cpu"}))
      ->capture_default_str();
  app.add_flag("--quick", options.quick, "few and small sizes: to try the tool, not to predict by");
  if (std::optional<int> status = tessera::readCommandLine(app, argc, argv))
    return *status;
  if (output.size() < 5 || output.compare(output.size() - 5, 5, ".json") != 0)
    return tessera::failUsage(app, "-o: expected a file *.json, got '" + output + "'");
  if (options.threads == 0)
    options.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / options.ranks);

  options.cpuTime = clock == "cpu";
  if (options.cpuTime && options.threads != 1) {
    std::fprintf(stderr, "error: --clock cpu: needs --threads 1, got %d\n", options.threads);
    return 1;
  }

  const std::string path = output;
  if (auto file = tessera::AtomicFile::create(path); !file.isOk()) { // before minutes of measuring
    std::fprintf(stderr, "error: %s\n", file.status().toString().c_str());
    return 1;
  }
  auto measured = tessera::calibrate::measure(options);
  tessera::Status status =
      measured.isOk() ? tessera::writeFileAtomically(path, tessera::calibrate::targetText(name, options, *measured))
                      : measured.status();
  if (!status.isOk()) {
    std::fprintf(stderr, "error: %s\n", status.toString().c_str());
    return 1;
  }
  double peak = 0;
  for (const auto &sample : measured->gemm)
    peak = std::max(peak, sample.flops);
  std::printf("%s, %d x %d threads: products up to %.0f GFLOP/s per rank, memory %.1f GB/s",
              tessera::calibrate::processorName().c_str(), options.ranks, options.threads, peak / 1e9,
              measured->memory.back().second / 1e9);
  if (options.ranks > 1)
    std::printf(", all-gather %.1f GB/s", measured->collectives[0].bandwidth.back().second / 1e9);
  std::printf("\nwrote %s\n", path.c_str());
  return 0;
}
