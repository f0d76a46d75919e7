//===- ProgramFixture.h - a small valid artifact without a compiler ------------------===//
//
// Two ranks, one unit with two parameters, a batch, a gather, a product and a repeat: enough for everything that reads
// programs without running them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TESTS_RUNTIME_PROGRAMFIXTURE_H
#define TESSERA_TESTS_RUNTIME_PROGRAMFIXTURE_H

#include "runtime/artifact/Format.h"
#include "runtime/artifact/Reader.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera::test {

inline std::unique_ptr<artifact::BufferT> makeBuffer(uint32_t arena, uint64_t offset, std::vector<int64_t> shape,
                                                     artifact::DataType dtype = artifact::DataType::F32) {
  auto buffer = std::make_unique<artifact::BufferT>();
  buffer->arena = arena;
  buffer->offset = offset;
  buffer->dtype = dtype;
  buffer->strides.resize(shape.size());
  int64_t stride = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    buffer->strides[dim] = stride;
    stride *= shape[dim];
  }
  buffer->shape = std::move(shape);
  return buffer;
}

template <typename T> std::unique_ptr<artifact::InstructionT> makeInstruction(T operation, int stream, int location) {
  auto instruction = std::make_unique<artifact::InstructionT>();
  instruction->operation.Set(std::move(operation));
  instruction->stream = static_cast<uint8_t>(stream);
  instruction->location = static_cast<uint32_t>(location);
  return instruction;
}

inline void addSlot(artifact::PackageT &package, const std::string &name, uint32_t arena, uint64_t offset,
                    uint64_t bytes, artifact::MemoryClass memoryClass, uint32_t first, uint32_t last) {
  auto slot = std::make_unique<artifact::SlotT>();
  slot->name = name;
  slot->arena = arena;
  slot->offset = offset;
  slot->bytes = bytes;
  slot->memory_class = memoryClass;
  slot->first_instruction = first;
  slot->last_instruction = last;
  package.programs[0]->slots.push_back(std::move(slot));
}

inline void addState(artifact::PackageT &package, const std::string &name, artifact::StateRole role, uint32_t buffer,
                     bool withSegments, const std::string &stateName = "") {
  auto state = std::make_unique<artifact::StateTensorT>();
  state->name = name;
  state->role = role;
  state->state = stateName;
  state->dtype = artifact::DataType::F32;
  state->elements = 32;
  state->shard_group = 0;
  state->buffer = buffer;
  if (withSegments)
    for (auto [segmentName, offset, columns] :
         {std::tuple<const char *, int64_t, int64_t>{"h.0.w", 0, 6}, {"h.0.b", 24, 0}}) {
      auto segment = std::make_unique<artifact::SegmentT>();
      segment->name = segmentName;
      segment->shape = columns ? std::vector<int64_t>{4, columns} : std::vector<int64_t>{6};
      segment->offset = offset;
      segment->init = std::make_unique<artifact::InitT>();
      segment->init->kind = columns ? artifact::InitKind::Normal : artifact::InitKind::Constant;
      segment->init->b = 0.02;
      state->segments.push_back(std::move(segment));
    }
  package.state.push_back(std::move(state));
}

