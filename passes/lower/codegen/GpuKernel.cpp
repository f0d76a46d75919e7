//===- GpuKernel.cpp - one kernel as code of a GPU thread -----------------===//

#include "passes/lower/codegen/GpuKernel.h"

#include "compiler/dialect/train/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using tessera::train::shapeOf;
using tessera::train::tensorType;

namespace tessera::codegen {

/// Bytes of one memory access.
static constexpr int64_t kAccessBytes = 16;
/// Elements that a thread takes together at most, and bytes of one tensor that it takes at most.
static constexpr int64_t kMaxWidth = 8, kMaxBytes = 64;
/// Blocks of a column kernel below which a thread takes fewer columns: twice the multiprocessors of an H100.
static constexpr int64_t kFewBlocks = 264;
static constexpr int64_t kElementwiseThreads = 256;

/// Elements that a thread takes together: as many as one access holds of the narrowest type, if the innermost loop
/// divides, so that every access of whole tensors has 16 bytes.
static int64_t vectorWidth(const KernelBody &body, const KernelPlan &plan) {
  if (plan.kind == KernelKind::Scatter || plan.digits.empty() || plan.digits.back().unroll)
    return 1;
  int64_t elements = 1, blocks = 1;
  for (const Digit &digit : plan.digits)
    elements *= digit.size;
  int64_t narrowest = kAccessBytes, widest = 1;
  for (Value value : llvm::concat<const Value>(body.inputs, body.outputs)) {
    if (elementsOf(shapeOf(value)) < elements)
      continue;
    const int64_t bytes = bytesOf(tensorType(value).getElementType());
    narrowest = std::min(narrowest, bytes);
    widest = std::max(widest, bytes);
  }
  int64_t width = std::min({kMaxWidth, kAccessBytes / std::min<int64_t>(narrowest, 4), kMaxBytes / widest});
  int64_t last = plan.digits.back().size;
  while (last % width != 0)
    width /= 2;
  for (unsigned digit : plan.outer)
    blocks *= plan.digits[digit].size;
  if (plan.kind == KernelKind::Blocks)
    return width;
  if (plan.lane)
    while (width > 1 && (last / width < kWarp || blocks * (last / width / kWarp) < kFewBlocks))
      width /= 2;
  else if (!plan.reductions.empty())
    while (width > 1 && last / width < kWarp)
      width /= 2;
  return width;
}

/// Cuts the last digit into (size / width, width), the second unrolled.
static void cutVector(KernelPlan &plan, int64_t width) {
  if (width == 1)
    return;
  unsigned last = plan.digits.size() - 1;
  Digit vector = plan.digits[last];
  plan.digits[last].size /= width;
  vector.size = width;
  vector.unroll = true;
  plan.digits.push_back(vector);
  if (plan.lane) {
    plan.inner.push_back(last + 1);
  } else {
    auto &order = llvm::is_contained(plan.inner, last) ? plan.inner : plan.outer;
    order.insert(std::next(llvm::find(order, last)), last + 1);
  }
  plan.setIdentities();
  const Cut cut{last, width};
  for (Output &output : plan.outputs)
    output.position = cutLast(output.position, cut);
  if (plan.tiles)
    for (TileRead &read : plan.tiles->reads)
      read.index = cutLast(read.index, cut);
}

static KernelPlan &arrange(const KernelBody &body, KernelPlan &plan) {
  cutVector(plan, vectorWidth(body, plan));
  // What a CPU keeps of a row in its cache is computed anew: a GPU has the arithmetic to spare.
  plan.scratch.clear();
  return plan;
}

GpuKernelEmitter::GpuKernelEmitter(const KernelBody &body, KernelPlan &plan, ConstantTables &tables, Location loc,
                                   GpuKernelOptions options)
    : KernelEmitter(body, arrange(body, plan), tables, loc), arranged(plan), options(std::move(options)) {
  evaluator.constantLast = true;
}

FailureOr<GpuLaunch> GpuKernelEmitter::emit(ModuleOp module, StringRef symbol, std::string &why) {
  // Threads, rows and the positions of a row are counted in 32 bits; elements are not.
  auto counted = [&](ArrayRef<unsigned> digits) {
    int64_t size = 1;
    for (unsigned digit : digits)
      size *= plan.digits[digit].unroll ? 1 : plan.digits[digit].size;
    return size;
  };
  int64_t outer = counted(plan.outer) * counted(plan.walked) * (plan.lane ? plan.digits[*plan.lane].size : 1);
  int64_t inner = counted(plan.inner);
  bool isElementwise = plan.reductions.empty() && plan.passes <= 1;
  if (plan.kind != KernelKind::Scatter &&
      std::max(isElementwise ? outer * inner : outer, inner) > std::numeric_limits<int32_t>::max()) {
    why = "more than 2^31 threads or elements of a row";
    return failure();
  }
  this->module = module;
  this->symbol = symbol.str();
  builder.setInsertionPointToEnd(module.getBody());
  SmallVector<Type> pointers(body.inputs.size() + body.outputs.size(),
                             LLVM::LLVMPointerType::get(builder.getContext()));
  auto function = func::FuncOp::create(builder, loc, symbol, builder.getFunctionType(pointers, TypeRange()));
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToEnd(entry);
  func::ReturnOp::create(builder, loc);
  levels.push_back({entry, nullptr, nullptr, {}});

  for (auto [input, pointer] : llvm::zip(body.inputs, entry->getArguments()))
    inputPointers[input] = pointer;
  llvm::append_range(outputPointers, entry->getArguments().drop_front(body.inputs.size()));
  // A result may lie in an operand's buffer; all other buffers are apart.
  llvm::BitVector mayAlias(pointers.size());
  for (auto [number, output] : llvm::enumerate(plan.outputs))
    for (unsigned input : output.mayOverwrite) {
      mayAlias.set(input);
      mayAlias.set(body.inputs.size() + number);
    }
  for (unsigned number = 0; number < pointers.size(); ++number) {
    int64_t alignment = options.alignments.empty() ? kAccessBytes : options.alignments[number];
    function.setArgAttr(number, "llvm.align", builder.getI64IntegerAttr(alignment));
    if (mayAlias.test(number))
      continue;
    function.setArgAttr(number, "llvm.noalias", builder.getUnitAttr());
    if (number < body.inputs.size())
      function.setArgAttr(number, "llvm.readonly", builder.getUnitAttr());
  }

  Type type = builder.getI32Type();
  block = NVVM::BlockIdXOp::create(at(0), loc, type);
  threadX = NVVM::ThreadIdXOp::create(at(0), loc, type);
  if (plan.kind == KernelKind::Scatter)
    emitTable();
  else if (plan.kind == KernelKind::RowColumn)
    emitRowColumns();
  else if (plan.kind == KernelKind::Blocks)
    emitBlocks();
  else if (plan.lane)
    emitColumn();
  else if (plan.tiles)
    emitTiles();
  else if (plan.reductions.empty() && plan.passes <= 1)
    emitElementwise();
  else
    emitRow();
  why = evaluator.seen.problem;
  if (sharedBytes > kSharedBytes && why.empty())
    why = "needs " + std::to_string(sharedBytes) + " bytes of shared memory, of " + std::to_string(kSharedBytes);
  if (!why.empty() || evaluator.seen.failed())
    return failure();
  return launch;
}

// --- Small parts ------------------------------------------------------------------

Value GpuKernelEmitter::wide(Value value) {
  return arith::ExtUIOp::create(at(depth()), loc, builder.getI64Type(), value);
}

int64_t GpuKernelEmitter::product(ArrayRef<unsigned> digits) const {
  int64_t size = 1;
  for (unsigned digit : digits)
    size *= plan.digits[digit].size;
  return size;
}

/// `number` is i32: divisions of 64 bits are slow.
void GpuKernelEmitter::setDigits(ArrayRef<unsigned> digits, Value number) {
  unsigned level = depth();
  for (size_t i = digits.size(); i-- > 0;) {
    Digit &digit = space.digits[digits[i]];
    Value own = number;
    if (i > 0) {
      Value size = i32(digit.size);
      own = arith::RemUIOp::create(at(level), loc, number, size);
      number = arith::DivUIOp::create(at(level), loc, number, size);
    }
    digit.value = wide(own);
    digit.level = level;
  }
}

void GpuKernelEmitter::openGuard(Value condition) {
  auto branch = scf::IfOp::create(at(depth()), loc, condition, /*withElseRegion=*/false);
  levels.back().nested = branch;
  levels.push_back({branch.thenBlock(), nullptr, nullptr, {}});
}

void GpuKernelEmitter::closeGuard() {
  evaluator.forget(depth());
  levels.pop_back();
  levels.back().nested = nullptr;
}

void GpuKernelEmitter::makeAccumulators() {
  for (const Reduction &reduction : plan.reductions) {
    Type element = tensorType(reduction.op->getOperand(0)).getElementType();
    Accumulator accumulator{&reduction, {scalarType(train::accumulationType(element))}, {}};
    if (isa<train::ArgmaxOp>(reduction.op))
      accumulator.types.push_back(builder.getI64Type());
    accumulators.push_back(std::move(accumulator));
  }
}

size_t GpuKernelEmitter::slots(const Accumulator &accumulator) const {
  if (plan.kind == KernelKind::Blocks)
    return accumulator.reduction->ofColumns ? product(unrolled) : heldRounds;
  if (accumulator.reduction->ofColumns)
    return heldRounds * product(unrolled);
  return columnDigit ? plan.digits[*columnDigit].size : 1;
}

size_t GpuKernelEmitter::slotOf(const Accumulator &accumulator) const {
  const bool isOfBlocks = plan.kind == KernelKind::Blocks;
  if (isOfBlocks && !accumulator.reduction->ofColumns)
    return evaluator.instance - 1;
  if (!accumulator.reduction->ofColumns)
    return columnDigit ? space.digits[*columnDigit].known.value_or(0) : 0;
  size_t slot = isOfBlocks ? 0 : evaluator.instance - 1;
  for (unsigned digit : unrolled)
    slot = slot * plan.digits[digit].size + *space.digits[digit].known;
  return slot;
}

/// The start of a pass: neutral values, and the sums of columns as they are after the rows before.
GpuKernelEmitter::Values GpuKernelEmitter::carriedOf(unsigned pass) {
  Values carried;
  for (const Accumulator &accumulator : accumulators) {
    if (accumulator.reduction->pass != pass)
      continue;
    if (accumulator.reduction->ofColumns && plan.kind != KernelKind::Blocks)
      carried.append(accumulator.values);
    else
      for (size_t slot = 0; slot < slots(accumulator); ++slot)
        carried.append(neutral(accumulator));
  }
  return carried;
}

Scalar GpuKernelEmitter::reduced(Operation *op) {
  for (Accumulator &accumulator : accumulators) {
    if (accumulator.reduction->op != op || accumulator.values.empty())
      continue;
    Value value = accumulator.values[(slotOf(accumulator) + 1) * accumulator.types.size() - 1];
    Type type = scalarType(tensorType(op->getResult(0)).getElementType());
    return {emitConvert(at(rowLevel), loc, value, value.getType(), type), rowLevel};
  }
  evaluator.seen.problem = "a reduction is used before it is computed";
  return {};
}

// --- Vectors ----------------------------------------------------------------------

/// One position of the strided digits: all positions of the unrolled ones.
void GpuKernelEmitter::emitVector(unsigned pass, size_t position, Values &carried, SmallVectorImpl<Pending> &pending) {
  if (position < unrolled.size()) {
    unsigned number = unrolled[position];
    for (int64_t i = 0; i < plan.digits[number].size && !evaluator.seen.failed(); ++i) {
      space.digits[number].known = i;
      emitVector(pass, position + 1, carried, pending);
    }
    space.digits[number].known.reset();
    return;
  }
  size_t next = 0;
  for (const Accumulator &accumulator : accumulators) {
    if (accumulator.reduction->pass != pass)
      continue;
    if (Online *pair = onlineOf(accumulator)) {
      if (pair->top == accumulator.reduction->op)
        pair->values.push_back(operandOf(accumulator));
      next += accumulator.types.size();
      continue;
    }
    size_t slot = next + slotOf(accumulator) * accumulator.types.size();
    Values combined = combine(accumulator, ValueRange(carried).slice(slot, accumulator.types.size()));
    for (Value value : combined)
      carried[slot++] = value;
    next += slots(accumulator) * accumulator.types.size();
  }
  for (auto [number, output] : llvm::enumerate(plan.outputs))
    if (output.extent == OutputExtent::Full && output.pass == pass && !evaluator.seen.failed())
      pending.push_back({number, evaluator.evaluate(output.value, output.position), space.substitute(output.position)});
}

void GpuKernelEmitter::storeVector(ArrayRef<Pending> pending) {
  if (evaluator.seen.failed())
    return;
  for (size_t output = 0; output < plan.outputs.size(); ++output)
    for (const Pending &one : pending)
      if (one.output == output)
        store(plan.outputs[output].value, output, one.value, one.position);
}

/// The loop of a thread over `strided`: first, first + step, … below `count` (of i32).
GpuKernelEmitter::Values GpuKernelEmitter::emitInner(unsigned pass, Value first, int64_t step, Value limit,
                                                     int64_t count, Values carried) {
  // A constant number of rounds where the threads divide the row, so that short loops are unrolled.
  bool isEven = !limit && count % step == 0;
  if (!limit)
    limit = i32(count);
  Value low = isEven ? i32(0) : first, high = isEven ? i32(count / step) : limit, by = i32(isEven ? 1 : step);
  auto loop = scf::ForOp::create(at(depth()), loc, low, high, by, carried);
  levels.back().nested = loop;
  levels.push_back({loop.getBody(), nullptr, nullptr, {}});
  Value number = loop.getInductionVar();
  if (isEven && step != 1)
    number = arith::AddIOp::create(at(depth()), loc, arith::MulIOp::create(at(depth()), loc, number, i32(step)), first);
  else if (isEven)
    number = arith::AddIOp::create(at(depth()), loc, number, first);
  setDigits(strided, number);
  Values next(loop.getRegionIterArgs());
  SmallVector<Pending> pending;
  emitVector(pass, 0, next, pending);
  storeVector(pending);
  if (evaluator.seen.failed())
    next = Values(loop.getRegionIterArgs());
  else
    emitOnline(pass, next);
  closeLoop(next);
  return Values(loop.getResults());
}

// --- Elementwise -----------------------------------------------------------------

void GpuKernelEmitter::emitElementwise() {
  for (unsigned digit : llvm::concat<const unsigned>(plan.outer, plan.inner))
    (plan.digits[digit].unroll ? unrolled : strided).push_back(digit);
  llvm::sort(strided);
  llvm::sort(unrolled);
  int64_t threads = product(strided);
  launch.threadsX = std::clamp((threads + kWarp - 1) / kWarp * kWarp, kWarp, kElementwiseThreads);
  launch.blocks = std::max<int64_t>((threads + launch.threadsX - 1) / launch.threadsX, 1);
  Value number =
      arith::AddIOp::create(at(0), loc, arith::MulIOp::create(at(0), loc, block, i32(launch.threadsX)), threadX);
  openGuard(arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::ult, number, i32(threads)));
  rowLevel = depth();
  setDigits(strided, number);
  Values none;
  SmallVector<Pending> pending;
  emitVector(0, 0, none, pending);
  storeVector(pending);
  closeGuard();
}

} // namespace tessera::codegen
