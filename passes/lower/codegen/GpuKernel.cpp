//===- GpuKernel.cpp - one kernel as code of a GPU thread -----------------===//

#include "passes/lower/codegen/GpuKernel.h"

#include "compiler/dialect/train/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using tessera::train::shapeOf;
using tessera::train::tensorType;

namespace tessera::codegen {

static constexpr int64_t kWarp = 32;
static constexpr int64_t kElementwiseThreads = 256;
/// Vectors of a row up to which one warp reduces it.
static constexpr int64_t kWarpRow = 8 * kWarp;
static constexpr int64_t kWarpsPerBlock = 4;
static constexpr int64_t kMaxThreads = 1024;
/// Bytes of one memory access.
static constexpr int64_t kAccessBytes = 16;

/// Elements that a thread takes together: as many as one access holds of the widest type, if the innermost loop
/// divides.
static int64_t vectorWidth(const KernelBody &body, const KernelPlan &plan) {
  if (plan.lane || plan.kind == KernelKind::Scatter || plan.digits.empty() || plan.digits.back().unroll)
    return 1;
  int64_t bits = 8;
  for (Value value : llvm::concat<const Value>(body.inputs, body.outputs))
    if (elementsOf(shapeOf(value)) > 1)
      bits = std::max<int64_t>(bits, tensorType(value).getElementTypeBitWidth());
  int64_t width = std::max<int64_t>(1, kAccessBytes * 8 / bits);
  while (plan.digits.back().size % width != 0)
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
  auto &order = llvm::is_contained(plan.inner, last) ? plan.inner : plan.outer;
  order.insert(std::next(llvm::find(order, last)), last + 1);
  plan.fullIdentity = plan.keptIdentity = Index::constant(0);
  for (auto [number, digit] : llvm::enumerate(plan.digits)) {
    plan.fullIdentity = plan.fullIdentity * digit.size + Index::ofDigit(number);
    if (!digit.reduced)
      plan.keptIdentity = plan.keptIdentity * digit.size + Index::ofDigit(number);
  }
}

static KernelPlan &arrange(const KernelBody &body, KernelPlan &plan) {
  cutVector(plan, vectorWidth(body, plan));
  // What a CPU keeps of a row in its cache is computed anew: a GPU has the arithmetic to spare.
  plan.scratch.clear();
  return plan;
}

GpuKernelEmitter::GpuKernelEmitter(const KernelBody &body, KernelPlan &plan, ConstantTables &tables, Location loc,
                                   GpuKernelOptions options)
    : KernelEmitter(body, arrange(body, plan), tables, loc), options(std::move(options)) {}

FailureOr<GpuLaunch> GpuKernelEmitter::emit(ModuleOp module, StringRef symbol, std::string &why) {
  int64_t elements = 1;
  for (const Digit &digit : plan.digits)
    elements *= digit.size;
  if (plan.kind != KernelKind::Scatter && elements > std::numeric_limits<int32_t>::max()) {
    why = "more than 2^31 elements";
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
  else if (plan.lane)
    emitColumn();
  else if (plan.reductions.empty() && plan.passes <= 1)
    emitElementwise();
  else
    emitRow();
  why = evaluator.seen.problem;
  if (evaluator.seen.failed())
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

void GpuKernelEmitter::barrier() { NVVM::Barrier0Op::create(at(depth()), loc); }

Value GpuKernelEmitter::shared(Type type, int64_t elements) {
  std::string name = symbol + "_shared" + std::to_string(sharedArrays++);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  // Emulated on a CPU, shared memory is an ordinary variable, which needs a value.
  auto array = LLVM::LLVMArrayType::get(type.isInteger(1) ? builder.getI8Type() : type, elements);
  bool isEmulated = options.sharedAddressSpace == 0;
  auto global = LLVM::GlobalOp::create(builder, loc, array, /*isConstant=*/false,
                                       isEmulated ? LLVM::Linkage::External : LLVM::Linkage::Internal, name,
                                       Attribute(), /*alignment=*/16, options.sharedAddressSpace);
  if (isEmulated) {
    builder.createBlock(&global.getInitializerRegion());
    LLVM::ReturnOp::create(builder, loc, LLVM::ZeroOp::create(builder, loc, array).getResult());
  }
  return LLVM::AddressOfOp::create(at(0), loc, global);
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

Scalar GpuKernelEmitter::reduced(Operation *op) {
  for (Accumulator &accumulator : accumulators) {
    if (accumulator.reduction->op != op || accumulator.values.empty())
      continue;
    Value value = accumulator.values.back();
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
    Values combined = combine(accumulator, ValueRange(carried).slice(next, accumulator.types.size()));
    for (Value value : combined)
      carried[next++] = value;
  }
  for (auto [number, output] : llvm::enumerate(plan.outputs))
    if (!output.perRow && output.pass == pass && !evaluator.seen.failed())
      pending.push_back(
          {number, evaluator.evaluate(output.value, plan.fullIdentity), space.substitute(plan.fullIdentity)});
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
  closeLoop(next);
  return Values(loop.getResults());
}

// --- Reductions between threads ----------------------------------------------------

SmallVector<Value> combinePartial(OpBuilder &builder, Location loc, Operation *reduction, ValueRange a, ValueRange b) {
  if (auto reduce = dyn_cast<train::ReduceOp>(reduction))
    return {emitCombine(builder, loc, reduce.getKind(), a[0], b[0])};
  auto compare = [&](arith::CmpFPredicate floats, arith::CmpIPredicate integers) -> Value {
    if (isa<FloatType>(a[0].getType()))
      return arith::CmpFOp::create(builder, loc, floats, b[0], a[0]);
    return arith::CmpIOp::create(builder, loc, integers, b[0], a[0]);
  };
  Value greater = compare(arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt);
  Value equal = compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq);
  Value earlier = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, b[1], a[1]);
  Value better = arith::OrIOp::create(builder, loc, greater, arith::AndIOp::create(builder, loc, equal, earlier));
  return {arith::SelectOp::create(builder, loc, better, b[0], a[0]),
          arith::SelectOp::create(builder, loc, better, b[1], a[1])};
}

/// The value of the lane whose number differs in the bits `lanes`.
Value GpuKernelEmitter::shuffle(Value value, int lanes) {
  Type type = value.getType(), word = builder.getI32Type();
  auto exchange = [&](Value part) -> Value {
    return NVVM::ShflOp::create(at(depth()), loc, part.getType(), i32(-1), part, i32(lanes), i32(kWarp - 1),
                                NVVM::ShflKind::bfly, UnitAttr());
  };
  if (type.isF32() || type.isInteger(32))
    return exchange(value);
  unsigned bits = type.getIntOrFloatBitWidth();
  Type integer = builder.getIntegerType(bits);
  if (type != integer)
    value = arith::BitcastOp::create(at(depth()), loc, integer, value);
  if (bits < 32) {
    value = arith::ExtUIOp::create(at(depth()), loc, word, value);
    value = arith::TruncIOp::create(at(depth()), loc, integer, exchange(value));
  } else {
    Value shift = constant(32, integer);
    Value low = exchange(arith::TruncIOp::create(at(depth()), loc, word, value));
    Value high = exchange(
        arith::TruncIOp::create(at(depth()), loc, word, arith::ShRUIOp::create(at(depth()), loc, value, shift)));
    low = arith::ExtUIOp::create(at(depth()), loc, integer, low);
    high = arith::ExtUIOp::create(at(depth()), loc, integer, high);
    value = arith::OrIOp::create(at(depth()), loc, low, arith::ShLIOp::create(at(depth()), loc, high, shift));
  }
  return type == integer ? value : arith::BitcastOp::create(at(depth()), loc, type, value).getResult();
}

GpuKernelEmitter::Values GpuKernelEmitter::reduceWarp(const Accumulator &accumulator, Values values) {
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    Values other;
    for (Value value : values)
      other.push_back(shuffle(value, lanes));
    values = combinePartial(at(depth()), loc, accumulator.reduction->op, values, other);
  }
  return values;
}

GpuKernelEmitter::Values GpuKernelEmitter::reduceBlock(const Accumulator &accumulator, Values values, int64_t warps) {
  values = reduceWarp(accumulator, std::move(values));
  if (warps == 1)
    return values;
  Value warpNumber = wide(arith::DivUIOp::create(at(depth()), loc, threadX, i32(kWarp)));
  Value lane = arith::RemUIOp::create(at(depth()), loc, threadX, i32(kWarp));
  Values arrays;
  for (Value value : values)
    arrays.push_back(shared(value.getType(), kWarp));
  Value isFirst = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::eq, lane, i32(0));
  openGuard(isFirst);
  for (auto [array, value] : llvm::zip(arrays, values))
    storeTo(array, value.getType(), value, warpNumber);
  closeGuard();
  barrier();
  // Every warp reduces the warps' results: no second exchange is needed.
  Value isWarp = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ult, lane, i32(warps));
  Value slot = arith::SelectOp::create(at(depth()), loc, isWarp, lane, i32(0));
  slot = wide(slot);
  Values start = neutral(accumulator), loaded;
  for (auto [array, type, first] : llvm::zip(arrays, accumulator.types, start)) {
    Value value = loadFrom(array, type, slot, depth());
    loaded.push_back(arith::SelectOp::create(at(depth()), loc, isWarp, value, first));
  }
  barrier();
  return reduceWarp(accumulator, std::move(loaded));
}

