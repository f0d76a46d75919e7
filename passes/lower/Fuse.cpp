//===- Fuse.cpp - groups of ops to exec.fusion ----------------------------===//
//
// Builds the fusions of the groups and puts the block back in order: fusions in their groups' places, views right
// before what reads them.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "passes/lower/CompressConstants.h"
#include "passes/lower/FusionGroups.h"
#include "passes/lower/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_FUSE
#include "passes/lower/Passes.h.inc"

namespace {

/// Where an op goes in the new order.
struct Place {
  unsigned position;
  /// Views come before the op of their position.
  bool isOp;
  unsigned original;
  auto operator<=>(const Place &) const = default;
};

/// Whether a kernel makes `value` from constants, counters and values much smaller than `elements`.
bool isCheapSource(Value value, int64_t elements, unsigned depth = 8) {
  if (elements > 1 && train::tensorType(value).getNumElements() * 16 <= elements)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (isa<train::IotaOp, train::ConstantOp>(op))
    return true;
  if (!isa<train::BroadcastOp, train::ReshapeOp>(op) && (!codegen::isElementwise(op) || codegen::isExpensive(op)))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return isCheapSource(operand, elements, depth - 1); });
}

/// Whether `op` only shows a value in a wider type, which every reader does for itself.
bool isWidening(Operation *op) {
  auto convert = dyn_cast<train::ConvertOp>(op);
  if (!convert)
    return false;
  auto from = dyn_cast<FloatType>(train::tensorType(convert.getOperand()).getElementType()),
       to = dyn_cast<FloatType>(train::tensorType(convert.getResult()).getElementType());
  return from && to && from.getWidth() < to.getWidth();
}

/// Gives each reader of a cheap value its own copy, so that the value neither is stored nor ties kernels together.
void duplicateCheapSources(Block &block, const FusionRoles &roles) {
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    if (codegen::isElementwise(&op) &&
        (isWidening(&op) || isCheapSource(op.getResult(0), train::tensorType(op.getResult(0)).getNumElements())))
      ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getUses())
      uses.push_back(&use);
    for (OpOperand *use : uses)
      if (Operation *user = use->getOwner(); user->getBlock() == &block && roles.of(user) == FusionRole::Compute)
        use->set(OpBuilder(user).clone(*op)->getResult(0));
    if (op->use_empty())
      op->erase();
  }
}

class BlockFuser {
public:
  BlockFuser(Block &block, bool isGpu, bool keepsGradients)
      : block(block), roles(block), groups(roles, isGpu, keepsGradients) {}

  LogicalResult run() {
    duplicateCheapSources(block, roles);
    if (failed(groups.initialize(block)))
      return failure();
    groups.merge();
    groups.recompute();
    for (const auto &group : groups.get())
      for (Value input : group->body.inputs)
        lastKernel[input] = std::max(lastKernel[input], group->position);
    if (groups.get().empty())
      return success();
    placeFixed();
    for (const auto &group : groups.get())
      if (!group->body.outputs.empty())
        build(*group);
    for (auto &[output, result] : replacements) {
      Operation *fusion = result.getDefiningOp();
      // Other fusions are in place already and read the replaced value as an operand.
      Value replacement = result;
      Value old = output;
      old.replaceUsesWithIf(replacement, [&](OpOperand &use) { return use.getOwner() != fusion; });
    }
    eraseFused();
    reorder();
    return success();
  }

private:
  Block &block;
  const FusionRoles roles;
  FusionGroups groups;
  DenseMap<Operation *, Place> places;
  SmallVector<std::pair<Value, Value>> replacements;
  /// Units of which a kernel is known that reads the gradient.
  DenseSet<Attribute> told;
  /// The place of the last kernel that reads a value.
  DenseMap<Value, unsigned> lastKernel;

  /// Ops that stay keep their places.
  void placeFixed() {
    for (Operation &op : block)
      if (unsigned number = groups.numberOf(&op); roles.of(&op) == FusionRole::Fixed)
        places[&op] = {number, true, number};
  }

  /// The place of `op`; a view goes right before what reads it first.
  Place placeOf(Operation *op) {
    if (auto it = places.find(op); it != places.end())
      return it->second;
    Place place = places.at(block.getTerminator());
    for (Operation *user : op->getUsers())
      if (Operation *reader = block.findAncestorOpInBlock(*user))
        place = std::min(place, placeOf(reader));
    return places[op] = {place.position, false, groups.numberOf(op)};
  }

