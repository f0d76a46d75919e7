//===- EmitInstructions.cpp - one instruction per op ----------------------===//
//
// See Emitter.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/Collective.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Loss.h"
#include "passes/lower/Emitter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::lower {

/// The library calls of the CPU runtime compute in f32, products and attention also in bf16. A product of bf16 may be
/// f32; a mask may be boolean; masks and log-sum-exps of attention are f32.
static LogicalResult checkLibraryTypes(Operation *op) {
  const bool isProduct = isa<train::DotGeneralOp, exec::AddProductOp, exec::EpilogueProductOp>(op);
  const bool isAttention = isa<train::AttentionOp, train::AttentionGradOp>(op);
  if (!isProduct && !isAttention && !isa<train::Conv2dOp, train::Conv2dInputGradOp, train::Conv2dFilterGradOp>(op))
    return success();
  auto elementType = [](Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); };
  auto check = [&](Value value, bool fits, StringRef what) -> LogicalResult {
    if (fits)
      return success();
    return op->emitError() << "'" << op->getName() << "' has " << what << " of element type " << elementType(value)
                           << (isProduct || isAttention ? "; the CPU's library calls compute in f32 or bf16"
                                                        : "; the CPU's convolutions compute in f32");
  };
  std::optional<Contraction> product = Contraction::of(op);
  Value first = isProduct ? product->lhs->get() : op->getOperand(0);
  Type type = elementType(first);
  if (failed(check(first, type.isF32() || (type.isBF16() && (isProduct || isAttention)), "an operand")))
    return failure();
  if (isProduct) {
    Value second = product->rhs->get(), result = op->getResult(0);
    return failure(failed(check(second, elementType(second) == type, "an operand")) ||
                   failed(check(result, elementType(result).isF32() || elementType(result) == type, "a result")));
  }
  Value mask, lse, output;
  if (auto attention = dyn_cast<train::AttentionOp>(op))
    mask = attention.getMask(), lse = attention.getLse();
  else if (auto grad = dyn_cast<train::AttentionGradOp>(op))
    mask = grad.getMask(), lse = grad.getLse(), output = grad.getOutput();
  for (ValueRange values : {ValueRange(op->getOperands()), ValueRange(op->getResults())})
    for (Value value : values) {
      Type own = elementType(value);
      const bool maySum = isAttention && (value.getDefiningOp() == op || value == output);
      const bool fits = value == mask       ? own.isF32() || own.isInteger(1)
                        : value == lse      ? own.isF32()
                        : own.isInteger(64) ? isAttention // which keys are seen
                                            : own == type || (maySum && own.isF32());
      if (failed(check(value, fits, "a value")))
        return failure();
    }
  return success();
}

LogicalResult Emitter::emitOp(Operation *op) {
  if (failed(checkLibraryTypes(op)))
    return failure();
  if (isLayoutOp(op)) {
    if (assignment.isCopied(op->getResult(0))) {
      // The copy has the operand's shape; the result is a view of it.
      const View *target = assignment.lookup(op->getResult(0));
      const bool isPart = isa<dist::SliceLocalOp>(op);
      const Layout asOperand =
          isPart ? Layout::contiguous(train::shapeOf(op->getOperand(0))) : *layoutOfOperand(op, target->layout);
      return move(op->getOperand(0), bufferOf(View{target->storage, asOperand}), op->getLoc(),
                  isPart ? "the rank takes a part of a part" : "reshape is no strided view");
    }
    return success();
  }
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](exec::FusionOp op) { return emitFusion(op); })
      .Case([&](train::ConstantOp op) { return emitConstant(op); })
      .Case([&](train::ConcatOp op) { return emitConcat(op); })
      .Case<train::DotGeneralOp, exec::AddProductOp, exec::EpilogueProductOp, exec::ScaledProductOp>(
          [&](Operation *op) { return emitGemm(op); })
      .Case([&](train::Conv2dOp op) {
        return emitConv(op, exec::ConvKind::Forward, sourceBuffer(op->getOpOperand(0)),
                        sourceBuffer(op->getOpOperand(1)), bufferOf(op.getResult()));
      })
      .Case([&](train::Conv2dInputGradOp op) {
        return emitConv(op, exec::ConvKind::InputGrad, bufferOf(op.getResult()), sourceBuffer(op->getOpOperand(1)),
                        sourceBuffer(op->getOpOperand(0)));
      })
      .Case([&](train::Conv2dFilterGradOp op) {
        return emitConv(op, exec::ConvKind::FilterGrad, sourceBuffer(op->getOpOperand(0)), bufferOf(op.getResult()),
                        sourceBuffer(op->getOpOperand(1)));
      })
      .Case([&](train::AttentionOp op) { return emitAttention(op); })
      .Case([&](train::AttentionGradOp op) { return emitAttentionGrad(op); })
      .Case([&](dist::AxisIndexOp op) {
        instruction<exec::AxisIndexOp>(op.getLoc(), exec::kComputeStream, bufferOf(op.getResult()), op.getAxes());
        return success();
      })
      .Case([&](dist::CollectiveOpInterface op) { return emitCollective(op); })
      .Case([&](dist::CopyStartOp op) { return emitCopyStart(op); })
      .Case([&](dist::DoneOp op) { return emitDone(op); })
      .Case([&](exec::RepeatOp op) { return emitRepeat(op); })
      .Case([&](func::ReturnOp op) { return emitReturn(op); })
      .Default([](Operation *op) {
        return op->emitError() << "'" << op->getName()
                               << "' is left over: neither fused into a kernel nor a library call";
      });
}

