//===- Verify.cpp - checks a package's meaning -----------------------------===//
//
// Memory, code and which programs there are. Groups and buffers are checked in VerifyContext.cpp, state in
// VerifyState.cpp, what a program reads and gives in VerifyInterface.cpp, instructions in VerifyInstructions.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Verify.h"
#include "runtime/artifact/VerifyContext.h"

#include <algorithm>

namespace tessera {

static Status verifyMemory(const VerifyContext &context) {
  const artifact::Package &package = context.package;
  constexpr uint64_t maxArenaBytes = uint64_t{1} << 46;
  for (uint32_t index = 0; index < sizeOf(package.arenas()); ++index) {
    const artifact::Arena &arena = *package.arenas()->Get(index);
    std::string what = "arena " + std::to_string(index);
    if (arena.bytes() > maxArenaBytes)
      return bad(what, "size " + std::to_string(arena.bytes()) + " bytes");
    if (!isKnown(arena.kind()))
      return bad(what, "unknown kind " + std::to_string(static_cast<int>(arena.kind())));
  }
  for (uint32_t index = 0; index < sizeOf(package.buffers()); ++index)
    TESSERA_RETURN_IF_ERROR(context.verifyBuffer(index));
  return Status::ok();
}

static Status verifySlots(const artifact::Package &package, const artifact::Program &program) {
  for (uint32_t index = 0; index < sizeOf(program.slots()); ++index) {
    const artifact::Slot &slot = *program.slots()->Get(index);
    std::string what = "slot " + std::to_string(index);
    if (slot.arena() >= sizeOf(package.arenas()))
      return bad(what, "arena " + std::to_string(slot.arena()) + " of " + std::to_string(sizeOf(package.arenas())));
    if (WideInt(slot.offset()) + slot.bytes() > WideInt(package.arenas()->Get(slot.arena())->bytes()))
      return bad(what, "reaches beyond its arena");
    if (!isKnown(slot.memory_class()))
      return bad(what, "unknown class " + std::to_string(static_cast<int>(slot.memory_class())));
    if (slot.first_instruction() > slot.last_instruction())
      return bad(what, "its life ends before it begins");
  }
  return Status::ok();
}

static Status verifyStreams(const VerifyContext &context) {
  const artifact::Package &package = context.package;
  if (sizeOf(package.streams()) > artifact::maxStreams)
    return bad("streams",
               std::to_string(sizeOf(package.streams())) + " of at most " + std::to_string(artifact::maxStreams));
  for (uint32_t index = 0; index < sizeOf(package.streams()); ++index) {
    const artifact::Stream &stream = *package.streams()->Get(index);
    std::string what = "stream " + std::to_string(index);
    if (!isKnown(stream.kind()))
      return bad(what, "unknown kind");
    if ((stream.kind() == artifact::StreamKind::Compute) != (index == 0))
      return bad(what, std::string("is of kind ") + artifact::EnumNameStreamKind(stream.kind()) +
                           "; the first stream computes, and no other");
  }
  return Status::ok();
}

/// A kernel for a GPU has a size of its launch, one for the CPU has none.
static Status verifyKernel(const artifact::Package &package, const artifact::Kernel &kernel, bool isGpu) {
  std::string what = "kernel '" + kernel.symbol()->str() + "'";
  if (kernel.code_object() >= sizeOf(package.code_objects()))
    return bad(what, "its code object does not exist");
  if (!isGpu) {
    if (kernel.blocks() || kernel.threads_x() || kernel.threads_y() || kernel.ptx() != -1)
      return bad(what, "has a launch size or PTX, but the target is a CPU");
    return Status::ok();
  }
  constexpr uint64_t maxBlocks = (uint64_t{1} << 31) - 1, maxThreads = 1024; // CUDA's own limits
  uint64_t threads = uint64_t{kernel.threads_x()} * kernel.threads_y();
  if (kernel.blocks() < 1 || kernel.blocks() > maxBlocks || threads < 1 || threads > maxThreads)
    return bad(what, "is launched as " + std::to_string(kernel.blocks()) + " blocks of " +
                         std::to_string(kernel.threads_x()) + " x " + std::to_string(kernel.threads_y()) + " threads");
  if (kernel.ptx() < -1 || kernel.ptx() >= static_cast<int64_t>(sizeOf(package.code_objects())))
    return bad(what, "its PTX does not exist");
  if (kernel.ptx() >= 0 && package.code_objects()->Get(kernel.ptx())->format() != artifact::CodeFormat::Ptx)
    return bad(what, "its PTX is none");
  return Status::ok();
}

static Status verifyCode(const artifact::Package &package) {
  std::string target = package.target()->str();
  bool isGpu = target.compare(0, 3, "sm_") == 0;
  for (uint32_t index = 0; index < sizeOf(package.code_objects()); ++index) {
    const artifact::CodeObject &object = *package.code_objects()->Get(index);
    std::string what = "code object " + std::to_string(index);
    if (!isKnown(object.format()))
      return bad(what, "unknown format");
    if (isGpu == (object.format() == artifact::CodeFormat::SharedObject))
      return bad(what, std::string("is ") + artifact::EnumNameCodeFormat(object.format()) + ", the target is '" +
                           target + "'");
    if (object.data()->size() == 0)
      return bad(what, "is empty");
    if (object.format() == artifact::CodeFormat::Ptx && object.data()->Get(object.data()->size() - 1) != 0)
      return bad(what, "is PTX without a zero at its end");
  }
  for (uint32_t index = 0; index < sizeOf(package.kernels()); ++index)
    TESSERA_RETURN_IF_ERROR(verifyKernel(package, *package.kernels()->Get(index), isGpu));
  return Status::ok();
}

static Status verifyProgram(const VerifyContext &context, const artifact::Program &program) {
  TESSERA_RETURN_IF_ERROR(verifySlots(context.package, program));
  TESSERA_ASSIGN_OR_RETURN(uint32_t numInstructions, verifyInstructions(context, program));
  TESSERA_RETURN_IF_ERROR(verifyBatch(context, program));
  TESSERA_RETURN_IF_ERROR(verifyScalars(context, program, numInstructions));
  return verifyRoles(program);
}

/// Programs are few, and what they are for is known.
static Status verifyPrograms(const VerifyContext &context) {
  const auto *programs = context.package.programs();
  constexpr uint32_t maxPrograms = 64;
  if (sizeOf(programs) < 1 || sizeOf(programs) > maxPrograms)
    return bad("programs", "there are " + std::to_string(sizeOf(programs)));
  for (uint32_t index = 0; index < programs->size(); ++index) {
    const artifact::Program &program = *programs->Get(index);
    std::string what = "program '" + program.name()->str() + "'";
    if (!isKnown(program.kind()) || (program.kind() == artifact::ProgramKind::Train) != (index == 0))
      return bad(what, "the first program trains, and no other");
    for (uint32_t other = 0; other < index; ++other)
      if (programs->Get(other)->kind() == program.kind() ||
          programs->Get(other)->name()->str() == program.name()->str())
        return bad(what, "there is another one of its kind or name");
    Status status = verifyProgram(context, program);
    TESSERA_RETURN_IF_ERROR(index == 0 ? status : status.withContext(what));
  }
  return Status::ok();
}

Status verifyPackage(const artifact::Package &package, const Mesh &mesh) {
  VerifyContext context(package, mesh);
  TESSERA_RETURN_IF_ERROR(context.verifyGroups());
  TESSERA_RETURN_IF_ERROR(verifyStreams(context));
  TESSERA_RETURN_IF_ERROR(verifyMemory(context));
  TESSERA_RETURN_IF_ERROR(verifyCode(package));
  TESSERA_RETURN_IF_ERROR(verifyState(context));
  TESSERA_RETURN_IF_ERROR(verifyDerived(context));
  TESSERA_RETURN_IF_ERROR(verifyAdapters(context));
  TESSERA_RETURN_IF_ERROR(verifyWeightMap(context));
  TESSERA_RETURN_IF_ERROR(verifySequence(context));
  return verifyPrograms(context);
}

} // namespace tessera