  void build(const FusionGroup &group) {
    SmallVector<Location> locations;
    for (Operation *op : group.members)
      locations.push_back(op->getLoc());
    Location loc = FusedLoc::get(block.getParent()->getContext(), locations);
    OpBuilder builder(block.getTerminator());
    const codegen::KernelBody &body = group.body;
    SmallVector<Type> types;
    for (Value output : body.outputs)
      types.push_back(output.getType());
    auto fusion = exec::FusionOp::create(builder, loc, types, body.inputs, codegen::kindName(group.plan.kind),
                                         FlatSymbolRefAttr(), builder.getI64IntegerAttr(group.plan.extent),
                                         builder.getI64IntegerAttr(group.plan.grain),
                                         builder.getDenseI64ArrayAttr(inplaceOperands(group)));
    if (llvm::all_of(group.members, train::isMarkedBackward))
      train::markBackward(fusion);
    markGradients(fusion, body);
    places[fusion] = {group.position, true, group.position};

    Block *inner = builder.createBlock(&fusion.getBody());
    IRMapping mapping;
    for (Value input : body.inputs)
      mapping.map(input, inner->addArgument(input.getType(), input.getLoc()));
    for (Operation *op : body.ops) {
      Operation *clone = builder.clone(*op, mapping);
      clone->removeAttr(train::kBackward);
      clone->removeAttr(train::kRecompute);
      clone->removeAttr(train::kUnit); // equal updates of different units share a kernel
    }
    SmallVector<Value> yielded;
    for (auto [output, result] : llvm::zip(body.outputs, fusion.getResults())) {
      yielded.push_back(mapping.lookup(output));
      replacements.emplace_back(output, result);
    }
    exec::YieldOp::create(builder, loc, yielded);
  }

  /// An argument, or its copy that was brought from the host.
  static bool isArgument(Value value) {
    if (auto done = value.getDefiningOp<dist::DoneOp>())
      if (auto copy = done.getFuture().getDefiningOp<dist::CopyStartOp>())
        value = copy.getOperand();
    return isa<BlockArgument>(value);
  }

  /// The number that `gradient` is multiplied by among `ops` so that it is one of the whole batch.
  static double scaleOf(Value gradient, ArrayRef<Operation *> ops) {
    for (Operation *user : gradient.getUsers()) {
      if (!llvm::is_contained(ops, user))
        continue;
      if (user->hasAttr(train::kGradientScale))
        for (Value factor : user->getOperands())
          if (std::optional<double> number = train::splatOf(factor))
            return *number;
      if (isa<train::ReshapeOp, train::SliceOp, train::BarrierOp, train::ConvertOp>(user))
        if (double scale = scaleOf(user->getResult(0), ops); scale != 1.0)
          return scale;
    }
    return 1.0;
  }

  static bool isFloatOfShape(Value value, ArrayRef<int64_t> shape) {
    auto type = cast<RankedTensorType>(value.getType());
    return isa<FloatType>(type.getElementType()) && type.getShape() == shape;
  }

  /// For each unit that the fusion updates: which operand is its gradient. Of the floating-point operands that the
  /// marked op depends on and that have its shape it is the only one that is not an argument of the function, as the
  /// unit itself and its optimizer states are; it may be narrower than they are. Numbers are not followed: the norm
  /// that clips depends on the gradients of all units.
  void markGradients(exec::FusionOp fusion, const codegen::KernelBody &body) {
    OpBuilder builder(fusion);
    SmallVector<Attribute> units;
    SmallVector<int64_t> operands;
    SmallVector<double> scales;
    for (Operation *op : body.ops) {
      Attribute unit = op->getAttr(train::kUnit);
      if (!unit)
        continue;
      llvm::SmallPtrSet<Value, 16> needed(op->operand_begin(), op->operand_end());
      for (Operation *earlier : llvm::reverse(body.ops))
        if (llvm::any_of(earlier->getResults(), [&](Value result) {
              return needed.contains(result) && cast<RankedTensorType>(result.getType()).getRank() > 0;
            }))
          needed.insert(earlier->operand_begin(), earlier->operand_end());
      for (auto [number, input] : llvm::enumerate(body.inputs))
        if (isFloatOfShape(input, train::shapeOf(op->getResult(0))) && !isArgument(input) && needed.contains(input)) {
          if (!told.insert(unit).second)
            break; // a kernel that computes the marked op once more
          units.push_back(unit);
          operands.push_back(number);
          scales.push_back(scaleOf(input, body.ops));
          break;
        }
    }
    if (units.empty())
      return;
    fusion->setAttr(train::kUnits, builder.getArrayAttr(units));
    fusion->setAttr(train::kGradOperands, builder.getDenseI64ArrayAttr(operands));
    if (llvm::any_of(scales, [](double scale) { return scale != 1.0; }))
      fusion->setAttr(train::kGradientScales, builder.getDenseF64ArrayAttr(scales));
  }

  /// The argument of the function or repetition that `value` is the next value of.
  Value aliasOf(Value value) const {
    Operation *terminator = block.getTerminator();
    for (OpOperand &use : value.getUses()) {
      if (use.getOwner() != terminator)
        continue;
      if (auto function = dyn_cast<func::FuncOp>(block.getParentOp())) {
        auto alias = function.getResultAttrOfType<IntegerAttr>(use.getOperandNumber(), train::kAlias);
        if (alias && alias.getInt() >= 0 && alias.getInt() < static_cast<int64_t>(block.getNumArguments()))
          return block.getArgument(alias.getInt());
      } else if (auto repeat = dyn_cast<exec::RepeatOp>(block.getParentOp())) {
        return block.getArgument(1 + repeat.getBatch().size() + use.getOperandNumber());
      }
    }
    return {};
  }

