//===- CollectiveHash.cpp - what ranks must agree on, as numbers -----===//

#include "runtime/step/CollectiveHash.h"

#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

using Instructions = flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>>;

static void describe(const artifact::Program &program, const Instructions &instructions, std::string &text) {
  for (const artifact::Instruction *instruction : instructions) {
    if (const artifact::Collective *collective = instruction->operation_as_Collective()) {
      text += artifact::EnumNameCollectiveKind(collective->kind());
      for (const auto *axis : *program.groups()->Get(collective->group())->axes())
        text += " " + axis->str();
      const artifact::Buffer &input = *program.buffers()->Get(collective->input());
      text += " " + std::to_string(instruction->stream()) + " " + artifact::EnumNameDataType(input.dtype());
      if (input.shape())
        for (int64_t size : *input.shape())
          text += " " + std::to_string(size);
      text += " " + std::to_string(collective->shift()) + " " +
              artifact::EnumNameReductionKind(collective->reduction()) + "\n";
    } else if (const artifact::Repeat *repeat = instruction->operation_as_Repeat(); repeat && repeat->body()) {
      text += "repeat " + std::to_string(repeat->count()) + "\n";
      describe(program, *repeat->body(), text);
      text += "end\n";
    }
  }
}

static void describePlaces(const artifact::Program &program, const Instructions &instructions, std::string &text) {
  for (const artifact::Instruction *instruction : instructions) {
    if (const artifact::Collective *collective = instruction->operation_as_Collective()) {
      for (uint32_t index : {collective->input(), collective->output()}) {
        const artifact::Buffer &buffer = *program.buffers()->Get(index);
        text += std::to_string(buffer.arena()) + " " + std::to_string(buffer.offset()) + " " +
                std::to_string(buffer.iteration_stride()) + " " + std::to_string(buffer.rank_group()) + " " +
                std::to_string(buffer.rank_stride()) + "\n";
      }
    } else if (const artifact::Repeat *repeat = instruction->operation_as_Repeat(); repeat && repeat->body()) {
      describePlaces(program, *repeat->body(), text);
    }
  }
}

uint64_t memoryPlanHash(const artifact::Program &program) {
  std::string text;
  if (program.arenas())
    for (const artifact::Arena *arena : *program.arenas())
      text += std::to_string(arena->bytes()) + "\n";
  if (program.instructions())
    describePlaces(program, *program.instructions(), text);
  return XXH64(text.data(), text.size(), 0);
}

uint64_t collectiveSequenceHash(const artifact::Program &program) {
  std::string text;
  if (program.instructions())
    describe(program, *program.instructions(), text);
  return XXH64(text.data(), text.size(), 0);
}

} // namespace tessera
