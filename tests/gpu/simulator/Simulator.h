//===- Simulator.h - a GPU without a GPU: what the simulated libraries share -===//
//
// libcuda.so.1, libcublasLt.so.13, libcudnn.so.9 and libnccl.so.2 of this folder stand in for NVIDIA's, so that the
// unchanged tessera-run, libtessera-cuda.so and artifact run on a machine without a GPU:
//
//     LD_LIBRARY_PATH=build/release/gpu-simulator tessera-run model.tessera …
//
// Kernels run by a PTX interpreter. Work waits in its stream until something forces it or chance runs it early; chance
// also chooses between streams, blocks and warps. Whatever the driver would refuse is refused, and told on stderr as
// "simulator: …". Settings, all of the environment:
//
//     TESSERA_SIM_SEED=n          of chance (0)
//     TESSERA_SIM_DEVICES=n       GPUs (1). 0: cuInit finds none
//     TESSERA_SIM_LIBRARY=90      the GPU for which cuBLASLt has kernels of 8-bit floats
//     TESSERA_SIM_CAPABILITY=100  what they are; machine code is for other GPUs than this one, so that PTX is loaded
//     TESSERA_SIM_DRIVER=13000    the version of the driver
//     TESSERA_SIM_MEMORY=bytes    of each GPU (4 GiB)
//     TESSERA_SIM_QUEUE=n         how much work waits in a stream before a launch blocks (any amount)
//     TESSERA_SIM_RACES=1         finds races in shared memory (slower)
//     TESSERA_SIM_REPORT=file     JSON at exit: counts of what ran, "errors", and "leaks" of handles and memory
//     TESSERA_SIM_FAIL=what,…     failures: "launch:n" the n-th kernel of the process that runs fails (from 1),
//                                 "alloc:n" the n-th allocation of GPU memory finds none, "nccl-init" communicators
//                                 cannot be made, "nccl-hang" nor come to an end, "nccl:n" the n-th collective of the
//                                 process ends with an asynchronous error, "nccl-lost:n" one rank's part of the n-th
//                                 collective never begins (a lost rank), "nccl-capture" communicators that do not
//                                 block are not captured, "nccl-engines" nor those that use copy engines,
//                                 "nccl-no-capture" nor any, "exit:n" the process ends within the n-th kernel,
//                                 "cudnn" supports no graph, "epilogue" cuBLASLt has no algorithm for products with
//                                 epilogues, "algorithm" nor runs its second proposals, "slow-epilogue" such products
//                                 take 0.1 s. More: NcclMemory.cpp
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TESTS_GPU_SIMULATOR_SIMULATOR_H
#define TESSERA_TESTS_GPU_SIMULATOR_SIMULATOR_H

#include "Ptx.h"

#include <cuda.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#define TESSERA_SIM_API __attribute__((visibility("default")))

namespace tessera::sim {

enum class Outcome {
  Blocked,    ///< waits for other work
  Progressed, ///< there is more of it
  Done
};

struct Gpu;

/// Something in a stream or a graph. Its state while it runs is apart, since graphs run it again and again.
class Work {
public:
  virtual ~Work() = default;
  /// May be asked again and again until it is done; `state` is empty at first. Throws KernelFault.
  virtual Outcome run(Gpu &gpu, std::shared_ptr<void> &state) = 0;
};

/// Work that runs as a whole.
class SimpleWork : public Work {
public:
  explicit SimpleWork(std::function<void(Gpu &)> body) : body(std::move(body)) {}
  Outcome run(Gpu &gpu, std::shared_ptr<void> &) override {
    body(gpu);
    return Outcome::Done;
  }

private:
  std::function<void(Gpu &)> body;
};

/// That something in a stream has been reached.
struct Ticket {
  bool isDone = false;
  std::chrono::steady_clock::time_point time;
};

struct Capture;

struct GraphNode {
  std::shared_ptr<Work> work; ///< null: order only
  std::vector<size_t> after;
  int priority = 0; ///< of the stream that was captured; lower is more urgent
};

struct Queued {
  std::shared_ptr<Work> work;
  std::shared_ptr<void> state;
};

struct Stream {
  Gpu *gpu = nullptr;
  std::deque<Queued> queue;
  int priority = 0;
  bool isDestroyed = false;
  std::shared_ptr<Capture> capture;
  std::vector<size_t> last; ///< nodes of the capture that come before the next one
};

struct Event {
  Gpu *gpu = nullptr;
  bool hasTiming = true;
  std::shared_ptr<Ticket> ticket;   ///< of the last record; null: none
  std::shared_ptr<Capture> capture; ///< of the last record, if it was captured
  std::vector<size_t> last;
};

struct Capture {
  Stream *origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  bool isInvalid = false, isOver = false;
  std::vector<GraphNode> nodes;
  std::set<Stream *> streams;
};

struct Graph {
  std::vector<GraphNode> nodes;
  bool hasPriorities = false; ///< made so that those of its nodes count
};

struct Loaded {
  Module module;
  std::map<Gpu *, std::vector<uint64_t>> variables; ///< their addresses
};

struct Function {
  Gpu *gpu = nullptr;
  std::shared_ptr<Loaded> library;
  const Kernel *kernel = nullptr;
  uint32_t mostDynamicShared = 48 << 10;
};

struct KernelHandle {
  std::shared_ptr<Loaded> library;
  const Kernel *kernel = nullptr;
  std::map<Gpu *, std::unique_ptr<Function>> functions;
};

struct Allocation {
  uint64_t bytes = 0;
  int64_t shift = 0;
  bool isVisible = true; ///< is of the plan, not of a module
};

/// A GPU, which is also its primary context.
struct TESSERA_SIM_API Gpu : AddressSpace {
  Gpu(int number, uint64_t bytes);
  Window find(uint64_t address) const override;
  /// Where [address, +bytes) lies in this process; throws KernelFault where it is not memory that the GPU may touch.
  std::byte *resolve(uint64_t address, uint64_t bytes, const char *what) const;
  uint64_t allocate(uint64_t bytes, bool isVisible);
  bool release(uint64_t address);

