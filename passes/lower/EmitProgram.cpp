//===- EmitProgram.cpp - slots, buffers, copies and control flow ----------===//
//
// See Emitter.h. This half makes memory and what surrounds the instructions; EmitInstructions.cpp makes those.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/lower/Emitter.h"

using namespace mlir;

namespace tessera::lower {

StringRef arenaName(exec::ArenaKind kind) { return exec::stringifyArenaKind(kind); }

Emitter::Emitter(func::FuncOp func, const BufferAssignment &assignment)
    : func(func), assignment(assignment), memory(func.getContext()), code(func.getContext()) {}

// --- Memory ----------------------------------------------------------------------

static Value createSlot(OpBuilder &builder, Location loc, StringRef name, exec::ArenaKind arena,
                        exec::MemoryClass memoryClass, int64_t bytes) {
  auto type = MemRefType::get({bytes}, builder.getI8Type());
  return exec::SlotOp::create(builder, loc, type, name, arenaName(arena), memoryClass, IntegerAttr(),
                              DenseI64ArrayAttr());
}

Value Emitter::slot(unsigned storage) {
  Value &result = slots[storage];
  if (!result) {
    const Storage &planned = assignment.getStorage(storage);
    result = createSlot(memory, planned.loc, planned.name, planned.arena, planned.memoryClass, planned.bytes());
  }
  return result;
}

Value Emitter::temporary(RankedTensorType type, StringRef name, exec::MemoryClass memoryClass, exec::ArenaKind arena,
                         Location loc) {
  return createSlot(memory, loc, name, arena, memoryClass,
                    type.getNumElements() * exec::elementBytes(type.getElementType()));
}

Value Emitter::buffer(Value slot, const Layout &layout, Type elementType) {
  int64_t bytes = exec::elementBytes(elementType);
  // Dimensions of size 1 get the stride of a row-major reading, which libraries like best.
  SmallVector<int64_t> strides = layout.strides;
  for (int64_t dim = int64_t(strides.size()) - 1; dim >= 0; --dim)
    if (layout.shape[dim] == 1)
      strides[dim] = dim + 1 == int64_t(strides.size()) ? 1 : strides[dim + 1] * layout.shape[dim + 1];
  MemRefLayoutAttrInterface map;
  if (strides != Layout::contiguous(layout.shape).strides)
    map = StridedLayoutAttr::get(elementType.getContext(), 0, strides);
  auto type = MemRefType::get(layout.shape, elementType, map);
  for (Value existing : buffers[slot]) {
    auto op = existing.getDefiningOp<exec::BufferOp>();
    if (op.getType() == type && int64_t(op.getOffset()) == layout.offset * bytes &&
        int64_t(op.getIterationStride()) == layout.iterationStride * bytes &&
        int64_t(op.getRankStride()) == layout.rankStride * bytes && op.getRankAxesAttr() == layout.rankAxes)
      return existing;
  }
  Value result = exec::BufferOp::create(memory, slot.getLoc(), type, slot, layout.offset * bytes,
                                        layout.iterationStride * bytes, layout.rankStride * bytes, layout.rankAxes);
  buffers[slot].push_back(result);
  return result;
}

Value Emitter::bufferOf(const View &view) {
  return buffer(slot(view.storage), view.layout, assignment.getStorage(view.storage).elementType);
}

static void remarkCopy(Value tensor, Location loc, StringRef why) {
  std::string name = nameOf(tensor.getLoc());
  mlir::emitRemark(loc) << (name.empty() ? "a value" : "'" + name + "'") << " is copied: " << why;
}

Emitter::Source Emitter::copyOf(Value tensor, Location loc, StringRef why) {
  Source &result = copies[{tensor, code.getInsertionBlock()}];
  if (result.slot)
    return result;
  remarkCopy(tensor, loc, why);
  auto type = cast<RankedTensorType>(tensor.getType());
  result.slot = temporary(type, nameOf(tensor.getLoc()) + ".copy", exec::MemoryClass::Workspace,
                          exec::ArenaKind::Activations, loc);
  result.layout = Layout::contiguous(type.getShape());
  emitCopy(bufferOf(tensor), buffer(result.slot, result.layout, type.getElementType()), loc);
  return result;
}

Emitter::Source Emitter::source(OpOperand &use) {
  const View *view = assignment.lookup(use.get());
  if (acceptsLayout(use, view->layout))
    return {slot(view->storage), view->layout};
  return copyOf(use.get(), use.getOwner()->getLoc(), "operand is a strided view that its reader cannot use");
}

Value Emitter::sourceBuffer(OpOperand &use) {
  Source from = source(use);
  return buffer(from.slot, from.layout, cast<RankedTensorType>(use.get().getType()).getElementType());
}

void Emitter::emitCopy(Value from, Value to, Location loc) {
  if (from != to)
    instruction<exec::CopyOp>(loc, exec::kComputeStream, from, to);
}

// --- Program ---------------------------------------------------------------------

FailureOr<exec::ProgramOp> Emitter::emit() {
  OpBuilder builder(func);
  program = exec::ProgramOp::create(builder, func.getLoc(), func.getName());
  for (NamedAttribute attr : func->getDiscardableAttrs())
    program->setDiscardableAttr(attr.getName(), attr.getValue());
  Block *header = new Block, *body = new Block;
  program.getBody().push_back(header);
  program.getBody().push_back(body);
  memory.setInsertionPointToEnd(header);
  code.setInsertionPointToEnd(body);
  for (auto kind : {exec::ArenaKind::State, exec::ArenaKind::Activations})
    exec::ArenaOp::create(memory, func.getLoc(), arenaName(kind), kind, 0);
  if (llvm::any_of(assignment.getStorages(),
                   [](const Storage &storage) { return storage.arena == exec::ArenaKind::Host; }))
    exec::ArenaOp::create(memory, func.getLoc(), arenaName(exec::ArenaKind::Host), exec::ArenaKind::Host, 0);
  emitArguments();
  if (failed(emitBlock(func.getBody().front())))
    return failure();
  streams.finish(*body);
  header->getOperations().splice(header->end(), body->getOperations());
  body->erase();
  return program;
}

void Emitter::emitArguments() {
  for (BlockArgument argument : func.getArguments()) {
    auto op = exec::ArgumentOp::create(code, argument.getLoc(), bufferOf(argument));
    if (DictionaryAttr attrs = func.getArgAttrDict(argument.getArgNumber()))
      op->setDiscardableAttrs(attrs);
    if (train::isBatchArgument(func, argument.getArgNumber()))
      op->setAttr(train::kDims, train::getDims(func, argument.getArgNumber()));
  }
}

LogicalResult Emitter::emitBlock(Block &block) {
  for (Operation &op : block)
    if (failed(emitOp(&op)))
      return failure();
  return success();
}

LogicalResult Emitter::move(Value tensor, Value to, Location loc, StringRef why) {
  if (auto constant = tensor.getDefiningOp<train::ConstantOp>()) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!splat)
      return constant.emitError("a constant whose elements differ can only be used inside a kernel");
    std::optional<double> number = train::splatOf(splat);
    if (!number)
      return constant.emitError() << "a constant of " << splat.getSplatValue<Attribute>()
                                  << ", which no double holds exactly, can only be used inside a kernel";
    instruction<exec::FillOp>(loc, exec::kComputeStream, to, APFloat(*number));
    return success();
  }
  Value from = bufferOf(tensor);
  if (from == to)
    return success();
  remarkCopy(tensor, loc, why);
  emitCopy(from, to, loc);
  return success();
}

