//===- Session.cpp - one rank of a training run ----------------------------===//

#include "runtime/step/Session.h"

#include "runtime/base/Log.h"
#include "runtime/device/cpu/Arena.h"
#include "runtime/device/cpu/CodeObject.h"
#include "runtime/device/cpu/Copy.h"
#include "runtime/step/CollectiveHash.h"
#include "runtime/step/Executor.h"

#include <cstdio>
#include <sched.h>
#include <set>
#include <unistd.h>

namespace tessera {

struct Session::Impl {
  Impl(std::shared_ptr<const Artifact> artifact, Communicator &communicator, int threads)
      : artifact(std::move(artifact)), communicator(communicator), team(threads) {}

  Status initialise(const SessionOptions &options);
  Status compareWithOtherRanks() const;
  Status allocate(const SessionOptions &options);
  Status prepareGroups();

  std::shared_ptr<const Artifact> artifact;
  Communicator &communicator;
  cpu::Team team;
  std::vector<cpu::Arena> arenas;
  std::unique_ptr<CommandContext> context;
  std::unique_ptr<Executor> executor; // last: its streams stop before the memory goes
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

/// All ranks compare with rank 0, so that all give the same message.
Status Session::Impl::compareWithOtherRanks() const {
  const artifact::Program &program = artifact->program();
  const std::pair<const char *, std::string> mine[] = {
      {"fingerprints", hex(program.fingerprint())},
      {"sequences of collectives", hex(program.collective_hash()) + "/" + hex(collectiveSequenceHash(program))},
      {"versions of the compiler", program.producer() ? program.producer()->str() : ""},
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

static void collectChannels(const flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>> &instructions,
                            std::set<std::pair<uint32_t, int>> &found) {
  for (const artifact::Instruction *instruction : instructions) {
    if (const artifact::Collective *collective = instruction->operation_as_Collective())
      found.emplace(collective->group(), instruction->stream());
    else if (const artifact::Repeat *repeat = instruction->operation_as_Repeat(); repeat && repeat->body())
      collectChannels(*repeat->body(), found);
  }
}

/// Each group gets a communicator per stream, so that gathers and reductions never wait for each other.
Status Session::Impl::prepareGroups() {
  std::set<std::pair<uint32_t, int>> channels;
  if (artifact->program().instructions())
    collectChannels(*artifact->program().instructions(), channels);
  for (auto [group, stream] : channels)
    if (context->groups[group].size() > 1)
      TESSERA_RETURN_IF_ERROR(communicator.prepare(context->groups[group], stream));
  return Status::ok();
}

Status Session::Impl::allocate(const SessionOptions &options) {
  const artifact::Program &program = artifact->program();
  uint64_t planned = 0;
  if (program.arenas())
    for (const artifact::Arena *arena : *program.arenas())
      planned += arena->bytes();
  uint64_t physical = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t ranks = static_cast<uint64_t>(std::max(options.ranksInProcess, 1));
  if (planned > physical / ranks)
    return TESSERA_ERROR(Exhausted, "the plan needs " + std::to_string(planned >> 20) + " MiB for each of " +
                                        std::to_string(ranks) + " ranks, this machine has " +
                                        std::to_string(physical >> 20) + " MiB");
  if (program.arenas())
    for (const artifact::Arena *arena : *program.arenas()) {
      TESSERA_ASSIGN_OR_RETURN(cpu::Arena made, cpu::Arena::create(arena->bytes(), team));
      arenas.push_back(std::move(made));
    }
  return Status::ok();
}

Status Session::Impl::initialise(const SessionOptions &options) {
  if (artifact->numRanks() != communicator.numRanks())
    return TESSERA_ERROR(InvalidArgument, "artifact '" + artifact->path() + "' is for " +
                                              std::to_string(artifact->numRanks()) + " ranks, this run has " +
                                              std::to_string(communicator.numRanks()));
  TESSERA_RETURN_IF_ERROR(cpu::checkTarget(artifact->program().target()->str()));
  team.adopt();
  TESSERA_RETURN_IF_ERROR(compareWithOtherRanks());
  TESSERA_RETURN_IF_ERROR(allocate(options));
  std::vector<std::byte *> bases;
  for (const cpu::Arena &arena : arenas)
    bases.push_back(arena.data());
  int rank = communicator.rank();
  context =
      std::make_unique<CommandContext>(*artifact, BufferMap(*artifact, rank, std::move(bases)), communicator, team);
  if (const auto *groups = artifact->program().groups())
    for (uint32_t group = 0; group < groups->size(); ++group)
      context->groups.push_back(artifact->groupMembers(group, rank));
  TESSERA_RETURN_IF_ERROR(prepareGroups());
  TESSERA_RETURN_IF_ERROR(context->loadKernels());
  TESSERA_ASSIGN_OR_RETURN(executor, Executor::create(*context));
  return Status::ok();
}

Session::Session(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Artifact> artifact, Communicator &communicator,
                                                 const SessionOptions &options) {
  int threads = options.threads > 0 ? options.threads : availableCores() / std::max(options.ranksInProcess, 1);
  auto impl = std::make_unique<Impl>(std::move(artifact), communicator, threads);
  if (Status status = impl->initialise(options); !status.isOk()) {
    communicator.abort(status);
    return status;
  }
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

const Artifact &Session::artifact() const { return *impl->artifact; }
Communicator &Session::communicator() const { return impl->communicator; }
int Session::rank() const { return impl->communicator.rank(); }
int Session::threads() const { return impl->team.threads(); }

TensorView Session::stateBuffer(size_t state) const {
  return impl->context->buffers.view(impl->artifact->program().state()->Get(state)->buffer());
}
TensorView Session::batchBuffer(size_t batch) const {
  return impl->context->buffers.view(impl->artifact->program().batch()->Get(batch)->buffer());
}
TensorView Session::hyperBuffer(size_t hyper) const {
  return impl->context->buffers.view(impl->artifact->program().hyper()->Get(hyper)->buffer());
}
TensorView Session::resultBuffer(size_t result) const {
  return impl->context->buffers.view(impl->artifact->program().results()->Get(result)->buffer());
}

static int findHyper(const artifact::Program &program, std::string_view name) {
  if (const auto *table = program.hyper())
    for (uint32_t index = 0; index < table->size(); ++index)
      if (table->Get(index)->name()->string_view() == name)
        return static_cast<int>(index);
  return -1;
}

bool Session::hasHyper(std::string_view name) const { return findHyper(impl->artifact->program(), name) >= 0; }

Status Session::setHyper(std::string_view name, double value) {
  int index = findHyper(impl->artifact->program(), name);
  if (index < 0)
    return TESSERA_ERROR(InvalidArgument, "the step has no scalar '" + std::string(name) + "'");
  cpu::fill(hyperBuffer(index), value, cpu::Team(1));
  return Status::ok();
}

Status Session::setSeed(uint64_t value) {
  int index = findHyper(impl->artifact->program(), "seed");
  if (index < 0)
    return TESSERA_ERROR(InvalidArgument, "the step has no scalar 'seed'");
  *hyperBuffer(index).as<int64_t>() = static_cast<int64_t>(value);
  return Status::ok();
}

double Session::resultValue(size_t result) const {
  TensorView view = resultBuffer(result);
  switch (view.dtype) {
  case artifact::DataType::F64:
    return *view.as<double>();
  case artifact::DataType::I32:
    return *view.as<int32_t>();
  case artifact::DataType::I64:
    return static_cast<double>(*view.as<int64_t>());
  default:
    return *view.as<float>(); // the verifier admits no other type for a number
  }
}

Status Session::step(int64_t number, const StepOptions &options) {
  Status status = impl->executor->step(number, options);
  if (status.isOk())
    return status;
  if (status.code() != StatusCode::Aborted)
    status = status.withContext("rank " + std::to_string(rank()));
  impl->communicator.abort(status);
  return status;
}

MemoryStats Session::memory() const {
  const artifact::Program &program = impl->artifact->program();
  MemoryStats stats;
  if (program.arenas())
    for (uint32_t index = 0; index < program.arenas()->size(); ++index) {
      const artifact::Arena &arena = *program.arenas()->Get(index);
      stats.arenas.push_back({arena.name()->str(), arena.kind(), arena.bytes()});
      stats.plannedBytes += arena.bytes();
      stats.allocatedBytes += impl->arenas[index].allocatedBytes();
    }
  stats.workspaceBytes = impl->context->workspaceBytes();
  stats.slotBytesByClass = peakBytesByClass(program);
  return stats;
}

} // namespace tessera
