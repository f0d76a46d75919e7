//===- MemorySnapshot.h - memory over the time of a step -------------------===//
//
// The plan says which slots are live at each instruction; the events of one step say when each instruction began.
// Together they are the curve of allocated bytes, by class, under the line of reserved bytes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TELEMETRY_MEMORYSNAPSHOT_H
#define TESSERA_RUNTIME_TELEMETRY_MEMORYSNAPSHOT_H

#include "runtime/base/Status.h"
#include "runtime/step/Trace.h"
#include "runtime/telemetry/MemoryPlan.h"

#include <map>
#include <mutex>
#include <string>

namespace tessera {

class MemorySnapshot : public TraceSink {
public:
  /// Listens to one rank.
  explicit MemorySnapshot(int rank) : rank(rank) {}

  void record(const TraceEvent &event) override;
  /// Writes what was recorded, as JSON (docs/telemetry.md); tools/plot-memory.py draws it.
  Status write(const std::string &path, const artifact::Package &package, uint64_t reservedBytes) const;

private:
  int rank;
  mutable std::mutex mutex;
  int64_t step = 0;
  std::map<uint32_t, int64_t> begins; ///< nanoseconds, by instruction; of the first iteration in a loop
  int64_t end = 0;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_TELEMETRY_MEMORYSNAPSHOT_H
