//===- ValueNumberingOps.cpp - what instructions read and write -----------===//
//
// See ValueNumbering.h. Each function states which operand of an op each buffer of its instruction stands for. That a
// kernel computes what its fusion says, and a library call what its op says, is for other tests to show.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/InstructionOrder.h"
#include "passes/lower/LibraryLayouts.h"
#include "passes/lower/ValueProof.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::lower {

void ValueProof::define(Value value, Value buffer) {
  values.define(value, iteration);
  memory.write(buffer, iteration, values.lookup(value));
}

LogicalResult ValueProof::verifyCall(Operation *op, Operation *instruction, ValueRange inputs, ValueRange outputs) {
  if (inputs.size() != op->getNumOperands() || outputs.size() != op->getNumResults())
    return bug(instruction) << "'" << instruction->getName() << "' has another number of operands or results than '"
                            << op->getName() << "'";
  for (auto [operand, input] : llvm::zip_equal(op->getOperands(), inputs)) {
    if (failed(verifyOperand(instruction, input, operand)))
      return failure();
    for (Value output : outputs)
      if (failed(verifyApart(instruction, input, output, /*mayBeOne=*/false)))
        return failure();
  }
  for (auto [result, output] : llvm::zip_equal(op->getResults(), outputs))
    define(result, output);
  return success();
}

LogicalResult ValueProof::verifyProbes(exec::FusionOp fusion) {
  auto units = fusion->getAttrOfType<ArrayAttr>(train::kUnits);
  auto gradients = fusion->getAttrOfType<DenseI64ArrayAttr>(train::kGradOperands);
  const size_t expected = units && gradients ? std::min<size_t>(units.size(), gradients.size()) : 0;
  if (probes.size() != expected)
    return bug(fusion) << "expects " << expected << " gradient probes before it, found " << probes.size();
  for (auto [i, probe] : llvm::enumerate(probes)) {
    if (cast<StringAttr>(units[i]) != probe.getUnitAttr())
      return bug(probe) << "stands where the gradient of " << units[i] << " is due";
    if (failed(verifyRead(probe, probe.getBuffer(), values.lookup(fusion.getOperand(gradients[i])))))
      return failure();
  }
  probes.clear();
  return success();
}

LogicalResult ValueProof::verifyLaunch(exec::FusionOp fusion, exec::LaunchOp launch) {
  if (launch.getKernelAttr() != fusion.getKernelAttr() || fusion.getExtent() != launch.getExtent() ||
      launch.getInputs().size() != fusion.getNumOperands() || launch.getOutputs().size() != fusion.getNumResults())
    return bug(launch) << "launches '" << launch.getKernel() << "' where " << describe(fusion.getResult(0))
                       << " is due, of kernel '" << fusion.getKernel().value_or("") << "'";
  if (failed(verifyProbes(fusion)))
    return failure();
  for (auto [i, operand] : llvm::enumerate(fusion.getOperands())) {
    Value input = launch.getInputs()[i];
    if (failed(verifyOperand(launch, input, operand)))
      return failure();
    for (auto [number, output] : llvm::enumerate(launch.getOutputs())) {
      const bool mayBeOne = fusion.getInplace() && (*fusion.getInplace())[number] == int64_t(i);
      if (failed(verifyApart(launch, input, output, mayBeOne)))
        return failure();
    }
  }
  for (auto [i, output] : llvm::enumerate(launch.getOutputs()))
    for (Value other : launch.getOutputs().drop_front(i + 1))
      if (failed(verifyApart(launch, other, output, /*mayBeOne=*/false)))
        return failure();
  for (auto [result, output] : llvm::zip_equal(fusion.getResults(), launch.getOutputs()))
    define(result, output);
  return success();
}

// --- Products --------------------------------------------------------------------

namespace {
/// The operands of a contraction as those of a matrix product, and of its transpose: contents by rows and columns.
struct Matrices {
  Content a, b, c;
  exec::Epilogue epilogue = exec::Epilogue::None;
  Value aScales, bScales; ///< of products of 8-bit floats
};

/// Dimensions of an operand: batch, then free ones and contracted ones, or the other way round.
SmallVector<int64_t> orderOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract,
                             bool contractLast) {
  SmallVector<int64_t> order(batch), free;
  for (int64_t dim = 0, rank = int64_t(shape.size()); dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      free.push_back(dim);
  llvm::append_range(order, contractLast ? ArrayRef<int64_t>(free) : contract);
  llvm::append_range(order, contractLast ? contract : ArrayRef<int64_t>(free));
  return order;
}
} // namespace

