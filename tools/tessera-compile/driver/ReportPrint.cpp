//===- ReportPrint.cpp - a report as text and as JSON ---------------------===//

#include "tools/tessera-compile/driver/Report.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using llvm::format;

namespace tessera {

namespace {
std::string className(size_t index) { return stringifyMemoryClass(static_cast<exec::MemoryClass>(index)).str(); }

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string countText(double count) {
  const char *units[] = {"", "K", "M", "G", "T", "P"};
  size_t unit = 0;
  for (; count >= 1000 && unit + 1 < std::size(units); ++unit)
    count /= 1000;
  std::string text;
  llvm::raw_string_ostream(text) << format(unit == 0 ? "%.0f" : "%.3g", count) << (unit ? " " : "") << units[unit];
  return text;
}

void printMemory(const StepReport &report, const cost::Target &target, llvm::raw_ostream &out) {
  const MemoryReport &memory = report.memory;
  out << "\nmemory of one rank              bytes            share\n";
  for (size_t index = 0; index < memory.atPeak.size(); ++index)
    if (memory.atPeak[index] > 0)
      out << format("  %-18s %18lld  %10s  %5.1f %%\n", className(index).c_str(),
                    static_cast<long long>(memory.atPeak[index]),
                    formatBytes(static_cast<double>(memory.atPeak[index])).c_str(),
                    percent(static_cast<double>(memory.atPeak[index]), static_cast<double>(memory.peak)));
  out << format("  %-18s %18lld  %10s\n", "peak", static_cast<long long>(memory.peak),
                formatBytes(static_cast<double>(memory.peak)).c_str());
  out << format("  %-18s %18lld  %10s  of %s per device\n", "reserved", static_cast<long long>(memory.reserved),
                formatBytes(static_cast<double>(memory.reserved)).c_str(), formatBytes(target.deviceMemory).c_str());
  if (memory.libraries > 0)
    out << format("  %-18s %18lld  %10s  about, besides\n", "libraries", static_cast<long long>(memory.libraries),
                  formatBytes(static_cast<double>(memory.libraries)).c_str());
  if (memory.host > 0)
    out << format("  %-18s %18lld  %10s\n", "on the host", static_cast<long long>(memory.host),
                  formatBytes(static_cast<double>(memory.host)).c_str());
}

void printCollectives(const StepReport &report, llvm::raw_ostream &out) {
  if (report.collectives.empty()) {
    out << "\ncommunication: none\n";
    return;
  }
  out << "\ncollectives of one step   axes               ranks  nodes   count   sent per rank     minimum   ratio  "
         "alone\n";
  for (const CollectiveReport &row : report.collectives) {
    out << format("  %-22s  %-17s %6lld %6lld %7lld  %14s", cost::kCollectiveNames[static_cast<size_t>(row.kind)],
                  row.axes.c_str(), static_cast<long long>(row.placement.ranks),
                  static_cast<long long>(row.placement.nodes), static_cast<long long>(row.count),
                  formatBytes(row.wireBytes).c_str());
    if (row.minimumBytes > 0)
      out << format("  %10s  %6.3f", formatBytes(row.minimumBytes).c_str(), row.wireBytes / row.minimumBytes);
    else
      out << format("  %10s  %6s", "-", "-");
    out << "  " << formatSeconds(row.seconds) << "\n";
  }
}

void printKernels(const StepReport &report, llvm::raw_ostream &out) {
  if (report.counts.kernels.empty())
    return;
  out << "\ngenerated kernels         launches          read       written     alone\n";
  for (const auto &[kind, count] : report.counts.kernels)
    out << format("  %-22s  %8lld  %12s  %12s  %s\n", kind.c_str(), static_cast<long long>(count.launches),
                  formatBytes(count.read).c_str(), formatBytes(count.written).c_str(),
                  formatSeconds(count.seconds).c_str());
}

void printTime(const StepReport &report, llvm::raw_ostream &out) {
  const cost::StepTime &time = report.time;
  auto row = [&](const char *name, double seconds) {
    out << format("  %-32s %12s  %5.1f %%\n", name, formatSeconds(seconds).c_str(), percent(seconds, time.total));
  };
  out << "\npredicted step\n";
  row("compute", time.compute);
  row("  products and convolutions", time.gemm);
  row("  attention", time.attention);
  row("  generated kernels", time.kernels);
  row("  copies and fills", time.other);
  row("  slowed by communication", time.contention);
  row("exposed communication", time.exposed);
  row("step", time.total);
  row("communication hidden in compute", time.hidden);
  const bool hasTokens = report.size.positions > 0;
  const char *unit = hasTokens ? " tokens" : " samples";
  const double perStep = hasTokens ? report.size.tokens : report.size.samples;
  const double rate = time.total > 0 ? perStep / time.total : 0;
  out << "\n  " << countText(rate) << unit << "/s, " << countText(rate / static_cast<double>(report.ranks))
      << " per rank; MFU " << format("%.1f %%", 100 * report.mfu()) << " of " << countText(report.peakFlops)
      << "FLOP/s (" << report.dtype << "); " << countText(report.size.flops) << "FLOP, " << countText(perStep) << unit
      << " per step\n";
}
} // namespace

std::string formatBytes(double bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  std::string text;
  llvm::raw_string_ostream(text) << format(unit == 0 ? "%.0f " : "%.2f ", bytes) << units[unit];
  return text;
}

std::string formatSeconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (seconds >= 1)
    out << format("%.3f s", seconds);
  else if (seconds >= 1e-3)
    out << format("%.3f ms", seconds * 1e3);
  else
    out << format("%.1f us", seconds * 1e6);
  return text;
}

