//===- TargetWriter.cpp - measurements as a target file -------------------------------===//

#include "tools/tessera-calibrate/TargetWriter.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace tessera::calibrate {

namespace {
using Json = nlohmann::ordered_json;

/// Four digits say all that a measurement knows.
double rounded(double value) {
  if (value == 0)
    return 0;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::fabs(value))));
  return std::round(value * scale) / scale;
}

Json quantity(double value, const char *unit, const std::string &source) {
  return {{"value", rounded(value)}, {"unit", unit}, {"source", source}};
}

Json curve(const Points &points, double scale, const char *unit, const std::string &source, bool isFraction = false) {
  Json list = Json::array();
  for (const auto &[x, y] : points)
    list.push_back({std::round(x), isFraction ? std::min(1.0, rounded(y * scale)) : rounded(y * scale)});
  return {{"points", list}, {"unit", unit}, {"source", source}};
}

Json links(const Options &options, const Measurements &measured, const std::string &source, const char *between) {
  static constexpr const char *kinds[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute"};
  Json links = Json::object();
  for (size_t kind = 0; kind < 5; ++kind) {
    const CollectiveSample &sample = measured.collectives[kind];
    if (options.ranks == 1) {
      const std::string none = "not measured: one rank; half the memory bandwidth of large kernels";
      links[kinds[kind]] = {{"latency", quantity(0, "s", none)},
                            {"hop_latency", quantity(0, "s", none)},
                            {"bandwidth", quantity(measured.memory.back().second / 2, "bytes/s", none)}};
      continue;
    }
    links[kinds[kind]] = {{"latency", quantity(sample.latency, "s", source + between)},
                          {"hop_latency", quantity(0, "s", "part of the latency, which is that of all ranks")},
                          {"bandwidth", curve(sample.bandwidth, 1, "wire bytes -> bytes/s", source + between)}};
  }
  return links;
}

/// Bytes of the machine's memory.
double machineMemory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), pageBytes = ::sysconf(_SC_PAGE_SIZE);
  return static_cast<double>(pages) * static_cast<double>(pageBytes);
}
} // namespace

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0)
      if (const size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown processor";
}

std::string targetText(const std::string &name, const Options &options, const Measurements &measured) {
  const std::string machine = processorName() + ", " + std::to_string(options.ranks) + " rank" +
                              (options.ranks == 1 ? "" : "s") + " x " + std::to_string(options.threads) + " thread" +
                              (options.threads == 1 ? "" : "s");
  const std::string source = "tessera-calibrate on " + machine + ", median of " + std::to_string(options.repeats) +
                             (options.cpuTime ? ", --clock cpu" : "") + (options.quick ? ", --quick" : "");
  const std::string overlap =
      options.cpuTime ? "not measured with --clock cpu: half each if there are not two cores per thread" : source;
  double peak = 0;
  for (const GemmSample &sample : measured.gemm)
    peak = std::max(peak, sample.flops);
  peak = rounded(peak * 1.0005); // so that no rounded efficiency exceeds 1
  Json products = Json::array();
  for (const GemmSample &sample : measured.gemm)
    products.push_back({sample.m, sample.n, sample.k, std::min(1.0, rounded(sample.flops / peak))});
  const char *fraction = "fraction of the peak";
  Json target = {
      {"format", "tessera-target"},
      {"version", 1},
      {"name", name},
      {"description", machine + ", as threads of one process"},
      {"kind", "cpu"},
      {"devices_per_node", quantity(options.ranks, "ranks", "ranks that were measured together")},
      {"device_memory", quantity(machineMemory() / options.ranks, "bytes", "the machine's memory over the ranks")},
      {"host_memory", quantity(machineMemory(), "bytes", "the same memory, of all ranks")},
      {"memory_bandwidth", curve(measured.memory, 1, "bytes touched -> bytes/s", source)},
      {"kernel_launch", quantity(measured.launch, "s", source)},
      {"kernel_operations", quantity(measured.kernelOperations, "operations/s", source)},
      {"peak_flops", {{"fp32", quantity(peak, "FLOP/s", "the largest rate of a product; " + source)}}},
      {"gemm_efficiency",
       {{"fp32",
         {{"points", products},
          {"unit", "m, n, k -> fraction of the peak"},
          {"source", "mean of three layouts; " + source}}}}},
      {"attention_efficiency",
       {{"forward", curve(measured.attentionForward, 1 / peak, "keys -> fraction of the peak", source, true)},
        {"backward", curve(measured.attentionBackward, 1 / peak, "keys -> fraction of the peak", source, true)}}},
      {"convolution_efficiency", quantity(std::min(1.0, measured.convolution / peak), fraction, source)},
      {"communication",
       {{"intra_node", links(options, measured, source, "")},
        {"inter_node", links(options, measured, source, "; between nodes not measured: as inside of one")}}},
      {"overlap",
       {{"compute", quantity(measured.overlapCompute, "progress per second", overlap)},
        {"communication", quantity(measured.overlapCommunication, "progress per second", overlap)}}}};
  // Points in one line each.
  std::string text = target.dump(1), result;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' && text.find_first_not_of(" \n", i + 1) != std::string::npos &&
        text[text.find_first_not_of(" \n", i + 1)] != '[')
      ++depth;
    if (depth > 0 && (text[i] == '\n' || (text[i] == ' ' && text[i - 1] != ',')))
      continue;
    if (depth > 0 && text[i] == ']')
      --depth;
    result += text[i];
    if (depth > 0 && text[i] == ',')
      result += ' ';
  }
  return result + "\n";
}

} // namespace tessera::calibrate
