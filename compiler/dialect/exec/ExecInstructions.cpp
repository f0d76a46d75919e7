//===- ExecInstructions.cpp - verifiers and queries of the instruction ops ===//
//
// Each verifier states what the runtime relies on for one instruction; what needs the whole program (buffers inside
// their arenas, no two live slots overlapping, ordered reuse) is proved by the pass verify-exec.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/exec/ScaleLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace tessera::exec;

// --- Queries -------------------------------------------------------------------

int64_t tessera::exec::elementBytes(Type elementType) { return (elementType.getIntOrFloatBitWidth() + 7) / 8; }

SmallVector<int64_t> tessera::exec::stridesOf(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return SmallVector<int64_t>(type.getRank(), 0);
  return strides;
}

bool tessera::exec::isContiguous(MemRefType type) {
  int64_t expected = 1;
  SmallVector<int64_t> strides = stridesOf(type);
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    if (type.getDimSize(dim) != 1 && strides[dim] != expected)
      return false;
    expected *= type.getDimSize(dim);
  }
  return true;
}

int64_t tessera::exec::spannedBytes(BufferOp buffer, int64_t iterations, int64_t ranks) {
  MemRefType type = buffer.getType();
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), stridesOf(type))) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return (last + 1) * elementBytes(type.getElementType()) + (iterations - 1) * buffer.getIterationStride() +
         (ranks - 1) * buffer.getRankStride();
}

bool tessera::exec::isInstruction(Operation *op) {
  return isa<LaunchOp, GemmOp, ConvOp, AttentionOp, AttentionGradOp, CollectiveOp, CopyOp, FillOp, AxisIndexOp,
             RecordOp, WaitOp, LoopOp>(op);
}

SmallVector<Value> tessera::exec::writtenBuffers(Operation *instruction) {
  return TypeSwitch<Operation *, SmallVector<Value>>(instruction)
      .Case([](LaunchOp op) { return SmallVector<Value>(op.getOutputs()); })
      .Case([](GemmOp op) {
        SmallVector<Value> written{op.getC()};
        if (op.getEpilogueOutput())
          written.push_back(op.getEpilogueOutput());
        return written;
      })
      .Case([](ConvOp op) {
        Value written = op.getKind() == ConvKind::Forward     ? op.getY()
                        : op.getKind() == ConvKind::InputGrad ? op.getX()
                                                              : op.getW();
        return SmallVector<Value>{written};
      })
      .Case([](AttentionOp op) {
        return SmallVector<Value>{op.getOut(), op.getLse()};
      })
      .Case([](AttentionGradOp op) {
        SmallVector<Value> written{op.getDq(), op.getDk(), op.getDv()};
        if (op.getWorkspace())
          written.push_back(op.getWorkspace());
        return written;
      })
      .Case([](CollectiveOp op) { return SmallVector<Value>{op.getOutput()}; })
      .Case<CopyOp, FillOp, AxisIndexOp>([](auto op) { return SmallVector<Value>{op.getTarget()}; })
      .Default([](Operation *) { return SmallVector<Value>(); });
}

SmallVector<Value> tessera::exec::readBuffers(Operation *instruction) {
  // Every operand is read that is not there to be written; a gemm that accumulates also reads what it writes.
  if (auto launch = dyn_cast<LaunchOp>(instruction))
    return SmallVector<Value>(launch.getInputs());
  SmallVector<Value> written = writtenBuffers(instruction), read;
  for (Value operand : instruction->getOperands())
    if (auto *target = llvm::find(written, operand); target != written.end())
      written.erase(target);
    else
      read.push_back(operand);
  if (auto gemm = dyn_cast<GemmOp>(instruction); gemm && !gemm.getBeta().isZero())
    read.push_back(gemm.getC());
  return read;
}

int64_t tessera::exec::streamOf(Operation *instruction) {
  auto stream = instruction->getAttrOfType<IntegerAttr>("stream");
  return stream ? stream.getInt() : kComputeStream;
}

