//===- EvalContract.cpp - matrix products and convolutions ----------------===//

#include "compiler/dialect/exec/ScaleLayout.h"
#include "compiler/dialect/train/Gelu.h"
#include "compiler/dialect/train/ResultShapes.h"
#include "compiler/interp/Eval.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::interp {

// --- dot_general ---------------------------------------------------------------

/// The dimensions that are neither in `batch` nor in `contract`.
static SmallVector<int64_t> freeDims(int64_t rank, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      dims.push_back(dim);
  return dims;
}

/// Offsets of all elements of the sub-box that `dims` span, row-major in the order of `dims`.
static std::vector<int64_t> offsetsOver(const Tensor &tensor, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> strides = stridesOf(tensor.getShape()), shape, steps;
  for (int64_t dim : dims) {
    shape.push_back(tensor.getShape()[dim]);
    steps.push_back(strides[dim]);
  }
  std::vector<int64_t> offsets;
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t) { offsets.push_back(linearIndex(index, steps)); });
  return offsets;
}

/// `accumulator`: null for a product that is not added to anything.
static Tensor product(RankedTensorType type, const Tensor &lhs, const Tensor &rhs, const train::ContractionDims &dims,
                      const Tensor *accumulator) {
  Tensor result(type);
  auto lhsBatch = offsetsOver(lhs, dims.lhsBatch), rhsBatch = offsetsOver(rhs, dims.rhsBatch);
  auto lhsSum = offsetsOver(lhs, dims.lhsContract), rhsSum = offsetsOver(rhs, dims.rhsContract);
  auto rows = offsetsOver(lhs, freeDims(lhs.getRank(), dims.lhsBatch, dims.lhsContract));
  auto columns = offsetsOver(rhs, freeDims(rhs.getRank(), dims.rhsBatch, dims.rhsContract));
  int64_t next = 0;
  for (auto [lhsCorner, rhsCorner] : llvm::zip_equal(lhsBatch, rhsBatch)) {
    for (int64_t row : rows) {
      for (int64_t column : columns) {
        if (result.isFloat()) {
          double sum = accumulator ? accumulator->at(next) : 0.0;
          for (size_t i = 0, end = lhsSum.size(); i < end; ++i)
            sum += lhs.at(lhsCorner + row + lhsSum[i]) * rhs.at(rhsCorner + column + rhsSum[i]);
          result.set(next, sum);
        } else {
          int64_t sum = accumulator ? accumulator->intAt(next) : 0;
          for (size_t i = 0, end = lhsSum.size(); i < end; ++i)
            sum += lhs.intAt(lhsCorner + row + lhsSum[i]) * rhs.intAt(rhsCorner + column + rhsSum[i]);
          result.setInt(next, sum);
        }
        ++next;
      }
    }
  }
  return result;
}

template <typename Op>
static FailureOr<Results> product(Op op, EvalContext context, const Tensor &lhs, const Tensor &rhs,
                                  const Tensor *accumulator) {
  return one(product(context.resultType(), lhs, rhs,
                     {op.getLhsBatch(), op.getRhsBatch(), op.getLhsContract(), op.getRhsContract()}, accumulator));
}

Tensor evalContraction(RankedTensorType type, const Tensor &lhs, const Tensor &rhs, ArrayRef<int64_t> lhsContract,
                       ArrayRef<int64_t> rhsContract) {
  return product(type, lhs, rhs, {{}, {}, lhsContract, rhsContract}, nullptr);
}

// --- products with epilogues ----------------------------------------------------

static FailureOr<Results> epilogueProduct(exec::EpilogueProductOp op, EvalContext context, Operands in) {
  using exec::Epilogue;
  const Epilogue epilogue = op.getEpilogue();
  const Tensor &lhs = *in[0], &rhs = *in[1];
  const Tensor *accumulator = op.getAccumulator() ? in[2] : nullptr, *input = op.getInput() ? in.back() : nullptr;
  Tensor result(context.resultType());
  std::optional<Tensor> output;
  if (op.getOutput())
    output.emplace(context.resultType(1));
  auto lhsSum = offsetsOver(lhs, op.getLhsContract()), rhsSum = offsetsOver(rhs, op.getRhsContract());
  auto rows = offsetsOver(lhs, freeDims(lhs.getRank(), {}, op.getLhsContract()));
  auto columns = offsetsOver(rhs, freeDims(rhs.getRank(), {}, op.getRhsContract()));
  std::vector<double> columnSums(columns.size());
  for (size_t row = 0, next = 0; row < rows.size(); ++row)
    for (size_t column = 0; column < columns.size(); ++column, ++next) {
      double value = accumulator ? accumulator->at(next) : 0.0;
      for (size_t i = 0, end = lhsSum.size(); i < end; ++i)
        value += lhs.at(rows[row] + lhsSum[i]) * rhs.at(columns[column] + rhsSum[i]);
      if (exec::takesBias(epilogue))
        value += input->at(column);
      if (exec::givesPreActivation(epilogue))
        output->set(next, value);
      if (exec::takesPreActivation(epilogue))
        value *= train::geluDerivative(train::GeluForm::Tanh, input->at(next));
      else if (epilogue != Epilogue::Bias && !exec::sumsOperand(epilogue))
        value = train::gelu(train::GeluForm::Tanh, value);
      columnSums[column] += value;
      result.set(next, value);
    }
  if (epilogue == Epilogue::GeluGradBiasGrad)
    for (auto [column, sum] : llvm::enumerate(columnSums))
      output->set(column, sum);
  if (exec::sumsOperand(epilogue)) {
    const bool isLhs = epilogue == Epilogue::BiasGradA;
    for (auto [index, corner] : llvm::enumerate(isLhs ? rows : columns)) {
      double sum = 0;
      for (int64_t offset : isLhs ? lhsSum : rhsSum)
        sum += (isLhs ? lhs : rhs).at(corner + offset);
      output->set(index, sum);
    }
  }
  Results results = one(std::move(result));
  if (output)
    results.push_back(std::move(*output));
  return results;
}

