//===- Overlap.cpp - what computes beside collectives ------------------------===//

#include "runtime/device/cuda/Overlap.h"

#include <algorithm>
#include <map>

namespace tessera::cuda {

namespace {
class Walk {
public:
  explicit Walk(bool withGathers) : withGathers(withGathers) {}
  std::unordered_set<const artifact::Instruction *> beside;

  void run(const flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>> &instructions) {
    for (const artifact::Instruction *instruction : instructions) {
      if (const artifact::Repeat *repeat = instruction->operation_as_Repeat())
        run(*repeat->body());
      else
        visit(*instruction);
    }
  }

private:
  void visit(const artifact::Instruction &instruction) {
    const uint8_t stream = instruction.stream();
    if (const artifact::Collective *collective = instruction.operation_as_Collective())
      begun[stream] +=
          stream != 0 && (withGathers || collective->kind() != artifact::CollectiveKind::AllGather) ? 1 : 0;
    else if (const artifact::Record *record = instruction.operation_as_Record())
      recorded[record->event()] = {stream, begun[stream]};
    else if (const artifact::Wait *wait = instruction.operation_as_Wait(); wait && stream == 0)
      waitFor(wait->event());
    else if (instruction.operation_type() == artifact::Operation::Gemm && stream == 0 &&
             std::any_of(begun.begin(), begun.end(), [&](const auto &each) { return each.second > ended[each.first]; }))
      beside.insert(&instruction);
  }

  void waitFor(uint32_t event) {
    auto found = recorded.find(event);
    if (found == recorded.end())
      return;
    auto [stream, count] = found->second;
    ended[stream] = std::max(ended[stream], count);
  }

  const bool withGathers;
  std::map<uint8_t, int64_t> begun, ended;                  ///< collectives by stream
  std::map<uint32_t, std::pair<uint8_t, int64_t>> recorded; ///< by event: the stream and those begun on it before
};
} // namespace

std::unordered_set<const artifact::Instruction *> productsBesideCollectives(const artifact::Package &package,
                                                                            bool withGathers) {
  std::unordered_set<const artifact::Instruction *> beside;
  for (const artifact::Program *program : *package.programs()) {
    Walk walk(withGathers);
    if (program->instructions())
      walk.run(*program->instructions());
    beside.merge(walk.beside);
  }
  return beside;
}

} // namespace tessera::cuda
