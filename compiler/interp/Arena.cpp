//===- Arena.cpp - the memory of an exec program, in bytes ----------------===//
//
// See Arena.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/interp/Arena.h"

#include "compiler/interp/Interp.h"

#include <cstring>

using namespace mlir;

namespace tessera::interp {

Arenas::Arenas(exec::ProgramOp program) {
  for (auto arena : program.getOps<exec::ArenaOp>())
    arenas[arena.getSymName()].assign(arena.getBytes(), 0xFF);
}

/// Calls `fn(element, byte)` for each element of a buffer in row-major order.
static void forEachByte(exec::BufferOp buffer, int64_t iteration, int64_t position,
                        llvm::function_ref<void(int64_t, int64_t)> fn) {
  const MemRefType type = buffer.getType();
  auto slot = buffer.getSlot().getDefiningOp<exec::SlotOp>();
  const int64_t bytes = exec::elementBytes(type.getElementType());
  const int64_t first = int64_t(*slot.getOffset()) + int64_t(buffer.getOffset()) +
                        iteration * int64_t(buffer.getIterationStride()) + position * int64_t(buffer.getRankStride());
  SmallVector<int64_t> strides = exec::stridesOf(type);
  forEachIndex(type.getShape(), [&](ArrayRef<int64_t> index, int64_t linear) {
    fn(linear, first + linearIndex(index, strides) * bytes);
  });
}

Tensor Arenas::read(exec::BufferOp buffer, int64_t iteration, int64_t position) const {
  const MemRefType type = buffer.getType();
  Tensor result(RankedTensorType::get(type.getShape(), type.getElementType()));
  const std::vector<uint8_t> &arena = arenas.find(buffer.getSlot().getDefiningOp<exec::SlotOp>().getArena())->second;
  auto floating = dyn_cast<FloatType>(type.getElementType());
  const size_t bytes = exec::elementBytes(type.getElementType());
  forEachByte(buffer, iteration, position, [&](int64_t element, int64_t byte) {
    uint64_t bits = 0;
    std::memcpy(&bits, &arena[byte], bytes);
    if (!floating)
      return result.setInt(element, static_cast<int64_t>(bits));
    llvm::APFloat value(floating.getFloatSemantics(), llvm::APInt(floating.getWidth(), bits));
    result.set(element, toDouble(value));
  });
  return result;
}

void Arenas::write(exec::BufferOp buffer, int64_t iteration, int64_t position, const Tensor &value) {
  std::vector<uint8_t> &arena = arenas.find(buffer.getSlot().getDefiningOp<exec::SlotOp>().getArena())->second;
  auto floating = dyn_cast<FloatType>(value.getElementType());
  const size_t bytes = exec::elementBytes(value.getElementType());
  forEachByte(buffer, iteration, position, [&](int64_t element, int64_t byte) {
    uint64_t bits = 0;
    if (floating) {
      llvm::APFloat number(value.at(element));
      bool losesInfo = false;
      number.convert(floating.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      bits = number.bitcastToAPInt().getZExtValue();
    } else {
      bits = static_cast<uint64_t>(value.intAt(element));
    }
    std::memcpy(&arena[byte], &bits, bytes);
  });
}

LogicalResult checkMemory(exec::ProgramOp program) {
  dist::MeshAttr mesh = meshOf(program);
  for (auto slot : program.getOps<exec::SlotOp>()) {
    auto arena = SymbolTable::lookupNearestSymbolFrom<exec::ArenaOp>(slot, slot.getArenaAttr());
    if (!arena || !slot.getOffset() || int64_t(*slot.getOffset()) + slot.getBytes() > int64_t(arena.getBytes()))
      return slot.emitError("has no place in its arena: plan-memory has not run");
  }
  for (auto buffer : program.getOps<exec::BufferOp>()) {
    auto slot = buffer.getSlot().getDefiningOp<exec::SlotOp>();
    if (!slot)
      return buffer.emitError("is a view of something else than a slot");
    int64_t iterations = 1;
    for (Operation *user : buffer->getUsers())
      if (auto loop = user->getParentOfType<exec::LoopOp>())
        iterations = std::max<int64_t>(iterations, loop.getCount());
    if (buffer.getRankAxes() && !mesh)
      return buffer.emitError("depends on the rank, and the module has no mesh");
    const int64_t ranks = buffer.getRankAxes() ? mesh.getGroupSize(*buffer.getRankAxes()) : 1;
    if (int64_t(buffer.getOffset()) + exec::spannedBytes(buffer, iterations, ranks) > slot.getBytes())
      return buffer.emitError("leaves its slot");
  }
  return success();
}

} // namespace tessera::interp
