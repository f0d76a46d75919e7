//===- CollectiveHash.cpp - what ranks must agree on, as numbers -----===//

#include "runtime/step/CollectiveHash.h"

#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

using Instructions = flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>>;

static void describe(const artifact::Package &package, const Instructions &instructions, std::string &text) {
  for (const artifact::Instruction *instruction : instructions) {
    if (const artifact::Collective *collective = instruction->operation_as_Collective()) {
      text += artifact::EnumNameCollectiveKind(collective->kind());
      for (const auto *axis : *package.groups()->Get(collective->group())->axes())
        text += " " + axis->str();
      const artifact::Buffer &input = *package.buffers()->Get(collective->input());
      text += " " + std::to_string(instruction->stream()) + " " + artifact::EnumNameDataType(input.dtype());
      if (input.shape())
        for (int64_t size : *input.shape())
          text += " " + std::to_string(size);
      text += " " + std::to_string(collective->shift()) + " " +
              artifact::EnumNameReductionKind(collective->reduction()) + "\n";
    } else if (const artifact::Repeat *repeat = instruction->operation_as_Repeat(); repeat && repeat->body()) {
      text += "repeat " + std::to_string(repeat->count()) + "\n";
      describe(package, *repeat->body(), text);
      text += "end\n";
    }
  }
}

static void describePlaces(const artifact::Package &package, const Instructions &instructions, std::string &text) {
  for (const artifact::Instruction *instruction : instructions) {
    if (const artifact::Collective *collective = instruction->operation_as_Collective()) {
      for (uint32_t index : {collective->input(), collective->output()}) {
        const artifact::Buffer &buffer = *package.buffers()->Get(index);
        text += std::to_string(buffer.arena()) + " " + std::to_string(buffer.offset()) + " " +
                std::to_string(buffer.rank_group()) + " " + std::to_string(buffer.rank_stride());
        if (buffer.iteration_strides())
          for (int64_t stride : *buffer.iteration_strides())
            text += " " + std::to_string(stride);
        text += "\n";
      }
    } else if (const artifact::Repeat *repeat = instruction->operation_as_Repeat(); repeat && repeat->body()) {
      describePlaces(package, *repeat->body(), text);
    }
  }
}

uint64_t memoryPlanHash(const artifact::Package &package) {
  std::string text;
  if (package.arenas())
    for (const artifact::Arena *arena : *package.arenas())
      text += std::to_string(arena->bytes()) + "\n";
  for (const artifact::Program *program : *package.programs())
    if (program->instructions())
      describePlaces(package, *program->instructions(), text);
  return XXH64(text.data(), text.size(), 0);
}

uint64_t collectiveSequenceHash(const artifact::Package &package) {
  std::string text;
  for (const artifact::Program *program : *package.programs()) {
    text += "program " + program->name()->str() + "\n";
    if (program->instructions())
      describe(package, *program->instructions(), text);
  }
  return XXH64(text.data(), text.size(), 0);
}

} // namespace tessera
