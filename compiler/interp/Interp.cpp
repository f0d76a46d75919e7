//===- Interp.cpp - the reference interpreter -----------------------------===//

#include "compiler/interp/Interp.h"

#include "compiler/dialect/exec/Exec.h"
#include "compiler/interp/Check.h"
#include "compiler/interp/Eval.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::interp {

const EvalFn *findEvaluation(StringRef opName) {
  static const EvalTable table = [] {
    EvalTable built;
    addElementwise(built);
    addShape(built);
    addReduce(built);
    addContract(built);
    addNeural(built);
    addState(built);
    return built;
  }();
  return table.find(opName);
}

dist::MeshAttr meshOf(Operation *op) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  return module ? module->getAttrOfType<dist::MeshAttr>(dist::kMesh) : dist::MeshAttr();
}

namespace {

class Interpreter {
public:
  Interpreter(dist::MeshAttr mesh, int64_t numRanks) : mesh(mesh), numRanks(numRanks) {}

  void bind(Value value, RankTensors tensors) { values[value] = std::move(tensors); }

  /// Evaluates the ops of a block and returns the operands of its terminator.
  FailureOr<std::vector<RankTensors>> run(Block &block) {
    for (Operation &op : block.without_terminator())
      if (failed(evaluateOp(op)))
        return failure();
    std::vector<RankTensors> yielded;
    for (Value operand : block.getTerminator()->getOperands())
      yielded.push_back(values[operand]);
    return yielded;
  }

private:
  LogicalResult evaluateOp(Operation &op) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
        .Case<train::AccumulateOp>([&](auto accumulate) { return evaluateAccumulate(accumulate); })
        .Case<exec::FusionOp>([&](auto fusion) {
          Block &body = fusion.getBody().front();
          for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), fusion.getOperands()))
            bind(argument, values[operand]);
          return bindResults(op, run(body));
        })
        .Case<exec::RepeatOp>([&](auto repeat) { return evaluateRepeat(repeat); })
        .Case<dist::DealOp>([](auto) { return success(); }) // no value depends on it
        .Case<dist::ConstrainOp, dist::MoveAxesOp, dist::ReshardOp, dist::CopyStartOp, dist::DoneOp>(
            [&](auto identity) {
              bind(identity->getResult(0), values[identity->getOperand(0)]);
              return success();
            })
        .Default([&](Operation *) {
          if (isCollective(&op))
            return evaluateCollective(op);
          if (isa_and_present<check::CheckDialect>(op.getDialect()))
            return evaluateCheck(op);
          return evaluateOnEachRank(op);
        });
  }

  LogicalResult bindResults(Operation &op, FailureOr<std::vector<RankTensors>> results) {
    if (failed(results))
      return failure();
    for (auto [result, tensors] : llvm::zip_equal(op.getResults(), *results))
      bind(result, std::move(tensors));
    return success();
  }

  SmallVector<const Tensor *> operandsOn(Operation &op, int64_t rank) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&values[operand][rank]);
    return operands;
  }

  LogicalResult evaluateOnEachRank(Operation &op) {
    const EvalFn *evaluation = findEvaluation(op.getName().getStringRef());
    if (!evaluation)
      return op.emitError("the interpreter does not know this op");
    std::vector<RankTensors> results(op.getNumResults());
    for (int64_t rank = 0; rank < numRanks; ++rank) {
      FailureOr<Results> onRank = (*evaluation)(EvalContext{&op, /*silent=*/false}, operandsOn(op, rank));
      if (failed(onRank))
        return failure();
      for (auto [result, tensor] : llvm::zip_equal(results, *onRank))
        result.push_back(std::move(tensor));
    }
    return bindResults(op, std::move(results));
  }

  LogicalResult evaluateCollective(Operation &op) {
    SmallVector<const Tensor *> operand;
    if (op.getNumOperands() != 0)
      for (const Tensor &tensor : values[op.getOperand(0)])
        operand.push_back(&tensor);
    FailureOr<std::vector<Tensor>> result = evalCollective(&op, operand, mesh);
    if (failed(result))
      return failure();
    bind(op.getResult(0), std::move(*result));
    return success();
  }

  LogicalResult evaluateCheck(Operation &op) {
    for (int64_t rank = 0; rank < numRanks; ++rank)
      if (failed(check::evaluate(&op, *operandsOn(op, rank)[0], *operandsOn(op, rank)[1], rank)))
        return failure();
    return success();
  }

  LogicalResult evaluateAccumulate(train::AccumulateOp op) {
    Block &body = op.getBody().front();
    const size_t numSums = op.getNumResults() - op.getCarried();
    std::vector<RankTensors> sums;
    for (Value result : op.getResults().take_front(numSums))
      sums.emplace_back(numRanks, Tensor(cast<RankedTensorType>(result.getType())));
    for (Value init : op.getInit())
      sums.push_back(values[init]);
    for (int64_t iteration = 0, count = op.getCount(); iteration < count; ++iteration) {
      bindIteration(body, iteration, op.getBatch());
      for (auto [argument, tensors] :
           llvm::zip_equal(body.getArguments().take_back(op.getCarried()), llvm::drop_begin(sums, numSums)))
        bind(argument, std::move(tensors));
      FailureOr<std::vector<RankTensors>> yielded = run(body);
      if (failed(yielded))
        return failure();
      for (size_t result = 0; result < numSums; ++result)
        for (auto [sumOnRank, termOnRank] : llvm::zip_equal(sums[result], (*yielded)[result]))
          addTo(sumOnRank, termOnRank);
      std::move(yielded->begin() + numSums, yielded->end(), sums.begin() + numSums);
    }
    return bindResults(*op, std::move(sums));
  }

  LogicalResult evaluateRepeat(exec::RepeatOp op) {
    Block &body = op.getBody().front();
    std::vector<RankTensors> carried;
    for (Value init : op.getInit())
      carried.push_back(values[init]);
    for (int64_t iteration = 0, count = op.getCount(); iteration < count; ++iteration) {
      bindIteration(body, iteration, op.getBatch());
      for (auto [argument, tensors] : llvm::zip_equal(body.getArguments().take_back(carried.size()), carried))
        bind(argument, std::move(tensors));
      FailureOr<std::vector<RankTensors>> yielded = run(body);
      if (failed(yielded))
        return failure();
      carried = std::move(*yielded);
    }
    return bindResults(*op, std::move(carried));
  }

  /// Binds the first arguments of a loop body: the iteration number, and slice `iteration` of each batch operand.
  void bindIteration(Block &body, int64_t iteration, ValueRange batch) {
    auto counterType = cast<RankedTensorType>(body.getArgument(0).getType());
    bind(body.getArgument(0), RankTensors(numRanks, Tensor::scalar(counterType, static_cast<double>(iteration))));
    for (auto [argument, operand] : llvm::zip(body.getArguments().drop_front(), batch)) {
      RankTensors micro;
      for (const Tensor &whole : values[operand])
        micro.push_back(extractPart(whole, 0, iteration, 1).reshaped(cast<RankedTensorType>(argument.getType())));
      bind(argument, std::move(micro));
    }
  }

  static void addTo(Tensor &sum, const Tensor &term) {
    for (int64_t i = 0, end = sum.size(); i < end; ++i)
      sum.isFloat() ? sum.set(i, sum.at(i) + term.at(i)) : sum.setInt(i, sum.intAt(i) + term.intAt(i));
  }

  dist::MeshAttr mesh;
  int64_t numRanks;
  llvm::DenseMap<Value, RankTensors> values;
};

} // namespace