LogicalResult Emitter::moveAll(ArrayRef<std::pair<Value, View>> moves, Location loc, StringRef why) {
  // What another move overwrites is saved first.
  SmallVector<std::pair<Value, Value>> saved;
  for (auto [i, move] : llvm::enumerate(moves)) {
    const View *from = assignment.lookup(move.first);
    if (!from || bufferOf(*from) == bufferOf(move.second))
      continue;
    for (auto [j, other] : llvm::enumerate(moves)) {
      if (i == j || other.second.storage != from->storage)
        continue;
      Source copy = copyOf(move.first, loc, "two values change places");
      saved.push_back({move.first, buffer(copy.slot, copy.layout, assignment.getStorage(from->storage).elementType)});
      break;
    }
  }
  for (const auto &[tensor, target] : moves) {
    Value to = bufferOf(target);
    auto found = llvm::find_if(saved, [&, tensor = tensor](auto &entry) { return entry.first == tensor; });
    if (found != saved.end())
      emitCopy(found->second, to, loc);
    else if (failed(move(tensor, to, loc, why)))
      return failure();
  }
  return success();
}

LogicalResult Emitter::emitRepeat(exec::RepeatOp op) {
  Block &body = op.getBody().front();
  for (auto [i, operand] : llvm::enumerate(op.getBatch()))
    if (!assignment.lookup(body.getArgument(1 + i)))
      return op.emitError() << "micro-batches of operand " << i << " cannot be addressed: it is itself part of a loop";
  for (auto [init, result] : llvm::zip_equal(op.getInit(), op.getResults()))
    if (failed(move(init, bufferOf(result), op.getLoc(), "initial value of a loop is needed elsewhere")))
      return failure();
  if (const View *index = assignment.lookup(body.getArgument(0)))
    for (int64_t i = 0, count = op.getCount(); i < count; ++i) {
      Layout element = Layout::contiguous({});
      element.offset = i;
      instruction<exec::FillOp>(
          op.getLoc(), exec::kComputeStream,
          buffer(slot(index->storage), element, assignment.getStorage(index->storage).elementType), APFloat(double(i)));
    }
  auto loop = exec::LoopOp::create(code, op.getLoc(), op.getCount());
  loop.getBody().emplaceBlock();
  OpBuilder::InsertionGuard guard(code);
  code.setInsertionPointToEnd(&loop.getBody().front());
  streams.crossLoopBoundary();
  for (Operation &inner : body.without_terminator())
    if (failed(emitOp(&inner)))
      return failure();
  SmallVector<std::pair<Value, View>> moves;
  for (auto [next, result] : llvm::zip_equal(body.getTerminator()->getOperands(), op.getResults()))
    moves.push_back({next, *assignment.lookup(result)});
  if (failed(moveAll(moves, op.getLoc(), "next value of a loop is not made in its place")))
    return failure();
  streams.crossLoopBoundary();
  return success();
}

