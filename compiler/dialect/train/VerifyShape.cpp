//===- VerifyShape.cpp - verifiers of leaf, shape and index ops -----------===//
//
// Each constraint has a label, which its negative test in tests/dialect/train
// repeats.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Train.h"
#include "compiler/dialect/train/Verify.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::train;

// --- Shared with the other verifiers ---------------------------------------------

LogicalResult tessera::train::verifyDim(Operation *op, StringRef name, int64_t dim, int64_t rank) {
  if (dim < 0 || dim >= rank)
    return op->emitOpError() << name << " is " << dim << ", expected at least 0 and less than " << rank;
  return success();
}

LogicalResult tessera::train::verifyShape(Operation *op, StringRef name, RankedTensorType type,
                                          ArrayRef<int64_t> shape) {
  if (type.getShape() != shape)
    return op->emitOpError() << name << " has type " << type << ", expected " << type.clone(shape);
  return success();
}

LogicalResult tessera::train::verifyType(Operation *op, StringRef name, Type type, Type expected) {
  if (type != expected)
    return op->emitOpError() << name << " has type " << type << ", expected " << expected;
  return success();
}

LogicalResult tessera::train::verifyCount(Operation *op, StringRef name, int64_t count, int64_t expected) {
  if (count != expected)
    return op->emitOpError() << name << " has " << count << " entries, expected " << expected;
  return success();
}

// --- Leaf ------------------------------------------------------------------------

LogicalResult IotaOp::verify() {
  // train.iota_c1
  return verifyDim(*this, "dim", getDim(), getType().getRank());
}

LogicalResult RngUniformOp::verify() {
  int64_t rank = getType().getRank();
  // train.rng_uniform_c1
  if (!getOffsets().empty() && static_cast<int64_t>(getOffsets().size()) != rank)
    return emitOpError() << "has " << getOffsets().size() << " offsets, expected none or " << rank;
  // train.rng_uniform_c2
  if (getOffsets().empty() != !getGlobalShape() && rank != 0)
    return emitOpError("needs both offsets and global_shape, or neither");
  if (!getGlobalShape())
    return success();
  // train.rng_uniform_c3
  if (failed(verifyCount(*this, "global_shape", getGlobalShape()->size(), rank)))
    return failure();
  // train.rng_uniform_c4
  for (auto [dim, global, local] : llvm::enumerate(*getGlobalShape(), getType().getShape()))
    if (local > global)
      return emitOpError() << "result dimension " << dim << " has size " << local << ", expected at most " << global
                           << " as in global_shape";
  return success();
}

// --- Shape -----------------------------------------------------------------------

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  // train.reshape_c1
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "result has element type " << to.getElementType() << ", expected " << from.getElementType();
  // train.reshape_c2
  if (from.getNumElements() != to.getNumElements())
    return emitOpError() << "result has " << to.getNumElements() << " elements, expected " << from.getNumElements();
  return success();
}

LogicalResult TransposeOp::verify() {
  RankedTensorType operand = getOperand().getType();
  // train.transpose_c1
  SmallVector<int64_t> sorted(getPermutation());
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, operand.getRank())))
    return emitOpError() << "permutation [" << getPermutation() << "] does not name each of " << operand.getRank()
                         << " dimensions once";
  // train.transpose_c2
  return verifyType(*this, "result", getType(), operand.clone(transposedShape(operand.getShape(), getPermutation())));
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType operand = getOperand().getType(), result = getType();
  ArrayRef<int64_t> dims = getBroadcastDimensions();
  // train.broadcast_c1
  if (operand.getElementType() != result.getElementType())
    return emitOpError() << "result has element type " << result.getElementType() << ", expected "
                         << operand.getElementType();
  // train.broadcast_c2
  if (failed(verifyCount(*this, "broadcast_dimensions", dims.size(), operand.getRank())))
    return failure();
  // train.broadcast_c3
  for (int64_t dim : dims)
    if (failed(verifyDim(*this, "broadcast dimension", dim, result.getRank())))
      return failure();
  // train.broadcast_c4
  if (!llvm::is_sorted(dims) || std::adjacent_find(dims.begin(), dims.end()) != dims.end())
    return emitOpError() << "broadcast_dimensions [" << dims << "] are not strictly increasing";
  // train.broadcast_c5
  for (auto [dim, size] : llvm::zip_equal(dims, operand.getShape()))
    if (size != 1 && size != result.getShape()[dim])
      return emitOpError() << "operand has size " << size << " along result dimension " << dim << ", expected 1 or "
                           << result.getShape()[dim];
  return success();
}

LogicalResult SliceOp::verify() {
  RankedTensorType operand = getOperand().getType();
  // train.slice_c1
  for (auto [name, values] :
       {std::pair("starts", getStarts()), std::pair("limits", getLimits()), std::pair("strides", getStrides())})
    if (failed(verifyCount(*this, name, values.size(), operand.getRank())))
      return failure();
  for (auto [dim, start, limit, stride, size] :
       llvm::enumerate(getStarts(), getLimits(), getStrides(), operand.getShape())) {
    // train.slice_c2
    if (stride < 1)
      return emitOpError() << "stride of dimension " << dim << " is " << stride << ", expected at least 1";
    // train.slice_c3
    if (start < 0 || limit < start || limit > size)
      return emitOpError() << "box [" << start << ", " << limit << ") of dimension " << dim << " is not inside [0, "
                           << size << ")";
  }
  // train.slice_c4
  return verifyType(*this, "result", getType(), operand.clone(slicedShape(getStarts(), getLimits(), getStrides())));
}

