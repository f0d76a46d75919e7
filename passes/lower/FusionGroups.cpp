//===- FusionGroups.cpp - which ops of a block become one kernel ----------===//

#include "passes/lower/FusionGroups.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/PhaseAnalysis.h"

using namespace mlir;
using tessera::codegen::KernelBody;
using tessera::codegen::KernelPlan;
using tessera::train::shapeOf;
using tessera::train::tensorType;

namespace tessera {

/// A kernel of more buffers than this is not made by merging.
static constexpr size_t kMaxBuffers = 24;
/// How many more ops per element a merged kernel may evaluate than its parts.
static constexpr unsigned kMaxRecomputed = 16;
/// A column kernel that also writes whole tensors needs this many columns to be parallel and to write long runs.
static constexpr int64_t kMinColumns = 128;

/// Elements of partial sums that take no longer to add up than to launch a kernel for.
static constexpr int64_t kMaxPartial = 1 << 22;
/// A row-column kernel needs this many chunks, each a block.
static constexpr int64_t kMinChunks = 32;
/// A kernel that reduces everything, on one thread, may also write whole tensors of up to this many elements.
static constexpr int64_t kMaxSerial = 4096;

LogicalResult FusionGroups::initialize(Block &block) {
  this->block = &block;
  for (Operation &op : block) {
    numbers[&op] = numbers.size();
    FusionRole role = roles.of(&op);
    bool materialized = role == FusionRole::View && !isLayoutView(&op) && isMaterialized(&op);
    if (role != FusionRole::Compute && !materialized)
      continue;
    if (op.use_empty())
      continue;
    auto group = std::make_unique<FusionGroup>();
    group->members = {&op};
    group->position = numbers[&op];
    group->materialized = materialized;
    if (!materialized)
      owner[&op] = group.get();
    groups.push_back(std::move(group));
  }
  for (auto &group : groups) {
    group->body = bodyOf(group->members);
    std::string why;
    auto plan = codegen::planKernel(group->body, isGpu, why);
    if (!plan)
      return group->members.front()->emitError("cannot generate a kernel: ") << why;
    group->plan = std::move(*plan);
  }
  return success();
}

// --- Order ---------------------------------------------------------------------------

unsigned FusionGroups::firstReader(Value value, ArrayRef<const FusionGroup *> except) const {
  unsigned first = numbers.size();
  for (Operation *user : value.getUsers()) {
    Operation *inBlock = block->findAncestorOpInBlock(*user);
    if (!inBlock)
      continue;
    FusionGroup *group = owner.lookup(inBlock);
    if (group && llvm::is_contained(except, group))
      continue;
    if (group)
      first = std::min(first, group->position);
    else if (inBlock != user || roles.of(user) == FusionRole::Fixed)
      first = std::min(first, numbers.lookup(inBlock));
    else if (roles.of(user) == FusionRole::View) {
      if (!isLayoutView(user) && isMaterialized(user))
        first = std::min(first, numbers.lookup(user));
      first = std::min(first, firstReader(user->getResult(0), except));
    }
  }
  return first;
}

int64_t FusionGroups::available(Value value, ArrayRef<const FusionGroup *> except) const {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != block)
    return -1;
  if (FusionGroup *group = owner.lookup(op))
    return llvm::is_contained(except, group) ? -1 : static_cast<int64_t>(group->position);
  if (roles.of(op) == FusionRole::Fixed)
    return numbers.lookup(op);
  int64_t latest = !isLayoutView(op) && isMaterialized(op) ? static_cast<int64_t>(numbers.lookup(op)) : -1;
  for (Value operand : op->getOperands())
    latest = std::max(latest, available(operand, except));
  return latest;
}

bool FusionGroups::canSink(const FusionGroup *group, const FusionGroup *to) const {
  return llvm::all_of(group->members, [&](Operation *op) {
    return firstReader(op->getResult(0), {group, to}) > to->position;
  });
}

bool FusionGroups::canHoist(const FusionGroup *group, const FusionGroup *to) const {
  return llvm::all_of(group->body.inputs, [&](Value input) {
    return available(input, {group, to}) < static_cast<int64_t>(to->position);
  });
}

// --- Merging --------------------------------------------------------------------------

static int64_t largestOutput(const KernelBody &body) {
  int64_t most = 0;
  for (Value output : body.outputs)
    most = std::max(most, tensorType(output).getNumElements());
  return most;
}

