//===- VerifyCompute.cpp - verifiers of reductions and contractions -------===//

#include "compiler/dialect/train/Fp8Policy.h"
#include "compiler/dialect/train/Train.h"
#include "compiler/dialect/train/Verify.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::train;

// --- Reduce ----------------------------------------------------------------------

LogicalResult ReduceOp::verify() {
  RankedTensorType operand = getOperand().getType();
  // train.reduce_c1
  for (int64_t dim : getDimensions())
    if (failed(verifyDim(*this, "dimension", dim, operand.getRank())))
      return failure();
  // train.reduce_c2
  ArrayRef<int64_t> dims = getDimensions();
  if (!llvm::is_sorted(dims) || std::adjacent_find(dims.begin(), dims.end()) != dims.end())
    return emitOpError() << "dimensions [" << dims << "] are not strictly increasing";
  // train.reduce_c3
  return verifyType(*this, "result", getType(), operand.clone(reducedShape(operand.getShape(), dims)));
}

LogicalResult ArgmaxOp::verify() {
  RankedTensorType operand = getOperand().getType();
  int64_t dim = getDim();
  // train.argmax_c1
  if (failed(verifyDim(*this, "dim", dim, operand.getRank())))
    return failure();
  // train.argmax_c2
  if (operand.getShape()[dim] == 0)
    return emitOpError() << "dimension " << dim << " has size 0, expected at least 1";
  // train.argmax_c3
  return verifyShape(*this, "result", getType(), reducedShape(operand.getShape(), {dim}));
}

LogicalResult SortIndicesOp::verify() {
  RankedTensorType operand = getOperand().getType();
  // train.sort_indices_c1
  if (failed(verifyDim(*this, "dim", getDim(), operand.getRank())))
    return failure();
  // train.sort_indices_c2
  auto element = cast<IntegerType>(getType().getElementType());
  unsigned bits = element.getWidth() - (element.isUnsigned() ? 0 : 1);
  if (bits < 63 && operand.getShape()[getDim()] > int64_t{1} << bits)
    return emitOpError() << "indices of " << operand.getShape()[getDim()] << " elements do not fit into " << element;
  // train.sort_indices_c3
  return verifyShape(*this, "result", getType(), operand.getShape());
}

// --- dot_general -------------------------------------------------------------------

/// Each dimension of one side is named at most once, as batch or contracted.
static LogicalResult verifySide(Operation *op, StringRef side, RankedTensorType type, ArrayRef<int64_t> batch,
                                ArrayRef<int64_t> contract) {
  SmallVector<int64_t> all(batch);
  llvm::append_range(all, contract);
  for (int64_t dim : all) {
    // train.dot_general_c3
    if (failed(verifyDim(op, (side + " dimension").str(), dim, type.getRank())))
      return failure();
    // train.dot_general_c4
    if (llvm::count(all, dim) != 1)
      return op->emitOpError() << side << " dimension " << dim << " is named more than once";
  }
  return success();
}

LogicalResult tessera::train::verifyContraction(Operation *op, RankedTensorType lhs, RankedTensorType rhs,
                                                RankedTensorType result, const ContractionDims &dims) {
  auto [lhsBatch, rhsBatch, lhsContract, rhsContract] = dims;
  // train.dot_general_c1
  if (failed(verifyCount(op, "rhs_batch", rhsBatch.size(), lhsBatch.size())))
    return failure();
  // train.dot_general_c2
  if (failed(verifyCount(op, "rhs_contract", rhsContract.size(), lhsContract.size())))
    return failure();
  if (failed(verifySide(op, "lhs", lhs, lhsBatch, lhsContract)) ||
      failed(verifySide(op, "rhs", rhs, rhsBatch, rhsContract)))
    return failure();
  auto verifyPairs = [&](StringRef what, ArrayRef<int64_t> lhsDims, ArrayRef<int64_t> rhsDims) -> LogicalResult {
    for (auto [l, r] : llvm::zip_equal(lhsDims, rhsDims))
      if (lhs.getShape()[l] != rhs.getShape()[r])
        return op->emitOpError() << what << " dimension " << r << " of rhs has size " << rhs.getShape()[r]
                                 << ", expected " << lhs.getShape()[l];
    return success();
  };
  // train.dot_general_c5
  if (failed(verifyPairs("batch", lhsBatch, rhsBatch)))
    return failure();
  // train.dot_general_c6
  if (failed(verifyPairs("contracted", lhsContract, rhsContract)))
    return failure();
  // train.dot_general_c7
  bool floating = isa<FloatType>(lhs.getElementType());
  if (floating != isa<FloatType>(rhs.getElementType()) || floating != isa<FloatType>(result.getElementType()))
    return op->emitOpError("mixes integers and floating point numbers");
  // train.dot_general_c8
  return verifyShape(op, "result", result, productShape(lhs.getShape(), rhs.getShape(), dims));
}