FailureOr<std::vector<RankTensors>> evaluate(func::FuncOp function, std::vector<RankTensors> arguments,
                                             int64_t numRanks) {
  if (function.isExternal())
    return function.emitError("has no body to evaluate");
  if (arguments.size() != function.getNumArguments())
    return function.emitError("takes ") << function.getNumArguments() << " arguments, got " << arguments.size();
  if (!arguments.empty())
    numRanks = static_cast<int64_t>(arguments.front().size());
  for (Type type : function.getResultTypes())
    if (!isa<RankedTensorType>(type))
      return function.emitError("returns a value of type ") << type << ", expected a tensor";
  dist::MeshAttr mesh = meshOf(function);
  if (mesh && mesh.getNumRanks() != numRanks)
    return function.emitError("the module's mesh has ")
           << mesh.getNumRanks() << " ranks, cannot evaluate on " << numRanks;
  Interpreter interpreter(mesh, numRanks);
  for (auto [index, argument] : llvm::enumerate(function.getArguments())) {
    for (const Tensor &tensor : arguments[index])
      if (tensor.getType() != argument.getType())
        return function.emitError("argument ")
               << index << " has type " << argument.getType() << ", got a value of type " << tensor.getType();
    interpreter.bind(argument, std::move(arguments[index]));
  }
  return interpreter.run(function.getBody().front());
}

