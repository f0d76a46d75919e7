//===- ArtifactBuilder.h - artifacts made by hand, for tests ---------------===//

#ifndef TESSERA_TESTS_RUNTIME_ARTIFACTBUILDER_H
#define TESSERA_TESTS_RUNTIME_ARTIFACTBUILDER_H

#include "runtime/artifact/Format.h"
#include "runtime/artifact/Reader.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera::test {

/// The bytes of an artifact file, from a builder that holds a finished package.
inline std::vector<uint8_t> serialise(const flatbuffers::FlatBufferBuilder &builder) {
  artifact::FileHeader header{};
  std::memcpy(header.magic, artifact::formatMagic, sizeof(header.magic));
  header.version = artifact::formatVersion;
  header.payloadBytes = builder.GetSize();
  header.payloadHash = XXH64(builder.GetBufferPointer(), builder.GetSize(), 0);
  std::vector<uint8_t> bytes(sizeof(header) + builder.GetSize());
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), builder.GetBufferPointer(), builder.GetSize());
  return bytes;
}

inline std::vector<uint8_t> serialise(const artifact::PackageT &package) {
  flatbuffers::FlatBufferBuilder builder;
  artifact::FinishPackageBuffer(builder, artifact::CreatePackage(builder, &package));
  return serialise(builder);
}

/// Builds a program instruction by instruction; all buffers lie one after the other in one arena.
class ArtifactBuilder {
public:
  explicit ArtifactBuilder(std::vector<std::pair<std::string, int64_t>> mesh = {}) {
    package.version = artifact::formatVersion;
    package.target = "cpu:test:";
    addProgram(artifact::ProgramKind::Train, "step");
    for (artifact::StreamKind kind : {artifact::StreamKind::Compute, artifact::StreamKind::Gather,
                                      artifact::StreamKind::Reduce, artifact::StreamKind::Copies}) {
      auto stream = std::make_unique<artifact::StreamT>();
      stream->kind = kind;
      package.streams.push_back(std::move(stream));
    }
    package.locations.push_back("node");
    for (auto &[name, size] : mesh) {
      auto axis = std::make_unique<artifact::MeshAxisT>();
      axis->name = name;
      axis->size = size;
      package.mesh.push_back(std::move(axis));
    }
    auto arena = std::make_unique<artifact::ArenaT>();
    arena->name = "all";
    package.arenas.push_back(std::move(arena));
  }

  uint32_t buffer(std::vector<int64_t> shape, artifact::DataType dtype = artifact::DataType::F32) {
    auto made = std::make_unique<artifact::BufferT>();
    made->offset = (package.arenas[0]->bytes + 63) / 64 * 64;
    made->dtype = dtype;
    int64_t elements = 1;
    made->strides.resize(shape.size());
    for (size_t dim = shape.size(); dim-- > 0;) {
      made->strides[dim] = elements;
      elements *= shape[dim];
    }
    made->shape = std::move(shape);
    package.arenas[0]->bytes = made->offset + static_cast<uint64_t>(elements) * byteWidth(dtype);
    package.buffers.push_back(std::move(made));
    return static_cast<uint32_t>(package.buffers.size() - 1);
  }
  /// Begins a program, which what is added next belongs to.
  artifact::ProgramT &addProgram(artifact::ProgramKind kind, const std::string &name) {
    auto made = std::make_unique<artifact::ProgramT>();
    made->kind = kind;
    made->name = name;
    package.programs.push_back(std::move(made));
    return current();
  }
  artifact::ProgramT &current() { return *package.programs.back(); }

  /// Another view of a buffer's memory.
  uint32_t view(uint32_t of, std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t offsetElements = 0) {
    auto made = std::make_unique<artifact::BufferT>(*package.buffers[of]);
    made->offset += static_cast<uint64_t>(offsetElements) * byteWidth(made->dtype);
    made->shape = std::move(shape);
    made->strides = std::move(strides);
    package.buffers.push_back(std::move(made));
    return static_cast<uint32_t>(package.buffers.size() - 1);
  }

  uint32_t group(std::vector<std::string> axes) {
    auto made = std::make_unique<artifact::GroupT>();
    made->axes = std::move(axes);
    package.groups.push_back(std::move(made));
    return static_cast<uint32_t>(package.groups.size() - 1);
  }

  /// Appends an instruction to the program, or to the loop that is open.
  template <typename Operation> Operation &add(Operation operation, uint8_t stream = 0) {
    auto made = std::make_unique<artifact::InstructionT>();
    made->stream = stream;
    made->operation.Set(std::move(operation));
    auto *stored = static_cast<Operation *>(made->operation.value);
    auto &list = openLoops.empty() ? current().instructions : openLoops.back()->body;
    list.push_back(std::move(made));
    return *stored;
  }
  void beginLoop(int64_t count) {
    artifact::RepeatT repeat;
    repeat.count = count;
    openLoops.push_back(&add(std::move(repeat)));
  }
  void endLoop() { openLoops.pop_back(); }

  void fill(uint32_t target, double value, uint8_t stream = 0) {
    artifact::FillT fill;
    fill.target = target;
    fill.value = value;
    add(fill, stream);
  }
  void copy(uint32_t source, uint32_t target, uint8_t stream = 0) {
    artifact::CopyT copy;
    copy.source = source;
    copy.target = target;
    add(copy, stream);
  }
  void gemm(uint32_t a, uint32_t b, uint32_t c, float beta = 0) {
    artifact::GemmT gemm;
    gemm.a = a;
    gemm.b = b;
    gemm.c = c;
    gemm.beta = beta;
    add(gemm);
  }
  void collective(artifact::CollectiveKind kind, uint32_t group, uint32_t input, uint32_t output, uint8_t stream = 0) {
    artifact::CollectiveT collective;
    collective.kind = kind;
    collective.group = group;
    collective.input = input;
    collective.output = output;
    collective.label = "unit";
    add(std::move(collective), stream);
  }
  uint32_t newEvent() { return current().num_events++; }
  void record(uint32_t event, uint8_t stream) {
    artifact::RecordT record;
    record.event = event;
    add(record, stream);
  }
  void wait(uint32_t event, uint8_t stream) {
    artifact::WaitT wait;
    wait.event = event;
    add(wait, stream);
  }
  uint32_t result(const std::string &name, uint32_t buffer, artifact::ResultRole role = artifact::ResultRole::Output) {
    auto made = std::make_unique<artifact::ResultTensorT>();
    made->name = name;
    made->role = role;
    made->buffer = buffer;
    current().results.push_back(std::move(made));
    return static_cast<uint32_t>(current().results.size() - 1);
  }

  Result<std::shared_ptr<const Artifact>> build() const { return Artifact::fromBytes(serialise(package), "test"); }

  artifact::ProgramT &program() { return *package.programs.front(); }

  artifact::PackageT package;

private:
  std::vector<artifact::RepeatT *> openLoops; ///< outermost first
};

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_ARTIFACTBUILDER_H
