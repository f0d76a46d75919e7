//===- Loader.h - batches in order, one ahead -------------------------------------===//
//
// Reads the part of each batch that the ranks of the process need, in a deterministic order that depends only on the
// seed, the epoch and the number of samples. The next batch is read on a thread while the step computes; `waitSeconds`
// says how long the step had to wait for it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DATA_LOADER_H
#define TESSERA_RUNTIME_DATA_LOADER_H

#include "runtime/data/Samples.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace tessera {

struct LoaderOptions {
  uint64_t seed = 0;
  uint64_t position = 0; ///< Global index of the first sample.
  bool shuffle = true;   ///< A new order in each epoch; else the order of the files.
  bool prefetch = true;
  bool mayRepeat = false; ///< A batch may hold a sample more than once, where there are fewer samples than it has rows.
  BatchPart part = {};    ///< What this process needs.
};

/// Zeros until they are written. Of large memory the pages that nobody writes are never touched, so that a process
/// holds as much of a batch as it reads.
template <typename T> struct ZeroedAllocator {
  using value_type = T;
  T *allocate(size_t count) {
    if (void *memory = std::calloc(count, sizeof(T)))
      return static_cast<T *>(memory);
    throw std::bad_alloc();
  }
  void deallocate(T *memory, size_t) { std::free(memory); }
  void construct(T *) {} // as calloc left it: for vectors that do not grow
  template <typename... Values> void construct(T *place, Values &&...values) {
    ::new (static_cast<void *>(place)) T(std::forward<Values>(values)...);
  }
  bool operator==(const ZeroedAllocator &) const = default;
};
using HostBytes = std::vector<uint8_t, ZeroedAllocator<uint8_t>>;

struct HostBatch {
  uint64_t position = 0;          ///< Global index of its first sample.
  std::vector<HostBytes> tensors; ///< The rows of all batch tensors, one per spec.
};

class Loader {
public:
  /// Data with fewer samples than a batch needs are an error, unless it may repeat them; without any always.
  static Result<std::unique_ptr<Loader>> create(std::unique_ptr<SampleSource> source, std::vector<BatchSpec> specs,
                                                const LoaderOptions &options = {});
  ~Loader();
  Loader(const Loader &) = delete;
  Loader &operator=(const Loader &) = delete;

  /// The next batch. One caller at a time; after an error every call gives it again.
  Result<std::shared_ptr<const HostBatch>> next();
  /// The batch that begins at a global position, of a loader that does not prefetch; `next` stays where it is.
  Result<std::shared_ptr<const HostBatch>> readAt(uint64_t position);
  /// How long the last `next` waited.
  double waitSeconds() const { return lastWait; }
  uint64_t samples() const { return source->samples(); }
  const std::vector<BatchSpec> &specs() const { return batchSpecs; }
  /// The sample of the data that is at a global position.
  uint64_t sampleAt(uint64_t position) const { return order.sampleAt(position); }

private:
  Loader(std::unique_ptr<SampleSource> source, std::vector<BatchSpec> specs, const LoaderOptions &options);

  void run();

  std::unique_ptr<SampleSource> source;
  std::vector<BatchSpec> batchSpecs;
  int64_t rowsPerBatch;
  LoaderOptions options;
  std::vector<ElementRanges> wanted; ///< Of each batch tensor.
  SampleOrder order;
  uint64_t given;
  double lastWait = 0;

  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  std::unique_ptr<Result<std::shared_ptr<const HostBatch>>> ready;
  std::thread thread;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_LOADER_H