/// The axes of the mesh that are larger than 1: first that along which state is split, else the last one.
static SmallVector<unsigned> orderedAxes(tessera::dist::MeshAttr mesh) {
  SmallVector<unsigned> axes;
  for (auto [axis, size] : llvm::enumerate(mesh.getSizes()))
    if (size > 1)
      axes.push_back(axis);
  if (axes.empty())
    return axes;
  const tessera::dist::Axes state = tessera::dist::stateAxes(mesh);
  auto *first = llvm::find(axes, state.empty() ? axes.back() : state.back());
  std::rotate(axes.begin(), first, std::next(first));
  return axes;
}

int64_t tessera::exec::collectiveStream(dist::MeshAttr mesh, ArrayAttr axes, bool reduces, bool isMaximum) {
  const SmallVector<unsigned> ordered = orderedAxes(mesh);
  const dist::Axes used = dist::axisNumbers(axes, mesh);
  const auto *owner = llvm::find_if(ordered, [&](unsigned axis) { return llvm::is_contained(used, axis); });
  const int64_t place = owner == ordered.end() ? 0 : owner - ordered.begin();
  // Pairs of streams: one for each further axis, and the second of the next one for maxima.
  auto ofPair = [](int64_t pair, bool second) {
    return kCopyStream + 1 + 2 * std::min<int64_t>(pair, (kNumStreams - 1 - kCopyStream) / 2 - 1) + (second ? 1 : 0);
  };
  if (place == 0 && isMaximum)
    return ofPair(std::max<int64_t>(1, static_cast<int64_t>(ordered.size())) - 1, true);
  if (place == 0)
    return reduces ? kReduceStream : kGatherStream;
  return ofPair(place - 1, reduces);
}

std::optional<bool> tessera::exec::streamReduces(int64_t stream) {
  if (stream == kComputeStream || stream == kCopyStream)
    return std::nullopt;
  return stream < kCopyStream ? stream == kReduceStream : (stream - kCopyStream) % 2 == 0;
}

StringRef tessera::exec::streamAxis(dist::MeshAttr mesh, int64_t stream) {
  const SmallVector<unsigned> ordered = orderedAxes(mesh);
  if (stream == kComputeStream || stream == kCopyStream || ordered.empty())
    return {};
  const size_t place = stream < kCopyStream ? 0 : (stream - kCopyStream - 1) / 2 + 1;
  return place < ordered.size() ? mesh.getAxisName(ordered[place]) : StringRef();
}

tessera::exec::CollectiveKind tessera::exec::instructionKind(dist::CollectiveKind kind) {
  using Own = exec::CollectiveKind;
  switch (kind) {
  case dist::CollectiveKind::AllGather:
    return Own::AllGather;
  case dist::CollectiveKind::ReduceScatter:
    return Own::ReduceScatter;
  case dist::CollectiveKind::AllReduce:
    return Own::AllReduce;
  case dist::CollectiveKind::AllToAll:
    return Own::AllToAll;
  case dist::CollectiveKind::Permute:
    return Own::Permute;
  }
  llvm_unreachable("unknown collective");
}

tessera::dist::CollectiveKind tessera::exec::collectiveKind(CollectiveOp op) {
  const auto kind = static_cast<dist::CollectiveKind>(op.getKind());
  assert(instructionKind(kind) == op.getKind() && "kinds are in one order");
  return kind;
}

bool tessera::exec::takesBias(Epilogue epilogue) {
  return epilogue == Epilogue::Bias || epilogue == Epilogue::GeluBias || epilogue == Epilogue::GeluAuxBias;
}
bool tessera::exec::takesPreActivation(Epilogue epilogue) {
  return epilogue == Epilogue::GeluGrad || epilogue == Epilogue::GeluGradBiasGrad;
}
bool tessera::exec::givesPreActivation(Epilogue epilogue) {
  return epilogue == Epilogue::GeluAux || epilogue == Epilogue::GeluAuxBias;
}
bool tessera::exec::givesBiasGrad(Epilogue epilogue) {
  return epilogue == Epilogue::GeluGradBiasGrad || sumsOperand(epilogue);
}
bool tessera::exec::sumsOperand(Epilogue epilogue) {
  return epilogue == Epilogue::BiasGradA || epilogue == Epilogue::BiasGradB;
}

