//===- Reader.cpp - opens an artifact file ---------------------------------===//

#include "runtime/artifact/Reader.h"

#include "runtime/artifact/Format.h"
#include "runtime/artifact/Verify.h"
#include "runtime/base/InputFile.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace tessera {

TensorView viewOf(const artifact::Buffer &buffer) {
  TensorView view;
  view.dtype = buffer.dtype();
  // Of a scalar's two empty lists each may be absent or present.
  if (buffer.shape())
    view.shape.assign(buffer.shape()->begin(), buffer.shape()->end());
  if (buffer.strides())
    view.strides.assign(buffer.strides()->begin(), buffer.strides()->end());
  return view;
}

size_t byteWidth(artifact::DataType dtype) {
  switch (dtype) {
  case artifact::DataType::F64:
  case artifact::DataType::I64:
    return 8;
  case artifact::DataType::F32:
  case artifact::DataType::I32:
    return 4;
  case artifact::DataType::F16:
  case artifact::DataType::BF16:
    return 2;
  default:
    return 1;
  }
}

/// An error for a file without an artifact's magic bytes. Its suffix tells what it may be instead.
static std::string describeOther(const std::string &name) {
  const std::string compileFirst = "; compile it first: tessera-compile " + name + " -o step.tessera";
  if (name.ends_with(".pt2"))
    return "this is an exported PyTorch program, not an artifact" + compileFirst;
  for (std::string_view suffix : {".onnx", ".onnxtxt", ".mlir"})
    if (name.ends_with(suffix))
      return "this is a model, not an artifact" + compileFirst;
  return "not an artifact of tessera-compile (wrong magic bytes)";
}

/// Of a file of `size` bytes, header and payload.
static Status checkHeader(const artifact::FileHeader &header, uint64_t size, const std::string &name) {
  const std::string context = "artifact '" + name + "'";
  if (std::memcmp(header.magic, artifact::formatMagic, sizeof(header.magic)) != 0)
    return TESSERA_ERROR(InvalidArgument, context + ": " + describeOther(name));
  if (header.version != artifact::formatVersion) {
    bool isLater = header.version > artifact::formatVersion;
    return TESSERA_ERROR(Unsupported, context + ": format version " + std::to_string(header.version) + " is of " +
                                          (isLater ? "a later" : "an earlier") +
                                          " version of Tessera, this one reads version " +
                                          std::to_string(artifact::formatVersion) +
                                          (isLater ? "; update tessera-run" : "; compile the model again"));
  }
  if (header.payloadBytes != size - sizeof(header))
    return TESSERA_ERROR(DataLoss, context + ": holds " + std::to_string(size - sizeof(header)) +
                                       " bytes of program, the header says " + std::to_string(header.payloadBytes) +
                                       " (truncated?)");
  return Status::ok();
}

Result<std::shared_ptr<const Artifact>> Artifact::open(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.isOk())
    return file.status().withContext("artifact");
  artifact::FileHeader header;
  if (file->size() >= sizeof(header)) { // before what may be a large file of another kind is read
    TESSERA_RETURN_IF_ERROR(file->read(0, &header, sizeof(header)).withContext("artifact"));
    TESSERA_RETURN_IF_ERROR(checkHeader(header, file->size(), path));
  }
  Result<std::vector<uint8_t>> bytes = ByteRange(*file, 0, file->size()).readAll();
  if (!bytes.isOk())
    return bytes.status().withContext("artifact");
  return fromBytes(*std::move(bytes), path);
}

Result<std::shared_ptr<const Artifact>> Artifact::fromBytes(std::vector<uint8_t> bytes, const std::string &name) {
  std::shared_ptr<Artifact> made(new Artifact());
  made->name = name;
  made->owned = std::move(bytes);
  TESSERA_RETURN_IF_ERROR(made->parse(made->owned.data(), made->owned.size()));
  return std::shared_ptr<const Artifact>(std::move(made));
}

Status Artifact::parse(const uint8_t *bytes, size_t size) {
  std::string context = "artifact '" + name + "'";
  auto corrupt = [&](const std::string &why) { return TESSERA_ERROR(DataLoss, context + ": " + why); };
  artifact::FileHeader header;
  if (size < sizeof(header))
    return corrupt("too short for a header: " + std::to_string(size) + " bytes");
  std::memcpy(&header, bytes, sizeof(header));
  TESSERA_RETURN_IF_ERROR(checkHeader(header, size, name));
  const uint8_t *payload = bytes + sizeof(header);
  size_t payloadBytes = size - sizeof(header);
  if (XXH64(payload, payloadBytes, 0) != header.payloadHash)
    return corrupt("checksum mismatch (the file is damaged)");
  if (payloadBytes < 16 || !artifact::PackageBufferHasIdentifier(payload))
    return corrupt("the program has no identifier");
  flatbuffers::Verifier verifier(payload, payloadBytes, /*max_depth=*/64, /*max_tables=*/100'000'000);
  if (!artifact::VerifyPackageBuffer(verifier))
    return corrupt("malformed program");
  root = artifact::GetPackage(payload);
  if (root->version() != artifact::formatVersion)
    return corrupt("program version " + std::to_string(root->version()) + ", expected " +
                   std::to_string(artifact::formatVersion));

  constexpr int64_t maxRanks = 1 << 20;
  int64_t numRanks = 1;
  if (const auto *axes = root->mesh())
    for (const artifact::MeshAxis *axis : *axes) {
      if (axis->size() < 1 || axis->size() > maxRanks || (numRanks *= axis->size()) > maxRanks)
        return corrupt("mesh axis '" + axis->name()->str() + "' has size " + std::to_string(axis->size()));
      if (axis->role() < artifact::AxisRole::MIN || axis->role() > artifact::AxisRole::MAX)
        return corrupt("mesh axis '" + axis->name()->str() + "' has an unknown role");
      ranks.axes.push_back({axis->name()->str(), axis->size(), axis->role()});
    }
  return verifyPackage(*root, ranks).withContext(context);
}

std::vector<std::string> Artifact::groupAxes(int64_t group) const {
  std::vector<std::string> axes;
  if (group >= 0)
    for (const flatbuffers::String *axis : *root->groups()->Get(group)->axes())
      axes.push_back(axis->str());
  return axes;
}

std::optional<size_t> Artifact::findProgram(artifact::ProgramKind kind) const {
  for (size_t number = 0; number < numPrograms(); ++number)
    if (program(number).kind() == kind)
      return number;
  return std::nullopt;
}

std::string Artifact::streamName(int stream) const {
  static constexpr const char *names[] = {"compute", "gather", "reduce", "copies"};
  const auto *streams = root->streams();
  if (!streams || stream < 0 || stream >= static_cast<int>(streams->size()))
    return stream == 0 ? names[0] : "stream " + std::to_string(stream);
  const artifact::Stream &described = *streams->Get(static_cast<uint32_t>(stream));
  std::string name = names[static_cast<size_t>(described.kind())];
  for (int other = 0; other < stream; ++other)
    if (streams->Get(static_cast<uint32_t>(other))->kind() == described.kind())
      return name + " " + (described.axis() ? described.axis()->str() : std::to_string(stream));
  return name;
}

std::string Artifact::modelOption(const std::string &key) const {
  if (const auto *entries = root->model())
    for (const artifact::KeyValue *entry : *entries)
      if (entry->key()->string_view() == key)
        return entry->value()->str();
  return {};
}

} // namespace tessera
