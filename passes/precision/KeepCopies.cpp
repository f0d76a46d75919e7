//===- KeepCopies.cpp - narrow copies of parameters outlive the step ------===//
//
// See Passes.td. A copy becomes an argument of the role "derived"; its next value is computed beside its parameter's.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/precision/Passes.h"

namespace tessera {
#define GEN_PASS_DEF_KEEPCOPIES
#include "passes/precision/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::train;

namespace {

/// An op that only shows a parameter in another shape.
bool isWholeView(Operation *op) { return op && isa<ReshapeOp, TransposeOp>(op); }

/// The f32 parameter all of which `convert` makes bf16, directly or through views; null if it does something else.
BlockArgument convertedParameter(func::FuncOp func, ConvertOp convert) {
  if (!tensorType(convert.getResult()).getElementType().isBF16())
    return {};
  Value value = convert.getOperand();
  while (isWholeView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &func.getBody().front() || !tensorType(argument).getElementType().isF32())
    return {};
  return isParameter(getArgRole(func, argument.getArgNumber())) ? argument : BlockArgument();
}

class Keeper {
public:
  explicit Keeper(func::FuncOp func) : func(func) {}

  int64_t copies = 0;

  void run() {
    SmallVector<ConvertOp> converts;
    func.walk([&](ConvertOp convert) { converts.push_back(convert); });
    for (ConvertOp convert : converts)
      if (BlockArgument parameter = convertedParameter(func, convert))
        readCopy(convert, parameter);
    SmallVector<StepResult> results = getResults(func);
    llvm::append_range(results, renewed);
    setResults(func, results);
  }

private:
  /// What reads the result of `convert` reads the copy.
  void readCopy(ConvertOp convert, BlockArgument parameter) {
    Value copy = copyOf(parameter);
    if (!copy) {
      convert.emitRemark() << "a parameter without " << kName << " is converted in every step";
      return;
    }
    SmallVector<Operation *> views;
    Value value = convert.getOperand();
    for (; value != parameter; value = value.getDefiningOp()->getOperand(0))
      views.push_back(value.getDefiningOp());
    OpBuilder builder(convert);
    for (Operation *view : llvm::reverse(views)) {
      Operation *narrow = builder.clone(*view);
      narrow->setOperand(0, copy);
      copy = narrow->getResult(0);
      copy.setType(tensorType(copy).clone(builder.getBF16Type()));
    }
    convert.replaceAllUsesWith(copy);
    convert.erase();
    for (Operation *view : views)
      if (view->use_empty())
        view->erase();
  }

  /// The argument that holds the parameter in bf16, made at the first call; null where the parameter has no name.
  Value copyOf(BlockArgument parameter) {
    Value &copy = copyOfParameter[parameter];
    if (copy)
      return copy;
    const unsigned number = parameter.getArgNumber();
    StringRef name = getArgName(func, number);
    if (name.empty())
      return {};
    Builder builder(func.getContext());
    auto type = tensorType(parameter).clone(builder.getBF16Type());
    SmallVector<NamedAttribute> placement;
    if (Attribute sharding = func.getArgAttr(number, dist::kSharding))
      placement.push_back(builder.getNamedAttr(dist::kSharding, sharding));
    if (auto global = func.getArgAttrOfType<TypeAttr>(number, dist::kGlobal))
      placement.push_back(builder.getNamedAttr(
          dist::kGlobal, TypeAttr::get(cast<RankedTensorType>(global.getValue()).clone(builder.getBF16Type()))));
    SmallVector<NamedAttribute> attrs(placement);
    attrs.push_back(builder.getNamedAttr(kOf, builder.getStringAttr(name)));
    const std::string copyName = (name + ".bf16").str();
    copy = appendArgument(func, type, ArgRole::Derived, copyName, attrs, NameLoc::get(builder.getStringAttr(copyName)));
    renew(parameter, cast<BlockArgument>(copy), placement);
    ++copies;
    return copy;
  }

  /// A parameter that the step changes changes its copy, too.
  void renew(BlockArgument parameter, BlockArgument copy, ArrayRef<NamedAttribute> placement) {
    for (const StepResult &result : getResults(func)) {
      auto alias = result.attrs.getAs<IntegerAttr>(kAlias);
      if (!alias || alias.getInt() != parameter.getArgNumber())
        continue;
      OpBuilder builder(func.getContext());
      builder.setInsertionPointAfterValue(result.value);
      Value next = result.value == parameter
                       ? Value(copy)
                       : Build(builder, copy.getLoc()).convert(result.value, builder.getBF16Type());
      SmallVector<NamedAttribute> attrs(placement);
      attrs.push_back(builder.getNamedAttr(kAlias, builder.getI64IntegerAttr(copy.getArgNumber())));
      renewed.push_back({next, builder.getDictionaryAttr(attrs)});
      return;
    }
  }

  func::FuncOp func;
  SmallVector<StepResult> renewed; ///< the copies' next values
  llvm::DenseMap<Value, Value> copyOfParameter;
};

struct KeepCopiesPass : tessera::impl::KeepCopiesBase<KeepCopiesPass> {
  void runOnOperation() override {
    if (!isTrainingStep(getOperation())) // only the training renews them
      return;
    Keeper keeper(getOperation());
    keeper.run();
    numCopies += keeper.copies;
  }
};

} // namespace
