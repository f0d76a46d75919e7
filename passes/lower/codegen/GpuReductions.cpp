//===- GpuReductions.cpp - sums and maxima over the threads of a block ----===//

#include "passes/lower/codegen/GpuKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace tessera::codegen {

void GpuKernelEmitter::barrier() { NVVM::Barrier0Op::create(at(depth()), loc); }

/// A new array: each is written in one place and read behind one barrier.
Value GpuKernelEmitter::shared(Type type, int64_t elements) {
  std::string name = symbol + "_shared" + std::to_string(sharedArrays++);
  sharedBytes += elements * bytesOf(type);
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

SmallVector<Value> combinePartial(OpBuilder &builder, Location loc, Operation *reduction, ValueRange a, ValueRange b) {
  Type element = accumulatedType(reduction);
  if (auto reduce = dyn_cast<train::ReduceOp>(reduction))
    return {emitCombine(builder, loc, reduce.getKind(), element, a[0], b[0])};
  Value greater = emitGreater(builder, loc, element, b[0], a[0]);
  Value equal = isa<FloatType>(element)
                    ? arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, b[0], a[0]).getResult()
                    : arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, b[0], a[0]).getResult();
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
  return reduceBlock({&accumulator}, {std::move(values)}, warps, Value()).front();
}

SmallVector<GpuKernelEmitter::Values> GpuKernelEmitter::reduceBlock(ArrayRef<const Accumulator *> reduced,
                                                                    SmallVector<Values> values, int64_t warps,
                                                                    Value place) {
  for (auto [accumulator, own] : llvm::zip_equal(reduced, values))
    own = reduceWarp(*accumulator, std::move(own));
  if (warps == 1 || reduced.empty())
    return values;
  auto placeOf = [&](Value number) {
    return place ? arith::AddIOp::create(at(depth()), loc, place, number).getResult() : number;
  };
  Value warpNumber = placeOf(wide(arith::DivUIOp::create(at(depth()), loc, threadX, i32(kWarp))));
  Value lane = arith::RemUIOp::create(at(depth()), loc, threadX, i32(kWarp));
  SmallVector<Values> arrays(values.size());
  for (auto [own, array] : llvm::zip_equal(values, arrays))
    for (Value value : own)
      array.push_back(shared(value.getType(), place ? 2 * kWarp : kWarp));
  Value isFirst = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::eq, lane, i32(0));
  openGuard(isFirst);
  for (auto [own, array] : llvm::zip_equal(values, arrays))
    for (auto [to, value] : llvm::zip_equal(array, own))
      storeTo(to, value.getType(), value, warpNumber);
  closeGuard();
  barrier();
  // Every warp reduces the warps' results: no second exchange is needed.
  Value isWarp = arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ult, lane, i32(warps));
  Value slot = arith::SelectOp::create(at(depth()), loc, isWarp, lane, i32(0));
  slot = placeOf(wide(slot));
  for (auto [accumulator, own, array] : llvm::zip_equal(reduced, values, arrays)) {
    Values loaded;
    for (auto [from, type, first] : llvm::zip_equal(array, accumulator->types, neutral(*accumulator))) {
      Value value = loadFrom(from, type, slot, depth());
      loaded.push_back(arith::SelectOp::create(at(depth()), loc, isWarp, value, first));
    }
    own = reduceWarp(*accumulator, std::move(loaded));
  }
  return values;
}

GpuKernelEmitter::Values GpuKernelEmitter::reduceDown(const Accumulator &accumulator, Values values) {
  int64_t rows = launch.threadsY, types = accumulator.types.size();
  if (rows == 1)
    return values;
  // [slot][row][lane]: neighbouring lanes use neighbouring banks.
  Values arrays;
  for (Type type : accumulator.types)
    arrays.push_back(shared(type, slots(accumulator) * rows * kWarp));
  Value own =
      arith::AddIOp::create(at(depth()), loc, arith::MulIOp::create(at(depth()), loc, threadY, i32(kWarp)), threadX);
  own = wide(own);
  Value column = wide(threadX);
  auto place = [&](Value base, int64_t offset) {
    return arith::AddIOp::create(at(depth()), loc, base, i64(offset)).getResult();
  };
  for (auto [number, value] : llvm::enumerate(values))
    storeTo(arrays[number % types], value.getType(), value, place(own, number / types * rows * kWarp));
  barrier();
  // Each warp adds up what belongs to other slots than its neighbours', and leaves it in the place of row 0.
  for (int64_t first = 0, end = slots(accumulator); first < end; first += rows) {
    bool isPart = end - first < rows;
    if (isPart)
      openGuard(arith::CmpIOp::create(at(depth()), loc, arith::CmpIPredicate::ult, threadY, i32(end - first)));
    Value slot = arith::MulIOp::create(at(depth()), loc, wide(threadY), i64(rows * kWarp));
    slot = arith::AddIOp::create(at(depth()), loc, place(slot, first * rows * kWarp), column);
    Values sum;
    for (int64_t row = 0; row < rows; ++row) {
      Values loaded;
      for (auto [array, type] : llvm::zip(arrays, accumulator.types))
        loaded.push_back(loadFrom(array, type, place(slot, row * kWarp), depth()));
      sum = row == 0 ? loaded : combinePartial(at(depth()), loc, accumulator.reduction->op, sum, loaded);
    }
    for (auto [array, value] : llvm::zip(arrays, sum))
      storeTo(array, value.getType(), value, slot);
    if (isPart)
      closeGuard();
  }
  barrier();
  for (auto [number, value] : llvm::enumerate(values))
    value = loadFrom(arrays[number % types], value.getType(), place(column, number / types * rows * kWarp), depth());
  return values;
}

} // namespace tessera::codegen