LogicalResult Emitter::emitFusion(exec::FusionOp op) {
  if (!op.getKernel() || !op.getExtent())
    return op.emitError("fusion has no kernel yet: outline-kernels has not run");
  SmallVector<Value> inputs, outputs;
  for (OpOperand &operand : op->getOpOperands())
    inputs.push_back(sourceBuffer(operand));
  for (Value result : op.getResults())
    outputs.push_back(bufferOf(result));
  auto units = op->getAttrOfType<ArrayAttr>(train::kUnits);
  auto gradients = op->getAttrOfType<DenseI64ArrayAttr>(train::kGradOperands);
  auto scales = op->getAttrOfType<DenseF64ArrayAttr>(train::kGradientScales);
  if (units && gradients)
    for (auto [number, unit, gradient] : llvm::enumerate(units.getAsRange<StringAttr>(), gradients.asArrayRef())) {
      auto probe = exec::ProbeOp::create(code, op.getLoc(), inputs[gradient], unit);
      if (scales && scales[static_cast<int64_t>(number)] != 1.0)
        probe->setAttr(train::kGradientScale, code.getF64FloatAttr(scales[static_cast<int64_t>(number)]));
    }
  instruction<exec::LaunchOp>(op.getLoc(), exec::kComputeStream, *op.getKernel(), inputs, outputs, *op.getExtent(),
                              op.getGrain().value_or(1));
  return success();
}

LogicalResult Emitter::emitConstant(train::ConstantOp op) {
  if (!assignment.lookup(op.getResult()))
    return success(); // filled in where it is joined into something
  return move(op.getResult(), bufferOf(op.getResult()), op.getLoc(), "");
}

LogicalResult Emitter::emitConcat(train::ConcatOp op) {
  const View *whole = assignment.lookup(op.getResult());
  int64_t dim = op.getDim(), start = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    int64_t size = train::shapeOf(operand.get())[dim];
    View part{whole->storage, whole->layout.part(dim, start, size)};
    start += size;
    if (!assignment.isPlaced(operand) && failed(move(operand.get(), bufferOf(part), op.getLoc(),
                                                     "part of a concatenation could not be made in its place")))
      return failure();
  }
  return success();
}

