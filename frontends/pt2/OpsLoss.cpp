//===- OpsLoss.cpp - losses that are part of a program ---------------------===//

#include "compiler/dialect/train/Loss.h"
#include "frontends/common/Neural.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

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
  const double smoothing = c.numberOr("label_smoothing", 0);
  if (c.isTensor("weight") || !(smoothing >= 0 && smoothing <= 1))
    return c.fail("weights of classes are not supported, nor a label_smoothing outside of 0 to 1");
  Build &b = c.b;
  SmallVector<int64_t> shape(c.shape("self"));
  if (rank == 1)
    shape.insert(shape.begin(), 1);
  SmallVector<int64_t> expected(shape);
  expected.erase(expected.begin() + 1);
  if (rank == 1)
    expected.clear();
  if (c.shape("target") != ArrayRef<int64_t>(expected) || c.type("self").getNumElements() == 0)
    return c.fail("targets of shape " + shapeText(c.shape("target")) + " do not fit scores of " +
                  shapeText(c.shape("self")));
  Value scores = frontend::classRows(b, b.reshape(c.value("self"), shape));
  const int64_t rows = shapeOf(scores)[0];
  Value targets = b.reshape(c.value("target"), {rows});
  auto perRow = RankedTensorType::get({rows}, accumulationType(c.element("self")));
  IntegerAttr ignored = b.builder.getI64IntegerAttr(c.integerOr("ignore_index", -100));
  auto loss =
      CrossEntropyOp::create(b.builder, b.loc, perRow, perRow, scores, targets, ignored, llvm::APFloat(smoothing));
  Value each = loss.getLoss();
  auto done = [&](Value value) { return c.set(b.convert(value, c.element("self"))); };
  switch (c.integerOr("reduction", Mean)) {
  case None:
    return done(b.reshape(each, c.shape("target")));
  case Sum:
    return done(b.sumAll(each));
  case Mean: {
    Value total = b.sumAll(each);
    Value count = CountValidOp::create(b.builder, b.loc, tensorType(total), targets, ignored);
    return done(b.div(total, count));
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
  Type element = c.element("self");
  Value x = b.convert(c.value("self"), computedIn(element)), y = b.convert(c.value("target"), computedIn(element)),
        difference = b.sub(x, y), each = b.mul(difference, difference);
  switch (c.integerOr("reduction", Mean)) {
  case None:
    return c.set(b.convert(each, element));
  case Sum:
    return c.set(b.convert(b.sumAll(each), element));
  case Mean:
    return c.set(b.convert(frontend::mean(b, each, llvm::to_vector(llvm::seq<int64_t>(0, c.rank("self")))), element));
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
