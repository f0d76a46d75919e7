//===- KernelEmitter.cpp - loops, loads and stores of a kernel ------------===//

#include "passes/lower/codegen/KernelEmitter.h"

#include "compiler/dialect/train/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using tessera::train::shapeOf;
using tessera::train::tensorType;

namespace tessera::codegen {

/// The value as a dense attribute; null if it has no data.
static DenseElementsAttr denseValue(ElementsAttr value) {
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    return dense;
  auto resource = dyn_cast<DenseResourceElementsAttr>(value);
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  bool isSplat;
  if (!blob || !DenseElementsAttr::isValidRawBuffer(resource.getType(), blob->getData(), isSplat))
    return {};
  return DenseElementsAttr::getFromRawBuffer(resource.getType(), blob->getData());
}

LLVM::GlobalOp ConstantTables::get(train::ConstantOp op) {
  LLVM::GlobalOp &table = tables[op.getValue()];
  if (table)
    return table;
  DenseElementsAttr elements = denseValue(op.getValue());
  Type element = scalarType(elements.getElementType());
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  if (element.isInteger(1)) {
    SmallVector<int8_t> bytes;
    for (bool value : elements.getValues<bool>())
      bytes.push_back(value);
    element = builder.getI8Type();
    elements = DenseElementsAttr::get(RankedTensorType::get({elements.getNumElements()}, element), ArrayRef(bytes));
  } else {
    // A table of equal elements that is stored in full is still a table.
    if (elements.isSplat())
      elements = elements.resizeSplat(RankedTensorType::get({elements.getNumElements()}, elements.getElementType()));
    else
      elements = elements.reshape(RankedTensorType::get({elements.getNumElements()}, elements.getElementType()));
    if (element != elements.getElementType())
      elements = elements.bitcast(element);
  }
  auto type = LLVM::LLVMArrayType::get(element, elements.getNumElements());
  table = LLVM::GlobalOp::create(builder, op.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Private,
                                 "table" + std::to_string(tables.size()), elements, /*alignment=*/64);
  return table;
}

KernelEmitter::KernelEmitter(const KernelBody &body, const KernelPlan &plan, ConstantTables &tables, Location loc)
    : body(body), plan(plan), tables(tables), loc(loc), evaluator(body, space, loc), builder(loc.getContext()) {
  space.digits = plan.digits;
  evaluator.emission = this;
  evaluator.keptIdentity = plan.keptIdentity;
  evaluator.ownIdentity = plan.ownIdentities();
}

/// The type of an element in memory.
static Type memoryType(Type element) {
  Type type = scalarType(element);
  if (type.isInteger(1))
    return IntegerType::get(type.getContext(), 8);
  // LLVM would keep values of type bf16 as f32 between blocks and convert them by a library call.
  return type.isBF16() ? IntegerType::get(type.getContext(), 16) : type;
}

LogicalResult KernelEmitter::emit(ModuleOp module, StringRef symbol, std::string &why) {
  builder.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext()), index = builder.getI64Type();
  auto function =
      func::FuncOp::create(builder, loc, symbol, builder.getFunctionType({pointer, index, index}, TypeRange()));
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToEnd(entry);
  func::ReturnOp::create(builder, loc);
  levels.push_back({entry, nullptr, nullptr, {}});

  begin = entry->getArgument(1), end = entry->getArgument(2);
  auto bufferPointer = [&](int64_t number) -> Value {
    Value slot = LLVM::GEPOp::create(at(0), loc, pointer, pointer, entry->getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(number)});
    return LLVM::LoadOp::create(at(0), loc, pointer, slot);
  };
  int64_t number = 0;
  for (Value input : body.inputs)
    inputPointers[input] = bufferPointer(number++);
  for (size_t i = 0; i < body.outputs.size(); ++i)
    outputPointers.push_back(bufferPointer(number++));

  if (plan.kind == KernelKind::Scatter)
    emitScatter();
  else if (plan.lane)
    emitColumns();
  else
    emitRows();
  why = evaluator.seen.problem;
  return success(!evaluator.seen.failed());
}

// --- Where code goes -----------------------------------------------------------

OpBuilder &KernelEmitter::at(unsigned level) {
  Level &open = levels[level];
  if (open.nested)
    builder.setInsertionPoint(open.nested);
  else if (open.block->mightHaveTerminator())
    builder.setInsertionPoint(open.block->getTerminator());
  else
    builder.setInsertionPointToEnd(open.block);
  return builder;
}

