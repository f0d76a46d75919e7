//===- GemmTuner.cpp - the fastest of the ways to do a product ---------------===//

#include "runtime/device/cuda/GemmTuner.h"

#include "runtime/base/Log.h"

#include <cublasLt.h>

#include <algorithm>
#include <limits>

namespace tessera::cuda {

/// After one run that loads what the library needs; the fastest counts.
static constexpr int repetitions = 3;

Result<std::unique_ptr<GemmTuner>> GemmTuner::open(const std::string &path, const std::string &gpu,
                                                   Communicator &ranks) {
  std::unique_ptr<GemmTuner> made(new GemmTuner(ranks));
  if (ranks.rank() != 0)
    return made; // it takes what rank 0 chooses
  made->path = path;
  if (path.empty()) {
    TESSERA_ASSIGN_OR_RETURN(made->path, defaultGemmCache());
  }
  int driver = 0;
  TESSERA_CU(cuDriverGetVersion(&driver));
  made->gpu = gpu + ", driver " + std::to_string(driver) + ", cuBLASLt " + std::to_string(cublasLtGetVersion());
  if (Result<GemmCache> known = GemmCache::read(made->path); known.isOk())
    made->cache = std::move(*known);
  else
    log::warn("{}; products are timed again and the file is replaced", known.status().message());
  TESSERA_CU(cuStreamCreate(&made->stream, CU_STREAM_NON_BLOCKING));
  TESSERA_CU(cuEventCreate(&made->begin, CU_EVENT_DEFAULT));
  TESSERA_CU(cuEventCreate(&made->end, CU_EVENT_DEFAULT));
  return made;
}

GemmTuner::~GemmTuner() {
  if (begin)
    cuEventDestroy(begin);
  if (end)
    cuEventDestroy(end);
  if (stream)
    cuStreamDestroy(stream);
}

Result<size_t> GemmTuner::choose(const std::string &product, std::span<const Candidate> candidates, const Run &run) {
  std::string message;
  if (ranks.rank() == 0) {
    TESSERA_ASSIGN_OR_RETURN(std::string chosen, find(product, candidates, run));
    message = product + '\n' + chosen;
  }
  TESSERA_RETURN_IF_ERROR(ranks.broadcast(message, 0, "choice of an algorithm"));
  // A rank to which another product is next, as its library has no epilogue that rank 0's has, takes no answer to it.
  for (size_t index = 0; index < candidates.size(); ++index)
    if (product + '\n' + candidates[index].choice == message)
      return index;
  return TESSERA_ERROR(InvalidArgument, "rank " + std::to_string(ranks.rank()) +
                                            " is not offered the algorithm that rank 0 chose for " + product +
                                            ": --autotune needs the same GPUs and libraries on all ranks");
}

Result<std::string> GemmTuner::find(const std::string &product, std::span<const Candidate> candidates, const Run &run) {
  std::string known = cache.find(gpu, product);
  if (std::any_of(candidates.begin(), candidates.end(),
                  [&](const Candidate &candidate) { return candidate.choice == known; }))
    return known;
  size_t best = candidates.size();
  float shortest = std::numeric_limits<float>::infinity(), first = shortest;
  Status lastFailure = Status::ok();
  for (size_t index = 0; index < candidates.size(); ++index) {
    Result<float> time = milliseconds(index, run);
    if (time.status().code() == StatusCode::Exhausted) {
      log::warn("autotune: {}: {} is taken, as there is no memory to time others: {}", product,
                candidates.front().title, time.status().message());
      return candidates.front().choice;
    }
    if (!time.isOk()) { // the library proposes what it then does not run
      lastFailure = time.status();
      log::warn("autotune: {}: {} is left out: {}", product, candidates[index].title, lastFailure.message());
      continue;
    }
    if (index == 0)
      first = *time;
    if (*time < shortest) {
      shortest = *time;
      best = index;
    }
  }
  if (best == candidates.size())
    return lastFailure;
  log::info("autotune: {}: {}, {:.4f} ms; {}, {:.4f} ms", product, candidates[best].title, shortest,
            candidates.front().title, first);
  cache.put(gpu, product, candidates[best].choice);
  if (Status status = cache.write(path); !status.isOk() && !hasFailedToWrite) {
    log::warn("cannot save the choice of algorithms: {}", status.message());
    hasFailedToWrite = true;
  }
  return candidates[best].choice;
}

Result<float> GemmTuner::milliseconds(size_t candidate, const Run &run) {
  TESSERA_RETURN_IF_ERROR(run(candidate, stream));
  float shortest = std::numeric_limits<float>::infinity();
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    TESSERA_CU(cuEventRecord(begin, stream));
    TESSERA_RETURN_IF_ERROR(run(candidate, stream));
    TESSERA_CU(cuEventRecord(end, stream));
    TESSERA_CU(cuStreamSynchronize(stream));
    float time = 0;
    TESSERA_CU(cuEventElapsedTime(&time, begin, end));
    shortest = std::min(shortest, time);
  }
  return shortest;
}

} // namespace tessera::cuda