  int number;
  uint64_t bytes, used = 0;
  int retained = 0;
  CUresult error = CUDA_SUCCESS; ///< sticks
  Stream *defaultStream = nullptr;
  std::map<uint64_t, Allocation> memory;
  uint64_t base = 0, nextFree = 0;
  int64_t shift = 0; ///< from a device address to this process's
};

struct TESSERA_SIM_API Simulator {
  static Simulator &get();

  /// Has the work done in the order of the stream; captures it if the stream is captured.
  CUresult submit(Stream &stream, std::shared_ptr<Work> work);
  CUresult submit(Stream &stream, std::function<void(Gpu &)> body) {
    return submit(stream, std::make_shared<SimpleWork>(std::move(body)));
  }
  /// Lets chance run one piece of work somewhere; false if none can run.
  bool step();
  /// Runs work until the stream is empty, or nothing can run.
  bool drain(Stream &stream);
  /// The stream of a handle, of null the GPU's default one. Null where it is not a live stream, after saying so.
  Stream *stream(void *handle, const char *call);
  Gpu *current();
  /// Of the thread: what is forbidden while it captures. Ends the capture if it is one.
  CUresult refuseInCapture(const char *call);
  /// Ends a capture by an error of the call in it.
  CUresult invalidate(Capture &capture, CUresult error, const std::string &what);
  /// Something that the real libraries would refuse, crash on or never notice.
  void report(const std::string &what);
  bool chance(int percent) { return static_cast<int>(random() % 100) < percent; }
  void count(const std::string &name) { ++counts[name]; }
  /// The n of "what:n" in TESSERA_SIM_FAIL; 0: not asked for. Without a number: 1.
  uint64_t failureAt(const std::string &what) const;

  std::recursive_mutex mutex;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<Gpu>> gpus;
  std::map<uint64_t, uint64_t> pinned; ///< bytes by address
  std::map<void *, std::unique_ptr<Stream>> streams;
  std::map<void *, std::unique_ptr<Event>> events;
  std::map<void *, std::unique_ptr<Graph>> graphs, executables;
  std::map<void *, std::shared_ptr<Loaded>> libraries;
  std::map<void *, std::unique_ptr<KernelHandle>> kernels;
  std::set<void *> functions;
  std::vector<std::shared_ptr<Capture>> captures;
  std::map<std::string, int64_t> handles; ///< of the other libraries, alive
  std::map<std::string, uint64_t> counts;
  std::map<std::string, std::string> failures;
  int capability = 100, driver = 13000, devices = 1;
  int libraryCapability = 90; ///< of the GPU that cuBLASLt sees: machine code aside, what it is is not seen elsewhere
  size_t longestQueue = 0;    ///< 0: any
  bool isInitialised = false, findsRaces = false;

  void writeReport();

private:
  Simulator();
  ~Simulator();
  std::vector<std::string> errors;
  std::string reportPath;
};

inline Simulator &sim() { return Simulator::get(); }

/// Of streams.
inline constexpr int leastPriority = 0, greatestPriority = -5;

using Lock = std::lock_guard<std::recursive_mutex>;

/// Runs a graph's nodes in an order that chance and their dependencies choose. Where priorities count, the most urgent
/// nodes that are ready mostly come first, but not always, as a GPU that is full finishes what it has begun.
class GraphWork : public Work {
public:
  explicit GraphWork(const Graph &graph) : nodes(graph.nodes), hasPriorities(graph.hasPriorities) {}
  Outcome run(Gpu &gpu, std::shared_ptr<void> &state) override;

private:
  const std::vector<GraphNode> nodes;
  const bool hasPriorities;
};

} // namespace tessera::sim

#endif // TESSERA_TESTS_GPU_SIMULATOR_SIMULATOR_H
