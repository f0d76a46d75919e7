//===- Streams.h - events between streams -----------------------*- C++ -*-===//
//
// Emits the record and wait instructions that order streams, and as few of them as the order already established
// allows.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_STREAMS_H
#define TESSERA_PASSES_LOWER_STREAMS_H

#include "compiler/dialect/exec/Exec.h"

#include <array>

namespace tessera::lower {

class Streams {
public:
  /// Notes that an instruction was issued.
  void issue(int64_t stream) { ++issued[stream]; }
  /// What one stream knows of the others: how many of their instructions are over.
  using Clock = std::array<int64_t, exec::kNumStreams>;

  /// A point of a stream that another may wait for.
  struct Mark {
    int64_t stream = 0;
    int64_t position = 0;
    Clock known{};
    exec::RecordOp record;
  };
  /// Records an event after what `stream` has been given so far (an existing one if nothing came since).
  Mark mark(mlir::OpBuilder &builder, mlir::Location loc, int64_t stream);
  /// Makes `stream` wait for the mark, unless it is known to be past it.
  void wait(mlir::OpBuilder &builder, mlir::Location loc, int64_t stream, const Mark &mark);
  /// Makes `stream` wait for all that `other` has been given so far.
  void join(mlir::OpBuilder &builder, mlir::Location loc, int64_t stream, int64_t other);
  /// At both ends of a loop: what was known of one iteration does not hold for the next.
  void crossLoopBoundary();
  /// Removes records that nothing waits for and numbers the events from 0, in order.
  void finish(mlir::Block &code);

private:
  Clock issued{};
  std::array<Clock, exec::kNumStreams> known{};
  std::array<std::optional<Mark>, exec::kNumStreams> latest;
  int64_t nextEvent = 0;
};

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_STREAMS_H