void printReport(const StepReport &report, const CompileOptions &options, const cost::Target &target,
                 llvm::raw_ostream &out) {
  out << llvm::sys::path::filename(options.input) << ": " << countText(report.parameters) << " parameters, "
      << options.strategy << " on " << (options.mesh.empty() ? "1 rank" : meshText(options)) << " (" << report.ranks
      << (report.ranks == 1 ? " rank" : " ranks") << "), " << options.precision << ", accumulate " << options.accumulate
      << ", " << countText(report.size.samples) << " samples per step\n";
  out << "target " << target.name << ": " << target.description << "\n";
  printMemory(report, target, out);
  printCollectives(report, out);
  printKernels(report, out);
  printTime(report, out);
}

llvm::json::Object reportJson(const StepReport &report, const CompileOptions &options, const cost::Target &target) {
  using llvm::json::Array;
  using llvm::json::Object;
  Object mesh, roles;
  for (const MeshAxis &axis : options.mesh) {
    mesh[axis.name] = axis.size;
    roles[axis.name] = dist::getInfo(axis.role).name;
  }
  auto byClass = [](const std::array<int64_t, MemoryReport::kNumClasses> &bytes) {
    Object classes;
    for (size_t index = 0; index < bytes.size(); ++index)
      classes[className(index)] = bytes[index];
    return classes;
  };
  Array overStep;
  for (const auto &[instruction, bytes] : report.memory.overStep)
    overStep.push_back(Object{{"instruction", instruction}, {"by_class", byClass(bytes)}});
  Array collectives;
  for (const CollectiveReport &row : report.collectives)
    collectives.push_back(Object{{"axes", row.axes},
                                 {"kind", cost::kCollectiveNames[static_cast<size_t>(row.kind)]},
                                 {"ranks", row.placement.ranks},
                                 {"nodes", row.placement.nodes},
                                 {"count", row.count},
                                 {"wire_bytes_per_rank", row.wireBytes},
                                 {"minimum_wire_bytes_per_rank", row.minimumBytes},
                                 {"seconds_alone", row.seconds}});
  Array kernels;
  for (const auto &[kind, count] : report.counts.kernels)
    kernels.push_back(Object{{"kind", kind},
                             {"launches", count.launches},
                             {"bytes_read", count.read},
                             {"bytes_written", count.written},
                             {"seconds", count.seconds}});
  Object instructions;
  for (const auto &[name, count] : report.counts.instructions)
    instructions[name] = count;
  const cost::StepTime &time = report.time;
  return Object{{"format", "tessera-report"},
                {"version", 1},
                {"model", llvm::sys::path::filename(options.input)},
                {"parameters", report.parameters},
                {"target", target.name},
                {"strategy", options.strategy},
                {"precision", options.precision},
                {"accumulate", options.accumulate},
                {"mesh", std::move(mesh)},
                {"mesh_roles", std::move(roles)},
                {"ranks", report.ranks},
                {"samples_per_step", report.size.samples},
                {"tokens_per_step", report.size.tokens},
                {"model_flops_per_step", report.size.flops},
                {"memory", Object{{"reserved_per_rank", report.memory.reserved},
                                  {"host_per_rank", report.memory.host},
                                  {"libraries_per_rank", report.memory.libraries},
                                  {"peak_per_rank", report.memory.peak},
                                  {"at_peak_by_class", byClass(report.memory.atPeak)},
                                  {"over_step", std::move(overStep)},
                                  {"device_memory", target.deviceMemory}}},
                {"collectives", std::move(collectives)},
                {"kernels", std::move(kernels)},
                {"instructions", std::move(instructions)},
                {"step", Object{{"seconds", time.total},
                                {"compute_seconds", time.compute},
                                {"contention_seconds", time.contention},
                                {"product_seconds", time.gemm},
                                {"attention_seconds", time.attention},
                                {"kernel_seconds", time.kernels},
                                {"copy_seconds", time.other},
                                {"exposed_communication_seconds", time.exposed},
                                {"hidden_communication_seconds", time.hidden}}},
                {"tokens_per_second", report.tokensPerSecond()},
                {"peak_flops_per_second", report.peakFlops},
                {"dtype", report.dtype},
                {"mfu", report.mfu()}};
}

} // namespace tessera