LogicalResult DotGeneralOp::verify() {
  // train.dot_general_c9
  if (std::optional<Type> compute = getComputeType())
    for (Value operand : getOperands())
      if (!compute->isF32() || cast<RankedTensorType>(operand.getType()).getElementType() != *compute)
        return emitOpError() << "is to be computed in " << *compute << ", got an operand of " << operand.getType();
  // train.dot_general_c10
  if (ScalingAttr scaling = getScalingAttr()) {
    if (getComputeType())
      return emitOpError("has both a compute_type and a scaling");
    if (!productOf(scaling.getLhs(), scaling.getRhs()))
      return emitOpError() << "has " << scaling << ", but no product of a linear layer reads these two";
    if (!getLhsBatch().empty())
      return emitOpError() << "has " << scaling << ", which is for products without a batch";
    for (Value operand : getOperands())
      if (auto type = cast<RankedTensorType>(operand.getType());
          !isa<Float32Type, BFloat16Type, Float16Type>(type.getElementType()))
        return emitOpError() << "has " << scaling << ", which is for operands of f32, bf16 or f16, got " << type;
  }
  return verifyContraction(*this, getLhs().getType(), getRhs().getType(), getType(),
                           {getLhsBatch(), getRhsBatch(), getLhsContract(), getRhsContract()});
}

// --- conv2d ----------------------------------------------------------------------

/// Verifies a convolution or one of its gradients, given the types of the forward convolution.
template <typename Op>
static LogicalResult verifyConv(Op op, RankedTensorType input, RankedTensorType filter, RankedTensorType output) {
  // train.conv2d_c1
  for (auto [name, type] : {std::pair("input", input), std::pair("filter", filter), std::pair("output", output)})
    if (type.getRank() != 4)
      return op.emitOpError() << name << " has rank " << type.getRank() << ", expected 4";
  // train.conv2d_c2
  if (failed(verifyCount(op, "strides", op.getStrides().size(), 2)) ||
      failed(verifyCount(op, "padding", op.getPadding().size(), 4)) ||
      failed(verifyCount(op, "dilations", op.getDilations().size(), 2)))
    return failure();
  // train.conv2d_c3
  for (auto [name, values, least] :
       {std::tuple("strides", op.getStrides(), 1), std::tuple("padding", op.getPadding(), 0),
        std::tuple("dilations", op.getDilations(), 1)})
    for (int64_t value : values)
      if (value < least)
        return op.emitOpError() << name << " holds " << value << ", expected at least " << least;
  // train.conv2d_c4
  int64_t groups = op.getGroups();
  if (groups < 1 || filter.getShape()[0] % groups != 0)
    return op.emitOpError() << "has " << groups << " groups, expected a divisor of the filter's "
                            << filter.getShape()[0] << " output channels";
  // train.conv2d_c5
  if (input.getShape()[1] != filter.getShape()[1] * groups)
    return op.emitOpError() << "input has " << input.getShape()[1] << " channels, expected "
                            << filter.getShape()[1] * groups << " (" << groups << " groups of the filter's "
                            << filter.getShape()[1] << ")";
  SmallVector<int64_t> shape = {input.getShape()[0], filter.getShape()[0]};
  for (int dim = 0; dim < 2; ++dim) {
    int64_t padded = input.getShape()[2 + dim] + op.getPadding()[dim] + op.getPadding()[2 + dim];
    int64_t window = (filter.getShape()[2 + dim] - 1) * op.getDilations()[dim] + 1;
    // train.conv2d_c6
    if (padded < window)
      return op.emitOpError() << "padded input has size " << padded << " along dimension " << 2 + dim
                              << ", expected at least the filter's " << window;
    shape.push_back((padded - window) / op.getStrides()[dim] + 1);
  }
  // train.conv2d_c7
  return verifyShape(op, "output", output, shape);
}

LogicalResult Conv2dOp::verify() { return verifyConv(*this, getInput().getType(), getFilter().getType(), getType()); }

LogicalResult Conv2dInputGradOp::verify() {
  return verifyConv(*this, getType(), getFilter().getType(), getOutputGrad().getType());
}

LogicalResult Conv2dFilterGradOp::verify() {
  return verifyConv(*this, getInput().getType(), getType(), getOutputGrad().getType());
}