GpuKernelEmitter::Values GpuKernelEmitter::reduceDown(const Accumulator &accumulator, Values values) {
  int64_t rows = launch.threadsY;
  if (rows == 1)
    return values;
  Values arrays;
  Value slot =
      arith::AddIOp::create(at(depth()), loc, arith::MulIOp::create(at(depth()), loc, threadY, i32(kWarp)), threadX);
  slot = wide(slot);
  for (Value value : values) {
    arrays.push_back(shared(value.getType(), rows * kWarp));
    storeTo(arrays.back(), value.getType(), value, slot);
  }
  barrier();
  Value column = wide(threadX);
  for (int64_t row = 0; row < rows; ++row) {
    Values loaded;
    Value at0 = arith::AddIOp::create(at(depth()), loc, column, i64(row * kWarp));
    for (auto [array, type] : llvm::zip(arrays, accumulator.types))
      loaded.push_back(loadFrom(array, type, at0, depth()));
    values = row == 0 ? loaded : combinePartial(at(depth()), loc, accumulator.reduction->op, values, loaded);
  }
  barrier();
  return values;
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

// --- Rows ------------------------------------------------------------------------

void GpuKernelEmitter::emitRow() {
  makeAccumulators();
  for (unsigned digit : plan.inner)
    (plan.digits[digit].unroll ? unrolled : strided).push_back(digit);
  int64_t rows = product(plan.outer), count = product(strided);
  bool isWarp = count <= kWarpRow && rows > 1;
  Value row, first;
  int64_t step;
  if (isWarp) {
    launch.threadsX = kWarp;
    launch.threadsY = std::min(kWarpsPerBlock, rows);
    launch.blocks = (rows + launch.threadsY - 1) / launch.threadsY;
    step = kWarp;
    threadY = NVVM::ThreadIdYOp::create(at(0), loc, builder.getI32Type());
    row = arith::AddIOp::create(at(0), loc, arith::MulIOp::create(at(0), loc, block, i32(launch.threadsY)), threadY);
    // The same for all lanes of a warp: they reach every shuffle together.
    openGuard(arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::ult, row, i32(rows)));
  } else {
    launch.threadsX = std::min(kMaxThreads, (count + kWarp - 1) / kWarp * kWarp);
    // Several rounds a thread rather than a block that fills a multiprocessor alone.
    if (rows > 1)
      launch.threadsX = std::min<int64_t>(launch.threadsX, 512);
    launch.blocks = rows;
    step = launch.threadsX;
    row = block;
  }
  first = threadX;
  rowLevel = depth();
  setDigits(plan.outer, row);

  for (pass = 0; pass < plan.passes && !evaluator.seen.failed(); ++pass) {
    Values carried;
    for (const Accumulator &accumulator : accumulators)
      if (accumulator.reduction->pass == pass)
        carried.append(neutral(accumulator));
    carried = emitInner(pass, first, step, Value(), count, std::move(carried));
    size_t next = 0;
    for (Accumulator &accumulator : accumulators) {
      if (accumulator.reduction->pass != pass)
        continue;
      Values own(llvm::ArrayRef<Value>(carried).slice(next, accumulator.types.size()));
      next += accumulator.types.size();
      accumulator.values = isWarp ? reduceWarp(accumulator, std::move(own))
                                  : reduceBlock(accumulator, std::move(own), launch.threadsX / kWarp);
    }
  }
  if (!evaluator.seen.failed() && llvm::any_of(plan.outputs, [](const Output &output) { return output.perRow; })) {
    openGuard(arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::eq, threadX, i32(0)));
    storePerRow();
    closeGuard();
  }
  if (isWarp)
    closeGuard();
}