// --- conv2d --------------------------------------------------------------------

namespace {
struct ConvShape {
  ArrayRef<int64_t> input, filter, output, strides, padding, dilations;
  int64_t groups;
};
} // namespace

/// Calls `fn(input, filter, output)` with the positions of each product that the convolution adds up.
static void forEachProduct(const ConvShape &conv, llvm::function_ref<void(int64_t, int64_t, int64_t)> fn) {
  SmallVector<int64_t> inputStrides = stridesOf(conv.input), filterStrides = stridesOf(conv.filter);
  int64_t outPerGroup = conv.output[1] / conv.groups, inPerGroup = conv.filter[1];
  forEachIndex(conv.output, [&](ArrayRef<int64_t> out, int64_t outLinear) {
    int64_t group = out[1] / outPerGroup;
    for (int64_t channel = 0; channel < inPerGroup; ++channel) {
      for (int64_t kh = 0; kh < conv.filter[2]; ++kh) {
        for (int64_t kw = 0; kw < conv.filter[3]; ++kw) {
          int64_t h = out[2] * conv.strides[0] + kh * conv.dilations[0] - conv.padding[0];
          int64_t w = out[3] * conv.strides[1] + kw * conv.dilations[1] - conv.padding[1];
          if (h < 0 || h >= conv.input[2] || w < 0 || w >= conv.input[3])
            continue;
          fn(linearIndex({out[0], group * inPerGroup + channel, h, w}, inputStrides),
             linearIndex({out[1], channel, kh, kw}, filterStrides), outLinear);
        }
      }
    }
  });
}

static Results fromSums(EvalContext context, ArrayRef<double> sums) {
  Tensor result(context.resultType());
  for (auto [i, sum] : llvm::enumerate(sums))
    result.set(i, sum);
  return one(std::move(result));
}

template <typename Op>
static ConvShape convShape(Op op, ArrayRef<int64_t> input, ArrayRef<int64_t> filter, ArrayRef<int64_t> output) {
  return {
      input, filter, output, op.getStrides(), op.getPadding(), op.getDilations(), static_cast<int64_t>(op.getGroups())};
}

// --- products with scales --------------------------------------------------------

/// An operand times its scales, without rounding: both have few enough digits for a double.
static Tensor scaled(const Tensor &operand, const Tensor &scales, exec::ScaleMode mode) {
  Tensor result(operand.getType().clone(Float64Type::get(operand.getType().getContext())));
  const int64_t rows = operand.getShape()[0], columns = operand.getShape()[1];
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t i = row * columns + column;
      result.set(i, operand.at(i) * scales.at(exec::scalePosition(mode, rows, columns, row, column)));
    }
  return result;
}

static FailureOr<Results> scaledProduct(exec::ScaledProductOp op, EvalContext context, Operands in) {
  const Tensor lhs = scaled(*in[0], *in[1], op.getLhsMode()), rhs = scaled(*in[2], *in[3], op.getRhsMode());
  return one(product(context.resultType(), lhs, rhs, {{}, {}, {1}, {1}}, op.getAccumulator() ? in[4] : nullptr));
}

void addContract(EvalTable &table) {
  table.add<DotGeneralOp>(
      [](DotGeneralOp op, EvalContext context, Operands in) { return product(op, context, *in[0], *in[1], nullptr); });
  table.add<exec::AddProductOp>([](exec::AddProductOp op, EvalContext context, Operands in) {
    return product(op, context, *in[1], *in[2], in[0]);
  });
  table.add<exec::EpilogueProductOp>(epilogueProduct);
  table.add<exec::ScaledProductOp>(scaledProduct);
  table.add<Conv2dOp>([](Conv2dOp op, EvalContext context, Operands in) {
    std::vector<double> sums(context.resultType().getNumElements(), 0.0);
    auto conv = convShape(op, in[0]->getShape(), in[1]->getShape(), context.resultType().getShape());
    forEachProduct(conv, [&](int64_t x, int64_t w, int64_t y) { sums[y] += in[0]->at(x) * in[1]->at(w); });
    return fromSums(context, sums);
  });
  table.add<Conv2dInputGradOp>([](Conv2dInputGradOp op, EvalContext context, Operands in) {
    std::vector<double> sums(context.resultType().getNumElements(), 0.0);
    auto conv = convShape(op, context.resultType().getShape(), in[1]->getShape(), in[0]->getShape());
    forEachProduct(conv, [&](int64_t x, int64_t w, int64_t y) { sums[x] += in[0]->at(y) * in[1]->at(w); });
    return fromSums(context, sums);
  });
  table.add<Conv2dFilterGradOp>([](Conv2dFilterGradOp op, EvalContext context, Operands in) {
    std::vector<double> sums(context.resultType().getNumElements(), 0.0);
    auto conv = convShape(op, in[0]->getShape(), context.resultType().getShape(), in[1]->getShape());
    forEachProduct(conv, [&](int64_t x, int64_t w, int64_t y) { sums[w] += in[0]->at(x) * in[1]->at(y); });
    return fromSums(context, sums);
  });
}

} // namespace tessera::interp
