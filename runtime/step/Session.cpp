//===- Session.cpp - one rank of a training run ----------------------------===//

#include "runtime/step/Session.h"

#include "runtime/comm/RankMessage.h"
#include "runtime/device/Open.h"
#include "runtime/step/CollectiveHash.h"
#include "runtime/step/DerivedState.h"
#include "runtime/step/Executor.h"
#include "runtime/step/Staging.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <sched.h>

namespace tessera {

struct Session::Impl {
  Impl(std::shared_ptr<const Artifact> artifact, Communicator &communicator)
      : artifact(std::move(artifact)), communicator(communicator) {}

  Status initialise(const SessionOptions &options);
  Status compareWithOtherRanks() const;
  Status openDevice(const SessionOptions &options);
  Status allocate();
  Status readResults(size_t program);
  /// Fails if an index that was computed from data lay outside of its table.
  Status checkIndices(size_t program) const;

  std::shared_ptr<const Artifact> artifact;
  Communicator &communicator;
  std::unique_ptr<RankContext> context; ///< the device refers to it until its end
  std::unique_ptr<Device> device;
  /// What the host exchanges with a program.
  struct Exchange {
    Staging staging;
    std::vector<std::array<std::byte, 8>> results; ///< the first element of each, after the last step
  };
  std::vector<Exchange> exchanges;    ///< by program
  bool isDerived = false;             ///< copies of state are those of the state
  std::unique_ptr<Executor> executor; ///< last: its streams stop before the memory goes
};

/// Cores this process may use, which a container or taskset limits.
static int availableCores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(CPU_COUNT(&set), 1);
  return 1;
}

static std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

/// Of each program.
static std::string writtenHashes(const artifact::Package &package) {
  std::string text;
  for (const artifact::Program *program : *package.programs())
    text += (text.empty() ? "" : ",") + hex(program->collective_hash());
  return text;
}

/// All ranks compare with rank 0, so that all give the same message.
Status Session::Impl::compareWithOtherRanks() const {
  const artifact::Package &package = artifact->package();
  const std::pair<const char *, std::string> mine[] = {
      {"fingerprints", hex(package.fingerprint())},
      {"sequences of collectives", writtenHashes(package) + "/" + hex(collectiveSequenceHash(package))},
      {"memory plans", hex(memoryPlanHash(package))},
      {"versions of the compiler", package.producer() ? package.producer()->str() : ""},
      {"versions of the runtime", TESSERA_VERSION},
  };
  for (const auto &[what, value] : mine) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> all, communicator.gatherBlobs(value, "comparison of artifacts"));
    for (size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        return TESSERA_ERROR(InvalidArgument, "rank " + std::to_string(rank) + " and rank 0 run different artifacts (" +
                                                  what + " differ: " + all[rank] + " and " + all[0] + ")");
  }
  return Status::ok();
}

Status Session::Impl::openDevice(const SessionOptions &options) {
  DeviceOptions deviceOptions;
  deviceOptions.ranksInProcess = std::max(options.ranksInProcess, 1);
  deviceOptions.threads = options.threads > 0 ? options.threads : availableCores() / deviceOptions.ranksInProcess;
  deviceOptions.rankOnHost = options.rankOnHost;
  deviceOptions.gpu = options.gpu;
  deviceOptions.stallTimeoutSeconds = options.stallTimeoutSeconds;
  TESSERA_ASSIGN_OR_RETURN(device, options.openDevice ? options.openDevice(*artifact, deviceOptions)
                                                      : tessera::openDevice(*artifact, deviceOptions));
  return Status::ok();
}

