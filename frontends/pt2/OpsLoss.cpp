//===- OpsLoss.cpp - losses that are part of a program ---------------------===//

#include "compiler/dialect/train/Loss.h"
#include "frontends/pt2/Call.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
enum Reduction { None = 0, Mean = 1, Sum = 2 };

/// Class scores [N, C, d…] (or [C]) and integer targets.
LogicalResult opCrossEntropy(Call &c) {
  const int64_t rank = c.rank("self");
  if (rank < 1 || !c.isFloat("self") || c.isFloat("target") || c.element("target").isInteger(1))
    return c.fail("expected class scores and integer targets; targets that are probabilities are not supported");
  if (c.isTensor("weight"))
    return c.fail("weights of classes are not supported");
  Build &b = c.b;
  SmallVector<int64_t> shape(c.shape("self")), expected;
  if (rank == 1)
    shape.insert(shape.begin(), 1);
  SmallVector<int64_t> order = {0};
  int64_t rows = shape[0];
  for (size_t dim = 2; dim < shape.size(); ++dim) {
    order.push_back(static_cast<int64_t>(dim));
    rows *= shape[dim];
  }
  order.push_back(1);
  if (rows != c.type("target").getNumElements() || c.rank("target") + 1 != rank || rows == 0 || shape[1] == 0)
    return c.fail("targets of shape " + shapeText(c.shape("target")) + " do not fit scores of " +
                  shapeText(c.shape("self")));
  Value scores = b.reshape(c.value("self"), shape);
  if (shape.size() > 2)
    scores = b.transpose(scores, order);
  scores = b.reshape(scores, {rows, shape[1]});
  Value targets = b.reshape(c.value("target"), {rows});
  auto perRow = RankedTensorType::get({rows}, accumulationType(c.element("self")));
  IntegerAttr ignored = b.builder.getI64IntegerAttr(c.integerOr("ignore_index", -100));
  auto loss = CrossEntropyOp::create(b.builder, b.loc, perRow, perRow, scores, targets, ignored,
                                     llvm::APFloat(c.numberOr("label_smoothing", 0)));
  Value each = b.convert(loss.getLoss(), c.element("self"));
  switch (c.integerOr("reduction", Mean)) {
  case None:
    return c.set(b.reshape(each, c.shape("target")));
  case Sum:
    return c.set(b.sumAll(each));
  case Mean: {
    Value total = b.sumAll(each);
    Value count = CountValidOp::create(b.builder, b.loc, tensorType(total), targets, ignored);
    return c.set(b.div(total, count));
  }
  default:
    return c.fail("an unknown reduction");
  }
}

LogicalResult opMse(Call &c) {
  if (!c.isFloat("self") || c.shape("self") != c.shape("target") || c.element("self") != c.element("target") ||
      c.type("self").getNumElements() == 0)
    return c.fail("expected two floating-point tensors of one shape and type");
  Build &b = c.b;
  Value difference = b.sub(c.value("self"), c.value("target")), each = b.mul(difference, difference);
  switch (c.integerOr("reduction", Mean)) {
  case None:
    return c.set(each);
  case Sum:
    return c.set(b.sumAll(each));
  case Mean:
    return c.set(b.scale(b.sumAll(each), 1.0 / static_cast<double>(c.type("self").getNumElements())));
  default:
    return c.fail("an unknown reduction");
  }
}

const OpRow kRows[] = {
    {"aten.cross_entropy_loss.default", opCrossEntropy, "self,target"},
    {"aten.mse_loss.default", opMse, "self,target"},
};
} // namespace

llvm::ArrayRef<OpRow> lossOps() { return kRows; }

} // namespace tessera::pt2
