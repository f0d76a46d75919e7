//===- EvalInstruction.cpp - what one instruction computes ----------------===//
//
// A launch runs its kernel's function. Every other instruction stands for an op of the train, dist or exec dialect on
// the tensors that its buffers hold; that op is made, and evaluated as everywhere else.
//
//===----------------------------------------------------------------------===//

#include "compiler/interp/Eval.h"
#include "compiler/interp/Program.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::interp {

RankedTensorType tensorTypeOf(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

namespace {

/// A product of 8-bit floats: its op takes the transpose of the instruction's `b`.
bool isScaledProduct(Operation *instruction) {
  auto gemm = dyn_cast<exec::GemmOp>(instruction);
  return gemm && gemm.getAScales();
}

Tensor transposed(const Tensor &matrix) {
  const int64_t rows = matrix.getShape()[0], columns = matrix.getShape()[1];
  Tensor result(matrix.getType().clone({columns, rows}));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      result.set(column * rows + row, matrix.at(row * columns + column));
  return result;
}

/// Makes the op that an instruction stands for, in a block of its own, whose arguments are the instruction's inputs.
class OpBehind {
public:
  explicit OpBehind(Operation *instruction) : instruction(instruction), builder(instruction->getContext()) {
    for (Value buffer : exec::readBuffers(instruction))
      block.addArgument(tensorTypeOf(buffer), instruction->getLoc());
    if (isScaledProduct(instruction)) {
      RankedTensorType b = tensorTypeOf(instruction->getOperand(1));
      block.getArgument(1).setType(b.clone({b.getDimSize(1), b.getDimSize(0)}));
    }
    builder.setInsertionPointToEnd(&block);
    op = llvm::TypeSwitch<Operation *, Operation *>(instruction)
             .Case<exec::GemmOp, exec::ConvOp, exec::AttentionOp, exec::AttentionGradOp, exec::CollectiveOp,
                   exec::AxisIndexOp>([&](auto typed) { return make(typed); })
             .Default([](Operation *) { return nullptr; });
  }
  /// Null for an instruction that stands for no op.
  Operation *get() const { return op; }

private:
  Value in(unsigned number) { return block.getArgument(number); }

  Operation *make(exec::GemmOp gemm) {
    // Read: a, b, the epilogue's input, and c if the product adds to it.
    const int64_t rank = cast<MemRefType>(gemm.getC().getType()).getRank();
    SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2)), rows{rank - 1}, columns{rank - 2};
    const bool adds = !gemm.getBeta().isZero();
    Value input = gemm.getEpilogueInput() ? in(2) : Value();
    Value sum = adds ? in(block.getNumArguments() - 1) : Value();
    if (!gemm.getAlpha().isExactlyValue(1.0) || (adds && !gemm.getBeta().isExactlyValue(1.0)))
      return nullptr;
    RankedTensorType type = tensorTypeOf(gemm.getC());
    if (gemm.getAScales())
      return exec::ScaledProductOp::create(builder, gemm.getLoc(), type, in(0), in(2), gemm.getAScaleMode(), in(1),
                                           in(3), gemm.getBScaleMode(), sum, gemm.getFastAccumulation());
    if (gemm.getEpilogue() != exec::Epilogue::None)
      return exec::EpilogueProductOp::create(builder, gemm.getLoc(), type,
                                             gemm.getEpilogueOutput() ? tensorTypeOf(gemm.getEpilogueOutput()) : Type(),
                                             gemm.getEpilogue(), in(0), in(1), sum, input, rows, columns);
    if (adds)
      return exec::AddProductOp::create(builder, gemm.getLoc(), type, sum, in(0), in(1), batch, batch, rows, columns);
    return train::DotGeneralOp::create(builder, gemm.getLoc(), type, in(0), in(1), batch, batch, rows, columns,
                                       TypeAttr(), train::ScalingAttr());
  }

  Operation *make(exec::ConvOp conv) {
    auto create = [&](auto typed, Value result) -> Operation * {
      using Op = decltype(typed);
      return Op::create(builder, conv.getLoc(), tensorTypeOf(result), in(0), in(1), conv.getStrides(),
                        conv.getPadding(), conv.getDilations(), conv.getGroups());
    };
    // Read: x, w and y, without the one that is written.
    switch (conv.getKind()) {
    case exec::ConvKind::Forward:
      return create(train::Conv2dOp(), conv.getY());
    case exec::ConvKind::FilterGrad:
      return create(train::Conv2dFilterGradOp(), conv.getW());
    case exec::ConvKind::InputGrad:
      return train::Conv2dInputGradOp::create(builder, conv.getLoc(), tensorTypeOf(conv.getX()), in(1), in(0),
                                              conv.getStrides(), conv.getPadding(), conv.getDilations(),
                                              conv.getGroups());
    }
    llvm_unreachable("unknown convolution");
  }

  Operation *make(exec::AttentionOp attention) {
    unsigned next = 3;
    Value mask = attention.getMask() ? in(next++) : Value();
    Value begin = attention.getBegin() ? in(next++) : Value();
    Value end = attention.getEnd() ? in(next++) : Value();
    return train::AttentionOp::create(builder, attention.getLoc(), tensorTypeOf(attention.getOut()),
                                      tensorTypeOf(attention.getLse()), in(0), in(1), in(2), mask, begin, end,
                                      attention.getScaleAttr(), attention.getCausalAttr(), attention.getWindowAttr(),
                                      attention.getDensityAttr(), train::AttentionSplitAttr());
  }

  Operation *make(exec::AttentionGradOp attention) {
    unsigned next = 3;
    Value mask = attention.getMask() ? in(next++) : Value();
    Value begin = attention.getBegin() ? in(next++) : Value();
    Value end = attention.getEnd() ? in(next++) : Value();
    return train::AttentionGradOp::create(
        builder, attention.getLoc(), tensorTypeOf(attention.getDq()), tensorTypeOf(attention.getDk()),
        tensorTypeOf(attention.getDv()), in(0), in(1), in(2), mask, begin, end, in(next), in(next + 1), in(next + 2),
        attention.getScaleAttr(), attention.getCausalAttr(), attention.getWindowAttr(), attention.getDensityAttr(),
        train::AttentionSplitAttr(), attention.getPartialAttr());
  }

  Operation *make(exec::CollectiveOp collective) {
    Location loc = collective.getLoc();
    RankedTensorType type = tensorTypeOf(collective.getOutput());
    ArrayAttr axes = collective.getAxes();
    auto reduction = static_cast<dist::ReductionKind>(collective.getReduction());
    switch (exec::collectiveKind(collective)) {
    case dist::CollectiveKind::AllGather:
      return dist::AllGatherOp::create(builder, loc, type, in(0), axes, /*dim=*/0, dist::OriginAttr());
    case dist::CollectiveKind::ReduceScatter:
      return dist::ReduceScatterOp::create(builder, loc, type, in(0), axes, /*dim=*/0, reduction, dist::OriginAttr());
    case dist::CollectiveKind::AllReduce:
      return dist::AllReduceOp::create(builder, loc, type, in(0), axes, reduction, dist::OriginAttr());
    case dist::CollectiveKind::AllToAll:
      return dist::AllToAllOp::create(builder, loc, type, in(0), axes, /*split_dim=*/0, /*concat_dim=*/0,
                                      dist::OriginAttr());
    case dist::CollectiveKind::Permute:
      return dist::PermuteOp::create(builder, loc, type, in(0), axes, collective.getShift(), dist::OriginAttr());
    }
    llvm_unreachable("unknown collective");
  }

  Operation *make(exec::AxisIndexOp index) {
    return dist::AxisIndexOp::create(builder, index.getLoc(), tensorTypeOf(index.getTarget()), index.getAxes());
  }

  Operation *instruction;
  OpBuilder builder;
  Block block;
  Operation *op = nullptr;
};