bool FusionGroups::worthwhile(const FusionGroup *a, const FusionGroup *b, const KernelBody &body,
                              const KernelPlan &plan) const {
  if (body.inputs.size() + body.outputs.size() > kMaxBuffers)
    return false;
  if (plan.visits > a->plan.visits + b->plan.visits + kMaxRecomputed)
    return false;
  if (plan.readsAcross && !a->plan.readsAcross && !b->plan.readsAcross)
    return false;
  // Work that is parallel over rows must not move into a kernel that is parallel over few columns.
  bool wholeOutput = llvm::any_of(
      plan.outputs, [](const codegen::Output &output) { return output.extent != codegen::OutputExtent::Row; });
  if (plan.kind == codegen::KernelKind::ReduceAll && wholeOutput)
    return plan.innerElements <= kMaxSerial;
  if (plan.kind == codegen::KernelKind::RowColumn)
    return plan.extent >= kMinChunks;
  if (plan.kind == codegen::KernelKind::Column && wholeOutput)
    return plan.digits[*plan.lane].size >= kMinColumns;
  return true;
}

/// The group that computes `value`, looking through views of it.
FusionGroup *FusionGroups::makerOf(Value value) const {
  Operation *op = value.getDefiningOp();
  while (op && !owner.contains(op) && isa<train::ReshapeOp, train::SliceOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op ? owner.lookup(op) : nullptr;
}

/// Whether the group is the second step of column sums: it adds up partial sums, all of one kernel (`of`, if given).
bool FusionGroups::isSecondStep(const FusionGroup *group, const FusionGroup *of) const {
  // Sums of what is known (a splat constant, a counter) read no kernel's partial sums: they read nothing.
  if (group->plan.kind != codegen::KernelKind::Column || group->plan.reductions.empty() || group->body.inputs.empty())
    return false;
  return llvm::all_of(group->body.inputs, [&](Value input) {
    FusionGroup *maker = makerOf(input);
    if (!of)
      of = maker;
    return maker && maker == of && maker != group && tensorType(input).getNumElements() <= kMaxPartial &&
           llvm::any_of(maker->plan.reductions,
                        [&](const codegen::Reduction &reduction) { return input == reduction.op->getResult(0); });
  });
}

/// On a GPU, the second steps of other sums that the same kernel makes partial sums of: together they are one launch.
SmallVector<FusionGroup *> FusionGroups::secondSteps(const FusionGroup *group) const {
  SmallVector<FusionGroup *> result;
  if (!isGpu || !isSecondStep(group))
    return result;
  const FusionGroup *maker = makerOf(group->body.inputs.front());
  for (const codegen::Reduction &reduction : maker->plan.reductions)
    for (Operation *user : reduction.op->getUsers())
      if (FusionGroup *other = owner.lookup(user);
          other && other != group && !llvm::is_contained(result, other) && isSecondStep(other, maker))
        result.push_back(other);
  return result;
}

/// Whether merging saves memory traffic: groups of one size must share a value of about that size.
bool FusionGroups::connected(const FusionGroup *a, const FusionGroup *b) const {
  int64_t sizeA = largestOutput(a->body), sizeB = largestOutput(b->body);
  if (sizeA >= 16 * sizeB || sizeB >= 16 * sizeA)
    return true;
  int64_t large = std::max(sizeA, sizeB) / 16;
  if (isGpu && isSecondStep(a) && isSecondStep(b, makerOf(a->body.inputs.front())))
    return true;
  auto reads = [&](const FusionGroup *reader, const FusionGroup *other) {
    return llvm::any_of(reader->body.inputs, [&](Value input) {
      if (tensorType(input).getNumElements() <= large)
        return large == 0;
      if (llvm::is_contained(other->body.inputs, input))
        return true;
      return makerOf(input) == other;
    });
  };
  return reads(a, b) || reads(b, a);
}

/// Whether all of a kernel is of the forward pass or all of the backward pass. What both orientations of a value share
/// would else be kept between them, where the value itself is kept, or recomputed from less.
static bool isOfOnePass(ArrayRef<Operation *> members) {
  return llvm::all_of(members, train::isMarkedBackward) || llvm::none_of(members, train::isMarkedBackward);
}

bool FusionGroups::tryMerge(FusionGroup *first, FusionGroup *second) {
  if (first == second || first->materialized || second->materialized || !connected(first, second))
    return false;
  if (first->position > second->position)
    std::swap(first, second);
  bool sink = canSink(first, second);
  if (!sink && !canHoist(second, first))
    return false;
  SmallVector<Operation *> members(first->members);
  llvm::append_range(members, second->members);
  llvm::sort(members, [&](Operation *a, Operation *b) { return numbers.lookup(a) < numbers.lookup(b); });
  KernelBody body = bodyOf(members);
  std::string why;
  auto plan = codegen::planKernel(body, isGpu, why);
  if (!plan || !worthwhile(first, second, body, *plan))
    return false;
  if ((keepsGradients || plan->kind == codegen::KernelKind::Blocks) && !isOfOnePass(members))
    return false;
  first->position = sink ? second->position : first->position;
  first->members = std::move(members);
  first->body = std::move(body);
  first->plan = std::move(*plan);
  for (Operation *op : second->members)
    owner[op] = first;
  llvm::erase_if(groups, [&](const auto &group) { return group.get() == second; });
  return true;
}

SmallVector<FusionGroup *> FusionGroups::producers(const FusionGroup *group) const {
  SmallVector<FusionGroup *> result;
  for (Value input : group->body.inputs) {
    FusionGroup *producer = makerOf(input);
    if (producer && producer != group && !llvm::is_contained(result, producer))
      result.push_back(producer);
  }
  llvm::sort(result, [](FusionGroup *a, FusionGroup *b) { return a->position > b->position; });
  return result;
}

/// Adds the groups that read `value`, through views too. False if something else reads it.
bool FusionGroups::collectReaders(Value value, const FusionGroup *except,
                                  llvm::SetVector<FusionGroup *> &readers) const {
  for (Operation *user : value.getUsers()) {
    if (user->getBlock() != block)
      return false;
    if (FusionGroup *group = owner.lookup(user)) {
      if (group != except)
        readers.insert(group);
    } else if (roles.of(user) == FusionRole::Fixed || (!isLayoutView(user) && isMaterialized(user)) ||
               !collectReaders(user->getResult(0), except, readers)) {
      return false;
    }
  }
  return true;
}

/// The group that alone reads what this one computes: merged with it nothing needs to be stored.
SmallVector<FusionGroup *> FusionGroups::onlyConsumer(const FusionGroup *group) const {
  llvm::SetVector<FusionGroup *> readers;
  for (Value output : group->body.outputs)
    if (!collectReaders(output, group, readers) || readers.size() > 1)
      return {};
  return readers.takeVector();
}

/// Adds the groups that read `value`; on a GPU also those that read a transpose of it, a kernel stores both
/// orientations, or another shape.
void FusionGroups::collectSiblings(Value value, const FusionGroup *group,
                                   SmallVectorImpl<FusionGroup *> &result) const {
  for (Operation *user : value.getUsers()) {
    FusionGroup *other = owner.lookup(user);
    if (other && other != group && !llvm::is_contained(result, other))
      result.push_back(other);
    if (!other && isGpu && isa<train::TransposeOp, train::ReshapeOp>(user) && roles.of(user) == FusionRole::View)
      collectSiblings(user->getResult(0), group, result);
  }
}

/// Groups that read one of the group's larger inputs too.
SmallVector<FusionGroup *> FusionGroups::siblings(const FusionGroup *group) const {
  SmallVector<FusionGroup *> result;
  int64_t most = largestOutput(group->body);
  for (Value input : group->body.inputs)
    most = std::max(most, tensorType(input).getNumElements());
  for (Value input : group->body.inputs) {
    if (tensorType(input).getNumElements() < most)
      continue;
    collectSiblings(isGpu ? shapeless(input) : input, group, result);
  }
  llvm::sort(result, [](FusionGroup *a, FusionGroup *b) { return a->position < b->position; });
  return result;
}

void FusionGroups::merge() {
  auto sweep = [&](auto partners) {
    bool any = false;
    for (size_t i = 0; i < groups.size(); ++i) {
      bool changed = true;
      while (changed) {
        changed = false;
        FusionGroup *group = groups[i].get();
        for (FusionGroup *partner : (this->*partners)(group)) {
          if (!tryMerge(partner, group))
            continue;
          any = changed = true;
          break;
        }
        if (i >= groups.size())
          return any;
      }
    }
    return any;
  };
  bool changed = true;
  while (changed) {
    changed = sweep(&FusionGroups::onlyConsumer);
    changed |= sweep(&FusionGroups::producers);
    changed |= sweep(&FusionGroups::siblings);
    changed |= sweep(&FusionGroups::secondSteps);
  }
}

} // namespace tessera