// --- Columns ---------------------------------------------------------------------

void GpuKernelEmitter::emitColumn() {
  makeAccumulators();
  for (unsigned digit : plan.inner)
    (plan.digits[digit].unroll ? unrolled : strided).push_back(digit);
  int64_t columns = plan.digits[*plan.lane].size, tiles = (columns + kWarp - 1) / kWarp, count = product(strided);
  launch.threadsX = kWarp;
  launch.threadsY = count >= 512 ? 16 : count >= 64 ? 8 : 1;
  launch.blocks = product(plan.outer) * tiles;
  threadY = NVVM::ThreadIdYOp::create(at(0), loc, builder.getI32Type());
  Value tile = arith::RemUIOp::create(at(0), loc, block, i32(tiles));
  Value group = arith::DivUIOp::create(at(0), loc, block, i32(tiles));
  Value column = arith::AddIOp::create(at(0), loc, arith::MulIOp::create(at(0), loc, tile, i32(kWarp)), threadX);
  // Threads beyond the last column go along with it, idle, so that all of a block meet at the barriers.
  Value isColumn, limit;
  if (columns % kWarp != 0) {
    isColumn = arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::ult, column, i32(columns));
    column = arith::SelectOp::create(at(0), loc, isColumn, column, i32(columns - 1));
    limit = arith::SelectOp::create(at(0), loc, isColumn, i32(count), i32(0));
  }
  setDigits(plan.outer, group);
  space.digits[*plan.lane].value = wide(column);
  space.digits[*plan.lane].level = 0;

  for (pass = 0; pass < plan.passes && !evaluator.seen.failed(); ++pass) {
    Values carried;
    for (const Accumulator &accumulator : accumulators)
      if (accumulator.reduction->pass == pass)
        carried.append(neutral(accumulator));
    carried = emitInner(pass, threadY, launch.threadsY, limit, count, std::move(carried));
    size_t next = 0;
    for (Accumulator &accumulator : accumulators) {
      if (accumulator.reduction->pass != pass)
        continue;
      Values own(llvm::ArrayRef<Value>(carried).slice(next, accumulator.types.size()));
      next += accumulator.types.size();
      accumulator.values = reduceDown(accumulator, std::move(own));
    }
  }
  if (evaluator.seen.failed())
    return;
  Value stores = arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::eq, threadY, i32(0));
  if (isColumn)
    stores = arith::AndIOp::create(at(0), loc, stores, isColumn);
  openGuard(stores);
  storePerRow();
  closeGuard();
}

