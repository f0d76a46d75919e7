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

#include <numeric>

using namespace mlir;

namespace tessera {

static StringRef pack(flatbuffers::FlatBufferBuilder &builder, const artifact::PackageT &package) {
  artifact::FinishPackageBuffer(builder, artifact::CreatePackage(builder, &package));
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

static void collectAlignments(const artifact::PackageT &table,
                              const std::vector<std::unique_ptr<artifact::InstructionT>> &list,
                              llvm::StringMap<SmallVector<int64_t>> &found) {
  for (const auto &instruction : list) {
    if (const auto *repeat = instruction->operation.AsRepeat())
      collectAlignments(table, repeat->body, found);
    const auto *launch = instruction->operation.AsLaunch();
    if (!launch)
      continue;
    SmallVector<int64_t> &known = found[table.kernels[launch->kernel]->symbol];
    known.resize(launch->buffers.size(), 16);
    for (auto [index, buffer] : llvm::enumerate(launch->buffers)) {
      const artifact::BufferT &view = *table.buffers[buffer];
      for (int64_t step : {static_cast<int64_t>(view.offset), view.rank_stride})
        known[index] = std::gcd(known[index], step);
      for (int64_t step : view.iteration_strides)
        known[index] = std::gcd(known[index], step);
    }
  }
}

FailureOr<llvm::StringMap<SmallVector<int64_t>>> kernelAlignments(ModuleOp module) {
  artifact::PackageT table;
  if (failed(artifact::Tables(module, table).fill()))
    return failure();
  llvm::StringMap<SmallVector<int64_t>> found;
  for (const auto &program : table.programs)
    collectAlignments(table, program->instructions, found);
  return found;
}

/// Machine code first, if there is any; PTX is what later GPUs run.
static LogicalResult addGpuCode(ModuleOp module, const ArtifactGpuCode &gpu, StringRef target,
                                artifact::PackageT &table) {
  auto add = [&](artifact::CodeFormat format, StringRef bytes) {
    auto code = std::make_unique<artifact::CodeObjectT>();
    code->format = format;
    code->target = target.str();
    code->data.assign(bytes.bytes_begin(), bytes.bytes_end());
    if (format == artifact::CodeFormat::Ptx)
      code->data.push_back(0);
    table.code_objects.push_back(std::move(code));
    return static_cast<uint32_t>(table.code_objects.size() - 1);
  };
  if (table.kernels.empty())
    return success();
  uint32_t ptx = add(artifact::CodeFormat::Ptx, gpu.ptx);
  uint32_t first = gpu.cubin.empty() ? ptx : add(artifact::CodeFormat::Cubin, gpu.cubin);
  for (const auto &kernel : table.kernels) {
    auto launch = gpu.launches.find(kernel->symbol);
    if (launch == gpu.launches.end())
      return module.emitError("kernel '") << kernel->symbol << "' has no code for the GPU";
    kernel->code_object = first;
    kernel->ptx = first == ptx ? -1 : static_cast<int32_t>(ptx);
    kernel->blocks = launch->second.blocks;
    kernel->threads_x = launch->second.threadsX;
    kernel->threads_y = launch->second.threadsY;
  }
  return success();
}

FailureOr<std::string> serializeArtifact(ModuleOp module, StringRef sharedObject, const ArtifactMetadata &metadata,
                                         const ArtifactGpuCode *gpu) {
  artifact::PackageT table;
  table.version = artifact::formatVersion;
  table.target = metadata.target;
  if (failed(artifact::Tables(module, table).fill()))
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
  if (gpu && failed(addGpuCode(module, *gpu, metadata.target, table)))
    return failure();
  auto takesRate = [](const auto &program) {
    return llvm::any_of(program->hyper,
                        [](const auto &hyper) { return hyper->kind == artifact::HyperKind::LearningRate; });
  };
  if (llvm::any_of(table.programs, takesRate))
    table.learning_rate = std::make_unique<artifact::LearningRateT>(metadata.learningRate);
  if (metadata.sequence)
    table.sequence = std::make_unique<artifact::SequenceChoiceT>(*metadata.sequence);
  if (metadata.modelFile)
    table.model_file = std::make_unique<artifact::ModelFileT>(*metadata.modelFile);
  for (const auto &program : table.programs)
    program->has_perplexity = program->kind == artifact::ProgramKind::Evaluate && metadata.hasPerplexity;
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

LogicalResult writeArtifact(ModuleOp module, StringRef sharedObject, const ArtifactMetadata &metadata, StringRef path,
                            const ArtifactGpuCode *gpu) {
  FailureOr<std::string> bytes = serializeArtifact(module, sharedObject, metadata, gpu);
  if (failed(bytes))
    return failure();
  auto fail = [&](const std::error_code &error) {
    return emitError(UnknownLoc::get(module.getContext()))
           << "cannot write artifact '" << path << "': " << error.message();
  };
  int file = -1;
  SmallString<128> temporary, target;
  if (llvm::sys::fs::real_path(path, target)) // of a link, what it names is replaced
    target = path;
  if (std::error_code error = llvm::sys::fs::createUniqueFile(target + ".%%%%%%.tmp", file, temporary))
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
    error = llvm::sys::fs::rename(temporary, target);
  if (!error)
    return success();
  llvm::sys::fs::remove(temporary);
  return fail(error);
}

} // namespace tessera