// --- Names in the textual form -------------------------------------------------

static std::string assemblyName(StringRef name) {
  std::string result = name.str();
  for (char &c : result)
    if (!llvm::isAlnum(c) && c != '.' && c != '_' && c != '-')
      c = '_';
  return result.empty() || llvm::isDigit(result[0]) ? "s" + result : result;
}

void SlotOp::getAsmResultNames(function_ref<void(Value, StringRef)> setName) {
  setName(getResult(), assemblyName(getName()) + ".slot");
}
void BufferOp::getAsmResultNames(function_ref<void(Value, StringRef)> setName) {
  if (auto slot = getSlot().getDefiningOp<SlotOp>())
    setName(getResult(), assemblyName(slot.getName()));
}

// --- Verifiers -----------------------------------------------------------------

static MemRefType typeOf(Value value) { return cast<MemRefType>(value.getType()); }

/// The size-1 dimensions aside, the stride of `dim` is 1.
static bool isUnit(MemRefType type, int64_t dim) { return type.getDimSize(dim) == 1 || stridesOf(type)[dim] == 1; }

static LogicalResult verifyContiguous(Operation *op, ValueRange buffers, StringRef what) {
  for (Value buffer : buffers)
    if (buffer && !isContiguous(typeOf(buffer)))
      return op->emitOpError() << what << " must be contiguous, got " << buffer.getType();
  return success();
}

LogicalResult SlotOp::verify() {
  if (!getType().hasStaticShape())
    return emitOpError("size must be static");
  if (getOffset() && *getOffset() % 64 != 0)
    return emitOpError() << "offset must be a multiple of 64, got " << *getOffset();
  return success();
}

LogicalResult BufferOp::verify() {
  MemRefType type = getType();
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), stridesOf(type)))
    if (stride < 0)
      return emitOpError() << "strides must not be negative, got " << stride;
  if ((getRankStride() != 0) != (getRankAxes().has_value()))
    return emitOpError("rank_stride and rank_axes go together");
  if (int64_t(getIterationStride()) < 0 || int64_t(getRankStride()) < 0 || int64_t(getOffset()) < 0)
    return emitOpError("offset and strides must not be negative");
  int64_t end = getOffset() + spannedBytes(*this, 1, 1);
  if (end > getSlot().getType().getDimSize(0))
    return emitOpError() << "ends at byte " << end << " of a slot of " << getSlot().getType().getDimSize(0) << " bytes";
  return success();
}

LogicalResult LaunchOp::verify() {
  if (int64_t(getExtent()) < 0 || int64_t(getGrain()) < 1)
    return emitOpError("extent must not be negative and grain at least 1");
  if (failed(verifyContiguous(*this, getInputs(), "inputs")))
    return failure();
  return verifyContiguous(*this, getOutputs(), "outputs");
}

/// Input and output of the epilogue of a gemm whose operands fit each other.
static LogicalResult verifyEpilogue(GemmOp op) {
  Epilogue epilogue = op.getEpilogue();
  MemRefType c = typeOf(op.getC());
  bool takes = takesBias(epilogue) || takesPreActivation(epilogue),
       gives = givesPreActivation(epilogue) || givesBiasGrad(epilogue);
  if (takes != bool(op.getEpilogueInput()) || gives != bool(op.getEpilogueOutput()))
    return op.emitOpError() << "with epilogue " << stringifyEpilogue(epilogue) << " needs " << (takes ? "an" : "no")
                            << " input and " << (gives ? "an" : "no") << " output of it";
  if (epilogue == Epilogue::None)
    return success();
  if (c.getRank() != 2)
    return op.emitOpError() << "with an epilogue needs rank 2, got " << c.getRank();
  if (!sumsOperand(epilogue) && (!isContiguous(c) || !op.getBeta().isZero()))
    return op.emitOpError() << "with epilogue " << stringifyEpilogue(epilogue)
                            << " needs a contiguous result and a beta of 0";
  auto check = [&](Value buffer, bool isMatrix, StringRef what) -> LogicalResult {
    SmallVector<int64_t> shape{c.getDimSize(epilogue == Epilogue::BiasGradA ? 0 : 1)};
    if (isMatrix)
      shape.insert(shape.begin(), c.getDimSize(0));
    MemRefType type = typeOf(buffer);
    if (type.getShape() != ArrayRef(shape) || type.getElementType() != c.getElementType() || !isContiguous(type))
      return op.emitOpError() << "epilogue's " << what << " must be contiguous, of shape [" << llvm::interleaved(shape)
                              << "] and type " << c.getElementType() << ", got " << type;
    return success();
  };
  if (takes && failed(check(op.getEpilogueInput(), takesPreActivation(epilogue), "input")))
    return failure();
  return success(!gives || succeeded(check(op.getEpilogueOutput(), givesPreActivation(epilogue), "output")));
}

