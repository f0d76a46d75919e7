//===- fuzz_artifact.cpp - the artifact reader on any bytes ----------------===//
//
// The input is the payload: a header with the right length and hash is put before it, since otherwise no mutation would
// get past the checksum. Whatever the reader accepts is walked as the runtime would before the first step.
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Format.h"
#include "runtime/artifact/Reader.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdlib>
#include <cstring>

using namespace tessera;

/// Touches what executing an accepted program would touch without running it.
static void walk(const Artifact &artifact) {
  const artifact::Package &package = artifact.package();
  int64_t last = artifact.numRanks() - 1;
  if (package.groups() && last < 4096)
    for (uint32_t group = 0; group < package.groups()->size(); ++group)
      if (artifact.groupMembers(group, static_cast<int>(last)).size() != static_cast<size_t>(artifact.groupSize(group)))
        std::abort();
  if (package.buffers())
    for (const artifact::Buffer *buffer : *package.buffers())
      if (buffer->offset() > package.arenas()->Get(buffer->arena())->bytes())
        std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  artifact::FileHeader header{};
  std::memcpy(header.magic, artifact::formatMagic, sizeof(header.magic));
  header.version = artifact::formatVersion;
  header.payloadBytes = size;
  header.payloadHash = XXH64(data, size, 0);
  std::vector<uint8_t> bytes(sizeof(header) + size);
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (size > 0)
    std::memcpy(bytes.data() + sizeof(header), data, size);
  auto artifact = Artifact::fromBytes(std::move(bytes), "input");
  if (artifact.isOk())
    walk(**artifact);
  else if (artifact.status().message().empty())
    std::abort();
  (void)Artifact::fromBytes({data, data + size}, "input").isOk();
  return 0;
}
