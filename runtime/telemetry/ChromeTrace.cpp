//===- ChromeTrace.cpp - steps as a timeline -----------------------------------------------===//

#include "runtime/telemetry/ChromeTrace.h"

#include "runtime/base/File.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace tessera {

using Json = nlohmann::ordered_json;

void ChromeTrace::record(const TraceEvent &event) {
  std::lock_guard lock(mutex);
  events.push_back(event);
}

size_t ChromeTrace::numEvents() const {
  std::lock_guard lock(mutex);
  return events.size();
}

static Json metadata(const char *name, int process, int thread, const Json &arguments) {
  return {{"ph", "M"}, {"name", name}, {"pid", process}, {"tid", thread}, {"args", arguments}};
}

static Json eventToJson(const TraceEvent &event, int64_t origin) {
  std::string name(event.kind);
  std::string_view what = event.location.empty() ? event.detail : event.location;
  if (!what.empty())
    name += " " + std::string(what);
  Json arguments = {{"step", event.step}, {"instruction", event.instruction}, {"iteration", event.iteration}};
  if (!event.detail.empty())
    arguments["detail"] = event.detail;
  if (event.bytes > 0)
    arguments["bytes"] = event.bytes;
  return {{"ph", "X"},
          {"name", name},
          {"cat", event.kind},
          {"pid", event.rank},
          {"tid", event.stream},
          {"ts", static_cast<double>(event.beginNanoseconds - origin) / 1e3},
          {"dur", static_cast<double>(std::max<int64_t>(event.endNanoseconds - event.beginNanoseconds, 0)) / 1e3},
          {"args", std::move(arguments)}};
}

Status ChromeTrace::write(const std::string &path, const std::function<std::string(int)> &streamName) const {
  std::vector<TraceEvent> sorted;
  {
    std::lock_guard lock(mutex);
    sorted = events;
  }
  std::sort(sorted.begin(), sorted.end(), [](const TraceEvent &a, const TraceEvent &b) {
    return std::tie(a.beginNanoseconds, a.rank, a.stream, a.instruction) <
           std::tie(b.beginNanoseconds, b.rank, b.stream, b.instruction);
  });
  int64_t origin = sorted.empty() ? 0 : sorted.front().beginNanoseconds;
  std::set<std::pair<int, int>> lanes;
  for (const TraceEvent &event : sorted)
    lanes.emplace(event.rank, event.stream);

  // Written in pieces: a trace of many steps is large as one JSON value.
  TESSERA_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  bool first = true;
  auto append = [&](const Json &json) -> Status {
    text += first ? "\n" : ",\n";
    first = false;
    text += json.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() < 1 << 20)
      return Status::ok();
    Status status = file.write(text);
    text.clear();
    return status;
  };
  for (auto [rank, stream] : lanes) {
    TESSERA_RETURN_IF_ERROR(append(metadata("process_name", rank, stream, {{"name", "rank " + std::to_string(rank)}})));
    TESSERA_RETURN_IF_ERROR(append(metadata("process_sort_index", rank, stream, {{"sort_index", rank}})));
    TESSERA_RETURN_IF_ERROR(append(metadata("thread_name", rank, stream, {{"name", streamName(stream)}})));
    TESSERA_RETURN_IF_ERROR(append(metadata("thread_sort_index", rank, stream, {{"sort_index", stream}})));
  }
  for (const TraceEvent &event : sorted)
    TESSERA_RETURN_IF_ERROR(append(eventToJson(event, origin)));
  TESSERA_RETURN_IF_ERROR(file.write(text + "\n]}\n"));
  return file.commit();
}

} // namespace tessera
