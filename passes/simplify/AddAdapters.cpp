//===- AddAdapters.cpp - low-rank adapters beside frozen matrices ---------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/NamePattern.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/simplify/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_ADDADAPTERS
#include "passes/simplify/Passes.h.inc"

namespace {

/// A product of a value and a matrix.
struct Product {
  DotGeneralOp op;
  bool isRhs;       ///< the matrix is the right operand
  int64_t inputDim; ///< of the matrix: it is contracted with the value
};

/// How a step uses a parameter: its products, or the op that is none.
struct Uses {
  SmallVector<Product> products;
  Operation *other = nullptr;
};

/// A matrix with its adapter.
struct Adapter {
  BlockArgument weight;
  SmallVector<Product> products;
  std::string a, b; ///< names
};

Uses findUses(BlockArgument weight) {
  Uses uses;
  auto add = [&](OpOperand &use, bool isTransposed) {
    auto product = dyn_cast<DotGeneralOp>(use.getOwner());
    const bool isRhs = use.getOperandNumber() == 1;
    ArrayRef<int64_t> contracted;
    if (product)
      contracted = isRhs ? product.getRhsContract() : product.getLhsContract();
    if (!product || product.getLhs() == product.getRhs() || !product.getLhsBatch().empty() || contracted.size() != 1)
      uses.other = use.getOwner();
    else
      uses.products.push_back({product, isRhs, isTransposed ? 1 - contracted.front() : contracted.front()});
  };
  for (OpOperand &use : weight.getUses()) {
    if (auto transpose = dyn_cast<TransposeOp>(use.getOwner()); transpose && tensorType(weight).getRank() == 2)
      for (OpOperand &inner : transpose->getUses())
        add(inner, transpose.getPermutation().front() == 1);
    else
      add(use, false);
  }
  return uses;
}

/// "fc.lora_A.weight" for "fc.weight" and 'A', the name that Hugging Face's PEFT gives it.
std::string adapterName(StringRef parameter, char part) {
  parameter.consume_back(".weight");
  return (parameter + ".lora_" + Twine(part) + ".weight").str();
}

class AdapterBuilder {
public:
  AdapterBuilder(func::FuncOp step, int64_t rank, double alpha)
      : step(step), builder(step.getContext()), rank(rank), scale(alpha / static_cast<double>(rank)) {}

  /// Adds the two parameters, and their part to each product of the matrix.
  void add(const Adapter &adapter) {
    const int64_t inputDim = adapter.products.front().inputDim;
    ArrayRef<int64_t> shape = shapeOf(adapter.weight);
    const int64_t inputs = shape[inputDim], outputs = shape[1 - inputDim];
    const Type element = accumulationType(tensorType(adapter.weight).getElementType());
    const double bound = 1.0 / std::sqrt(static_cast<double>(inputs));
    Value a = addParameter(adapter.a, RankedTensorType::get({rank, inputs}, element),
                           llvm::formatv("uniform:{0:f9}:{1:f9}", -bound, bound).str());
    Value b = addParameter(adapter.b, RankedTensorType::get({outputs, rank}, element), "zeros");
    for (const Product &product : adapter.products)
      addTo(product, a, b);
    StringRef name = getArgName(step, adapter.weight.getArgNumber());
    records.push_back(AdapterAttr::get(builder.getContext(), builder.getStringAttr(name),
                                       builder.getStringAttr(adapter.a), builder.getStringAttr(adapter.b), rank,
                                       inputDim, builder.getF64FloatAttr(scale)));
  }

  ArrayAttr getRecords() { return builder.getArrayAttr(records); }
  ArrayRef<Attribute> getParameters() const { return parameters; }

private:
  Value addParameter(StringRef name, RankedTensorType type, const std::string &init) {
    StringAttr attr = builder.getStringAttr(name);
    parameters.push_back(TensorInfoAttr::get(builder.getContext(), attr, type, TensorRole::Param,
                                             builder.getStringAttr("added by --lora")));
    return appendArgument(step, type, ArgRole::Param, name, {builder.getNamedAttr(kInit, builder.getStringAttr(init))},
                          NameLoc::get(attr));
  }

  /// y becomes y + scale * (x aᵀ) bᵀ, computed and added in the adapter's type.
  void addTo(const Product &product, Value a, Value b) {
    DotGeneralOp op = product.op;
    builder.setInsertionPointAfter(op);
    Build build(builder, op.getLoc());
    const Type element = tensorType(op).getElementType(), wide = tensorType(a).getElementType();
    Value x = build.convert(product.isRhs ? op.getLhs() : op.getRhs(), wide);
    ArrayRef<int64_t> contracted = product.isRhs ? op.getLhsContract() : op.getRhsContract();
    Value low = build.dot(x, a, {}, {}, contracted, {1});
    const int64_t last = tensorType(low).getRank() - 1;
    Value part = product.isRhs ? build.dot(low, b, {}, {}, {last}, {1}) : build.dot(b, low, {}, {}, {1}, {last});
    Value whole = build.convert(op, wide);
    Value sum = build.convert(build.add(whole, build.scale(part, scale)), element);
    Operation *own = whole == op ? sum.getDefiningOp() : whole.getDefiningOp();
    op.getResult().replaceAllUsesExcept(sum, own);
  }

