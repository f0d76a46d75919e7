//===- NcclTrial.cpp - whether collectives can be part of graphs ------------===//

#include "runtime/device/cuda/NcclTrial.h"

#include "runtime/device/Device.h"

#include <algorithm>

namespace tessera::cuda {
namespace {

struct Trial {
  NcclChannel *channel;
  CollectiveCall call;
};

/// The first collective of each channel, as the step issues it in iteration 0.
std::vector<Trial> findTrials(RankContext &context, NcclChannels &channels) {
  std::vector<Trial> found;
  forEachInstruction(context.artifact.package(), [&](const artifact::Instruction &instruction) {
    const artifact::Collective *collective = instruction.operation_as_Collective();
    NcclChannel *channel =
        collective ? channels.find(context.groups[collective->group()], instruction.stream()) : nullptr;
    if (!channel || std::any_of(found.begin(), found.end(), [&](const Trial &each) { return each.channel == channel; }))
      return;
    CollectiveCall call = context.callOf(*collective, instruction.stream());
    call.input = context.buffers.view(collective->input()).data;
    call.output = context.buffers.view(collective->output()).data;
    found.push_back({channel, call});
  });
  return found;
}

/// What was refused, of the status of a call; a stall or another rank's end is an error instead.
Result<std::string> refusalOf(const Status &called) {
  if (called.code() == StatusCode::Aborted)
    return called;
  return called.isOk() ? std::string() : called.message();
}

Status waitForEnd(const Trial &trial, CUstream stream, const NcclCalls &calls) {
  constexpr const char *what = "the first collective";
  const auto begin = std::chrono::steady_clock::now();
  CUresult state = CUDA_SUCCESS;
  while ((state = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
    TESSERA_RETURN_IF_ERROR(calls.stillWaits(what, begin));
    TESSERA_RETURN_IF_ERROR(calls.settle(what, trial.channel->communicator));
  }
  return state == CUDA_SUCCESS ? Status::ok() : driverError(what, state);
}

/// Why it was refused; empty: it was not.
Result<std::string> tryOne(const Trial &trial, CUstream stream, const NcclCalls &calls, const StartCollective &start) {
  TESSERA_ASSIGN_OR_RETURN(std::string refusal, refusalOf(start(trial.call, stream)));
  if (!refusal.empty())
    return refusal;
  TESSERA_RETURN_IF_ERROR(waitForEnd(trial, stream, calls));
  TESSERA_CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  const Status started = start(trial.call, stream);
  CUgraph graph = nullptr;
  const CUresult ended = cuStreamEndCapture(stream, &graph);
  if (graph)
    cuGraphDestroy(graph);
  if (!started.isOk())
    return refusalOf(started);
  return ended == CUDA_SUCCESS ? std::string() : driverError("cuStreamEndCapture", ended).message();
}

Result<std::string> tryAll(const std::vector<Trial> &all, CUstream stream, RankContext &context, const NcclCalls &calls,
                           const StartCollective &start) {
  for (const Trial &trial : all) {
    TESSERA_ASSIGN_OR_RETURN(std::string mine, tryOne(trial, stream, calls, start));
    // After a refusal no rank may begin the next one.
    TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> told,
                             context.communicator.gatherBlobs(mine, "the trial of a capture"));
    auto refused = std::find_if(told.begin(), told.end(), [](const std::string &each) { return !each.empty(); });
    if (refused != told.end())
      return *refused;
  }
  return std::string();
}

} // namespace

Result<std::string> captureRefusal(RankContext &context, const NcclCalls &calls, NcclChannels &channels,
                                   const StartCollective &start) {
  CUstream stream = nullptr;
  TESSERA_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Result<std::string> refusal = tryAll(findTrials(context, channels), stream, context, calls, start);
  cuStreamDestroy(stream);
  return refusal;
}

} // namespace tessera::cuda
