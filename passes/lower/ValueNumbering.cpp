//===- ValueNumbering.cpp - each read sees the value it stands for --------===//
//
// See ValueNumbering.h. This file walks the step and the program; what each kind of instruction reads and writes is in
// ValueNumberingOps.cpp.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/ValueNumbering.h"

#include "passes/lower/InstructionOrder.h"
#include "passes/lower/ValueProof.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera::lower {

// --- Instructions in order -------------------------------------------------------

Operation *ValueProof::nextInstruction() {
  for (; at != end; ++at) {
    Operation *op = &*at;
    if (auto copy = dyn_cast<exec::CopyOp>(op)) {
      if (failed(verifyApart(op, copy.getSource(), copy.getTarget(), /*mayBeOne=*/true)))
        return nullptr;
      memory.write(copy.getTarget(), iteration, memory.read(copy.getSource(), iteration));
    } else if (auto fill = dyn_cast<exec::FillOp>(op)) {
      memory.write(fill.getTarget(), iteration,
                   values.constant(fill.getValue().convertToDouble(), numElements(fill.getTarget())));
    } else if (auto result = dyn_cast<exec::ResultOp>(op)) {
      results.push_back(result);
    } else if (auto probe = dyn_cast<exec::ProbeOp>(op)) {
      probes.push_back(probe);
    } else if (exec::isInstruction(op) && !isa<exec::RecordOp, exec::WaitOp>(op)) {
      ++at;
      return op;
    }
  }
  return nullptr;
}

LogicalResult ValueProof::bindArgument(exec::ArgumentOp argument) {
  if (arguments.size() == step.getNumArguments())
    return bug(argument) << "the step has no argument " << arguments.size();
  BlockArgument value = step.getArgument(arguments.size());
  if (auto type = argument.getBuffer().getType(); type.getShape() != cast<RankedTensorType>(value.getType()).getShape())
    return bug(argument) << "the step's " << describe(value) << " is " << value.getType() << ", got " << type;
  values.define(value);
  memory.write(argument.getBuffer(), 0, values.lookup(value));
  arguments.push_back(argument);
  return success();
}

// --- The step --------------------------------------------------------------------

LogicalResult ValueProof::run() {
  Block &code = program.getBody().front();
  at = code.begin();
  end = code.end();
  // Arguments stand before all instructions.
  for (auto argument : program.getOps<exec::ArgumentOp>())
    if (failed(bindArgument(argument)))
      return failure();
  if (arguments.size() != step.getNumArguments())
    return bug(program) << "has " << arguments.size() << " arguments, the step " << step.getNumArguments();
  Block &body = step.getBody().front();
  if (failed(runBlock(body)) || failed(finishBlock()))
    return failure();
  return verifyResults(cast<func::ReturnOp>(body.getTerminator()));
}

LogicalResult ValueProof::runBlock(Block &body) {
  for (Operation &op : body.without_terminator()) {
    if (values.derive(&op))
      continue;
    Operation *instruction = nextInstruction();
    if (hasFailed)
      return failure();
    if (!instruction)
      return bug(&op) << "no instruction carries out " << describe(op.getResult(0));
    auto repeat = dyn_cast<exec::RepeatOp>(op);
    if (failed(repeat ? runLoop(repeat, instruction) : verifyInstruction(&op, instruction)))
      return failure();
  }
  return success();
}

LogicalResult ValueProof::finishBlock() {
  Operation *instruction = nextInstruction();
  if (hasFailed)
    return failure();
  if (instruction)
    return bug(instruction) << "'" << instruction->getName() << "' carries out nothing of the step";
  return success();
}