FailureOr<std::vector<RankTensors>> evaluateLaunch(exec::LaunchOp launch, std::vector<RankTensors> inputs,
                                                   int64_t numRanks) {
  auto kernels = launch->getParentOfType<ModuleOp>().lookupSymbol<ModuleOp>("kernels");
  auto kernel = kernels ? kernels.lookupSymbol<func::FuncOp>(launch.getKernel()) : func::FuncOp();
  if (!kernel)
    return launch.emitError("there is no kernel '") << launch.getKernel() << "' in a module of train ops";
  return evaluate(kernel, std::move(inputs), numRanks);
}

} // namespace

FailureOr<std::vector<RankTensors>> evaluateInstruction(Operation *instruction, std::vector<RankTensors> inputs,
                                                        dist::MeshAttr mesh, int64_t numRanks) {
  if (auto launch = dyn_cast<exec::LaunchOp>(instruction))
    return evaluateLaunch(launch, std::move(inputs), numRanks);
  if (isScaledProduct(instruction))
    for (Tensor &b : inputs[1])
      b = transposed(b);
  OpBehind behind(instruction);
  Operation *op = behind.get();
  if (!op)
    return instruction->emitError("the interpreter does not know this instruction");
  if (isCollective(op)) {
    SmallVector<const Tensor *> operand;
    if (!inputs.empty())
      for (const Tensor &tensor : inputs.front())
        operand.push_back(&tensor);
    FailureOr<std::vector<Tensor>> result = evalCollective(op, operand, mesh);
    if (failed(result))
      return failure();
    return std::vector<RankTensors>{std::move(*result)};
  }
  const EvalFn *evaluation = findEvaluation(op->getName().getStringRef());
  if (!evaluation)
    return instruction->emitError("the interpreter does not know '") << op->getName() << "'";
  std::vector<RankTensors> results(op->getNumResults());
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op->getOperands())
      operands.push_back(&inputs[cast<BlockArgument>(operand).getArgNumber()][rank]);
    FailureOr<Results> onRank = (*evaluation)(EvalContext{op, /*silent=*/false}, operands);
    if (failed(onRank))
      return failure();
    for (auto [result, tensor] : llvm::zip_equal(results, *onRank))
      result.push_back(std::move(tensor));
  }
  return results;
}

} // namespace tessera::interp