Value KernelEmitter::constant(int64_t value, Type type) {
  OpBuilder::InsertionGuard guard(builder);
  return arith::ConstantOp::create(at(0), loc, builder.getIntegerAttr(type, value));
}

/// Reductions of at least so many terms are left to the vectoriser. Unrolled before it sees them, as LLVM does where a
/// body is small, they would be one chain of additions, and the order of a sum would depend on what its terms are
/// computed from.
static constexpr uint64_t kVectorTerms = 16;

scf::ForOp KernelEmitter::openLoop(Value low, Value high, int64_t step, ValueRange carried, bool innermost) {
  Value by = i64(step);
  auto loop = scf::ForOp::create(at(depth()), loc, low, high, by, carried);
  LLVM::AccessGroupAttr group;
  if (innermost) {
    // What the loop reads and writes is independent between iterations, also when a result shares an operand's buffer.
    group = LLVM::AccessGroupAttr::get(builder.getContext(), DistinctAttr::create(builder.getUnitAttr()));
    LLVM::LoopUnrollAttr unroll;
    APInt end;
    if (!carried.empty() && matchPattern(high, m_ConstantInt(&end)) && end.uge(kVectorTerms))
      unroll = LLVM::LoopUnrollAttr::get(builder.getContext(), /*disable=*/builder.getBoolAttr(true), {}, {}, {}, {},
                                         {}, {});
    auto annotation = LLVM::LoopAnnotationAttr::get(builder.getContext(), {}, {}, {}, unroll, {}, {}, {}, {}, {}, {},
                                                    {}, {}, {}, {}, group);
    loop->setAttr("loop_annotation", annotation);
  }
  levels.back().nested = loop;
  levels.push_back({loop.getBody(), nullptr, group, {}});
  return loop;
}

void KernelEmitter::closeLoop(ValueRange carried) {
  if (!carried.empty())
    scf::YieldOp::create(at(depth()), loc, carried);
  evaluator.forget(depth());
  levels.pop_back();
  levels.back().nested = nullptr;
}

unsigned KernelEmitter::openBranch(Value condition, Type type) {
  auto branch = scf::IfOp::create(at(depth()), loc, TypeRange{type}, condition, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  LLVM::AccessGroupAttr group = levels.back().group;
  levels.back().nested = branch;
  levels.push_back({&branch.getThenRegion().front(), nullptr, group, {}});
  return depth();
}

void KernelEmitter::otherwise(Scalar value) {
  scf::YieldOp::create(at(depth()), loc, value.value);
  auto branch = cast<scf::IfOp>(levels.back().block->getParentOp());
  levels.back().block = &branch.getElseRegion().front();
}

Scalar KernelEmitter::closeBranch(Scalar value) {
  scf::YieldOp::create(at(depth()), loc, value.value);
  auto branch = cast<scf::IfOp>(levels.back().block->getParentOp());
  levels.pop_back();
  levels.back().nested = nullptr;
  return {branch.getResult(0), depth()};
}

// --- Memory ----------------------------------------------------------------------

Value KernelEmitter::address(Value base, Type element, Value linear, unsigned level) {
  auto sum = evaluator.constantLast ? linear.getDefiningOp<arith::AddIOp>() : nullptr;
  APInt offset;
  if (sum && matchPattern(sum.getRhs(), m_ConstantInt(&offset)) && offset.isNonNegative() && offset.isIntN(31)) {
    // Two steps: neighbours differ in the second alone, which lets LLVM join their accesses.
    Value shared = address(base, element, sum.getLhs(), level);
    return LLVM::GEPOp::create(at(level), loc, base.getType(), memoryType(element), shared,
                               ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset.getSExtValue())},
                               LLVM::GEPNoWrapFlags::inbounds);
  }
  return LLVM::GEPOp::create(at(level), loc, base.getType(), memoryType(element), base, ArrayRef<LLVM::GEPArg>{linear},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value KernelEmitter::loadFrom(Value base, Type element, Value linear, unsigned level) {
  Value pointer = address(base, element, linear, level);
  auto load = LLVM::LoadOp::create(at(level), loc, memoryType(element), pointer);
  if (levels[level].group)
    load.setAccessGroupsAttr(builder.getArrayAttr({levels[level].group}));
  if (element.isBF16())
    return arith::BitcastOp::create(builder, loc, element, load);
  if (!element.isInteger(1))
    return load;
  Value zero = arith::ConstantOp::create(builder, loc, builder.getI8IntegerAttr(0));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, load, zero);
}