FailureOr<std::vector<Tensor>> evaluateOnOneRank(func::FuncOp function, std::vector<Tensor> arguments) {
  std::vector<RankTensors> perRank;
  for (Tensor &argument : arguments)
    perRank.emplace_back(1, std::move(argument));
  FailureOr<std::vector<RankTensors>> results = evaluate(function, std::move(perRank));
  if (failed(results))
    return failure();
  std::vector<Tensor> tensors;
  for (RankTensors &result : *results)
    tensors.push_back(std::move(result.front()));
  return tensors;
}

// --- Global values -------------------------------------------------------------

RankedTensorType globalArgType(func::FuncOp function, unsigned index) {
  if (auto global = function.getArgAttrOfType<TypeAttr>(index, dist::kGlobal))
    return cast<RankedTensorType>(global.getValue());
  return cast<RankedTensorType>(function.getArgumentTypes()[index]);
}

/// The argument that a result replaces, or -1.
static int64_t aliasOf(func::FuncOp function, unsigned result) {
  auto alias = function.getResultAttrOfType<IntegerAttr>(result, train::kAlias);
  return alias && alias.getInt() < function.getNumArguments() ? alias.getInt() : -1;
}

RankedTensorType globalResultType(func::FuncOp function, unsigned index) {
  if (auto global = function.getResultAttrOfType<TypeAttr>(index, dist::kGlobal))
    return cast<RankedTensorType>(global.getValue());
  if (int64_t alias = aliasOf(function, index); alias >= 0)
    return globalArgType(function, static_cast<unsigned>(alias));
  return cast<RankedTensorType>(function.getResultTypes()[index]);
}

static dist::ShardingAttr resultSharding(func::FuncOp function, unsigned index) {
  if (function.getResultAttr(index, dist::kGlobal))
    return function.getResultAttrOfType<dist::ShardingAttr>(index, dist::kSharding);
  if (int64_t alias = aliasOf(function, index); alias >= 0 && function.getArgAttr(alias, dist::kGlobal))
    return function.getArgAttrOfType<dist::ShardingAttr>(alias, dist::kSharding);
  return {};
}

FailureOr<std::vector<Tensor>> evaluateGlobal(func::FuncOp function, ArrayRef<Tensor> arguments, int64_t numRanks) {
  if (dist::MeshAttr mesh = meshOf(function))
    numRanks = mesh.getNumRanks();
  return evaluateGlobal(function, arguments, numRanks, [&](std::vector<RankTensors> perRank) {
    return evaluate(function, std::move(perRank), numRanks);
  });
}

FailureOr<std::vector<Tensor>> evaluateGlobal(func::FuncOp function, ArrayRef<Tensor> arguments, int64_t numRanks,
                                              RankEvaluation run) {
  dist::MeshAttr mesh = meshOf(function);
  std::vector<RankTensors> perRank;
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    auto error = [&, index = index] { return function.emitError("argument ") << index << ": "; };
    auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(index, dist::kSharding);
    if (!mesh || !sharding || !function.getArgAttr(index, dist::kGlobal)) {
      perRank.emplace_back(numRanks, argument);
      continue;
    }
    FailureOr<RankTensors> locals = split(argument, sharding, mesh, error);
    if (failed(locals))
      return failure();
    perRank.push_back(std::move(*locals));
  }
  FailureOr<std::vector<RankTensors>> results = run(std::move(perRank));
  if (failed(results))
    return failure();
  std::vector<Tensor> globals;
  for (auto [index, locals] : llvm::enumerate(*results)) {
    auto error = [&, index = index] { return function.emitError("result ") << index << ": "; };
    auto sharding = resultSharding(function, index);
    RankedTensorType type = globalResultType(function, index);
    if (!mesh || !sharding) {
      for (auto [rank, local] : llvm::enumerate(locals))
        if (!local.bitwiseEquals(locals.front()))
          return error() << "ranks 0 and " << rank << " hold different copies";
      globals.push_back(std::move(locals.front()));
      continue;
    }
    FailureOr<Tensor> global = join(locals, type, sharding, mesh, error);
    if (failed(global))
      return failure();
    globals.push_back(std::move(*global));
  }
  return globals;
}

} // namespace tessera::interp