/// Scales of a gemm whose operands fit each other.
static LogicalResult verifyScales(GemmOp op) {
  MemRefType a = typeOf(op.getA()), b = typeOf(op.getB()), c = typeOf(op.getC());
  const bool isScaled = a.getElementType().isFloat(8) || b.getElementType().isFloat(8);
  if (bool(op.getAScales()) != isScaled || bool(op.getBScales()) != isScaled)
    return op.emitOpError() << "needs " << (isScaled ? "scales of both operands" : "no scales") << " with operands of "
                            << a.getElementType() << " and " << b.getElementType();
  if (!isScaled) {
    if (op.getAScaleMode() != ScaleMode::None || op.getBScaleMode() != ScaleMode::None || op.getFastAccumulation())
      return op.emitOpError("has a mode of scales or fast accumulation, which only 8-bit floats have");
    return success();
  }
  if (c.getRank() != 2 || op.getEpilogue() != Epilogue::None)
    return op.emitOpError("of 8-bit floats has no batch and no epilogue");
  if (!isUnit(a, 1) || !isUnit(b, 0))
    return op.emitOpError() << "of 8-bit floats needs stride 1 along what is contracted, got " << a << " and " << b;
  if (stridesOf(a)[0] % kScaledMultiple != 0 || stridesOf(b)[1] % kScaledMultiple != 0)
    return op.emitOpError() << "of 8-bit floats needs rows that begin at multiples of " << kScaledMultiple
                            << " bytes, got " << a << " and " << b;
  for (Value scales : {op.getAScales(), op.getBScales()})
    if (!isContiguous(typeOf(scales)))
      return op.emitOpError() << "scales must be contiguous, got " << scales.getType();
  auto columns = MemRefType::get({b.getDimSize(1), b.getDimSize(0)}, b.getElementType());
  return verifyScaledOperands(op, {a, op.getAScaleMode(), typeOf(op.getAScales())},
                              {columns, op.getBScaleMode(), typeOf(op.getBScales())}, c);
}

LogicalResult GemmOp::verify() {
  MemRefType a = typeOf(getA()), b = typeOf(getB()), c = typeOf(getC());
  int64_t rank = c.getRank();
  if (rank < 2 || a.getRank() != rank || b.getRank() != rank)
    return emitOpError() << "operands must have one rank of at least 2, got " << a.getRank() << ", " << b.getRank()
                         << " and " << rank;
  ArrayRef<int64_t> as = a.getShape(), bs = b.getShape(), cs = c.getShape();
  bool consistent = as.drop_back(2) == cs.drop_back(2) && bs.drop_back(2) == cs.drop_back(2) &&
                    as[rank - 2] == cs[rank - 2] && as[rank - 1] == bs[rank - 2] && bs[rank - 1] == cs[rank - 1];
  if (!consistent)
    return emitOpError() << "shapes do not match: " << a << " times " << b << " into " << c;
  for (MemRefType type : {a, b})
    if (!isUnit(type, rank - 1) && !isUnit(type, rank - 2))
      return emitOpError() << "operand needs stride 1 in one of its two innermost dimensions, got " << type;
  if (!isUnit(c, rank - 1))
    return emitOpError() << "result needs stride 1 in its innermost dimension, got " << c;
  return failed(verifyScales(*this)) ? failure() : verifyEpilogue(*this);
}

