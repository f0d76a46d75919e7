//===- Writer.cpp - header, fingerprint and file of an artifact -----------===//
//
// See Writer.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/artifact/Writer.h"

#include "compiler/artifact/Tables.h"
#include "runtime/artifact/Format.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace tessera {

static StringRef pack(flatbuffers::FlatBufferBuilder &builder, const artifact::ProgramT &program) {
  artifact::FinishProgramBuffer(builder, artifact::CreateProgram(builder, &program));
  return StringRef(reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize());
}

static void append(std::vector<std::unique_ptr<artifact::KeyValueT>> &list, const ArtifactMetadata::Entries &entries) {
  for (const auto &[key, value] : entries) {
    auto entry = std::make_unique<artifact::KeyValueT>();
    entry->key = key;
    entry->value = value;
    list.push_back(std::move(entry));
  }
}

FailureOr<std::string> serializeArtifact(ModuleOp module, StringRef sharedObject, const ArtifactMetadata &metadata) {
  auto programs = module.getOps<exec::ProgramOp>();
  if (!llvm::hasSingleElement(programs))
    return module.emitError("expected one exec.program: the module has not been lowered");

  artifact::ProgramT table;
  table.version = artifact::formatVersion;
  table.target = metadata.target;
  if (failed(artifact::Tables(module, *programs.begin(), table).fill()))
    return failure();
  // Up to here, everything that ranks must agree on; what follows may differ between machines.
  flatbuffers::FlatBufferBuilder agreed;
  std::string target = std::exchange(table.target, "");
  table.fingerprint = llvm::xxHash64(pack(agreed, table));

  table.target = std::move(target);
  table.producer = metadata.producer;
  if (!sharedObject.empty()) { // a step of library calls and copies alone has no kernels
    auto code = std::make_unique<artifact::CodeObjectT>();
    code->format = artifact::CodeFormat::SharedObject;
    code->target = metadata.target;
    code->data.assign(sharedObject.bytes_begin(), sharedObject.bytes_end());
    table.code_objects.push_back(std::move(code));
  }
  append(table.optimizer, metadata.optimizer);
  append(table.model, metadata.model);
  for (const auto &[phase, text] : metadata.ir) {
    auto entry = std::make_unique<artifact::PhaseIrT>();
    entry->phase = phase;
    entry->text = text;
    table.ir.push_back(std::move(entry));
  }

  flatbuffers::FlatBufferBuilder builder;
  StringRef payload = pack(builder, table);
  artifact::FileHeader header{};
  llvm::copy(artifact::formatMagic, header.magic);
  header.version = artifact::formatVersion;
  header.payloadBytes = payload.size();
  header.payloadHash = llvm::xxHash64(payload);
  std::string bytes(reinterpret_cast<const char *>(&header), sizeof(header));
  bytes.append(payload.data(), payload.size());
  return bytes;
}

LogicalResult writeArtifact(ModuleOp module, StringRef sharedObject, const ArtifactMetadata &metadata, StringRef path) {
  FailureOr<std::string> bytes = serializeArtifact(module, sharedObject, metadata);
  if (failed(bytes))
    return failure();
  auto fail = [&](const std::error_code &error) {
    return emitError(UnknownLoc::get(module.getContext()))
           << "cannot write artifact '" << path << "': " << error.message();
  };
  int file = -1;
  SmallString<128> temporary;
  if (std::error_code error = llvm::sys::fs::createUniqueFile(path + ".%%%%%%.tmp", file, temporary))
    return fail(error);
  std::error_code error;
  {
    llvm::raw_fd_ostream out(file, /*shouldClose=*/true);
    out << *bytes;
    out.close();
    error = out.error();
    out.clear_error();
  }
  if (!error)
    error = llvm::sys::fs::setPermissions(temporary, llvm::sys::fs::perms(0666 & ~llvm::sys::fs::getUmask()));
  if (!error)
    error = llvm::sys::fs::rename(temporary, path);
  if (!error)
    return success();
  llvm::sys::fs::remove(temporary);
  return fail(error);
}

} // namespace tessera