LogicalResult ValueProof::verifyGemm(Operation *op, exec::GemmOp gemm) {
  const Contraction product = *Contraction::of(op);
  auto withEpilogue = dyn_cast<exec::EpilogueProductOp>(op);
  Value lhs = product.lhs->get(), rhs = product.rhs->get(), result = op->getResult(0);
  auto shapeOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape(); };
  values.define(result, iteration);

  // [batch…, m, k] times [batch…, k, n] is [batch…, m, n], which is the result in row-major order.
  Matrices direct;
  direct.a = values.transpose(values.lookup(lhs), shapeOf(lhs),
                              orderOf(shapeOf(lhs), product.lhsBatch, product.lhsContract, /*contractLast=*/true));
  direct.b = values.transpose(values.lookup(rhs), shapeOf(rhs),
                              orderOf(shapeOf(rhs), product.rhsBatch, product.rhsContract, /*contractLast=*/false));
  direct.c = values.lookup(result);
  direct.epilogue = withEpilogue ? withEpilogue.getEpilogue() : exec::Epilogue::None;
  auto scaled = dyn_cast<exec::ScaledProductOp>(op);
  if (scaled) {
    direct.aScales = scaled.getLhsScales();
    direct.bScales = scaled.getRhsScales();
  }

  // Or the transposes: bᵀ aᵀ is cᵀ.
  const int64_t numBatch = int64_t(product.lhsBatch.size());
  int64_t batch = 1, contracted = 1;
  for (int64_t dim : product.lhsBatch)
    batch *= shapeOf(lhs)[dim];
  for (int64_t dim : product.lhsContract)
    contracted *= shapeOf(lhs)[dim];
  const int64_t m = numElements(lhs) / (batch * contracted), n = numElements(rhs) / (batch * contracted);
  auto flip = [&](const Content &content, int64_t rows, int64_t columns) {
    return values.transpose(content, {batch, rows, columns}, {0, 2, 1});
  };
  Matrices flipped{flip(direct.b, contracted, n),
                   flip(direct.a, m, contracted),
                   flip(direct.c, m, n),
                   direct.epilogue,
                   direct.bScales,
                   direct.aScales};
  if (exec::sumsOperand(direct.epilogue))
    flipped.epilogue =
        direct.epilogue == exec::Epilogue::BiasGradA ? exec::Epilogue::BiasGradB : exec::Epilogue::BiasGradA;

  auto type = cast<MemRefType>(gemm.getC().getType());
  auto fits = [&](int64_t rows, int64_t columns) {
    return type.getRank() == numBatch + 2 && type.getDimSize(numBatch) == rows &&
           type.getDimSize(numBatch + 1) == columns;
  };
  const Comparison directA = compare(gemm.getA(), direct.a, iteration),
                   directB = compare(gemm.getB(), direct.b, iteration);
  const bool mayBeDirect = fits(m, n) && !directA.difference && !directB.difference;
  const bool isProvedDirect = mayBeDirect && directA.isProved && directB.isProved;
  bool mayBeFlipped = false, isProvedFlipped = false;
  Comparison flippedA, flippedB;
  if (fits(n, m)) {
    flippedA = compare(gemm.getA(), flipped.a, iteration);
    flippedB = compare(gemm.getB(), flipped.b, iteration);
    mayBeFlipped = !flippedA.difference && !flippedB.difference;
    isProvedFlipped = mayBeFlipped && flippedA.isProved && flippedB.isProved;
  }
  // Where it may be either, what it writes is not followed. It is both where the transpose is the same (wᵀ w).
  const bool isEither = mayBeDirect && mayBeFlipped && isProvedDirect == isProvedFlipped;
  if (isEither)
    direct.c = flipped.c = {{kNotFollowed, StridedMap::identity(numElements(result))}};
  const bool isFlipped = mayBeFlipped && (isEither ? gemm.getEpilogue() == flipped.epilogue
                                                   : !isProvedDirect && (isProvedFlipped || !mayBeDirect)),
             isDirect = mayBeDirect && !isFlipped;
  if (!isDirect && !isFlipped && directA.difference)
    return report(gemm, gemm.getA(), *directA.difference);
  if (!isDirect && !isFlipped && directB.difference)
    return report(gemm, gemm.getB(), *directB.difference);
  if (!isDirect && !isFlipped)
    return bug(gemm) << "its result of type " << type << " is none of " << describe(result);

  if (!(isDirect ? directA : flippedA).isProved)
    unproved.insert({gemm, gemm.getA()});
  if (!(isDirect ? directB : flippedB).isProved)
    unproved.insert({gemm, gemm.getB()});
  const Matrices &matrices = isDirect ? direct : flipped;
  const float beta = product.accumulator ? 1.0f : 0.0f;
  if (gemm.getEpilogue() != matrices.epilogue || !gemm.getAlpha().isExactlyValue(1.0) ||
      !gemm.getBeta().isExactlyValue(beta))
    return bug(gemm) << "has another epilogue, alpha or beta than " << describe(result) << " needs";
  if (product.accumulator) {
    const Content &sum = values.lookup(product.accumulator->get());
    if (failed(verifyRead(gemm, gemm.getC(), isEither ? direct.c : isDirect ? sum : flip(sum, m, n))))
      return failure();
  }
  if (scaled) {
    exec::ScaleMode a = scaled.getLhsMode(), b = scaled.getRhsMode();
    if (isFlipped)
      std::swap(a, b);
    if (gemm.getAScaleMode() != a || gemm.getBScaleMode() != b ||
        gemm.getFastAccumulation() != scaled.getFastAccumulation())
      return bug(gemm) << "has other modes of scales or accumulation than " << describe(result) << " needs";
    if (failed(verifyRead(gemm, gemm.getAScales(), values.lookup(matrices.aScales))) ||
        failed(verifyRead(gemm, gemm.getBScales(), values.lookup(matrices.bScales))))
      return failure();
  }
  if (product.input && failed(verifyRead(gemm, gemm.getEpilogueInput(), values.lookup(product.input->get()))))
    return failure();
  SmallVector<Value> inputs{gemm.getA(), gemm.getB()}, outputs{gemm.getC()};
  if (gemm.getEpilogueInput())
    inputs.push_back(gemm.getEpilogueInput());
  if (scaled)
    llvm::append_range(inputs, ValueRange{gemm.getAScales(), gemm.getBScales()});
  if (gemm.getEpilogueOutput())
    outputs.push_back(gemm.getEpilogueOutput());
  for (Value output : outputs)
    for (Value input : inputs)
      if (failed(verifyApart(gemm, input, output, /*mayBeOne=*/false)))
        return failure();
  memory.write(gemm.getC(), iteration, matrices.c);
  if (withEpilogue && withEpilogue.getOutput())
    define(withEpilogue.getOutput(), gemm.getEpilogueOutput());
  return success();
}