/// The program as objects, so that tests can change it before it is packed.
inline artifact::PackageT makePackage() {
  artifact::PackageT package;
  auto train = std::make_unique<artifact::ProgramT>();
  train->name = "step";
  package.programs.push_back(std::move(train));
  package.version = artifact::formatVersion;
  package.producer = "test";
  package.target = "cpu:x86-64:";
  package.fingerprint = 0x1234;
  package.programs[0]->collective_hash = 0x5678;
  auto axis = std::make_unique<artifact::MeshAxisT>();
  axis->name = "shard";
  axis->size = 2;
  axis->role = artifact::AxisRole::Data;
  package.mesh.push_back(std::move(axis));
  auto group = std::make_unique<artifact::GroupT>();
  group->axes = {"shard"};
  package.groups.push_back(std::move(group));

  for (auto [name, kind, bytes] :
       {std::tuple<const char *, artifact::ArenaKind, uint64_t>{"state", artifact::ArenaKind::State, 512},
        {"activations", artifact::ArenaKind::Activations, 512}}) {
    auto arena = std::make_unique<artifact::ArenaT>();
    arena->name = name;
    arena->kind = kind;
    arena->bytes = bytes;
    package.arenas.push_back(std::move(arena));
  }
  using artifact::MemoryClass;
  addSlot(package, "h.0", 0, 0, 64, MemoryClass::Parameters, 0, 6);
  addSlot(package, "h.0.m", 0, 64, 64, MemoryClass::Optimizer, 0, 6);
  addSlot(package, "tokens", 0, 128, 32, MemoryClass::Inputs, 0, 6);
  addSlot(package, "loss", 0, 192, 4, MemoryClass::Workspace, 0, 6);
  addSlot(package, "gathered h.0", 1, 0, 128, MemoryClass::Communication, 0, 4);
  addSlot(package, "product", 1, 128, 64, MemoryClass::Activations, 4, 6);

  package.buffers.push_back(makeBuffer(0, 0, {16}));                              // 0 h.0
  package.buffers.push_back(makeBuffer(0, 64, {16}));                             // 1 h.0.m
  package.buffers.push_back(makeBuffer(0, 128, {1, 4}, artifact::DataType::I64)); // 2 tokens
  package.buffers.push_back(makeBuffer(0, 192, {}));                              // 3 loss
  package.buffers.push_back(makeBuffer(1, 0, {32}));                              // 4 gathered
  package.buffers.push_back(makeBuffer(1, 0, {4, 4}));                            // 5 a view of it
  package.buffers.push_back(makeBuffer(1, 128, {4, 4}));                          // 6 product

  package.locations = {"", "h.0/gather", "h.0/MatMul", "loss"};
  artifact::CollectiveT gather;
  gather.kind = artifact::CollectiveKind::AllGather;
  gather.group = 0;
  gather.input = 0;
  gather.output = 4;
  gather.label = "forward h.0";
  package.programs[0]->instructions.push_back(makeInstruction(std::move(gather), 1, 1));
  package.programs[0]->instructions.push_back(makeInstruction(artifact::RecordT{}, 1, 1));
  package.programs[0]->instructions.push_back(makeInstruction(artifact::WaitT{}, 0, 1));
  artifact::RepeatT repeat;
  repeat.count = 3;
  artifact::GemmT gemm;
  gemm.a = 5;
  gemm.b = 5;
  gemm.c = 6;
  repeat.body.push_back(makeInstruction(std::move(gemm), 0, 2));
  package.programs[0]->instructions.push_back(makeInstruction(std::move(repeat), 0, 0));
  artifact::FillT fill;
  fill.target = 3;
  fill.value = 1.5;
  package.programs[0]->instructions.push_back(makeInstruction(std::move(fill), 0, 3));
  artifact::CollectiveT reduce;
  reduce.kind = artifact::CollectiveKind::AllReduce;
  reduce.group = 0;
  reduce.input = 3;
  reduce.output = 3;
  reduce.label = "loss";
  package.programs[0]->instructions.push_back(makeInstruction(std::move(reduce), 0, 3));
  package.programs[0]->num_events = 1;
  for (artifact::StreamKind kind : {artifact::StreamKind::Compute, artifact::StreamKind::Gather,
                                    artifact::StreamKind::Reduce, artifact::StreamKind::Copies}) {
    auto stream = std::make_unique<artifact::StreamT>();
    stream->kind = kind;
    package.streams.push_back(std::move(stream));
  }

  addState(package, "h.0", artifact::StateRole::Parameter, 0, true);
  addState(package, "h.0", artifact::StateRole::Optimizer, 1, false, "m");
  auto batch = std::make_unique<artifact::BatchTensorT>();
  batch->name = "tokens";
  batch->dtype = artifact::DataType::I64;
  batch->global_shape = {2, 4};
  batch->dims = {artifact::DimRole::Sample, artifact::DimRole::Position};
  batch->splits.push_back(std::make_unique<artifact::DimSplitT>());
  batch->buffer = 2;
  batch->index_bound = 256;
  package.programs[0]->batch.push_back(std::move(batch));
  auto result = std::make_unique<artifact::ResultTensorT>();
  result->name = "loss";
  result->buffer = 3;
  package.programs[0]->results.push_back(std::move(result));
  for (auto [key, value] : {std::pair<const char *, const char *>{"source", "gpt.onnx"}, {"strategy", "zero3"}}) {
    auto entry = std::make_unique<artifact::KeyValueT>();
    entry->key = key;
    entry->value = value;
    package.model.push_back(std::move(entry));
  }
  auto ir = std::make_unique<artifact::PhaseIrT>();
  ir->phase = "shard";
  ir->text = "module {}\n";
  package.ir.push_back(std::move(ir));
  return package;
}

/// The bytes of an artifact file.
inline std::vector<uint8_t> packPackage(const artifact::PackageT &package) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(artifact::Package::Pack(builder, &package), artifact::PackageIdentifier());
  artifact::FileHeader header = {};
  std::memcpy(header.magic, artifact::formatMagic, sizeof(header.magic));
  header.version = artifact::formatVersion;
  header.payloadBytes = builder.GetSize();
  header.payloadHash = XXH64(builder.GetBufferPointer(), builder.GetSize(), 0);
  std::vector<uint8_t> bytes(sizeof(header) + builder.GetSize());
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), builder.GetBufferPointer(), builder.GetSize());
  return bytes;
}

inline Result<std::shared_ptr<const Artifact>> makeArtifact(const artifact::PackageT &package = makePackage()) {
  return Artifact::fromBytes(packPackage(package), "test.tessera");
}

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_PROGRAMFIXTURE_H
