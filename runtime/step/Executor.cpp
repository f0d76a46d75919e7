//===- Executor.cpp - walks the instruction list ---------------------------===//

#include "runtime/step/Executor.h"

#include <algorithm>
#include <string>

namespace tessera {

using artifact::Operation;

Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::create(CommandContext &context) {
  std::unique_ptr<Executor> made(new Executor(context));
  const artifact::Program &program = context.artifact.program();
  for (uint32_t event = 0; event < program.num_events(); ++event)
    made->events.push_back(std::make_unique<Event>());
  uint32_t number = 0;
  if (program.instructions()) {
    TESSERA_ASSIGN_OR_RETURN(made->items, made->build(*program.instructions(), number));
  }
  made->probes.resize(number);
  if (const auto *probes = program.probes())
    for (uint32_t probe = 0; probe < probes->size(); ++probe)
      made->probes[probes->Get(probe)->instruction()].push_back(probe);
  if (context.artifact.numRanks() > 1) {
    made->streams.resize(std::max(program.num_streams(), 1u));
    for (size_t stream = 1; stream < made->streams.size(); ++stream)
      made->streams[stream] = std::make_unique<Stream>();
  }
  return made;
}

Result<std::vector<Executor::Item>>
Executor::build(const flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>> &instructions, uint32_t &number) {
  std::vector<Item> result;
  const auto *locations = context.artifact.program().locations();
  for (const artifact::Instruction *instruction : instructions) {
    Item item;
    item.stream = instruction->stream();
    item.number = number++;
    if (locations && instruction->location() < locations->size())
      item.location = locations->Get(instruction->location())->string_view();
    switch (instruction->operation_type()) {
    case Operation::Record:
      item.record = events[instruction->operation_as_Record()->event()].get();
      break;
    case Operation::Wait:
      item.wait = events[instruction->operation_as_Wait()->event()].get();
      break;
    case Operation::Repeat: {
      const artifact::Repeat &repeat = *instruction->operation_as_Repeat();
      item.count = repeat.count();
      if (repeat.body()) {
        TESSERA_ASSIGN_OR_RETURN(item.body, build(*repeat.body(), number));
      }
      break;
    }
    default: {
      TESSERA_ASSIGN_OR_RETURN(item.command, makeCommand(*instruction, context));
      item.command->number = item.number;
    }
    }
    result.push_back(std::move(item));
  }
  return result;
}

Status Executor::step(int64_t number, const StepOptions &options) {
  context.step = number;
  Status status = runItems(items, 0, /*isLast=*/true, options);
  drain();
  return status.isOk() ? failure() : status;
}

Status Executor::runItems(const std::vector<Item> &list, int64_t iteration, bool isLast, const StepOptions &options) {
  for (const Item &item : list) {
    if (item.command || item.record || item.wait) {
      TESSERA_RETURN_IF_ERROR(issue(item, iteration, options));
    } else {
      for (int64_t index = 0; index < item.count; ++index)
        TESSERA_RETURN_IF_ERROR(runItems(item.body, index, index + 1 == item.count, options));
    }
    if (options.onGradient && isLast && !probes[item.number].empty()) {
      drain();
      TESSERA_RETURN_IF_ERROR(failure());
      for (size_t probe : probes[item.number])
        options.onGradient(probe, context.buffers.view(context.artifact.program().probes()->Get(probe)->buffer()));
    }
  }
  return Status::ok();
}

Status Executor::issue(const Item &item, int64_t iteration, const StepOptions &options) {
  TraceSink *trace = options.trace;
  Stream *stream = streams.empty() ? nullptr : streams[item.stream].get();
  if (item.command) {
    if (stream) {
      stream->push([this, &item, iteration, trace] { execute(*item.command, iteration, trace); });
      return Status::ok();
    }
    execute(*item.command, iteration, trace);
  } else if (streams.empty()) {
    return Status::ok(); // inline execution in program order keeps every order that events ask for
  } else if (item.record) {
    uint64_t record = item.record->issueRecord();
    if (stream)
      stream->push([event = item.record, record] { event->complete(record); });
    else
      item.record->complete(record);
  } else if (uint64_t record = item.wait->lastIssued(); record > 0) {
    auto wait = [this, &item, record, iteration, trace] {
      int64_t begin = trace ? traceClock() : 0;
      item.wait->wait(record);
      traceWait(item, iteration, begin, trace);
    };
    if (stream)
      stream->push(wait);
    else
      wait();
  }
  return hasFailed.load(std::memory_order_acquire) ? failure() : Status::ok();
}

void Executor::execute(Command &command, int64_t iteration, TraceSink *trace) {
  if (hasFailed.load(std::memory_order_acquire))
    return;
  int64_t begin = trace ? traceClock() : 0;
  Status status = command.run(iteration);
  if (trace) {
    TraceEvent event;
    event.rank = context.communicator.rank();
    event.stream = command.stream;
    event.step = context.step;
    event.instruction = command.number;
    event.iteration = iteration;
    event.kind = command.kind;
    event.detail = command.detail;
    event.location = command.location;
    event.beginNanoseconds = begin;
    event.endNanoseconds = traceClock();
    event.bytes = command.bytes;
    trace->record(event);
  }
  if (status.isOk())
    return;
  std::lock_guard<std::mutex> lock(failureMutex);
  if (!firstFailure.isOk())
    return;
  // What another rank began is told in its own words; what began here gets its place.
  firstFailure = status.code() == StatusCode::Aborted
                     ? status
                     : status.withContext("step " + std::to_string(context.step) + ", " + std::string(command.kind) +
                                          " of node '" + std::string(command.location) + "'");
  hasFailed.store(true, std::memory_order_release);
}

void Executor::traceWait(const Item &item, int64_t iteration, int64_t begin, TraceSink *trace) const {
  if (!trace)
    return;
  TraceEvent event;
  event.rank = context.communicator.rank();
  event.stream = item.stream;
  event.step = context.step;
  event.instruction = item.number;
  event.iteration = iteration;
  event.kind = "wait";
  event.location = item.location;
  event.beginNanoseconds = begin;
  event.endNanoseconds = traceClock();
  trace->record(event);
}

void Executor::drain() {
  for (const std::unique_ptr<Stream> &stream : streams)
    if (stream)
      stream->drain();
}

Status Executor::failure() {
  std::lock_guard<std::mutex> lock(failureMutex);
  return firstFailure;
}

} // namespace tessera