Status Session::Impl::allocate() {
  const artifact::Package &package = artifact->package();
  TESSERA_RETURN_IF_ERROR(device->checkMemory(package));
  std::vector<ArenaMemory> arenas;
  if (package.arenas())
    for (const artifact::Arena *arena : *package.arenas()) {
      Result<ArenaMemory> made = device->allocate(*arena);
      if (!made.isOk())
        return made.status().withContext("arena '" + arena->name()->str() + "' of " + std::to_string(arena->bytes()) +
                                         " bytes");
      arenas.push_back(*made);
    }
  context = std::make_unique<RankContext>(*artifact, BufferMap(*artifact, communicator.rank(), std::move(arenas)),
                                          communicator);
  exchanges.resize(artifact->numPrograms());
  for (size_t number = 0; number < exchanges.size(); ++number) {
    const artifact::Program &program = artifact->program(number);
    TESSERA_RETURN_IF_ERROR(exchanges[number].staging.open(*device, context->buffers, program));
    exchanges[number].results.resize(program.results() ? program.results()->size() : 0);
  }
  return Status::ok();
}

Status Session::Impl::initialise(const SessionOptions &options) {
  if (artifact->numRanks() != communicator.numRanks())
    return TESSERA_ERROR(InvalidArgument, "artifact '" + artifact->path() + "' is for " +
                                              std::to_string(artifact->numRanks()) + " ranks, this run has " +
                                              std::to_string(communicator.numRanks()));
  TESSERA_RETURN_IF_ERROR(openDevice(options));
  TESSERA_RETURN_IF_ERROR(compareWithOtherRanks());
  TESSERA_RETURN_IF_ERROR(device->meetRanks(communicator));
  TESSERA_RETURN_IF_ERROR(allocate());
  TESSERA_RETURN_IF_ERROR(device->prepare(*context));
  TESSERA_ASSIGN_OR_RETURN(executor, Executor::create(*device, *context));
  return Status::ok();
}

Status Session::Impl::readResults(size_t program) {
  auto &[staging, results] = exchanges[program];
  TESSERA_RETURN_IF_ERROR(staging.receive());
  for (uint32_t index = 0; index < results.size(); ++index) {
    uint32_t buffer = artifact->program(program).results()->Get(index)->buffer();
    TensorView view = context->buffers.view(buffer);
    if (view.numElements() > 0)
      std::memcpy(results[index].data(), staging.result(buffer), byteWidth(view.dtype));
  }
  return Status::ok();
}

Status Session::Impl::checkIndices(size_t program) const {
  const auto &[staging, results] = exchanges[program];
  for (uint32_t index = 0; index < results.size(); ++index) {
    const artifact::ResultTensor &check = *artifact->program(program).results()->Get(index);
    if (check.role() != artifact::ResultRole::IndexCheck)
      continue;
    TensorView view = context->buffers.view(check.buffer());
    std::vector<int64_t> indices(view.numElements());
    std::memcpy(indices.data(), staging.result(check.buffer()), view.bytes());
    for (int64_t value : indices)
      if (value < check.index_low() || value >= check.index_bound())
        return TESSERA_ERROR(InvalidArgument,
                             "node '" + check.name()->str() + "' computed the index " + std::to_string(value) +
                                 " of '" + check.of()->str() + "', outside [" + std::to_string(check.index_low()) +
                                 ", " + std::to_string(check.index_bound()) +
                                 "); compile with --index-check clamp to count the nearest one inside");
  }
  return Status::ok();
}

