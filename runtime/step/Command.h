//===- Command.h - instructions, ready to run ------------------------------===//
//
// Before the first step each instruction becomes a command: addresses are resolved, library plans and copy loops made,
// kernels looked up. A step then only runs commands.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_COMMAND_H
#define TESSERA_RUNTIME_STEP_COMMAND_H

#include "runtime/artifact/Reader.h"
#include "runtime/base/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/cpu/Attention.h"
#include "runtime/device/cpu/CodeObject.h"
#include "runtime/device/cpu/Conv.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/cpu/Team.h"

#include <memory>
#include <string_view>
#include <vector>

namespace tessera {

/// Resolves buffers of one rank to addresses.
class BufferMap {
public:
  BufferMap(const Artifact &artifact, int rank, std::vector<std::byte *> arenas)
      : artifact(artifact), rank(rank), arenas(std::move(arenas)) {}
  /// The view in iteration 0.
  TensorView view(uint32_t buffer) const;
  /// Bytes to add per iteration.
  int64_t iterationStride(uint32_t buffer) const;

private:
  const Artifact &artifact;
  int rank;
  std::vector<std::byte *> arenas;
};

/// What commands of one rank share.
struct CommandContext {
  CommandContext(const Artifact &artifact, BufferMap buffers, Communicator &communicator, cpu::Team team)
      : artifact(artifact), buffers(std::move(buffers)), communicator(communicator), team(team) {}

  const Artifact &artifact;
  BufferMap buffers;
  Communicator &communicator;
  cpu::Team team;
  cpu::GemmPlanner gemms;
  cpu::ConvPlanner convolutions;
  cpu::Scratch attentionScratch;
  std::vector<cpu::CodeObject> code;
  std::vector<cpu::KernelFunction> kernels; ///< by index in Program.kernels
  std::vector<std::vector<int>> groups;     ///< members, by index in Program.groups
  int64_t step = 0;                         ///< changes only between steps, when all streams are idle

  Status loadKernels();
  size_t workspaceBytes() const;
};

class Command {
public:
  virtual ~Command() = default;
  virtual Status run(int64_t iteration) = 0;

  uint32_t number = 0; ///< in the flattened list
  int stream = 0;
  std::string_view kind, detail, location;
  int64_t bytes = 0;
};

/// The command of an instruction that is not Record, Wait or Repeat.
Result<std::unique_ptr<Command>> makeCommand(const artifact::Instruction &instruction, CommandContext &context);

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_COMMAND_H
