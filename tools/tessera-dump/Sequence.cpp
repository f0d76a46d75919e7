//===- Sequence.cpp - attention over sequence axes, and why it is so -----------------------===//

#include "runtime/telemetry/MemoryPlan.h"
#include "tools/tessera-dump/Dump.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::dump {

using artifact::AttentionReason;
using artifact::OrderReason;

namespace {

/// What a reason is called in JSON, and what it says to people.
struct ReasonText {
  const char *name, *text;
};

ReasonText reasonOf(AttentionReason reason) {
  switch (reason) {
  case AttentionReason::Asked:
    return {"asked", "it was asked for"};
  case AttentionReason::Fastest:
    return {"fastest", "the shortest predicted step of those that fit"};
  case AttentionReason::Smallest:
    return {"smallest", "none fits, and it takes the least memory"};
  }
  return {"unknown", "unknown"};
}

ReasonText reasonOf(OrderReason reason) {
  switch (reason) {
  case OrderReason::Asked:
    return {"asked", "it was asked for"};
  case OrderReason::Balances:
    return {"balances", "each rank has the same work of causal attention"};
  case OrderReason::NotCausal:
    return {"not_causal", "no attention is causal"};
  case OrderReason::HeadsSplit:
    return {"heads_split", "each rank has all positions of its heads"};
  case OrderReason::NotDivided:
    return {"not_divided", "two ranges for each rank do not divide the lengths"};
  case OrderReason::Documents:
    return {"documents", "what a query sees follows from the batch"};
  case OrderReason::NotDealt:
    return {"not_dealt",
            "what a query sees follows from the batch, but inputs are too wide or too short to be dealt unasked"};
  }
  return {"unknown", "unknown"};
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string secondsText(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.2f} us", 1e6 * seconds)
         : seconds < 1  ? fmt::format("{:.2f} ms", 1e3 * seconds)
                        : fmt::format("{:.2f} s", seconds);
}

} // namespace

Json sequenceJson(const Artifact &artifact) {
  const artifact::SequenceChoice *choice = artifact.package().sequence();
  if (!choice)
    return nullptr;
  Json axes = Json::array(), ways = Json::array();
  for (const artifact::MeshAxis *axis : *artifact.package().mesh())
    if (axis->role() == artifact::AxisRole::Sequence && axis->size() > 1)
      axes.push_back({{"name", axis->name()->str()}, {"size", axis->size()}});
  if (choice->ways())
    for (const artifact::AttentionWay *way : *choice->ways()) {
      Json row = {{"attention", way->name()->str()}};
      if (way->error() && way->error()->size() > 0)
        row["error"] = way->error()->str();
      else
        row.update({{"step_seconds", way->step_seconds()},
                    {"bytes_per_rank", way->bytes()},
                    {"host_bytes_per_rank", way->host_bytes()},
                    {"fits", way->fits()}});
      ways.push_back(std::move(row));
    }
  Json json = {{"axes", std::move(axes)},
               {"attention", choice->attention()->str()},
               {"reason", reasonOf(choice->reason()).name},
               {"ways", std::move(ways)}};
  if (choice->reason() != AttentionReason::Asked)
    json["limit"] = choice->limit();
  json["order"] = lower(artifact::EnumNameSplitOrder(choice->order()));
  json["order_reason"] = reasonOf(choice->order_reason()).name;
  return json;
}

std::string sequenceText(const Artifact &artifact) {
  const artifact::SequenceChoice *choice = artifact.package().sequence();
  if (!choice)
    return "";
  const Json json = sequenceJson(artifact);
  std::string axes;
  for (const Json &axis : json["axes"])
    axes +=
        fmt::format("{}{}({})", axes.empty() ? "" : ",", axis["name"].get<std::string>(), axis["size"].get<int64_t>());
  std::string text =
      fmt::format("attention over {}: {}, {}", axes, choice->attention()->str(), reasonOf(choice->reason()).text);
  if (choice->reason() != AttentionReason::Asked)
    text += fmt::format(" (of {} for a rank)", formatBytes(choice->limit()));
  text += "\n";
  size_t width = 0;
  for (const Json &way : json["ways"])
    width = std::max(width, way["attention"].get<std::string>().size());
  for (const Json &way : json["ways"]) {
    text += fmt::format("  {:<{}}  ", way["attention"].get<std::string>(), width);
    if (way.contains("error")) {
      text += "cannot be: " + way["error"].get<std::string>() + "\n";
      continue;
    }
    text += fmt::format("{} a step, {} a rank", secondsText(way["step_seconds"].get<double>()),
                        formatBytes(way["bytes_per_rank"].get<uint64_t>()));
    if (const auto host = way["host_bytes_per_rank"].get<uint64_t>(); host > 0)
      text += fmt::format(" and {} on the host", formatBytes(host));
    text += way["fits"].get<bool>() ? ", fits\n" : ", too large\n";
  }
  return text +
         fmt::format("positions: {}, {}\n", json["order"].get<std::string>(), reasonOf(choice->order_reason()).text);
}

} // namespace tessera::dump