LogicalResult Emitter::emitGemm(Operation *op) {
  Contraction product = *Contraction::of(op);
  auto elementOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); };
  Type elementType = elementOf(op->getResult(0)), lhsType = elementOf(product.lhs->get()),
       rhsType = elementOf(product.rhs->get());
  Source lhs = source(*product.lhs), rhs = source(*product.rhs);
  const View *result = assignment.lookup(op->getResult(0));
  std::optional<Layout> a = gemmLayout(product, GemmSide::Lhs, lhs.layout),
                        b = gemmLayout(product, GemmSide::Rhs, rhs.layout),
                        c = gemmLayout(product, GemmSide::Result, result->layout);
  if (!a || !b || !c)
    return op->emitError("dimensions do not merge into those of a matrix product");
  if (product.accumulator && failed(move(product.accumulator->get(), bufferOf(*result), op->getLoc(),
                                         "sum that a product adds to does not lie in the result's place")))
    return failure();
  int64_t rank = c->shape.size();
  auto withEpilogue = dyn_cast<exec::EpilogueProductOp>(op);
  exec::Epilogue epilogue = withEpilogue ? withEpilogue.getEpilogue() : exec::Epilogue::None;
  Value aBuffer, bBuffer, cBuffer, input, output;
  // A vector per row or column, or a matrix like the result.
  auto flat = [&](Value slot, Layout layout, bool isMatrix) {
    if (isMatrix)
      return buffer(slot, *layout.reshape({c->shape[0], c->shape[1]}), elementType);
    return buffer(slot, *layout.reshape({layout.numElements()}), elementType);
  };
  if (product.input) {
    Source from = source(*product.input);
    input = flat(from.slot, from.layout, exec::takesPreActivation(epilogue));
  }
  if (withEpilogue && withEpilogue.getOutput()) {
    const View *view = assignment.lookup(withEpilogue.getOutput());
    output = flat(slot(view->storage), view->layout, exec::givesPreActivation(epilogue));
  }
  auto scaled = dyn_cast<exec::ScaledProductOp>(op);
  Value aScales, bScales;
  exec::ScaleMode aMode = exec::ScaleMode::None, bMode = exec::ScaleMode::None;
  if (scaled) {
    aScales = sourceBuffer(scaled.getLhsScalesMutable());
    bScales = sourceBuffer(scaled.getRhsScalesMutable());
    aMode = scaled.getLhsMode();
    bMode = scaled.getRhsMode();
  }
  if (c->isUnit(rank - 1)) {
    aBuffer = buffer(lhs.slot, *a, lhsType);
    bBuffer = buffer(rhs.slot, *b, rhsType);
    cBuffer = buffer(slot(result->storage), *c, elementType);
  } else {
    // The result lies transposed: compute its transpose, bᵀ aᵀ.
    SmallVector<int64_t> swap = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    std::swap(swap[rank - 1], swap[rank - 2]);
    aBuffer = buffer(rhs.slot, b->transpose(swap), rhsType);
    bBuffer = buffer(lhs.slot, a->transpose(swap), lhsType);
    cBuffer = buffer(slot(result->storage), c->transpose(swap), elementType);
    std::swap(aScales, bScales);
    std::swap(aMode, bMode);
    if (exec::sumsOperand(epilogue))
      epilogue = epilogue == exec::Epilogue::BiasGradA ? exec::Epilogue::BiasGradB : exec::Epilogue::BiasGradA;
  }
  instruction<exec::GemmOp>(op->getLoc(), exec::kComputeStream, aBuffer, bBuffer, cBuffer, input, output, aScales,
                            bScales, APFloat(1.0f), APFloat(product.accumulator ? 1.0f : 0.0f), epilogue, aMode, bMode,
                            scaled && scaled.getFastAccumulation());
  return success();
}

template <typename Op> LogicalResult Emitter::emitConv(Op op, exec::ConvKind kind, Value x, Value w, Value y) {
  instruction<exec::ConvOp>(op.getLoc(), exec::kComputeStream, kind, x, w, y, op.getStrides(), op.getPadding(),
                            op.getDilations(), op.getGroups());
  return success();
}

LogicalResult Emitter::emitAttention(train::AttentionOp op) {
  SmallVector<Value> in;
  for (OpOperand &operand : op->getOpOperands())
    in.push_back(sourceBuffer(operand));
  unsigned next = 3;
  Value mask = op.getMask() ? in[next++] : Value();
  Value begin = op.getBegin() ? in[next++] : Value(), end = op.getEnd() ? in[next++] : Value();
  instruction<exec::AttentionOp>(op.getLoc(), exec::kComputeStream, in[0], in[1], in[2], mask, begin, end,
                                 bufferOf(op.getResult()), bufferOf(op.getLse()), op.getScale(), op.getCausal(),
                                 op.getWindowAttr(), op.getDensityAttr());
  return success();
}

