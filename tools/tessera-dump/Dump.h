//===- Dump.h - artifacts as text ---------------------------------------------------===//
//
// Each function describes one aspect of an artifact, for people (text) and for programs (JSON). The texts end with a
// line break.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_DUMP_DUMP_H
#define TESSERA_TOOLS_DUMP_DUMP_H

#include "runtime/artifact/Reader.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace tessera::dump {

using Json = nlohmann::ordered_json;

/// An instruction of the flattened list: a Repeat has a number itself, and its body follows once.
struct FlatInstruction {
  uint32_t number;
  int64_t iterations; ///< How often it runs in a step.
  int depth;          ///< Of the loops around it.
  const artifact::Instruction *instruction;
};
/// Of a program, with loops inside of loops.
std::vector<FlatInstruction> flatten(const artifact::Program &program);

/// "gemm", "all_gather", …: the names of traces.
std::string kindOf(const artifact::Instruction &instruction);
/// "sum", "max" or "min" of a collective that reduces; else empty.
std::string reductionOf(const artifact::Collective &collective);
/// The source of an instruction: a node of the model.
std::string locationOf(const artifact::Package &package, const artifact::Instruction &instruction);
/// "b12 f32[8,256]".
std::string bufferText(const artifact::Package &package, uint32_t buffer);
uint64_t bufferBytes(const artifact::Package &package, uint32_t buffer);
std::string dtypeName(artifact::DataType dtype);
/// "shard,seq(4)".
std::string groupText(const Artifact &artifact, int64_t group);

/// What has a parameter `program` is of one program, by its number in the package.
std::string summaryText(const Artifact &artifact);
Json summaryJson(const Artifact &artifact);

/// `columns`: width of the timeline of each slot; 0: no slots.
std::string memoryText(const Artifact &artifact, size_t program = trainingProgram, int columns = 48);
/// The `count` largest slots that are live at the peak, of the device and of the host.
std::string largestText(const Artifact &artifact, size_t program, int count);
Json memoryJson(const Artifact &artifact, size_t program = trainingProgram);

/// How attention is computed over sequence axes, how positions are dealt, and why: of each way that was compared its
/// predicted step and memory. Empty, or null, without such an axis.
std::string sequenceText(const Artifact &artifact);
Json sequenceJson(const Artifact &artifact);

/// The text has what sequenceText says in front.
std::string scheduleText(const Artifact &artifact, size_t program = trainingProgram);
Json scheduleJson(const Artifact &artifact, size_t program = trainingProgram);

std::string collectivesText(const Artifact &artifact, size_t program = trainingProgram);
Json collectivesJson(const Artifact &artifact, size_t program = trainingProgram);

std::string stateText(const Artifact &artifact);
Json stateJson(const Artifact &artifact);

std::string tensorsText(const Artifact &artifact);
Json tensorsJson(const Artifact &artifact);

/// What each product is computed in, and why.
std::string precisionText(const Artifact &artifact);
Json precisionJson(const Artifact &artifact);

std::string kernelsText(const Artifact &artifact);
Json kernelsJson(const Artifact &artifact);

/// The IR of a phase; an error names the phases that there are.
Result<std::string> phaseIr(const Artifact &artifact, const std::string &phase);
/// Writes the code objects: one to `path`, several to `path.0`, `path.1`, ….
Status writeCode(const Artifact &artifact, const std::string &path);

} // namespace tessera::dump

#endif // TESSERA_TOOLS_DUMP_DUMP_H