LogicalResult ConvOp::verify() {
  for (Value buffer : {getX(), getW(), getY()})
    if (typeOf(buffer).getRank() != 4)
      return emitOpError() << "buffers must have rank 4, got " << buffer.getType();
  if (getStrides().size() != 2 || getPadding().size() != 4 || getDilations().size() != 2)
    return emitOpError("expects 2 strides, 4 paddings and 2 dilations");
  return verifyContiguous(*this, {getX(), getW(), getY()}, "buffers");
}

static LogicalResult verifyRows(Operation *op, ValueRange buffers) {
  for (Value buffer : buffers)
    if (typeOf(buffer).getRank() != 4 || !isUnit(typeOf(buffer), 3))
      return op->emitOpError() << "expects buffers of rank 4 with innermost stride 1, got " << buffer.getType();
  return success();
}

/// What attention and its gradient share.
template <typename Op> static LogicalResult verifyKeys(Op op) {
  if (!op.getBegin() != !op.getEnd())
    return op.emitOpError("has one end of the keys that are seen, expected both or none");
  if (op.getWindow() && (!op.getCausal() || *op.getWindow() < 1))
    return op.emitOpError() << "has a window of " << *op.getWindow() << " keys, expected at least 1, and causal";
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyRows(*this, {getQ(), getK(), getV(), getOut()})) || failed(verifyKeys(*this)))
    return failure();
  if (typeOf(getLse()).getShape() != typeOf(getQ()).getShape().drop_back())
    return emitOpError() << "lse has type " << getLse().getType() << " for a query of type " << getQ().getType();
  return verifyContiguous(*this, {getMask(), getBegin(), getEnd(), getLse()}, "mask, begin, end and lse");
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyRows(*this, {getQ(), getK(), getV(), getOut(), getDout(), getDq(), getDk(), getDv()})) ||
      failed(verifyKeys(*this)))
    return failure();
  for (auto [value, grad] : {std::pair(getQ(), getDq()), std::pair(getK(), getDk()), std::pair(getV(), getDv())})
    if (typeOf(value).getShape() != typeOf(grad).getShape())
      return emitOpError() << "gradient of type " << grad.getType() << " for a buffer of type " << value.getType();
  return verifyContiguous(*this, {getMask(), getBegin(), getEnd(), getLse(), getWorkspace()},
                          "mask, begin, end, lse and workspace");
}

LogicalResult CollectiveOp::verify() {
  MemRefType input = typeOf(getInput()), output = typeOf(getOutput());
  if (input.getElementType() != output.getElementType())
    return emitOpError() << "element types differ: " << input << " and " << output;
  int64_t in = input.getNumElements(), out = output.getNumElements();
  bool divides = getKind() == CollectiveKind::AllGather       ? in != 0 && out % in == 0
                 : getKind() == CollectiveKind::ReduceScatter ? out != 0 && in % out == 0
                                                              : in == out;
  if (!divides)
    return emitOpError() << in << " elements in do not go with " << out << " elements out";
  return verifyContiguous(*this, {getInput(), getOutput()}, "buffers");
}

LogicalResult CopyOp::verify() {
  MemRefType source = typeOf(getSource()), target = typeOf(getTarget());
  if (source.getShape() != target.getShape() || source.getElementType() != target.getElementType())
    return emitOpError() << "source " << source << " and target " << target << " differ in shape or element type";
  return success();
}

LogicalResult AxisIndexOp::verify() {
  MemRefType type = typeOf(getTarget());
  if (type.getNumElements() != 1 || !type.getElementType().isInteger())
    return emitOpError() << "target must hold one integer, got " << type;
  return success();
}

LogicalResult LoopOp::verify() {
  if (int64_t(getCount()) < 1)
    return emitOpError() << "count must be at least 1, got " << int64_t(getCount());
  for (Operation &op : getBody().front())
    if (!isInstruction(&op) || isa<LoopOp>(op))
      return op.emitOpError("is not an instruction that a loop may hold");
  return success();
}
