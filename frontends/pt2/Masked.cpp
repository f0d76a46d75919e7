//===- Masked.cpp - tensors that masks from data name -----------------------===//
//
// Before each operator the elements that do not count become a number at which functions are smooth: what it makes of
// them is a number, and no gradient that is not one goes back to what they were.
//
//===----------------------------------------------------------------------===//

#include "frontends/pt2/Masked.h"

#include "frontends/pt2/LossCall.h"

#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
enum class Use {
  Elements, ///< each by itself, or with what broadcasts
  Rows,     ///< each row along the first dimension by itself
  Size,     ///< a dimension that is not the first, or nothing of the values
  Sum,      ///< a sum or mean over dimensions
  Loss,     ///< of elements, reduced as the call says
  Classes,  ///< a loss of rows of scores, by integer targets
  None
};

Use useOf(StringRef target) {
  for (ArrayRef<OpRow> rows : {activationOps(), arithmeticOps(), elementwiseOps(), functionOps()})
    for (const OpRow &row : rows)
      if (row.target == target)
        return Use::Elements;
  return llvm::StringSwitch<Use>(target)
      .Case("aten.broadcast_tensors.default", Use::Elements)
      .Cases({"aten.embedding.default", "aten.flatten.using_ints", "aten.layer_norm.default", "aten.linear.default",
              "aten.log_softmax.int", "aten.one_hot.default", "aten.reshape.default", "aten.rms_norm.default",
              "aten.softmax.int", "aten.squeeze.dim", "aten.unsqueeze.default", "aten.view.default"},
             Use::Rows)
      .Cases({"aten._assert_tensor_metadata.default", "aten.sym_size.int"}, Use::Size)
      .Cases({"aten.mean.default", "aten.mean.dim", "aten.sum.default", "aten.sum.dim_IntList"}, Use::Sum)
      .Cases({"aten.binary_cross_entropy.default", "aten.binary_cross_entropy_with_logits.default",
              "aten.huber_loss.default", "aten.kl_div.default", "aten.l1_loss.default", "aten.mse_loss.default",
              "aten.poisson_nll_loss.default", "aten.smooth_l1_loss.default", "aten.soft_margin_loss.default"},
             Use::Loss)
      .Cases({"aten.cross_entropy_loss.default", "aten.nll_loss_nd.default"}, Use::Classes)
      .Default(Use::None);
}

/// Whether two values are computed alike.
bool isSame(Value a, Value b, int depth = 8) {
  if (a == b)
    return true;
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  if (!first || !second || depth == 0 || a.getType() != b.getType() || isa<RngUniformOp>(first))
    return false;
  return OperationEquivalence::isEquivalentTo(
      first, second, [&](Value x, Value y) { return success(isSame(x, y, depth - 1)); },
      /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
}

Value filled(Build &b, Value x, Value mask, double value) {
  return b.select(b.broadcast(mask, shapeOf(x), {0}), x, b.splatLike(x, value));
}

LogicalResult refuse(Call &c) {
  return c.fail("it reads elements that a mask from data names (x[mask]), whose number is not known: means, sums and "
                "losses of them are supported, and functions of each element or row; torch.where keeps the shape");
}

/// The mask of what is read, if it is one.
FailureOr<Value> maskOf(Call &c) {
  Value mask;
  for (const Entry &entry : c.inputs) {
    if (!entry.mask)
      continue;
    if (mask && !isSame(mask, entry.mask))
      return c.fail("it reads elements that two masks from data name, which are not known to be the same");
    mask = mask ? mask : entry.mask;
  }
  return mask;
}

/// Fills what does not count of all that is read.
void fillInputs(Call &c, double value, double integer) {
  for (Entry &entry : c.inputs)
    if (entry.mask)
      entry.value = filled(c.b, entry.value, entry.mask,
                           isa<FloatType>(tensorType(entry.value).getElementType()) ? value : integer);
}

/// Whether the first dimension of all that is masked is that of the broadcast shape, and nothing else is along it.
bool alignsRows(const Call &c) {
  int64_t rank = 0;
  for (const Entry &entry : c.inputs)
    if (entry.mask)
      rank = std::max(rank, tensorType(entry.value).getRank());
  for (int i = 0; i < c.inputCount(); ++i)
    if (c.has(i) && !c.inputs[i].sequence &&
        (c.inputs[i].mask ? c.rank(i) != rank : c.rank(i) > rank || (c.rank(i) == rank && c.shape(i)[0] != 1)))
      return false;
  return true;
}

/// Lets results be masked, whose first dimension must be the rows still.
LogicalResult passOn(Call &c, Value mask) {
  for (Entry &entry : c.outputs) {
    if (!entry.value && !entry.constant)
      continue;
    if (!entry.value || tensorType(entry.value).getRank() == 0 || shapeOf(entry.value)[0] != shapeOf(mask)[0])
      return refuse(c);
    entry.mask = mask;
  }
  return success();
}

/// The sum of what counts over dimensions, the first among them, or the mean.
Value reduced(Build &b, Value x, Value mask, ArrayRef<int64_t> dims, bool isMean) {
  Value total = b.sum(filled(b, x, mask, 0), dims);
  if (!isMean)
    return total;
  // As a sum of as many terms, by which micro-batches are put together.
  Value counts = b.convert(b.broadcast(mask, shapeOf(x), {0}), tensorType(total).getElementType());
  return b.div(total, b.sum(counts, dims));
}

SmallVector<int64_t> allDims(Value x) { return llvm::to_vector(llvm::seq<int64_t>(0, tensorType(x).getRank())); }

LogicalResult sum(Call &c, const OpRow &row, Value mask, bool isMean) {
  Type element = c.resultElement();
  auto dims = c.has("dim") ? c.axes("dim", c.rank("self")) : SmallVector<int64_t>();
  if (!dims || !element || element.isInteger(1) || (isMean && !isa<FloatType>(element)))
    return c.fail("a dimension is out of range, or the type is not one of numbers");
  Build &b = c.b;
  if (!dims->empty() && dims->front() != 0) {
    fillInputs(c, 0, 0);
    return failed(c.run(row.handler)) ? failure() : passOn(c, mask);
  }
  Value x = b.convert(c.value("self"), computedIn(element));
  if (dims->empty())
    *dims = allDims(x);
  Value result = b.convert(reduced(b, x, mask, *dims, isMean), element);
  SmallVector<int64_t> shape(shapeOf(result));
  if (c.flag("keepdim", false)) {
    shape.assign(c.shape("self").begin(), c.shape("self").end());
    for (int64_t dim : *dims)
      shape[dim] = 1;
  }
  return c.set(b.reshape(result, shape));
}

LogicalResult loss(Call &c, const OpRow &row, Value mask) {
  static const Argument kEach{int64_t{0}};
  auto reduction = reductionOf(c);
  if (failed(reduction) || !alignsRows(c))
    return failed(reduction) ? failure() : refuse(c);
  fillInputs(c, 0.5, 1);
  c.replace("reduction", kEach);
  if (failed(c.run(row.handler)))
    return failure();
  if (*reduction == Reduction::None)
    return passOn(c, mask);
  Build &b = c.b;
  Value each = c.outputs[0].value;
  if (!each || tensorType(each).getRank() == 0 || shapeOf(each)[0] != shapeOf(mask)[0])
    return refuse(c);
  Type element = tensorType(each).getElementType();
  each = reduced(b, b.convert(each, computedIn(element)), mask, allDims(each), *reduction == Reduction::Mean);
  return c.set(b.convert(each, element));
}

/// Rows that do not count have a target that is ignored.
LogicalResult classes(Call &c, const OpRow &row, Value mask) {
  auto reduction = reductionOf(c);
  const auto isMasked = [&](StringRef name) { return c.isTensor(name) && c.inputs[c.at(name)].mask; };
  if (failed(reduction))
    return failure();
  if (!isMasked("self") || !isMasked("target") || c.isFloat("target") || c.rank("self") < 2)
    return refuse(c);
  fillInputs(c, 0.5, static_cast<double>(c.integerOr("ignore_index", -100)));
  if (failed(c.run(row.handler)))
    return failure();
  return *reduction == Reduction::None ? passOn(c, mask) : success();
}
} // namespace

