//===- Executor.cpp - walks the instruction list ---------------------------===//

#include "runtime/step/Executor.h"

#include "runtime/base/Guard.h"

#include <algorithm>
#include <string>

namespace tessera {

using artifact::Operation;

Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::create(Device &device, RankContext &context) {
  std::unique_ptr<Executor> made(new Executor(device, context));
  const Artifact &artifact = context.artifact;
  uint32_t number = 0;
  for (size_t program = 0; program < artifact.numPrograms(); ++program)
    TESSERA_RETURN_IF_ERROR(made->add(artifact.program(program), number));
  made->probes.resize(number);
  if (const auto *probes = artifact.training().probes())
    for (uint32_t probe = 0; probe < probes->size(); ++probe)
      made->probes[probes->Get(probe)->instruction()].push_back(probe);
  const auto *table = artifact.package().streams();
  for (int stream = 0; stream < static_cast<int>(table && table->size() > 0 ? table->size() : 1); ++stream) {
    TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<DeviceStream> created, device.createStream(stream));
    made->streams.push_back(std::move(created));
  }
  return made;
}

Status Executor::add(const artifact::Program &program, uint32_t &number) {
  Script script;
  for (uint32_t event = 0; event < program.num_events(); ++event) {
    TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> created, device.createEvent());
    script.events.push_back(std::move(created));
  }
  if (program.instructions()) {
    TESSERA_ASSIGN_OR_RETURN(script.items, build(*program.instructions(), script, number));
  }
  scripts.push_back(std::move(script));
  return Status::ok();
}

Result<std::vector<Executor::Item>> Executor::build(const Instructions &instructions, const Script &script,
                                                    uint32_t &number) {
  std::vector<Item> result;
  for (const artifact::Instruction *instruction : instructions) {
    Item item;
    item.stream = instruction->stream();
    item.number = number++;
    item.location = locationOf(context.artifact.package(), *instruction);
    switch (instruction->operation_type()) {
    case Operation::Record:
      item.record = script.events[instruction->operation_as_Record()->event()].get();
      break;
    case Operation::Wait:
      item.wait = script.events[instruction->operation_as_Wait()->event()].get();
      break;
    case Operation::Repeat: {
      const artifact::Repeat &repeat = *instruction->operation_as_Repeat();
      item.count = repeat.count();
      if (repeat.body()) {
        TESSERA_ASSIGN_OR_RETURN(item.body, build(*repeat.body(), script, number));
      }
      break;
    }
    default: {
      TESSERA_ASSIGN_OR_RETURN(item.command, makeCommand(*instruction, item));
    }
    }
    result.push_back(std::move(item));
  }
  return result;
}

Result<std::unique_ptr<Command>> Executor::makeCommand(const artifact::Instruction &instruction, const Item &item) {
  Result<std::unique_ptr<Command>> made = device.compile(instruction);
  if (!made.isOk())
    return item.location.empty() ? made.status() : made.status().withContext("node " + std::string(item.location));
  (*made)->stream = item.stream;
  (*made)->number = item.number;
  (*made)->location = item.location;
  return made;
}

Status Executor::step(size_t program, int64_t number, const StepOptions &options) {
  Script &script = scripts[program];
  context.step = number;
  bool isObserved = options.onGradient || (options.trace && options.trace->wantsInstructions());
  summarises = options.trace && !isObserved && !device.marksAreTimes();
  TESSERA_ASSIGN_OR_RETURN(StepMode mode, device.beginStep(program, isObserved));
  bool isRecorded = mode == StepMode::Issue && device.isRecording();
  Status status = Status::ok();
  if (mode == StepMode::Issue)
    status = runItems(script.items, {}, /*isLast=*/true, options);
  issuedAt = threadSeconds();
  Status ended = device.endStep(), synchronised = synchronise(); // the end's mark follows the last command at once
  for (const Status &each : {status, failure(), synchronised, ended})
    if (!each.isOk())
      return each;
  if (isRecorded)
    script.recorded = untold;
  else if (mode == StepMode::Replay && options.trace)
    untold = script.recorded;
  if (summarises) {
    TraceEvent whole;
    whole.rank = context.communicator.rank();
    whole.step = number;
    whole.kind = "step";
    whole.beginNanoseconds = device.stepBegin();
    whole.endNanoseconds = device.stepEnd();
    untold.push_back(whole);
  }
  for (TraceEvent &event : untold) {
    event.step = number;
    event.beginNanoseconds = device.timeOf(event.beginNanoseconds);
    event.endNanoseconds = device.timeOf(event.endNanoseconds);
    options.trace->record(event);
  }
  untold.clear();
  return Status::ok();
}