void KernelEmitter::storeTo(Value base, Type element, Value value, Value linear) {
  unsigned level = depth();
  Value pointer = address(base, element, linear, level);
  if (element.isInteger(1))
    value = arith::ExtUIOp::create(at(level), loc, builder.getI8Type(), value);
  else if (element.isBF16())
    value = arith::BitcastOp::create(at(level), loc, builder.getI16Type(), value);
  auto store = LLVM::StoreOp::create(at(level), loc, value, pointer);
  if (levels[level].group)
    store.setAccessGroupsAttr(builder.getArrayAttr({levels[level].group}));
}

Value KernelEmitter::load(Value input, Value linear, unsigned level) {
  return loadFrom(inputPointers.lookup(input), tensorType(input).getElementType(), linear, level);
}

Value KernelEmitter::loadConstant(train::ConstantOp op, Value linear, unsigned level) {
  if (!denseValue(op.getValue())) {
    evaluator.seen.problem = "train.constant: value has no data";
    return {};
  }
  Value base = LLVM::AddressOfOp::create(at(0), loc, tables.get(op));
  return loadFrom(base, tensorType(op.getResult()).getElementType(), linear, level);
}

Value KernelEmitter::stackArray(int64_t elements, Type type) {
  Value count = i64(elements);
  return LLVM::AllocaOp::create(at(0), loc, LLVM::LLVMPointerType::get(builder.getContext()), memoryType(type), count,
                                /*alignment=*/64);
}

void KernelEmitter::store(Value output, size_t number, Scalar value, const Index &linear) {
  unsigned level = 0;
  Value index = evaluator.materialize(space.substitute(linear), level);
  storeTo(outputPointers[number], tensorType(output).getElementType(), value.value, index);
}

Index KernelEmitter::innerIndex() const {
  Index index = Index::constant(0);
  for (unsigned digit : plan.inner)
    index = index * plan.digits[digit].size + Index::ofDigit(digit);
  return index;
}

// --- What the evaluator asks for ---------------------------------------------------

Scalar KernelEmitter::reduced(Operation *op) {
  for (Accumulator &accumulator : accumulators) {
    if (accumulator.reduction->op != op)
      continue;
    Scalar result{accumulator.values.back(), 1};
    size_t last = accumulator.values.size() - 1;
    if (plan.lane) {
      unsigned level = space.digits[*plan.lane].level;
      Value slot = arith::SubIOp::create(at(level), loc, space.digits[*plan.lane].value, laneBase);
      result = {loadFrom(accumulator.values[last], accumulator.types[last], slot, level), level};
    }
    Type type = scalarType(tensorType(op->getResult(0)).getElementType());
    result.value = emitConvert(at(result.level), loc, result.value, result.value.getType(), type);
    return result;
  }
  evaluator.seen.problem = "a reduction is used before it is computed";
  return {};
}

std::optional<Scalar> KernelEmitter::kept(Value value, const Index &linear) {
  if (plan.kind == KernelKind::Scatter || !(linear == space.substitute(plan.fullIdentity)))
    return std::nullopt;
  if (auto it = scratch.find(value); it != scratch.end() && it->second.pass && *it->second.pass < pass) {
    unsigned level = 0;
    Value index = evaluator.materialize(space.substitute(innerIndex()), level);
    return Scalar{loadFrom(it->second.array, tensorType(value).getElementType(), index, level), level};
  }
  for (auto [number, output] : llvm::enumerate(plan.outputs)) {
    if (output.value != value || output.extent == OutputExtent::Row || output.pass >= pass)
      continue;
    unsigned level = 0;
    Value index = evaluator.materialize(linear, level);
    return Scalar{loadFrom(outputPointers[number], tensorType(value).getElementType(), index, level), level};
  }
  return std::nullopt;
}

void KernelEmitter::computed(Value value, const Index &linear, Scalar scalar) {
  auto it = scratch.find(value);
  if (it == scratch.end() || (it->second.pass && *it->second.pass != pass) ||
      !(linear == space.substitute(plan.fullIdentity)))
    return;
  it->second.pass = pass;
  unsigned level = 0;
  Value index = evaluator.materialize(space.substitute(innerIndex()), level);
  storeTo(it->second.array, tensorType(value).getElementType(), scalar.value, index);
}

} // namespace tessera::codegen
