//===- Streams.cpp - events between streams -------------------------------===//
//
// See Streams.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Streams.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::lower;

Streams::Mark Streams::mark(OpBuilder &builder, Location loc, int64_t stream) {
  if (latest[stream] && latest[stream]->position == issued[stream])
    return *latest[stream];
  Mark result{stream, issued[stream], known[stream], exec::RecordOp::create(builder, loc, nextEvent++, stream)};
  latest[stream] = result;
  return result;
}

void Streams::wait(OpBuilder &builder, Location loc, int64_t stream, const Mark &mark) {
  if (stream == mark.stream || known[stream][mark.stream] >= mark.position)
    return;
  exec::WaitOp::create(builder, loc, exec::RecordOp(mark.record).getEvent(), stream);
  ++issued[stream]; // who waits for this stream from here on knows what it has just learnt
  known[stream][mark.stream] = mark.position;
  for (size_t other = 0; other < known.size(); ++other)
    if (int64_t(other) != stream)
      known[stream][other] = std::max(known[stream][other], mark.known[other]);
}

void Streams::join(OpBuilder &builder, Location loc, int64_t stream, int64_t other) {
  if (stream != other && known[stream][other] < issued[other])
    wait(builder, loc, stream, mark(builder, loc, other));
}

void Streams::crossLoopBoundary() {
  for (size_t stream = 0; stream < issued.size(); ++stream) {
    ++issued[stream];
    latest[stream].reset();
  }
}

void Streams::finish(Block &code) {
  llvm::DenseSet<int64_t> waited;
  code.walk([&](exec::WaitOp op) { waited.insert(op.getEvent()); });
  llvm::DenseMap<int64_t, int64_t> numbers;
  SmallVector<exec::RecordOp> unused;
  code.walk([&](exec::RecordOp op) {
    if (!waited.contains(op.getEvent()))
      unused.push_back(op);
    else
      numbers.try_emplace(op.getEvent(), numbers.size());
  });
  for (exec::RecordOp op : unused)
    op.erase();
  code.walk([&](Operation *op) {
    if (auto record = dyn_cast<exec::RecordOp>(op))
      record.setEvent(numbers.lookup(record.getEvent()));
    else if (auto wait = dyn_cast<exec::WaitOp>(op))
      wait.setEvent(numbers.lookup(wait.getEvent()));
  });
}
