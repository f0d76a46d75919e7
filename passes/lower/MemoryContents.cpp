//===- MemoryContents.cpp - what the memory of a program holds ------------===//
//
// See MemoryContents.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/MemoryContents.h"

#include "passes/lower/InstructionOrder.h"

using namespace mlir;

namespace tessera::lower {

static int64_t elementBytes(Value buffer) {
  return exec::elementBytes(cast<MemRefType>(buffer.getType()).getElementType());
}

StridedMap placeOf(exec::BufferOp buffer, int64_t iteration, int64_t position) {
  const MemRefType type = buffer.getType();
  const int64_t bytes = exec::elementBytes(type.getElementType());
  SmallVector<StridedMap::Dim> dims;
  int64_t rowMajor = 1;
  SmallVector<int64_t> strides = exec::stridesOf(type);
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    dims.push_back({type.getDimSize(dim), rowMajor, strides[dim] * bytes});
    rowMajor *= type.getDimSize(dim);
  }
  const int64_t first = int64_t(buffer.getOffset()) + iteration * int64_t(buffer.getIterationStride()) +
                        position * int64_t(buffer.getRankStride());
  return StridedMap::get(0, first, dims);
}

bool mayOverlap(const StridedMap &a, int64_t elementBytesA, const StridedMap &b, int64_t elementBytesB) {
  const StridedMap x = a.inverse(), y = b.inverse();
  if (x.lastIn() + elementBytesA <= y.in || y.lastIn() + elementBytesB <= x.in)
    return false;
  if (elementBytesA != elementBytesB || (x.in - y.in) % elementBytesA != 0)
    return true;
  return overlap(x, y);
}

StridedMap MemoryContents::placeOf(Value buffer, int64_t iteration) const {
  auto op = buffer.getDefiningOp<exec::BufferOp>();
  return lower::placeOf(op, iteration, op.getRankAxes() ? values.positionOver(*op.getRankAxes()) : 0);
}

bool MemoryContents::overlap(Value a, Value b, int64_t iteration) const {
  return slotOf(a) == slotOf(b) &&
         mayOverlap(placeOf(a, iteration), elementBytes(a), placeOf(b, iteration), elementBytes(b));
}

void MemoryContents::makeResident(exec::SlotOp slot) {
  Slot &state = slots[slot];
  if (state.isResident || slot.getBytes() == 0)
    return;
  std::map<int64_t, exec::SlotOp> &arena = residents[slot.getArena().str()];
  const int64_t begin = int64_t(*slot.getOffset()), end = begin + slot.getBytes();
  auto it = arena.lower_bound(end);
  while (it != arena.begin()) {
    --it;
    exec::SlotOp other = it->second;
    if (it->first + other.getBytes() <= begin)
      break;
    slots[other] = {{}, false, slot.getName().str()};
    it = arena.erase(it);
  }
  arena[begin] = slot;
  slots[slot].isResident = true;
}

Content MemoryContents::read(Value buffer, int64_t iteration) const {
  Content content;
  auto state = slots.find(slotOf(buffer));
  if (state == slots.end())
    return content;
  const StridedMap place = placeOf(buffer, iteration), bytes = place.inverse();
  PieceLimit limit(state->second.cells.size());
  for (const Cell &cell : state->second.cells) {
    if (cell.elementBytes == elementBytes(buffer))
      for (StridedMap &map : meet(bytes, cell.map, limit.effort))
        content.push_back({cell.origin, std::move(map)});
    if (limit.isReached(content.size()))
      return {{kNotFollowed, place.domain()}};
  }
  return content;
}

void MemoryContents::write(Value buffer, int64_t iteration, const Content &content) {
  exec::SlotOp slot = slotOf(buffer);
  makeResident(slot);
  const StridedMap place = placeOf(buffer, iteration), bytes = place.inverse();
  const int64_t size = elementBytes(buffer);
  SmallVector<Cell> &cells = slots[slot].cells, left;
  PieceLimit subtracting(cells.size()), limit(content.size());
  for (Cell &cell : cells) {
    const bool isSameGrid = cell.elementBytes == size && (cell.map.in - bytes.in) % size == 0;
    if (cell.map.lastIn() + cell.elementBytes <= bytes.in || bytes.lastIn() + size <= cell.map.in)
      left.push_back(std::move(cell));
    else if (isSameGrid) {
      StridedMaps rest = subtract(cell.map, bytes, subtracting.effort);
      if (subtracting.isReached(left.size() + rest.size())) // some of it is still there
        left.push_back({kNotFollowed, size, cell.map.domain()});
      else
        for (StridedMap &map : rest)
          left.push_back({cell.origin, size, std::move(map)});
    }
    // What elements of another size lay there is over.
  }
  SmallVector<Cell> written;
  for (const Piece &piece : content) {
    for (StridedMap &map : meet(place, piece.map, limit.effort))
      written.push_back({piece.origin, size, std::move(map)});
    if (limit.isReached(written.size())) {
      written.assign(1, Cell{kNotFollowed, size, bytes.domain()});
      break;
    }
  }
  left.append(std::move(written));
  cells = std::move(left);
}

StringRef MemoryContents::overwriterOf(exec::SlotOp slot) const {
  auto state = slots.find(slot);
  return state == slots.end() ? StringRef() : StringRef(state->second.overwriter);
}

} // namespace tessera::lower