// --- Scatter ---------------------------------------------------------------------

/// One warp a row of the table: it writes the initial row, then looks through all indices, 32 at a time, and adds the
/// rows that are its own in their order. No atomics, so that the sum is always the same.
void GpuKernelEmitter::emitTable() {
  auto op = cast<train::ScatterAddRowsOp>(plan.outputs.front().value.getDefiningOp());
  Type element = tensorType(op.getResult()).getElementType(), i32Type = builder.getI32Type();
  int64_t rows = plan.digits[0].size, columns = plan.digits[1].size, tableRows = plan.digits[2].size;
  launch.threadsX = kWarp;
  launch.threadsY = std::min<int64_t>(2 * kWarpsPerBlock, tableRows);
  launch.blocks = (tableRows + launch.threadsY - 1) / launch.threadsY;
  threadY = NVVM::ThreadIdYOp::create(at(0), loc, i32Type);
  Value own =
      arith::AddIOp::create(at(0), loc, arith::MulIOp::create(at(0), loc, block, i32(launch.threadsY)), threadY);
  openGuard(arith::CmpIOp::create(at(0), loc, arith::CmpIPredicate::ult, own, i32(tableRows)));
  space.digits[2].value = wide(own);
  space.digits[2].level = depth();
  auto openFor = [&](Value low, Value high, int64_t step) {
    auto loop = scf::ForOp::create(at(depth()), loc, low, high, i32(step));
    levels.back().nested = loop;
    levels.push_back({loop.getBody(), nullptr, nullptr, {}});
    return loop;
  };
  auto openColumns = [&] {
    auto loop = openFor(threadX, i32(columns), kWarp);
    space.digits[1].value = wide(loop.getInductionVar());
    space.digits[1].level = depth();
  };
  Value start = arith::MulIOp::create(at(depth()), loc, space.digits[2].value, i64(columns));
  openColumns();
  Scalar initial = evaluator.evaluate(op.getInit(), plan.keptIdentity);
  if (evaluator.seen.failed())
    return;
  store(op.getResult(), 0, initial, plan.keptIdentity);
  closeLoop({});

  auto chunks = openFor(i32(0), i32(rows), kWarp);
  Value candidate = arith::AddIOp::create(at(depth()), loc, chunks.getInductionVar(), threadX);
  Value isRow = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ult, candidate, i32(rows));
  Value clamped = arith::SelectOp::create(at(depth()), loc, isRow, candidate, i32(rows - 1));
  space.digits[0].value = wide(clamped);
  space.digits[0].level = depth();
  Scalar index = evaluator.evaluate(op.getIndices(), Index::ofDigit(0));
  if (evaluator.seen.failed())
    return;
  Type indexType = tensorType(op.getIndices()).getElementType();
  Value target = emitConvert(at(depth()), loc, index.value, indexType, builder.getI64Type());
  Value hit = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::eq, target, space.digits[2].value);
  hit = arith::AndIOp::create(at(depth()), loc, hit, isRow);
  Value hits = NVVM::VoteSyncOp::create(at(depth()), loc, i32Type, i32(-1), hit, NVVM::VoteSyncKind::ballot);
  // What was computed of the candidate does not hold for the row of a hit.
  evaluator.forget(depth());

  // while (hits) { row = lowest bit; add; clear it }
  auto loop = scf::WhileOp::create(at(depth()), loc, TypeRange{i32Type}, ValueRange{hits});
  Block *before = builder.createBlock(&loop.getBefore(), {}, {i32Type}, {loc});
  Value any = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, before->getArgument(0), i32(0));
  builder.setInsertionPointToEnd(before);
  scf::ConditionOp::create(builder, loc, any, before->getArguments());
  Block *after = builder.createBlock(&loop.getAfter(), {}, {i32Type}, {loc});
  levels.back().nested = loop;
  levels.push_back({after, nullptr, nullptr, {}});
  Value bits = after->getArgument(0);
  Value lowest = LLVM::CountTrailingZerosOp::create(at(depth()), loc, i32Type, bits, /*is_zero_poison=*/true);
  Value row = arith::AddIOp::create(at(depth()), loc, chunks.getInductionVar(), lowest);
  space.digits[0].value = wide(row);
  space.digits[0].level = depth();
  openColumns();
  Scalar update = evaluator.evaluate(op.getUpdates(), plan.fullIdentity);
  if (evaluator.seen.failed())
    return;
  Value place = arith::AddIOp::create(at(depth()), loc, start, space.digits[1].value);
  Value old = loadFrom(outputPointers.front(), element, place, depth());
  Type accumulate = scalarType(train::accumulationType(element));
  OpBuilder &inner = at(depth());
  Value sum = emitCombine(inner, loc, train::ReduceKind::Sum, emitConvert(inner, loc, old, element, accumulate),
                          emitConvert(inner, loc, update.value, element, accumulate));
  storeTo(outputPointers.front(), element, emitConvert(at(depth()), loc, sum, accumulate, element), place);
  closeLoop({});
  Value rest = arith::AndIOp::create(at(depth()), loc, bits, arith::SubIOp::create(at(depth()), loc, bits, i32(1)));
  scf::YieldOp::create(at(depth()), loc, ValueRange{rest});
  evaluator.forget(depth());
  levels.pop_back();
  levels.back().nested = nullptr;
  closeLoop({});
  closeGuard();
}

} // namespace tessera::codegen