Session::Session(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Artifact> artifact, Communicator &communicator,
                                                 const SessionOptions &options) {
  auto impl = std::make_unique<Impl>(std::move(artifact), communicator);
  if (Status status = impl->initialise(options); !status.isOk()) {
    if (communicator.numRanks() > 1 && status.code() != StatusCode::Aborted)
      status = toldByRank(status, communicator.rank());
    communicator.abort(status);
    return status;
  }
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

const Artifact &Session::artifact() const { return *impl->artifact; }
Communicator &Session::communicator() const { return impl->communicator; }
int Session::rank() const { return impl->communicator.rank(); }
int Session::threads() const { return impl->device->threads(); }

std::string Session::arithmetic() const { return impl->device->arithmetic(); }

TensorView Session::stateBuffer(size_t state) const {
  return impl->context->buffers.hostView(impl->artifact->package().state()->Get(state)->buffer());
}
TensorView Session::batchBuffer(size_t batch, size_t program) const {
  return impl->context->buffers.hostView(impl->artifact->program(program).batch()->Get(batch)->buffer());
}
TensorView Session::resultBuffer(size_t result, size_t program) const {
  return impl->context->buffers.hostView(impl->artifact->program(program).results()->Get(result)->buffer());
}

void *Session::batchToWrite(size_t batch, size_t program) {
  return impl->exchanges[program].staging.input(impl->artifact->program(program).batch()->Get(batch)->buffer());
}

Status Session::readState(size_t state, void *target) const {
  TensorView view = impl->context->buffers.view(impl->artifact->package().state()->Get(state)->buffer());
  return impl->device->copyToHost(target, view.data, view.bytes());
}

Status Session::writeState(size_t state, const void *source) {
  impl->isDerived = false;
  TensorView view = impl->context->buffers.view(impl->artifact->package().state()->Get(state)->buffer());
  return impl->device->copyToDevice(view.data, source, view.bytes());
}

Status Session::deriveState() {
  TESSERA_RETURN_IF_ERROR(tessera::deriveState(*impl->context, *impl->device));
  impl->isDerived = true;
  return Status::ok();
}

std::byte *Session::hyper(uint32_t index) {
  return impl->exchanges[trainingProgram].staging.input(impl->artifact->training().hyper()->Get(index)->buffer());
}

void Session::setHyper(uint32_t index, double value) {
  const auto number = static_cast<float>(value); // the verifier admits no other type but for seeds
  std::memcpy(hyper(index), &number, sizeof(number));
}

void Session::setSeed(uint32_t index, uint64_t value) { std::memcpy(hyper(index), &value, sizeof(value)); }

double Session::resultValue(size_t result, size_t program) const {
  const std::byte *value = impl->exchanges[program].results[result].data();
  uint32_t buffer = impl->artifact->program(program).results()->Get(result)->buffer();
  auto as = [value]<typename T>(T number) {
    std::memcpy(&number, value, sizeof(number));
    return static_cast<double>(number);
  };
  switch (impl->artifact->package().buffers()->Get(buffer)->dtype()) {
  case artifact::DataType::F64:
    return as(double{});
  case artifact::DataType::I32:
    return as(int32_t{});
  case artifact::DataType::I64:
    return as(int64_t{});
  default:
    return as(float{}); // the verifier admits no other type for a number
  }
}

Status Session::step(size_t program, int64_t number, const StepOptions &options) {
  Status status = impl->isDerived ? Status::ok() : deriveState();
  if (status.isOk())
    status = impl->exchanges[program].staging.send();
  if (status.isOk())
    status = impl->executor->step(program, number, options);
  if (status.isOk())
    status = impl->readResults(program);
  if (status.isOk())
    status = impl->checkIndices(program).withContext("step " + std::to_string(number));
  if (status.isOk())
    return status;
  if (status.code() != StatusCode::Aborted)
    status = status.withContext("rank " + std::to_string(rank()));
  impl->communicator.abort(status);
  return status;
}

Status Session::leave() { return impl->device->leaveRanks(); }

double Session::lastIssued() const { return impl->executor->lastIssued(); }
bool Session::issuesAhead() const { return !impl->device->marksAreTimes(); }

MemoryStats Session::memory() const {
  const artifact::Package &package = impl->artifact->package();
  MemoryStats stats;
  if (package.arenas())
    for (uint32_t index = 0; index < package.arenas()->size(); ++index) {
      const artifact::Arena &arena = *package.arenas()->Get(index);
      stats.arenas.push_back({arena.name()->str(), arena.kind(), arena.bytes()});
      stats.plannedBytes += arena.bytes();
      const bool isOnHost = arena.kind() == artifact::ArenaKind::Host;
      (isOnHost ? stats.hostBytes : stats.allocatedBytes) += impl->context->buffers.arenas()[index].allocatedBytes;
    }
  stats.workspaceBytes = impl->device->workspaceBytes();
  stats.slotBytesByClass = peakBytesByClass(impl->artifact->training());
  return stats;
}

} // namespace tessera