LogicalResult setMasked(Call &c, Value x, Value mask) {
  const int64_t rank = tensorType(mask).getRank(), rows = tensorType(mask).getNumElements();
  SmallVector<int64_t> shape = {rows};
  llvm::append_range(shape, shapeOf(x).drop_front(rank));
  if (rows == 0)
    return c.fail("the mask is empty");
  Entry entry;
  entry.value = c.b.reshape(x, shape);
  entry.mask = c.b.reshape(mask, {rows});
  return c.set(std::move(entry));
}

bool readsMasked(const Call &c) {
  return llvm::any_of(c.inputs, [](const Entry &entry) { return entry.mask != nullptr; });
}

LogicalResult runMasked(Call &c, const OpRow &row) {
  auto mask = maskOf(c);
  if (failed(mask))
    return failure();
  // What is read first, which rows are of.
  const bool isFirst =
      c.inputs[0].mask && llvm::none_of(llvm::drop_begin(c.inputs), [](const Entry &e) { return bool(e.mask); });
  switch (useOf(row.target)) {
  case Use::Elements:
    if (!alignsRows(c))
      return refuse(c);
    fillInputs(c, 0.5, 1);
    return failed(c.run(row.handler)) ? failure() : passOn(c, *mask);
  case Use::Rows: {
    // Of an embedding the indices are.
    const bool isLookup = row.target == "aten.embedding.default";
    if (isLookup ? !c.inputs[c.at("indices")].mask || c.inputs[c.at("weight")].mask : !isFirst)
      return refuse(c);
    // A new dimension has a place more.
    const int64_t places = isLookup ? 0 : c.rank(0) + (row.target == "aten.unsqueeze.default" ? 1 : 0);
    if (c.has("dim") && axisOf(c.integerOr("dim", 0), places).value_or(0) == 0)
      return refuse(c);
    fillInputs(c, 0.5, 0);
    return failed(c.run(row.handler)) ? failure() : passOn(c, *mask);
  }
  case Use::Size:
    if (row.target == "aten.sym_size.int" && axisOf(c.integerOr("dim", 0), c.rank("self")).value_or(0) == 0)
      return refuse(c);
    return c.run(row.handler);
  case Use::Sum:
    return sum(c, row, *mask, StringRef(row.target).starts_with("aten.mean."));
  case Use::Loss:
    return loss(c, row, *mask);
  case Use::Classes:
    return classes(c, row, *mask);
  case Use::None:
    return refuse(c);
  }
  return refuse(c);
}

} // namespace tessera::pt2
