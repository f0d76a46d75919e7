//===- FusionRecompute.cpp - values computed again instead of read --------===//

#include "passes/lower/FusionGroups.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/PhaseAnalysis.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using tessera::codegen::KernelBody;
using tessera::train::tensorType;

namespace tessera {

/// At most this many ops are computed again for one value.
static constexpr size_t kMaxChain = 24;

/// Makes `values` results of the kernels that compute them, where they are not yet.
bool FusionGroups::expose(ArrayRef<Value> values) {
  llvm::MapVector<FusionGroup *, KernelBody> bodies;
  for (Value value : values) {
    FusionGroup *producer = owner.lookup(value.getDefiningOp());
    if (!producer || llvm::is_contained(producer->body.outputs, value))
      continue;
    bodies.try_emplace(producer, producer->body).first->second.outputs.push_back(value);
  }
  SmallVector<codegen::KernelPlan, 0> plans;
  for (auto &[producer, body] : bodies) {
    std::string why;
    auto plan = codegen::planKernel(body, isGpu, why);
    if (!plan)
      return false;
    plans.push_back(std::move(*plan));
  }
  for (auto [entry, plan] : llvm::zip_equal(bodies, plans)) {
    entry.first->body = std::move(entry.second);
    entry.first->plan = std::move(plan);
  }
  return true;
}

/// Whether a kernel reads less from `value` than from `other`: as many numbers at most, of a narrower type.
static bool isNarrower(Value value, Value other) {
  auto type = dyn_cast<FloatType>(tensorType(value).getElementType()),
       wide = dyn_cast<FloatType>(tensorType(other).getElementType());
  return type && wide && type.getWidth() < wide.getWidth() &&
         tensorType(value).getNumElements() <= tensorType(other).getNumElements();
}

/// Whether `value` is stored, whatever its readers do.
bool FusionGroups::isStored(Value value) const {
  Operation *source = value.getDefiningOp();
  if (!source || source->getBlock() != block || roles.of(source) == FusionRole::Fixed)
    return true;
  FusionGroup *producer = owner.lookup(source);
  return producer && llvm::is_contained(producer->body.outputs, value);
}

/// Whether it pays that the kernel that computes `narrow` stores it instead of `value`, which `group` alone reads.
bool FusionGroups::canExpose(const FusionGroup *group, Value narrow, Value value) const {
  Operation *source = narrow.getDefiningOp();
  const FusionGroup *maker = source ? owner.lookup(source) : nullptr;
  if (narrow == value || !maker || maker == group || maker->materialized || maker->body.outputs.empty() ||
      !llvm::is_contained(maker->body.ops, source) || readByFixed(value))
    return false;
  return llvm::count_if(groups, [&](const auto &other) { return llvm::is_contained(other->body.inputs, value); }) == 1;
}

/// Replaces input `value` by the ops that compute it from the group's other inputs and from small values, or from one
/// value that is narrower: it is stored anyway, or with `mayExpose` from now on.
bool FusionGroups::tryRecompute(FusionGroup *group, Value value, bool mayExpose) {
  Operation *op = value.getDefiningOp();
  if (!op || !codegen::isElementwise(op) || !owner.contains(op) || owner.lookup(op) == group)
    return false;
  int64_t small = tensorType(value).getNumElements() / 16;
  llvm::SetVector<Operation *> chain;
  llvm::SetVector<Value> exposed;
  SmallVector<Value> pending = {value};
  Value narrow;
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (next != value && llvm::is_contained(group->body.inputs, next))
      continue;
    bool isCandidate = next == narrow ||
                       (!narrow && isNarrower(next, value) && available(next) < static_cast<int64_t>(group->position));
    if (isCandidate && (isStored(next) || (mayExpose && canExpose(group, next, value)))) {
      narrow = next;
      if (!isStored(next))
        exposed.insert(next);
      continue;
    }
    Operation *source = next.getDefiningOp();
    if (source && source->getBlock() == block && roles.of(source) == FusionRole::View) {
      llvm::append_range(pending, source->getOperands());
      continue;
    }
    if (source && owner.lookup(source) == group)
      return false;
    if (next != value && tensorType(next).getNumElements() <= small &&
        available(next) < static_cast<int64_t>(group->position)) {
      exposed.insert(next);
      continue;
    }
    if (!source || !owner.contains(source) || !codegen::isElementwise(source))
      return false;
    chain.insert(source);
    if (chain.size() > kMaxChain)
      return false;
    llvm::append_range(pending, source->getOperands());
  }
  if (keepsGradients && !train::isMarkedBackward(group->members.front()) &&
      llvm::any_of(chain, train::isMarkedBackward))
    return false;
  SmallVector<Operation *> ops(group->members);
  llvm::append_range(ops, group->recomputed);
  llvm::append_range(ops, chain);
  llvm::sort(ops, [&](Operation *a, Operation *b) { return numbers.lookup(a) < numbers.lookup(b); });
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
  KernelBody body = bodyOf(ops);
  body.outputs = group->body.outputs;
  // Nothing may be read instead that is not in memory anyway.
  auto isRead = [&](Value input) {
    return llvm::any_of(group->body.inputs, [&](Value own) { return shapeless(own) == shapeless(input); });
  };
  for (Value input : body.inputs)
    if ((!narrow || shapeless(input) != shapeless(narrow)) && !isRead(input) &&
        tensorType(input).getNumElements() > small)
      return false;
  std::string why;
  auto plan = codegen::planKernel(body, isGpu, why);
  if (!plan || llvm::is_contained(body.inputs, value) || !expose(exposed.getArrayRef()))
    return false;
  group->body = std::move(body);
  group->plan = std::move(*plan);
  group->recomputed.append(chain.begin(), chain.end());
  return true;
}