LogicalResult Emitter::emitReturn(func::ReturnOp op) {
  SmallVector<std::pair<Value, View>> moves;
  for (auto [i, value] : llvm::enumerate(op.getOperands())) {
    if (auto alias = func.getResultAttrOfType<IntegerAttr>(i, train::kAlias)) {
      moves.push_back({value, *assignment.lookup(func.getArgument(alias.getInt()))});
      continue;
    }
    const View *view = assignment.lookup(value);
    auto type = cast<RankedTensorType>(value.getType());
    Value result;
    if (view && assignment.isWhole(*view) && assignment.getStorage(view->storage).arena == exec::ArenaKind::State &&
        !isa<BlockArgument>(assignment.getStorage(view->storage).root)) {
      result = bufferOf(*view);
    } else {
      auto name = func.getResultAttrOfType<StringAttr>(i, train::kName);
      Value slot = temporary(type, name ? name.getValue() : nameOf(value.getLoc()), exec::MemoryClass::Workspace,
                             exec::ArenaKind::State, op.getLoc());
      result = buffer(slot, Layout::contiguous(type.getShape()), type.getElementType());
      if (failed(move(value, result, op.getLoc(), "result is a view of something else")))
        return failure();
    }
    auto bound = exec::ResultOp::create(code, op.getLoc(), result);
    if (DictionaryAttr attrs = func.getResultAttrDict(i))
      bound->setDiscardableAttrs(attrs);
  }
  // Arguments take their next values when nothing reads the old ones any more.
  return moveAll(moves, op.getLoc(), "next value of an argument is not made in its place");
}

} // namespace tessera::lower