LogicalResult ValueProof::runLoop(exec::RepeatOp repeat, Operation *instruction) {
  auto loop = dyn_cast<exec::LoopOp>(instruction);
  if (!loop || loop.getCount() != repeat.getCount())
    return bug(instruction) << "'" << instruction->getName() << "' stands where " << int64_t(repeat.getCount())
                            << " iterations are due";
  Block &body = repeat.getBody().front();
  const auto afterLoop = std::pair(at, end);
  SmallVector<Content> carried;
  for (Value init : repeat.getInit())
    carried.push_back(values.lookup(init));
  // Two iterations show what holds for all, if one differs from the next by offsets.
  const bool isRegular = llvm::all_of(repeat.getBatch(), [&](Value value) { return values.lookup(value).size() == 1; });
  const int64_t count = int64_t(repeat.getCount()), shown = isRegular ? std::min<int64_t>(2, count) : count;
  for (iteration = 0; iteration < shown; ++iteration) {
    BlockArgument number = body.getArgument(0);
    values.bind(number, values.constant(double(iteration), 1));
    for (auto [argument, operand] : llvm::zip(body.getArguments().drop_front(), repeat.getBatch()))
      values.bind(argument, values.part(values.lookup(operand), iteration, numElements(argument)));
    for (auto [argument, content] : llvm::zip_equal(body.getArguments().take_back(carried.size()), carried))
      values.bind(argument, content);
    at = loop.getBody().front().begin();
    end = loop.getBody().front().end();
    if (failed(runBlock(body)) || failed(finishBlock()))
      return failure();
    for (auto [content, next] : llvm::zip_equal(carried, body.getTerminator()->getOperands()))
      content = values.lookup(next);
  }
  iteration = 0;
  std::tie(at, end) = afterLoop;
  for (auto [result, content] : llvm::zip_equal(repeat.getResults(), carried))
    values.bind(result, content);
  return success();
}

LogicalResult ValueProof::verifyResults(func::ReturnOp returned) {
  size_t next = 0;
  for (auto [i, value] : llvm::enumerate(returned.getOperands())) {
    if (auto alias = step.getResultAttrOfType<IntegerAttr>(i, train::kAlias)) {
      exec::ArgumentOp argument = arguments[alias.getInt()];
      if (failed(verifyRead(argument, argument.getBuffer(), values.lookup(value))))
        return failure();
      continue;
    }
    if (next == results.size())
      return bug(program) << "has no result for " << describe(value);
    exec::ResultOp result = results[next++];
    if (failed(verifyRead(result, result.getBuffer(), values.lookup(value))))
      return failure();
  }
  if (next != results.size())
    return bug(results[next]) << "is a result that the step does not have";
  return success();
}

// --- Reads and writes ------------------------------------------------------------

InFlightDiagnostic ValueProof::bug(Operation *op) {
  hasFailed = true;
  return op->emitError("internal compiler error: ");
}

ValueProof::Comparison ValueProof::compare(Value buffer, const Content &expected, int64_t iteration) const {
  const Content found = memory.read(buffer, iteration);
  PieceLimit limit(found.size() * expected.size());
  int64_t matching = 0;
  for (const Piece &here : found)
    for (const Piece &due : expected) {
      if (here.origin == kNotFollowed || due.origin == kNotFollowed)
        continue;
      const StridedMaps common = meet(here.map, due.map, limit.effort);
      if (limit.effort < 0)
        return {};
      for (const StridedMap &elements : common) {
        // The first element, or the one after it along a dimension that runs in another order.
        StridedMap::Dim step{0, 0, 0};
        if (here.origin == due.origin && elements.in == elements.out)
          for (const StridedMap::Dim &dim : elements.dims)
            if (dim.in != dim.out)
              step = dim;
        if (here.origin != due.origin || elements.in + step.in != elements.out + step.out)
          return {Difference{due.origin, elements.out + step.out, here.origin, elements.in + step.in}};
        matching += elements.size();
      }
    }
  // What is not followed may still lie where something else was written since.
  if (matching == numElements(buffer))
    return {std::nullopt, /*isProved=*/true};
  if (!isFollowed(found) || !isFollowed(expected))
    return {};
  return {Difference{expected.front().origin, expected.front().map.out, std::nullopt, 0}};
}

LogicalResult ValueProof::verifyRead(Operation *op, Value buffer, const Content &expected) {
  const Comparison comparison = compare(buffer, expected, iteration);
  if (comparison.difference)
    return report(op, buffer, *comparison.difference);
  if (!comparison.isProved)
    unproved.insert({op, buffer});
  return success();
}