Status Executor::runItems(const std::vector<Item> &list, const Iteration &iteration, bool isLast,
                          const StepOptions &options) {
  for (const Item &item : list) {
    if (item.command || item.record || item.wait) {
      TESSERA_RETURN_IF_ERROR(issue(item, iteration, options));
    } else {
      for (int64_t index = 0; index < item.count; ++index)
        TESSERA_RETURN_IF_ERROR(
            runItems(item.body, iteration.inside(index), isLast && index + 1 == item.count, options));
    }
    if (options.onGradient && isLast && !probes[item.number].empty())
      TESSERA_RETURN_IF_ERROR(giveGradients(item, options));
  }
  return Status::ok();
}

Status Executor::giveGradients(const Item &item, const StepOptions &options) {
  TESSERA_RETURN_IF_ERROR(synchronise());
  TESSERA_RETURN_IF_ERROR(failure());
  for (size_t probe : probes[item.number]) {
    uint32_t buffer = context.artifact.training().probes()->Get(static_cast<uint32_t>(probe))->buffer();
    TensorView view = context.buffers.hostView(buffer);
    std::vector<std::byte> copy;
    if (!view.data) {
      copy.resize(view.bytes());
      TESSERA_RETURN_IF_ERROR(device.copyToHost(copy.data(), context.buffers.view(buffer).data, copy.size()));
      view.data = copy.data();
    }
    TESSERA_RETURN_IF_ERROR(options.onGradient(probe, view));
  }
  return Status::ok();
}

Status Executor::issue(const Item &item, const Iteration &iteration, const StepOptions &options) {
  TraceSink *trace = options.trace;
  DeviceStream &stream = *streams[item.stream];
  if (item.command) {
    if (stream.runsAtOnce())
      execute(*item.command, iteration, trace);
    else
      stream.issue(
          [this, &item, iteration = Iteration(iteration), trace] { execute(*item.command, iteration, trace); });
  } else if (item.record) {
    TESSERA_RETURN_IF_ERROR(stream.record(*item.record));
  } else {
    DeviceStream::WaitObserver observer;
    if (trace && (!summarises || item.stream == 0))
      observer = [this, &item, iteration = Iteration(iteration), trace](TimeMark begin, TimeMark end) {
        TraceEvent event = eventOf(item.stream, item.number, item.location, iteration);
        event.kind = "wait";
        event.beginNanoseconds = begin;
        event.endNanoseconds = end;
        tell(*trace, event);
      };
    TESSERA_RETURN_IF_ERROR(stream.wait(*item.wait, std::move(observer)));
  }
  return hasFailed.load(std::memory_order_acquire) ? failure() : Status::ok();
}

void Executor::execute(Command &command, const Iteration &iteration, TraceSink *trace) {
  if (hasFailed.load(std::memory_order_acquire))
    return;
  DeviceStream &stream = *streams[command.stream];
  if (summarises && !isCollective(command.kind))
    trace = nullptr;
  std::vector<TimeMark> times;
  Status status = guarded([&] {
    return trace ? command.runTimed(iteration, [&] { times.push_back(stream.mark()); }) : command.run(iteration);
  });
  if (times.size() == 2) {
    TraceEvent event = eventOf(command.stream, command.number, command.location, iteration);
    event.kind = command.kind;
    event.detail = command.detail;
    event.beginNanoseconds = times.front();
    event.endNanoseconds = times.back();
    event.bytes = command.bytes;
    tell(*trace, event);
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

TraceEvent Executor::eventOf(int stream, uint32_t number, std::string_view location, const Iteration &iteration) const {
  TraceEvent event;
  event.rank = context.communicator.rank();
  event.stream = stream;
  event.step = context.step;
  event.instruction = number;
  event.iteration = iteration.innermost();
  event.location = location;
  return event;
}

void Executor::tell(TraceSink &trace, TraceEvent event) {
  if (device.marksAreTimes())
    trace.record(event);
  else
    untold.push_back(event);
}

Status Executor::synchronise() {
  Status first = Status::ok();
  for (const std::unique_ptr<DeviceStream> &stream : streams)
    if (Status status = stream->synchronise(); first.isOk())
      first = status;
  return first;
}

Status Executor::failure() {
  std::lock_guard<std::mutex> lock(failureMutex);
  return firstFailure;
}

} // namespace tessera