// --- Other library calls ---------------------------------------------------------

LogicalResult ValueProof::verifyConv(Operation *op, exec::ConvOp conv) {
  auto sameWindow = [&](auto typed, exec::ConvKind kind) {
    return conv.getKind() == kind && typed.getStrides() == conv.getStrides() &&
           typed.getPadding() == conv.getPadding() && typed.getDilations() == conv.getDilations() &&
           int64_t(typed.getGroups()) == int64_t(conv.getGroups());
  };
  const bool isSame =
      llvm::TypeSwitch<Operation *, bool>(op)
          .Case([&](train::Conv2dOp typed) { return sameWindow(typed, exec::ConvKind::Forward); })
          .Case([&](train::Conv2dInputGradOp typed) { return sameWindow(typed, exec::ConvKind::InputGrad); })
          .Case([&](train::Conv2dFilterGradOp typed) { return sameWindow(typed, exec::ConvKind::FilterGrad); })
          .Default([](Operation *) { return false; });
  if (!isSame)
    return bug(conv) << "is not the convolution of " << describe(op->getResult(0));
  Value x = conv.getX(), w = conv.getW(), y = conv.getY();
  if (conv.getKind() == exec::ConvKind::Forward)
    return verifyCall(op, conv, {x, w}, y);
  if (conv.getKind() == exec::ConvKind::InputGrad)
    return verifyCall(op, conv, {y, w}, x);
  return verifyCall(op, conv, {x, y}, w);
}