  SmallVector<int64_t> inplaceOperands(const FusionGroup &group) const {
    SmallVector<int64_t> inplace(group.plan.outputs.size(), -1);
    auto taken = [&](int64_t operand) { return llvm::is_contained(inplace, operand); };
    for (auto [i, output] : llvm::enumerate(group.plan.outputs))
      if (Value alias = aliasOf(output.value))
        for (unsigned operand : output.mayOverwrite)
          if (group.body.inputs[operand] == alias && !taken(operand))
            inplace[i] = operand;
    for (auto [i, output] : llvm::enumerate(group.plan.outputs))
      for (unsigned operand : output.mayOverwrite)
        if (inplace[i] < 0 && !taken(operand) && isPartOfCarried(group.body.inputs[operand], group))
          inplace[i] = operand;
    for (auto [i, output] : llvm::enumerate(group.plan.outputs)) {
      for (unsigned operand : output.mayOverwrite) {
        Value input = group.body.inputs[operand];
        // Only a value of this block that nothing else reads later.
        if (inplace[i] >= 0 || taken(operand) || !input.getDefiningOp() ||
            input.getDefiningOp()->getBlock() != &block || !diesAt(input, group))
          continue;
        inplace[i] = operand;
      }
    }
    return inplace;
  }

  /// Whether `value` is a part of what a repetition carries that nothing reads after the group.
  bool isPartOfCarried(Value value, const FusionGroup &group) const {
    Operation *op = value.getDefiningOp();
    if (!op || lastReader(value) > group.position)
      return false;
    while (op && isa<train::ReshapeOp, train::SliceOp>(op)) {
      value = op->getOperand(0);
      op = value.getDefiningOp();
    }
    auto repeat = dyn_cast<exec::RepeatOp>(block.getParentOp());
    auto argument = dyn_cast<BlockArgument>(value);
    return repeat && argument && argument.getOwner() == &block && argument.getArgNumber() > repeat.getBatch().size();
  }

  /// Whether `value`, and every view of it, has no reader after the group.
  bool diesAt(Value value, const FusionGroup &group) const {
    Operation *op = value.getDefiningOp();
    while (op && isa<train::ReshapeOp>(op) && roles.of(op) == FusionRole::View && op->getBlock() == &block) {
      value = op->getOperand(0);
      op = value.getDefiningOp();
    }
    if (!op || op->getBlock() != &block || roles.of(op) == FusionRole::View)
      return false;
    return lastReader(value) <= group.position;
  }

  unsigned lastReader(Value value) const {
    unsigned last = lastKernel.lookup(value);
    for (Operation *user : value.getUsers()) {
      Operation *inBlock = block.findAncestorOpInBlock(*user);
      if (!inBlock)
        return ~0u;
      if (groups.groupOf(inBlock))
        continue;
      if (inBlock == user && roles.of(user) == FusionRole::View)
        last = std::max(last, lastReader(user->getResult(0)));
      else
        last = std::max(last, groups.numberOf(inBlock));
    }
    return last;
  }

  /// Fused ops and views that nothing reads any more.
  void eraseFused() {
    SmallVector<Operation *> ops;
    for (Operation &op : block.without_terminator())
      ops.push_back(&op);
    for (Operation *op : llvm::reverse(ops))
      if (roles.of(op) != FusionRole::Fixed && op->use_empty())
        op->erase();
  }

  void reorder() {
    SmallVector<Operation *> order;
    for (Operation &op : block.without_terminator()) {
      placeOf(&op);
      order.push_back(&op);
    }
    llvm::stable_sort(order, [&](Operation *a, Operation *b) { return places.at(a) < places.at(b); });
    for (Operation *op : order)
      op->moveBefore(block.getTerminator());
  }
};

/// A kernel plan and a slot need at least one element.
LogicalResult checkNotEmpty(func::FuncOp func) {
  auto isEmpty = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() && type.getNumElements() == 0;
  };
  for (BlockArgument argument : func.getArguments())
    if (isEmpty(argument))
      return emitError(argument.getLoc()) << "argument of type " << argument.getType() << " has no elements";
  WalkResult result = func.walk([&](Operation *op) -> WalkResult {
    for (Value value : op->getResults())
      if (isEmpty(value))
        return op->emitError() << "result of type " << value.getType() << " has no elements";
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

struct Fuse : impl::FuseBase<Fuse> {
  using FuseBase::FuseBase;
  void runOnOperation() override {
    if (failed(checkNotEmpty(getOperation())))
      return signalPassFailure();
    compressConstants(getOperation());
    SmallVector<Block *> blocks;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<exec::FusionOp>(op))
        return WalkResult::skip();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          blocks.push_back(&block);
      return WalkResult::advance();
    });
    // Inner blocks first: what they copy is then no longer read from outside.
    for (Block *block : llvm::reverse(blocks))
      if (failed(BlockFuser(*block, gpu, keepGradients).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace tessera