LogicalResult PadOp::verify() {
  RankedTensorType operand = getOperand().getType();
  // train.pad_c1
  for (auto [name, values] :
       {std::pair("low", getLow()), std::pair("high", getHigh()), std::pair("interior", getInterior())})
    if (failed(verifyCount(*this, name, values.size(), operand.getRank())))
      return failure();
  for (auto [dim, low, high, gap] : llvm::enumerate(getLow(), getHigh(), getInterior()))
    // train.pad_c2
    if (low < 0 || high < 0 || gap < 0)
      return emitOpError() << "padding of dimension " << dim << " is negative (low " << low << ", high " << high
                           << ", interior " << gap << ")";
  // train.pad_c3
  return verifyType(*this, "result", getType(),
                    operand.clone(paddedShape(operand.getShape(), getLow(), getHigh(), getInterior())));
}

LogicalResult ConcatOp::verify() {
  // train.concat_c1
  if (getOperands().empty())
    return emitOpError("needs at least one operand");
  auto first = cast<RankedTensorType>(getOperands().front().getType());
  int64_t dim = getDim();
  // train.concat_c2
  if (failed(verifyDim(*this, "dim", dim, first.getRank())))
    return failure();
  for (auto [index, operand] : llvm::enumerate(getOperands())) {
    auto type = cast<RankedTensorType>(operand.getType());
    // train.concat_c3
    SmallVector<int64_t> expected(first.getShape());
    if (type.getRank() == first.getRank())
      expected[dim] = type.getShape()[dim];
    if (type != first.clone(expected))
      return emitOpError() << "operand " << index << " has type " << type << ", expected " << first
                           << " but for dimension " << dim;
  }
  // train.concat_c4
  return verifyType(*this, "result", getType(), first.clone(joinedShape(getOperands().getTypes(), dim)));
}

LogicalResult DynamicSliceOp::verify() {
  RankedTensorType operand = getOperand().getType();
  // train.dynamic_slice_c1
  if (failed(verifyCount(*this, "starts", getStarts().size(), operand.getRank())))
    return failure();
  // train.dynamic_slice_c2
  if (failed(verifyCount(*this, "sizes", getSizes().size(), operand.getRank())))
    return failure();
  // train.dynamic_slice_c3
  for (auto [dim, size, whole] : llvm::enumerate(getSizes(), operand.getShape()))
    if (size < 0 || size > whole)
      return emitOpError() << "size of dimension " << dim << " is " << size << ", expected at most " << whole;
  // train.dynamic_slice_c4
  return verifyType(*this, "result", getType(), operand.clone(getSizes()));
}

LogicalResult DynamicUpdateSliceOp::verify() {
  RankedTensorType operand = getOperand().getType(), update = getUpdate().getType();
  // train.dynamic_update_slice_c1
  if (failed(verifyCount(*this, "starts", getStarts().size(), operand.getRank())))
    return failure();
  // train.dynamic_update_slice_c2
  if (update.getElementType() != operand.getElementType() || update.getRank() != operand.getRank())
    return emitOpError() << "update has type " << update << ", expected the rank and element type of " << operand;
  // train.dynamic_update_slice_c3
  for (auto [dim, size, whole] : llvm::enumerate(update.getShape(), operand.getShape()))
    if (size > whole)
      return emitOpError() << "update has size " << size << " along dimension " << dim << ", expected at most "
                           << whole;
  return success();
}

// --- Index -----------------------------------------------------------------------

LogicalResult GatherRowsOp::verify() {
  RankedTensorType table = getTable().getType();
  // train.gather_rows_c1
  if (table.getRank() == 0)
    return emitOpError("table has rank 0, expected at least 1");
  // train.gather_rows_c3
  if (auto row = getPaddingIndex();
      row && (static_cast<int64_t>(*row) < 0 || static_cast<int64_t>(*row) >= table.getDimSize(0)))
    return emitOpError() << "padding_index is " << static_cast<int64_t>(*row) << ", the table has "
                         << table.getDimSize(0) << " rows";
  // train.gather_rows_c2
  return verifyType(*this, "result", getType(),
                    table.clone(rowsShape(table.getShape(), getIndices().getType().getShape())));
}

LogicalResult ScatterAddRowsOp::verify() {
  RankedTensorType init = getInit().getType();
  // train.scatter_add_rows_c1
  if (init.getRank() == 0)
    return emitOpError("init has rank 0, expected at least 1");
  // train.scatter_add_rows_c2
  return verifyType(*this, "updates", getUpdates().getType(),
                    init.clone(rowsShape(init.getShape(), getIndices().getType().getShape())));
}