LogicalResult Emitter::emitAttentionGrad(train::AttentionGradOp op) {
  SmallVector<Value> in;
  for (OpOperand &operand : op->getOpOperands())
    in.push_back(sourceBuffer(operand));
  unsigned next = 3;
  Value mask = op.getMask() ? in[next++] : Value();
  Value begin = op.getBegin() ? in[next++] : Value(), end = op.getEnd() ? in[next++] : Value();
  auto lse = cast<RankedTensorType>(op.getLse().getType());
  // Two numbers for each row of scores.
  SmallVector<int64_t> shape = {2};
  llvm::append_range(shape, lse.getShape());
  auto rows = RankedTensorType::get(shape, code.getF32Type());
  Value workspace = buffer(temporary(rows, nameOf(op.getLoc()) + ".workspace", exec::MemoryClass::Workspace,
                                     exec::ArenaKind::Activations, op.getLoc()),
                           Layout::contiguous(rows.getShape()), rows.getElementType());
  instruction<exec::AttentionGradOp>(op.getLoc(), exec::kComputeStream, in[0], in[1], in[2], mask, begin, end, in[next],
                                     in[next + 1], in[next + 2], bufferOf(op.getQueryGrad()), bufferOf(op.getKeyGrad()),
                                     bufferOf(op.getValueGrad()), workspace, op.getScale(), op.getCausal(),
                                     op.getWindowAttr(), op.getDensityAttr(), op.getPartial());
  return success();
}

LogicalResult Emitter::emitCollective(dist::CollectiveOpInterface op) {
  const dist::CollectiveKind kind = op.getCollectiveKind();
  for (int64_t dim : op.getDims())
    if (dim != 0)
      return op->emitError() << "works along dimension " << dim << "; only dimension 0 is contiguous in memory";
  // Its result, or that of the op that waits for it.
  Value result = op->getResult(0);
  auto reason = op->getAttrOfType<StringAttr>(dist::kReason);
  StringAttr doneReason;
  if (op.isStart()) {
    dist::DoneOp done = dist::doneOf(op);
    if (!done)
      return op->emitError("a collective that was started must be waited for exactly once");
    doneReason = done->getAttrOfType<StringAttr>(dist::kReason);
    result = done.getResult();
  }
  auto mesh = func->getParentOfType<ModuleOp>()->getAttrOfType<dist::MeshAttr>(dist::kMesh);
  if (!mesh)
    return op->emitError() << "needs the module attribute '" << dist::kMesh << "'";
  const int64_t stream = exec::collectiveStream(mesh, op.getAxes(), dist::isReduction(kind),
                                                op.getReduction() == dist::ReductionKind::Max);
  Value input = sourceBuffer(op->getOpOperand(0)), output = bufferOf(result);
  // Everything before is over: what it reads has been written and what it overwrites has been read.
  streams.join(code, op->getLoc(), stream, exec::kComputeStream);
  instruction<exec::CollectiveOp>(op->getLoc(), stream, exec::instructionKind(kind), input, output, op.getAxes(),
                                  op.getShift(), static_cast<exec::ReductionKind>(op.getReduction()),
                                  op.getOriginAttr(), reason, doneReason);
  Streams::Mark over = streams.mark(code, op->getLoc(), stream);
  if (op.isStart())
    futures[op->getResult(0)] = over;
  else
    streams.wait(code, op->getLoc(), exec::kComputeStream, over);
  return success();
}

LogicalResult Emitter::emitCopyStart(dist::CopyStartOp op) {
  dist::DoneOp done = dist::doneOf(op);
  if (!done)
    return op.emitError("a copy that was started must be waited for exactly once");
  Value input = sourceBuffer(op->getOpOperand(0)), output = bufferOf(done.getResult());
  streams.join(code, op.getLoc(), exec::kCopyStream, exec::kComputeStream);
  instruction<exec::CopyOp>(op.getLoc(), exec::kCopyStream, input, output);
  futures[op.getFuture()] = streams.mark(code, op.getLoc(), exec::kCopyStream);
  return success();
}

LogicalResult Emitter::emitDone(dist::DoneOp op) {
  auto future = futures.find(op.getFuture());
  if (future == futures.end())
    return op.emitError("waits for a collective that was not started before");
  streams.wait(code, op.getLoc(), exec::kComputeStream, future->second);
  return success();
}

} // namespace tessera::lower
