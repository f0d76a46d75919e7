//===- EvalProgram.cpp - evaluates programs of the exec dialect -----------===//
//
// See Program.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Signature.h"
#include "compiler/interp/Arena.h"
#include "compiler/interp/Program.h"
#include "compiler/interp/Shards.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::interp {

// --- Signature -------------------------------------------------------------------

/// Arguments whose next value the step leaves in their place.
static bool isUpdated(exec::ArgumentOp argument) {
  const std::optional<train::ArgRole> role = train::getArgRole(argument);
  return role == train::ArgRole::Param || role == train::ArgRole::State || role == train::ArgRole::Derived ||
         role == train::ArgRole::Buffer;
}

OwningOpRef<ModuleOp> signatureOf(exec::ProgramOp program) {
  program.getContext()->loadDialect<func::FuncDialect>(); // a module of programs alone has none
  OpBuilder builder(program.getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, program.getLoc());
  if (dist::MeshAttr mesh = meshOf(program))
    (*module)->setAttr(dist::kMesh, mesh);
  SmallVector<Type> inputs, outputs;
  SmallVector<DictionaryAttr> inputAttrs, outputAttrs;
  for (auto argument : program.getOps<exec::ArgumentOp>()) {
    inputs.push_back(tensorTypeOf(argument.getBuffer()));
    inputAttrs.push_back(argument->getDiscardableAttrDictionary());
  }
  for (auto result : program.getOps<exec::ResultOp>()) {
    outputs.push_back(tensorTypeOf(result.getBuffer()));
    outputAttrs.push_back(result->getDiscardableAttrDictionary());
  }
  for (auto [number, argument] : llvm::enumerate(program.getOps<exec::ArgumentOp>()))
    if (isUpdated(argument)) {
      outputs.push_back(inputs[number]);
      outputAttrs.push_back(builder.getDictionaryAttr(
          builder.getNamedAttr(train::kAlias, builder.getI64IntegerAttr(static_cast<int64_t>(number)))));
    }
  builder.setInsertionPointToEnd(module->getBody());
  auto function =
      func::FuncOp::create(builder, program.getLoc(), program.getSymName(), builder.getFunctionType(inputs, outputs));
  function.setPrivate();
  function.setAllArgAttrs(inputAttrs);
  function.setAllResultAttrs(outputAttrs);
  return module;
}

// --- Programs --------------------------------------------------------------------

namespace {

class ProgramRun {
public:
  ProgramRun(exec::ProgramOp program, int64_t numRanks)
      : mesh(meshOf(program)), numRanks(numRanks), memory(numRanks, Arenas(program)) {}

  RankTensors read(Value buffer) const {
    auto op = buffer.getDefiningOp<exec::BufferOp>();
    RankTensors tensors;
    for (int64_t rank = 0; rank < numRanks; ++rank)
      tensors.push_back(memory[rank].read(op, iteration, positionOf(op, rank)));
    return tensors;
  }

  void write(Value buffer, const RankTensors &tensors) {
    auto op = buffer.getDefiningOp<exec::BufferOp>();
    for (int64_t rank = 0; rank < numRanks; ++rank)
      memory[rank].write(op, iteration, positionOf(op, rank), tensors[rank]);
  }

  LogicalResult run(InstructionRun instruction) {
    iteration = instruction.iteration;
    if (auto copy = dyn_cast<exec::CopyOp>(instruction.op)) {
      write(copy.getTarget(), read(copy.getSource()));
      return success();
    }
    if (auto fill = dyn_cast<exec::FillOp>(instruction.op)) {
      Tensor value = Tensor::scalar(tensorTypeOf(fill.getTarget()), fill.getValue().convertToDouble());
      write(fill.getTarget(), RankTensors(numRanks, value));
      return success();
    }
    return compute(instruction.op);
  }

  /// For what is read and written before and after all instructions.
  void outsideLoops() { iteration = 0; }

private:
  /// The position of a rank in its group over the buffer's axes.
  int64_t positionOf(exec::BufferOp buffer, int64_t rank) const {
    if (!buffer.getRankAxes())
      return 0;
    for (const SmallVector<int64_t> &group : groupsOf(mesh, *buffer.getRankAxes()))
      if (auto *found = llvm::find(group, rank); found != group.end())
        return found - group.begin();
    return 0;
  }

  LogicalResult compute(Operation *instruction) {
    std::vector<RankTensors> inputs;
    for (Value buffer : exec::readBuffers(instruction))
      inputs.push_back(read(buffer));
    FailureOr<std::vector<RankTensors>> outputs = evaluateInstruction(instruction, std::move(inputs), mesh, numRanks);
    if (failed(outputs))
      return failure();
    // A workspace comes last and gets nothing.
    for (auto [buffer, tensors] : llvm::zip(exec::writtenBuffers(instruction), *outputs))
      write(buffer, tensors);
    return success();
  }

  dist::MeshAttr mesh;
  int64_t numRanks;
  int64_t iteration = 0;
  std::vector<Arenas> memory;
};

} // namespace

FailureOr<std::vector<RankTensors>> evaluateProgram(exec::ProgramOp program, std::vector<RankTensors> arguments,
                                                    int64_t numRanks, StreamOrder order) {
  if (failed(checkMemory(program)))
    return failure();
  dist::MeshAttr mesh = meshOf(program);
  if (mesh && mesh.getNumRanks() != numRanks)
    return program.emitError("the module's mesh has ")
           << mesh.getNumRanks() << " ranks, cannot evaluate on " << numRanks;
  ProgramRun run(program, numRanks);
  for (auto [argument, tensors] : llvm::zip_equal(program.getOps<exec::ArgumentOp>(), arguments))
    run.write(argument.getBuffer(), tensors);
  FailureOr<std::vector<InstructionRun>> instructions = orderOf(program, order);
  if (failed(instructions))
    return failure();
  for (const InstructionRun &instruction : *instructions)
    if (failed(run.run(instruction)))
      return failure();
  run.outsideLoops();
  std::vector<RankTensors> results;
  for (auto result : program.getOps<exec::ResultOp>())
    results.push_back(run.read(result.getBuffer()));
  for (auto argument : program.getOps<exec::ArgumentOp>())
    if (isUpdated(argument))
      results.push_back(run.read(argument.getBuffer()));
  return results;
}

} // namespace tessera::interp