void FusionGroups::recompute() {
  for (auto &group : groups) {
    SmallVector<Value> inputs(group->body.inputs);
    // The last ones first: they are made from those before.
    llvm::sort(inputs, [&](Value a, Value b) {
      auto number = [&](Value value) {
        return value.getDefiningOp() ? static_cast<int64_t>(numbers.lookup(value.getDefiningOp())) : -1;
      };
      return number(a) > number(b);
    });
    for (Value input : inputs)
      if (!group->materialized && !tryRecompute(group.get(), input, /*mayExpose=*/false))
        tryRecompute(group.get(), input, /*mayExpose=*/true);
  }
  while (dropUnread()) {
  }
}

/// Whether something that is not a kernel reads `value`, or a view of it.
bool FusionGroups::readByFixed(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (user->getBlock() != block || roles.of(user) == FusionRole::Fixed)
      return true;
    if (roles.of(user) != FusionRole::View)
      return false;
    return (!isLayoutView(user) && isMaterialized(user)) || readByFixed(user->getResult(0));
  });
}

bool FusionGroups::dropUnread() {
  DenseSet<Value> read;
  for (auto &group : groups)
    for (Value input : group->body.inputs)
      for (Value value = input; read.insert(value).second;) {
        Operation *op = value.getDefiningOp();
        if (op && roles.of(op) == FusionRole::View && op->getNumOperands() == 1)
          value = op->getOperand(0);
      }
  bool changed = false;
  for (auto &group : groups) {
    if (group->materialized)
      continue;
    KernelBody body = group->body;
    llvm::erase_if(body.outputs, [&](Value output) { return !read.contains(output) && !readByFixed(output); });
    if (body.outputs.size() == group->body.outputs.size())
      continue;
    // Ops that only served the dropped results go too.
    DenseSet<Value> needed(body.outputs.begin(), body.outputs.end());
    SmallVector<Operation *> live;
    for (Operation *op : llvm::reverse(body.ops)) {
      if (!needed.contains(op->getResult(0)))
        continue;
      live.push_back(op);
      needed.insert(op->operand_begin(), op->operand_end());
    }
    body.ops.assign(live.rbegin(), live.rend());
    llvm::erase_if(body.inputs, [&](Value input) { return !needed.contains(input); });
    if (!body.outputs.empty()) {
      std::string why;
      auto plan = codegen::planKernel(body, isGpu, why);
      if (!plan)
        continue;
      group->plan = std::move(*plan);
    }
    group->body = std::move(body);
    changed = true;
  }
  return changed;
}

} // namespace tessera
