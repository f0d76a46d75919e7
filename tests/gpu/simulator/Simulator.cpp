//===- Simulator.cpp - memory, streams and chance of the simulated GPUs ------===//

#include "Simulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>

namespace tessera::sim {

static uint64_t setting(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

Simulator &Simulator::get() {
  static Simulator simulator;
  return simulator;
}

Simulator::Simulator() {
  random.seed(setting("TESSERA_SIM_SEED", 0));
  devices = static_cast<int>(setting("TESSERA_SIM_DEVICES", 1));
  capability = static_cast<int>(setting("TESSERA_SIM_CAPABILITY", 100));
  libraryCapability = static_cast<int>(setting("TESSERA_SIM_LIBRARY", 90));
  driver = static_cast<int>(setting("TESSERA_SIM_DRIVER", 13000));
  longestQueue = setting("TESSERA_SIM_QUEUE", 0);
  findsRaces = setting("TESSERA_SIM_RACES", 0) != 0;
  if (const char *path = std::getenv("TESSERA_SIM_REPORT"))
    reportPath = path;
  std::string wanted = std::getenv("TESSERA_SIM_FAIL") ? std::getenv("TESSERA_SIM_FAIL") : "";
  for (size_t begin = 0; begin < wanted.size();) {
    size_t end = std::min(wanted.find(',', begin), wanted.size());
    std::string one = wanted.substr(begin, end - begin);
    size_t colon = one.find(':');
    failures[one.substr(0, colon)] = colon == std::string::npos ? "1" : one.substr(colon + 1);
    begin = end + 1;
  }
  for (int number = 0; number < devices; ++number)
    gpus.push_back(std::make_unique<Gpu>(number, setting("TESSERA_SIM_MEMORY", uint64_t{4} << 30)));
}

Simulator::~Simulator() {
  if (isInitialised)
    writeReport(); // again, with what was left after the last context
}

uint64_t Simulator::failureAt(const std::string &what) const {
  auto found = failures.find(what);
  return found == failures.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
}

void Simulator::report(const std::string &what) {
  errors.push_back(what);
  std::fprintf(stderr, "simulator: %s\n", what.c_str());
}

static std::string quoted(const std::string &text) {
  std::string made = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      made += '\\';
    made += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return made + "\"";
}

void Simulator::writeReport() {
  std::map<std::string, int64_t> leaks = handles;
  leaks["streams"] = std::count_if(streams.begin(), streams.end(), [](auto &s) {
    return !s.second->isDestroyed && s.first != s.second->gpu->defaultStream;
  });
  leaks["events"] = static_cast<int64_t>(events.size());
  leaks["graphs"] = static_cast<int64_t>(graphs.size() + executables.size());
  leaks["libraries"] = static_cast<int64_t>(libraries.size());
  leaks["pinned memory"] = static_cast<int64_t>(pinned.size());
  for (auto &gpu : gpus) {
    leaks["contexts"] += gpu->retained;
    leaks["GPU memory"] +=
        std::count_if(gpu->memory.begin(), gpu->memory.end(), [](auto &a) { return a.second.isVisible; });
  }
  std::string text = "{\"counts\": {";
  const char *comma = "";
  for (auto &[name, number] : counts)
    text += comma + quoted(name) + ": " + std::to_string(number), comma = ", ";
  text += "},\n\"leaks\": {";
  comma = "";
  for (auto &[name, number] : leaks)
    if (number != 0)
      text += comma + quoted(name) + ": " + std::to_string(number), comma = ", ";
  text += "},\n\"errors\": [";
  comma = "";
  for (const std::string &error : errors)
    text += comma + quoted(error), comma = ",\n";
  text += "]}\n";
  if (!reportPath.empty())
    std::ofstream(reportPath) << text;
}

// --- Memory -----------------------------------------------------------------------

static constexpr uint64_t addressesPerGpu = uint64_t{1} << 38, granule = 512;

/// What the GPU calls an address is reserved and cannot be touched by the host; the bytes are elsewhere.
Gpu::Gpu(int number, uint64_t bytes) : number(number), bytes(bytes) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *reserved = ::mmap(nullptr, addressesPerGpu, PROT_NONE, flags, -1, 0);
  void *backing = ::mmap(nullptr, addressesPerGpu, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (reserved == MAP_FAILED || backing == MAP_FAILED) {
    std::fprintf(stderr, "simulator: no address space for a GPU\n");
    std::abort();
  }
  base = nextFree = reinterpret_cast<uint64_t>(reserved);
  shift = reinterpret_cast<int64_t>(backing) - reinterpret_cast<int64_t>(reserved);
}

/// Addresses are not used again, so that use after free is found. What is new is NaN.
uint64_t Gpu::allocate(uint64_t size, bool isVisible) {
  uint64_t rounded = (size + granule - 1) / granule * granule;
  if (isVisible && used + rounded > bytes)
    return 0;
  uint64_t address = nextFree;
  nextFree += rounded + granule;
  if (nextFree > base + addressesPerGpu)
    return 0;
  used += isVisible ? rounded : 0;
  memory[address] = {size, shift, isVisible};
  std::memset(reinterpret_cast<void *>(address + static_cast<uint64_t>(shift)), 0xff, size);
  return address;
}

bool Gpu::release(uint64_t address) {
  auto found = memory.find(address);
  if (found == memory.end())
    return false;
  uint64_t rounded = (found->second.bytes + granule - 1) / granule * granule;
  used -= found->second.isVisible ? rounded : 0;
  uint64_t begin = (address + 4095) / 4096 * 4096, end = (address + rounded) / 4096 * 4096;
  if (end > begin)
    ::madvise(reinterpret_cast<void *>(begin + static_cast<uint64_t>(shift)), end - begin, MADV_DONTNEED);
  memory.erase(found);
  return true;
}

Window Gpu::find(uint64_t address) const {
  auto after = memory.upper_bound(address);
  if (after != memory.begin()) {
    auto &[begin, allocation] = *std::prev(after);
    if (address < begin + allocation.bytes)
      return {begin, begin + allocation.bytes, allocation.shift};
  }
  const auto &pinned = Simulator::get().pinned;
  auto host = pinned.upper_bound(address);
  if (host != pinned.begin()) {
    auto [begin, size] = *std::prev(host);
    if (address < begin + size)
      return {begin, begin + size, 0};
  }
  return {};
}

std::byte *Gpu::resolve(uint64_t address, uint64_t size, const char *what) const {
  Window window = find(address);
  if (address < window.begin || address + size > window.end) {
    char text[160];
    std::snprintf(text, sizeof(text), "%s: %llu bytes at 0x%llx are not memory of GPU %d", what,
                  static_cast<unsigned long long>(size), static_cast<unsigned long long>(address), number);
    throw KernelFault(CUDA_ERROR_ILLEGAL_ADDRESS, text);
  }
  return reinterpret_cast<std::byte *>(address + static_cast<uint64_t>(window.shift));
}

// --- Streams ----------------------------------------------------------------------

bool Simulator::step() {
  std::vector<Stream *> ready;
  for (auto &[handle, stream] : streams)
    if (!stream->queue.empty())
      ready.push_back(stream.get());
  std::shuffle(ready.begin(), ready.end(), random);
  for (Stream *stream : ready) {
    Gpu &gpu = *stream->gpu;
    // After an error nothing runs any more.
    Outcome outcome = Outcome::Done;
    Queued &head = stream->queue.front();
    if (gpu.error == CUDA_SUCCESS) {
      try {
        outcome = head.work->run(gpu, head.state);
      } catch (const KernelFault &fault) {
        report(fault.what());
        gpu.error = static_cast<CUresult>(fault.code);
      }
    }
    if (outcome == Outcome::Done)
      stream->queue.pop_front();
    if (outcome != Outcome::Blocked) {
      if (stream->queue.empty() && stream->isDestroyed)
        streams.erase(stream);
      return true;
    }
  }
  return false;
}

bool Simulator::drain(Stream &stream) {
  while (!stream.queue.empty())
    if (!step())
      return false;
  return true;
}

CUresult Simulator::submit(Stream &stream, std::shared_ptr<Work> work) {
  if (stream.capture) {
    Capture &capture = *stream.capture;
    if (capture.isInvalid)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    capture.nodes.push_back({std::move(work), stream.last, stream.priority});
    stream.last = {capture.nodes.size() - 1};
    return CUDA_SUCCESS;
  }
  if (stream.gpu->error != CUDA_SUCCESS)
    return stream.gpu->error;
  stream.queue.push_back({std::move(work), nullptr});
  // A GPU may be as fast as what is issued, or far behind.
  while (chance(25) && step())
    continue;
  return CUDA_SUCCESS;
}

CUresult Simulator::refuseInCapture(const char *call) {
  for (auto &capture : captures)
    if (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
        (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && capture->thread == std::this_thread::get_id())) {
      capture->isInvalid = true;
      report(std::string(call) + " is not allowed while a stream is captured");
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  return CUDA_SUCCESS;
}

CUresult Simulator::invalidate(Capture &capture, CUresult error, const std::string &what) {
  capture.isInvalid = true;
  report(what);
  return error;
}

Stream *Simulator::stream(void *handle, const char *call) {
  Gpu *gpu = current();
  if (!handle && gpu) {
    if (!gpu->defaultStream) {
      auto made = std::make_unique<Stream>();
      made->gpu = gpu;
      gpu->defaultStream = made.get();
      streams[made.get()] = std::move(made);
    }
    return gpu->defaultStream;
  }
  auto found = streams.find(handle);
  if (found != streams.end() && !found->second->isDestroyed)
    return found->second.get();
  report(std::string(call) + ": the stream does not exist");
  return nullptr;
}

namespace {
struct GraphState {
  std::vector<size_t> open;              ///< how many nodes a node still waits for
  std::vector<std::vector<size_t>> next; ///< which nodes wait for a node
  std::vector<std::pair<size_t, std::shared_ptr<void>>> ready;
};
} // namespace

Outcome GraphWork::run(Gpu &gpu, std::shared_ptr<void> &state) {
  auto running = std::static_pointer_cast<GraphState>(state);
  if (!running) {
    state = running = std::make_shared<GraphState>();
    running->open.resize(nodes.size());
    running->next.resize(nodes.size());
    for (size_t node = 0; node < nodes.size(); ++node) {
      running->open[node] = nodes[node].after.size();
      for (size_t before : nodes[node].after)
        running->next[before].push_back(node);
      if (nodes[node].after.empty())
        running->ready.emplace_back(node, nullptr);
    }
  }
  Simulator &simulator = Simulator::get();
  std::shuffle(running->ready.begin(), running->ready.end(), simulator.random);
  if (hasPriorities && simulator.chance(75))
    std::stable_sort(running->ready.begin(), running->ready.end(),
                     [&](const auto &a, const auto &b) { return nodes[a.first].priority < nodes[b.first].priority; });
  for (size_t index = 0; index < running->ready.size(); ++index) {
    auto &[node, nodeState] = running->ready[index];
    Outcome outcome = nodes[node].work ? nodes[node].work->run(gpu, nodeState) : Outcome::Done;
    if (outcome == Outcome::Blocked)
      continue;
    if (outcome == Outcome::Done) {
      size_t done = node;
      running->ready.erase(running->ready.begin() + static_cast<ptrdiff_t>(index));
      for (size_t after : running->next[done])
        if (--running->open[after] == 0)
          running->ready.emplace_back(after, nullptr);
    }
    return running->ready.empty() ? Outcome::Done : Outcome::Progressed;
  }
  return running->ready.empty() ? Outcome::Done : Outcome::Blocked;
}

} // namespace tessera::sim
