//===- VerifyContext.h - what the checks of a program share ----------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_VERIFYCONTEXT_H
#define TESSERA_RUNTIME_ARTIFACT_VERIFYCONTEXT_H

#include "runtime/artifact/Format.h"
#include "runtime/artifact/Mesh.h"
#include "runtime/artifact/TensorView.h"
#include "runtime/artifact/artifact_generated.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera {

/// Wide enough that no product or sum of checked values overflows.
__extension__ using WideInt = __int128;

inline constexpr int64_t maxElements = int64_t{1} << 48;
inline constexpr int64_t maxIterations = int64_t{1} << 31;
inline constexpr int64_t maxDimensions = 12;

template <typename Vector> uint32_t sizeOf(const Vector *vector) { return vector ? vector->size() : 0; }

/// The FlatBuffers verifier checks where a vector's length lies, but not that its elements are aligned for their type.
inline bool isAligned(const flatbuffers::Vector<int64_t> *vector) {
  return !vector || reinterpret_cast<uintptr_t>(vector->Data()) % alignof(int64_t) == 0;
}

inline Status bad(const std::string &what, const std::string &why) {
  return TESSERA_ERROR(DataLoss, what + ": " + why);
}

/// Whether a number from the file is one of the enumeration.
template <typename Enum> bool isKnown(Enum value) { return value >= Enum::MIN && value <= Enum::MAX; }

/// How often the loops around an instruction repeat, outermost first.
using LoopCounts = std::span<const int64_t>;

class VerifyContext {
public:
  VerifyContext(const artifact::Package &package, const Mesh &mesh) : package(package), mesh(mesh) {}

  /// Checks that every group names axes of the mesh; call first.
  Status verifyGroups();
  /// Checks a buffer by itself, in iteration 0, on every rank.
  Status verifyBuffer(uint32_t index) const;
  /// Checks an operand: that the buffer exists and stays in its arena in all iterations. `what` names the operand.
  Status useBuffer(uint32_t index, const std::string &what, LoopCounts loops = {}) const;

  Status checkGroup(int64_t group, const std::string &what) const;
  /// 1 for group -1.
  int64_t groupSize(int64_t group) const { return group < 0 ? 1 : groupSizes[group]; }
  /// Shape and strides of a verified buffer; without data.
  TensorView view(uint32_t index) const;

  const artifact::Package &package;
  const Mesh &mesh;

private:
  std::vector<int64_t> groupSizes;
};

/// Bytes that a buffer lies further on in the last iterations.
WideInt iterationBytes(const artifact::Buffer &buffer, LoopCounts loops);

/// "[2, 3]"
std::string toString(const std::vector<int64_t> &values);

/// Checks that a buffer has this type and so many elements, one behind the other.
Status expectDense(const VerifyContext &context, uint32_t buffer, artifact::DataType dtype, WideInt elements,
                   const std::string &what);

/// Checks the state table, the copies that are derived from it, the adapters, and where files have parameters.
Status verifyState(const VerifyContext &context);
Status verifyDerived(const VerifyContext &context);
Status verifyAdapters(const VerifyContext &context);
Status verifyWeightMap(const VerifyContext &context);

/// Checks what the package says of attention over sequence axes.
Status verifySequence(const VerifyContext &context);

/// Checks a program's batch table, its scalars, results and probes, and that its results are those of its kind.
Status verifyBatch(const VerifyContext &context, const artifact::Program &program);
Status verifyScalars(const VerifyContext &context, const artifact::Program &program, uint32_t numInstructions);
Status verifyRoles(const artifact::Program &program);

/// Checks the epilogue of a product whose operands have been checked; `what` names the instruction.
Status verifyEpilogue(const VerifyContext &context, const artifact::Gemm &gemm, const std::string &what,
                      LoopCounts loops);

/// Checks the scales of such a product: there are some if and only if it is one of 8-bit floats.
Status verifyScales(const VerifyContext &context, const artifact::Gemm &gemm, const std::string &what,
                    LoopCounts loops);

/// Checks a program's instructions and what belongs to them; returns how many there are in the flattened list.
Result<uint32_t> verifyInstructions(const VerifyContext &context, const artifact::Program &program);

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_VERIFYCONTEXT_H