LogicalResult ValueProof::verifyOperand(Operation *op, Value buffer, Value operand) {
  if (Type type = cast<RankedTensorType>(operand.getType()).getElementType();
      type != cast<MemRefType>(buffer.getType()).getElementType())
    return bug(op) << "'" << op->getName() << "' reads " << describe(operand) << " of " << type << " as "
                   << buffer.getType();
  if (failed(verifyRead(op, buffer, values.lookup(operand))))
    return failure();
  while (auto reshape = operand.getDefiningOp<train::ReshapeOp>())
    operand = reshape.getOperand();
  auto argument = dyn_cast<BlockArgument>(operand);
  auto repeat = argument ? dyn_cast<exec::RepeatOp>(argument.getOwner()->getParentOp()) : exec::RepeatOp();
  if (!repeat || argument.getArgNumber() != 0 || iteration != 1)
    return success();
  // Numbers are no offsets: two iterations do not show those of all.
  for (int64_t later = 2, count = int64_t(repeat.getCount()); later < count; ++later)
    if (std::optional<Difference> difference = compare(buffer, values.constant(double(later), 1), later).difference)
      return report(op, buffer, *difference);
  return success();
}

LogicalResult ValueProof::report(Operation *op, Value buffer, const Difference &difference) {
  exec::SlotOp slot = slotOf(buffer);
  InFlightDiagnostic diag = bug(op);
  diag << "'" << op->getName() << "' expects in slot '" << slot.getName() << "' element " << difference.element
       << " of " << values.describe(difference.expected) << " and finds ";
  StringRef overwriter = memory.overwriterOf(slot);
  if (difference.found)
    diag << "element " << difference.foundElement << " of " << values.describe(*difference.found);
  else if (!overwriter.empty())
    diag << "what slot '" << overwriter << "' has overwritten";
  else
    diag << "that not all of it was written";
  return diag;
}

LogicalResult ValueProof::verifyApart(Operation *op, Value read, Value written, bool mayBeOne) {
  if (!memory.overlap(read, written, iteration))
    return success();
  if (mayBeOne && memory.placeOf(read, iteration) == memory.placeOf(written, iteration))
    return success();
  return bug(op) << "'" << op->getName() << "' writes to slot '" << slotOf(written).getName()
                 << "' where it still reads";
}

// --- All of it -------------------------------------------------------------------

func::FuncOp stepOf(exec::ProgramOp program) {
  auto functions = program.getOps<func::FuncOp>();
  return functions.empty() ? func::FuncOp() : *functions.begin();
}

/// Strides that interleave have no order of rows, and the planner makes none.
static LogicalResult verifyNested(exec::ProgramOp program) {
  for (auto buffer : program.getOps<exec::BufferOp>())
    if (!placeOf(buffer, 0, 0).inverse().isNested())
      return buffer.emitError("internal compiler error: the strides of ")
             << buffer.getType() << " interleave, so that what it holds cannot be followed";
  return success();
}

LogicalResult verifyValues(exec::ProgramOp program, func::FuncOp step) {
  if (failed(verifyNested(program)))
    return failure();
  auto mesh = program->getParentOfType<ModuleOp>()->getAttrOfType<dist::MeshAttr>(dist::kMesh);
  bool dependsOnRank = false;
  program.walk([&](Operation *op) {
    auto buffer = dyn_cast<exec::BufferOp>(op);
    dependsOnRank |= isa<dist::SliceLocalOp>(op) || (buffer && buffer.getRankAxes());
  });
  llvm::SmallSetVector<int64_t, 3> ranks;
  ranks.insert(0);
  if (dependsOnRank && mesh) {
    ranks.insert(std::min<int64_t>(1, mesh.getNumRanks() - 1));
    ranks.insert(mesh.getNumRanks() - 1);
  }
  llvm::SmallSetVector<ValueProof::Unproved, 4> unproved;
  for (int64_t rank : ranks) {
    ValueProof proof(program, step, mesh, rank);
    if (failed(proof.run()))
      return failure();
    unproved.insert_range(proof.getUnproved());
  }
  for (auto [op, buffer] : unproved)
    op->emitRemark() << "not proved: what '" << op->getName() << "' reads in slot '" << slotOf(buffer).getName()
                     << "' was moved in too many pieces to follow";
  return success();
}

} // namespace tessera::lower
