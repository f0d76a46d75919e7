//===- DriverStreams.cpp - streams, events and graphs of the simulated driver -===//

#include "Simulator.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>
#include <utility>

using namespace tessera::sim;

#define TESSERA_DRIVER extern "C" TESSERA_SIM_API CUresult CUDAAPI

/// Returns where the handle is not a stream, or its GPU has failed.
#define TESSERA_STREAM(name, handle)                                                                                   \
  std::unique_lock<std::recursive_mutex> lock(sim().mutex);                                                            \
  Stream *name = sim().stream(handle, __func__);                                                                       \
  if (!name)                                                                                                           \
    return CUDA_ERROR_INVALID_HANDLE;                                                                                  \
  if (name->gpu->error != CUDA_SUCCESS)                                                                                \
  return name->gpu->error

static Event *eventOf(CUevent handle, const char *call) {
  auto found = sim().events.find(handle);
  if (found != sim().events.end())
    return found->second.get();
  sim().report(std::string(call) + ": the event does not exist");
  return nullptr;
}

// --- Streams ----------------------------------------------------------------------

TESSERA_DRIVER cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  Lock lock(sim().mutex);
  Gpu *gpu = sim().current();
  if (!gpu)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (gpu->error != CUDA_SUCCESS)
    return gpu->error;
  if (flags > CU_STREAM_NON_BLOCKING)
    return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<Stream>();
  made->gpu = gpu;
  made->priority = std::clamp(priority, greatestPriority, leastPriority);
  *stream = reinterpret_cast<CUstream>(made.get());
  sim().streams[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuStreamCreate(CUstream *stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

TESSERA_DRIVER cuStreamDestroy_v2(CUstream handle) {
  Lock lock(sim().mutex);
  Stream *stream = sim().stream(handle, "cuStreamDestroy");
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture)
    sim().invalidate(*stream->capture, CUDA_SUCCESS, "cuStreamDestroy of a stream that is captured");
  stream->isDestroyed = true;
  if (stream->queue.empty())
    sim().streams.erase(stream);
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuStreamQuery(CUstream handle) {
  TESSERA_STREAM(stream, handle);
  if (stream->capture)
    return sim().invalidate(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                            "cuStreamQuery of a captured stream");
  // Some work at a time, so that the host meets all kinds of half-done states.
  for (int left = 16; left > 0 && !stream->queue.empty() && sim().step(); --left)
    continue;
  if (stream->gpu->error != CUDA_SUCCESS)
    return stream->gpu->error;
  return stream->queue.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

TESSERA_DRIVER cuStreamSynchronize(CUstream handle) {
  TESSERA_STREAM(stream, handle);
  if (stream->capture)
    return sim().invalidate(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                            "cuStreamSynchronize of a captured stream");
  if (CUresult refused = sim().refuseInCapture("cuStreamSynchronize"); refused != CUDA_SUCCESS)
    return refused;
  sim().count("waits of the host");
  while (!sim().drain(*stream) && stream->gpu->error == CUDA_SUCCESS) {
    lock.unlock(); // other threads have to issue something
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    lock.lock();
  }
  return stream->gpu->error;
}

// --- Events -----------------------------------------------------------------------

TESSERA_DRIVER cuEventCreate(CUevent *event, unsigned flags) {
  Lock lock(sim().mutex);
  Gpu *gpu = sim().current();
  if (!gpu)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (gpu->error != CUDA_SUCCESS)
    return gpu->error;
  auto made = std::make_unique<Event>();
  made->gpu = gpu;
  made->hasTiming = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  *event = reinterpret_cast<CUevent>(made.get());
  sim().events[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuEventDestroy_v2(CUevent handle) {
  Lock lock(sim().mutex);
  if (!eventOf(handle, "cuEventDestroy"))
    return CUDA_ERROR_INVALID_HANDLE;
  sim().events.erase(handle);
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuEventRecord(CUevent handle, CUstream streamHandle) {
  TESSERA_STREAM(stream, streamHandle);
  Event *event = eventOf(handle, "cuEventRecord");
  if (!event)
    return CUDA_ERROR_INVALID_HANDLE;
  if (event->gpu != stream->gpu) {
    sim().report("cuEventRecord: event and stream are of two contexts");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (stream->capture) {
    if (stream->capture->isInvalid)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture = stream->capture;
    event->last = stream->last;
    event->ticket = nullptr;
    return CUDA_SUCCESS;
  }
  auto ticket = std::make_shared<Ticket>();
  event->capture = nullptr;
  event->ticket = ticket;
  return sim().submit(*stream, [ticket](Gpu &) {
    ticket->isDone = true;
    ticket->time = std::chrono::steady_clock::now();
  });
}

namespace {
class WaitWork : public Work {
public:
  explicit WaitWork(std::shared_ptr<Ticket> ticket) : ticket(std::move(ticket)) {}
  Outcome run(Gpu &, std::shared_ptr<void> &) override { return ticket->isDone ? Outcome::Done : Outcome::Blocked; }

private:
  std::shared_ptr<Ticket> ticket;
};
} // namespace

TESSERA_DRIVER cuStreamWaitEvent(CUstream handle, CUevent eventHandle, unsigned flags) {
  TESSERA_STREAM(stream, handle);
  Event *event = eventOf(eventHandle, "cuStreamWaitEvent");
  if (!event)
    return CUDA_ERROR_INVALID_HANDLE;
  if (flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (sim().failureAt("waits") && !event->capture)
    return CUDA_SUCCESS;
  if (event->capture) {
    Capture &capture = *event->capture;
    if (capture.isOver || (stream->capture && stream->capture != event->capture))
      return sim().invalidate(stream->capture ? *stream->capture : capture, CUDA_ERROR_STREAM_CAPTURE_MERGE,
                              "cuStreamWaitEvent: the event was recorded in another capture");
    if (capture.isInvalid)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!stream->capture) {
      stream->capture = event->capture;
      stream->last.clear();
      capture.streams.insert(stream);
    }
    for (size_t node : event->last)
      if (std::find(stream->last.begin(), stream->last.end(), node) == stream->last.end())
        stream->last.push_back(node);
    return CUDA_SUCCESS;
  }
  if (stream->capture)
    return sim().invalidate(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                            "cuStreamWaitEvent: the event was recorded outside of the capture");
  if (!event->ticket)
    return CUDA_SUCCESS;
  return sim().submit(*stream, std::make_shared<WaitWork>(event->ticket));
}

TESSERA_DRIVER cuEventElapsedTime_v2(float *milliseconds, CUevent from, CUevent to) {
  Lock lock(sim().mutex);
  Event *begin = eventOf(from, "cuEventElapsedTime"), *end = eventOf(to, "cuEventElapsedTime");
  if (!begin || !end || !begin->hasTiming || !end->hasTiming || !begin->ticket || !end->ticket) {
    sim().report("cuEventElapsedTime: an event is not recorded, or without times");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!begin->ticket->isDone || !end->ticket->isDone)
    return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(end->ticket->time - begin->ticket->time).count();
  return CUDA_SUCCESS;
}

// --- Graphs -----------------------------------------------------------------------

TESSERA_DRIVER cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  TESSERA_STREAM(stream, handle);
  if (stream->capture)
    return sim().invalidate(*stream->capture, CUDA_ERROR_ILLEGAL_STATE, "cuStreamBeginCapture of a captured stream");
  auto made = std::make_shared<Capture>();
  made->origin = stream;
  made->mode = mode;
  made->thread = std::this_thread::get_id();
  made->streams.insert(stream);
  stream->capture = made;
  stream->last.clear();
  sim().captures.push_back(std::move(made));
  return CUDA_SUCCESS;
}

/// Whether all nodes come before those of `last`.
static bool isJoined(const Capture &capture, const std::vector<size_t> &last) {
  std::vector<char> seen(capture.nodes.size(), 0);
  std::vector<size_t> open = last;
  while (!open.empty()) {
    size_t node = open.back();
    open.pop_back();
    if (!std::exchange(seen[node], 1))
      open.insert(open.end(), capture.nodes[node].after.begin(), capture.nodes[node].after.end());
  }
  return std::find(seen.begin(), seen.end(), 0) == seen.end();
}

TESSERA_DRIVER cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  TESSERA_STREAM(stream, handle);
  *graph = nullptr;
  std::shared_ptr<Capture> capture = stream->capture;
  if (!capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream)
    return sim().invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "cuStreamEndCapture of another stream");
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  std::vector<size_t> last = stream->last;
  for (Stream *captured : capture->streams) {
    captured->capture = nullptr;
    captured->last.clear();
  }
  std::erase(sim().captures, capture);
  capture->isOver = true;
  if (capture->isInvalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!isJoined(*capture, last)) {
    sim().report("cuStreamEndCapture: not all work of other streams comes before the end");
    return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  auto made = std::make_unique<Graph>();
  made->nodes = capture->nodes;
  sim().counts["graph nodes"] += made->nodes.size();
  *graph = reinterpret_cast<CUgraph>(made.get());
  sim().graphs[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuGraphDestroy(CUgraph graph) {
  Lock lock(sim().mutex);
  if (sim().graphs.erase(graph))
    return CUDA_SUCCESS;
  sim().report("cuGraphDestroy: the graph does not exist");
  return CUDA_ERROR_INVALID_VALUE;
}

TESSERA_DRIVER cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long flags) {
  Lock lock(sim().mutex);
  if (CUresult refused = sim().refuseInCapture("cuGraphInstantiate"); refused != CUDA_SUCCESS)
    return refused;
  auto found = sim().graphs.find(graph);
  if (found == sim().graphs.end() || (flags & ~uint64_t{CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY}) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<Graph>(*found->second);
  made->hasPriorities = flags != 0;
  auto isOther = [&](const GraphNode &node) { return node.priority != made->nodes.front().priority; };
  if (!made->hasPriorities && std::any_of(made->nodes.begin(), made->nodes.end(), isOther))
    sim().report("cuGraphInstantiate: streams of several priorities were captured, which do not count without "
                 "CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY");
  *executable = reinterpret_cast<CUgraphExec>(made.get());
  sim().executables[made.get()] = std::move(made);
  return CUDA_SUCCESS;
}

TESSERA_DRIVER cuGraphExecDestroy(CUgraphExec executable) {
  Lock lock(sim().mutex);
  if (sim().executables.erase(executable))
    return CUDA_SUCCESS;
  sim().report("cuGraphExecDestroy: the graph does not exist");
  return CUDA_ERROR_INVALID_VALUE;
}

TESSERA_DRIVER cuGraphLaunch(CUgraphExec executable, CUstream handle) {
  TESSERA_STREAM(stream, handle);
  auto found = sim().executables.find(executable);
  if (found == sim().executables.end())
    return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture)
    return sim().invalidate(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                            "cuGraphLaunch in a captured stream");
  sim().count("graph launches");
  return sim().submit(*stream, std::make_shared<GraphWork>(*found->second));
}
