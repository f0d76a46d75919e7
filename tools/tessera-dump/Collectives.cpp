//===- Collectives.cpp - what a step communicates --------------------------------------------===//
//
// Bytes are those that one rank sends with an algorithm of least traffic (ring): the minimum that any implementation
// moves. The totals are set against the least that the strategy could do with: each sharded parameter gathered once,
// each gradient reduced once.
//
//===----------------------------------------------------------------------===//

#include "runtime/telemetry/MemoryPlan.h"
#include "tools/tessera-dump/Dump.h"

#include <fmt/format.h>

#include <map>

namespace tessera::dump {

using artifact::CollectiveKind;

namespace {
struct Row {
  uint32_t number;
  std::string kind, reduction, group, label, stream, location;
  int64_t groupSize, iterations;
  uint64_t wholeBytes; ///< Of the unsharded value.
  uint64_t sentBytes;  ///< By one rank in a step.
};
struct Totals {
  uint64_t sent = 0, gathered = 0, reduced = 0;
  uint64_t shardedParameters = 0, parameters = 0;
};
} // namespace

static std::vector<Row> collectRows(const Artifact &artifact, size_t program) {
  const artifact::Package &package = artifact.package();
  std::vector<Row> rows;
  for (const FlatInstruction &entry : flatten(artifact.program(program))) {
    const artifact::Collective *collective = entry.instruction->operation_as_Collective();
    if (!collective)
      continue;
    Row row;
    row.number = entry.number;
    row.kind = kindOf(*entry.instruction);
    row.reduction = reductionOf(*collective);
    row.group = groupText(artifact, collective->group());
    row.groupSize = artifact.groupSize(collective->group());
    row.label = collective->label() ? collective->label()->str() : "";
    row.stream = artifact.streamName(entry.instruction->stream());
    row.location = locationOf(package, *entry.instruction);
    row.iterations = entry.iterations;
    row.wholeBytes = std::max(bufferBytes(package, collective->input()), bufferBytes(package, collective->output()));
    auto others = static_cast<uint64_t>(row.groupSize - 1), size = static_cast<uint64_t>(row.groupSize);
    uint64_t once = row.wholeBytes * others / size;
    if (collective->kind() == CollectiveKind::AllReduce)
      once = 2 * row.wholeBytes * others / size;
    else if (collective->kind() == CollectiveKind::Permute)
      once = others > 0 ? row.wholeBytes : 0;
    row.sentBytes = once * static_cast<uint64_t>(entry.iterations);
    rows.push_back(std::move(row));
  }
  return rows;
}

static Totals sumUp(const Artifact &artifact, const std::vector<Row> &rows) {
  Totals totals;
  for (const Row &row : rows) {
    totals.sent += row.sentBytes;
    uint64_t whole = row.wholeBytes * static_cast<uint64_t>(row.iterations);
    if (row.kind == "all_gather")
      totals.gathered += whole;
    else if (row.kind == "reduce_scatter" || row.kind == "all_reduce")
      totals.reduced += whole;
  }
  if (artifact.package().state())
    for (const artifact::StateTensor *state : *artifact.package().state())
      if (state->role() == artifact::StateRole::Parameter) {
        uint64_t bytes = static_cast<uint64_t>(state->elements()) * byteWidth(state->dtype());
        totals.parameters += bytes;
        if (state->shard_group() >= 0)
          totals.shardedParameters += bytes;
      }
  return totals;
}

static double ratio(uint64_t value, uint64_t base) {
  return base ? static_cast<double>(value) / static_cast<double>(base) : 0;
}

std::string collectivesText(const Artifact &artifact, size_t program) {
  std::vector<Row> rows = collectRows(artifact, program);
  std::string text = fmt::format("collectives (in the order of every rank)\n{:>6} {:<15} {:<14} {:<8} {:>12} {:>5} "
                                 "{:>12}  label ; source\n",
                                 "number", "kind", "group", "stream", "whole", "times", "sent/rank");
  for (const Row &row : rows)
    text += fmt::format("{:>6} {:<15} {:<14} {:<8} {:>12} {:>5} {:>12}  {}{}\n", row.number,
                        row.reduction.empty() || row.reduction == "sum" ? row.kind : row.kind + " " + row.reduction,
                        row.group, row.stream, formatBytes(row.wholeBytes), row.iterations, formatBytes(row.sentBytes),
                        row.label, row.location.empty() ? "" : " ; " + row.location);
  Totals totals = sumUp(artifact, rows);
  text += fmt::format("  {} collectives, {} sent by each rank in a step\n", rows.size(), formatBytes(totals.sent));
  if (totals.shardedParameters > 0)
    text += fmt::format("  gathered: {} = {:.2f} x the sharded parameters ({})\n", formatBytes(totals.gathered),
                        ratio(totals.gathered, totals.shardedParameters), formatBytes(totals.shardedParameters));
  if (artifact.numRanks() > 1)
    text += fmt::format("  reduced: {} = {:.2f} x the parameters ({})\n", formatBytes(totals.reduced),
                        ratio(totals.reduced, totals.parameters), formatBytes(totals.parameters));
  text += fmt::format("  hash of the sequence {:016x}\n", artifact.program(program).collective_hash());
  return text;
}

Json collectivesJson(const Artifact &artifact, size_t program) {
  std::vector<Row> rows = collectRows(artifact, program);
  Json list = Json::array();
  for (const Row &row : rows)
    list.push_back({{"number", row.number},
                    {"kind", row.kind},
                    {"reduction", row.reduction},
                    {"group", row.group},
                    {"group_size", row.groupSize},
                    {"stream", row.stream},
                    {"bytes", row.wholeBytes},
                    {"iterations", row.iterations},
                    {"sent_per_rank", row.sentBytes},
                    {"label", row.label},
                    {"location", row.location}});
  Totals totals = sumUp(artifact, rows);
  return {{"list", std::move(list)},
          {"sent_per_rank", totals.sent},
          {"gathered_bytes", totals.gathered},
          {"reduced_bytes", totals.reduced},
          {"sharded_parameter_bytes", totals.shardedParameters},
          {"parameter_bytes", totals.parameters},
          {"hash", fmt::format("{:016x}", artifact.program(program).collective_hash())}};
}

} // namespace tessera::dump