/// What both have before the outputs.
template <typename Op> static SmallVector<Value> attentionInputs(Op attention) {
  SmallVector<Value> inputs{attention.getQ(), attention.getK(), attention.getV()};
  for (Value optional : {Value(attention.getMask()), Value(attention.getBegin()), Value(attention.getEnd())})
    if (optional)
      inputs.push_back(optional);
  return inputs;
}

template <typename Op, typename Instruction> static bool isSameAttention(Op op, Instruction attention) {
  return op.getScale() == attention.getScale() && op.getCausal() == attention.getCausal() &&
         op.getWindow() == attention.getWindow() && !op.getMask() == !attention.getMask() &&
         !op.getBegin() == !attention.getBegin();
}

LogicalResult ValueProof::verifyAttention(train::AttentionOp op, exec::AttentionOp attention) {
  if (!isSameAttention(op, attention))
    return bug(attention) << "is not the attention of " << describe(op.getResult());
  SmallVector<Value> inputs = attentionInputs(attention);
  return verifyCall(op, attention, inputs, {attention.getOut(), attention.getLse()});
}

LogicalResult ValueProof::verifyAttentionGrad(train::AttentionGradOp op, exec::AttentionGradOp attention) {
  if (!isSameAttention(op, attention) || op.getPartial() != attention.getPartial())
    return bug(attention) << "is not the attention of " << describe(op.getQueryGrad());
  SmallVector<Value> inputs = attentionInputs(attention);
  inputs.append({attention.getOut(), attention.getLse(), attention.getDout()});
  if (Value workspace = attention.getWorkspace()) {
    for (Value input : inputs)
      if (failed(verifyApart(attention, input, workspace, /*mayBeOne=*/false)))
        return failure();
    memory.write(workspace, iteration, {});
  }
  return verifyCall(op, attention, inputs, {attention.getDq(), attention.getDk(), attention.getDv()});
}

LogicalResult ValueProof::verifyCollective(Operation *op, exec::CollectiveOp collective) {
  auto own = dyn_cast<dist::CollectiveOpInterface>(op);
  if (!own || own.getCollectiveKind() != exec::collectiveKind(collective) || own.getAxes() != collective.getAxes() ||
      own.getShift() != int64_t(collective.getShift()) ||
      static_cast<exec::ReductionKind>(own.getReduction()) != collective.getReduction())
    return bug(collective) << "is not the collective of " << describe(op->getResult(0));
  const bool mayBeOne = own.getCollectiveKind() == dist::CollectiveKind::AllReduce;
  if (failed(verifyRead(collective, collective.getInput(), values.lookup(own.getOperand()))) ||
      failed(verifyApart(collective, collective.getInput(), collective.getOutput(), mayBeOne)))
    return failure();
  define(op->getResult(0), collective.getOutput());
  return success();
}

// --- All of them -----------------------------------------------------------------

LogicalResult ValueProof::verifyInstruction(Operation *op, Operation *instruction) {
  auto fusion = dyn_cast<exec::FusionOp>(op);
  if (!fusion && !probes.empty())
    return bug(probes.front()) << "is no gradient that the step updates with here";
  if (auto launch = dyn_cast<exec::LaunchOp>(instruction); launch && fusion)
    return verifyLaunch(fusion, launch);
  if (auto gemm = dyn_cast<exec::GemmOp>(instruction); gemm && Contraction::of(op))
    return verifyGemm(op, gemm);
  if (auto conv = dyn_cast<exec::ConvOp>(instruction))
    return verifyConv(op, conv);
  if (auto attention = dyn_cast<exec::AttentionOp>(instruction); attention && isa<train::AttentionOp>(op))
    return verifyAttention(cast<train::AttentionOp>(op), attention);
  if (auto attention = dyn_cast<exec::AttentionGradOp>(instruction); attention && isa<train::AttentionGradOp>(op))
    return verifyAttentionGrad(cast<train::AttentionGradOp>(op), attention);
  if (auto collective = dyn_cast<exec::CollectiveOp>(instruction))
    return verifyCollective(op, collective);
  if (auto index = dyn_cast<exec::AxisIndexOp>(instruction))
    if (auto own = dyn_cast<dist::AxisIndexOp>(op); own && own.getAxes() == index.getAxes())
      return verifyCall(op, index, ValueRange(), index.getTarget());
  return bug(instruction) << "'" << instruction->getName() << "' stands where " << describe(op->getResult(0))
                          << " is due";
}

} // namespace tessera::lower