  func::FuncOp step;
  OpBuilder builder;
  int64_t rank;
  double scale;
  SmallVector<Attribute> records, parameters;
};

struct AddAdapters : impl::AddAdaptersBase<AddAdapters> {
  using AddAdaptersBase::AddAdaptersBase;

  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    if (step && failed(run(step)))
      signalPassFailure();
  }

private:
  LogicalResult checkOptions(func::FuncOp step) {
    if (rank < 1)
      return step.emitError() << "--lora: rank must be at least 1, got " << rank.getValue();
    if (!(alpha > 0) || !std::isfinite(alpha))
      return step.emitError() << "--lora: alpha must be positive and finite, got " << double(alpha);
    return success();
  }

  /// The matrices that `targets` matches.
  FailureOr<SmallVector<Adapter>> findTargets(func::FuncOp step) {
    FailureOr<NamePattern> pattern = NamePattern::parse(step.getLoc(), "--lora: targets", targets);
    if (failed(pattern))
      return failure();
    llvm::StringSet<> names;
    SmallVector<StringRef> matrices;
    SmallVector<Adapter> found;
    for (BlockArgument arg : step.getArguments())
      names.insert(getArgName(step, arg.getArgNumber()));
    for (BlockArgument arg : step.getArguments()) {
      StringRef name = getArgName(step, arg.getArgNumber());
      if (!isParameter(getArgRole(step, arg.getArgNumber())))
        continue;
      Uses uses = findUses(arg);
      if (tensorType(arg).getRank() == 2 && !uses.other && !uses.products.empty())
        matrices.push_back(name);
      if (!pattern->match(name) || tensorType(arg).getRank() < 2) // the bias beside a matrix has no adapter
        continue;
      if (failed(checkTarget(arg, name, uses)))
        return failure();
      Adapter &adapter =
          found.emplace_back(Adapter{arg, uses.products, adapterName(name, 'A'), adapterName(name, 'B')});
      for (const std::string &added : {adapter.a, adapter.b})
        if (!names.insert(added).second)
          return emitError(arg.getLoc()) << "--lora: the model has a parameter '" << added << "' already";
    }
    if (failed(pattern->expectMatch(step.getLoc(), "matrix that multiplies activations", matrices)))
      return failure();
    return found;
  }

  LogicalResult checkTarget(BlockArgument arg, StringRef name, const Uses &uses) {
    auto refuse = [&] { return emitError(arg.getLoc()) << "--lora: '" << name << "' cannot have an adapter: "; };
    if (tensorType(arg).getRank() != 2)
      return refuse() << "it is " << arg.getType() << ", not a matrix";
    if (uses.other)
      return refuse() << "it is read by " << uses.other->getName() << " at '" << getNodeName(uses.other->getLoc())
                      << "', not only by products with activations";
    if (uses.products.empty())
      return refuse() << "nothing reads it";
    for (const Product &product : uses.products)
      if (product.inputDim != uses.products.front().inputDim)
        return refuse() << "products read both it and its transpose, so that neither dimension is its input";
    return success();
  }

  /// All that `train` does not match becomes frozen.
  LogicalResult freeze(func::FuncOp step, ArrayRef<Adapter> adapters, llvm::StringSet<> &frozen) {
    std::optional<NamePattern> pattern;
    if (failed(NamePattern::read(step.getLoc(), "--lora: train", train, pattern)))
      return failure();
    SmallVector<StringRef> names;
    for (unsigned index : getArgsWithRole(step, ArgRole::Param)) {
      StringRef name = getArgName(step, index);
      names.push_back(name);
      if (!pattern || !pattern->match(name)) {
        frozen.insert(name);
        step.setArgAttr(index, kRole, getRoleAttr(&getContext(), ArgRole::Frozen).getValue());
      }
    }
    if (!pattern)
      return success();
    for (const Adapter &adapter : adapters)
      if (StringRef name = getArgName(step, adapter.weight.getArgNumber()); pattern->match(name))
        return emitError(adapter.weight.getLoc())
               << "--lora: both targets and train match '" << name << "', which is trained itself or has an adapter";
    return pattern->expectMatch(step.getLoc(), "trained parameter", names);
  }

  /// Keeps the list of the model's tensors true.
  void updateTensors(const llvm::StringSet<> &frozen, ArrayRef<Attribute> added) {
    auto tensors = getOperation()->getAttrOfType<ArrayAttr>(kTensors);
    if (!tensors)
      return;
    SmallVector<Attribute> list;
    for (auto info : tensors.getAsRange<TensorInfoAttr>())
      list.push_back(info.getRole() == TensorRole::Param && frozen.contains(info.getName().getValue())
                         ? TensorInfoAttr::get(&getContext(), info.getName(), info.getType(), TensorRole::Frozen,
                                               StringAttr::get(&getContext(), "--lora trains adapters only"))
                         : info);
    llvm::append_range(list, added);
    getOperation()->setAttr(kTensors, ArrayAttr::get(&getContext(), list));
  }

  LogicalResult run(func::FuncOp step) {
    if (failed(checkOptions(step)))
      return failure();
    FailureOr<SmallVector<Adapter>> adapters = findTargets(step);
    if (failed(adapters))
      return failure();
    llvm::StringSet<> frozen;
    if (failed(freeze(step, *adapters, frozen)))
      return failure();
    AdapterBuilder builder(step, rank, alpha);
    for (const Adapter &adapter : *adapters)
      builder.add(adapter);
    updateTensors(frozen, builder.getParameters());
    getOperation()->setAttr(kAdapters, builder.getRecords());
    return success();
  }
};

} // namespace
} // namespace tessera
