//===- CallBuilder.cpp - builds or evaluates the ops of a file ------------===//

#include "frontends/common/CallBuilder.h"

#include "frontends/common/Evaluate.h"
#include "frontends/common/RepeatedRows.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace tessera::frontend {

namespace {
/// Limits on what a hostile file can make us do; real models stay far below them.
constexpr int64_t kMaxWork = int64_t{1} << 28;
constexpr int64_t kMaxOps = 1 << 18; ///< of the function: layers are thousands, unrolled time steps multiply them
/// Constants beyond this size (masks, tables) are made once in the function, not once per use.
constexpr int64_t kShared = 64;
} // namespace

LogicalResult CallBuilder::run(Call &call, llvm::function_ref<std::string()> key, Handler handler) {
  auto isShared = [](const Entry &entry) { return entry.constant && entry.constant->size() > kShared; };
  for (Entry &entry : call.inputs)
    if (isShared(entry) && !entry.value)
      entry.value = shared.lookup(entry.constant.get()).second;
  if (failed(evaluateOrBuild(call, key, handler)))
    return failure();
  for (const Entry &entry : call.inputs)
    if (isShared(entry) && entry.value)
      shared.try_emplace(entry.constant.get(), entry.constant, entry.value);
  return success();
}

Constant CallBuilder::intern(Constant constant) {
  if (!constant)
    return constant;
  StringRef bytes(reinterpret_cast<const char *>(constant->ints.data()), constant->ints.size() * sizeof(int64_t));
  if (constant->isFloat())
    bytes = {reinterpret_cast<const char *>(constant->floats.data()), constant->floats.size() * sizeof(double)};
  const void *type = constant->type.getAsOpaquePointer();
  const uint64_t hash = llvm::xxh3_64bits(bytes);
  std::string key(reinterpret_cast<const char *>(&type), sizeof(type));
  key.append(reinterpret_cast<const char *>(&hash), sizeof(hash));
  Constant first = interned.try_emplace(key, constant).first->second;
  const char *data = first->isFloat() ? reinterpret_cast<const char *>(first->floats.data())
                                      : reinterpret_cast<const char *>(first->ints.data());
  return first->size() == constant->size() && StringRef(data, bytes.size()) == bytes ? first : constant;
}

/// Where the results of a call are the same in all places of dimension 0, by what was built and by what `one` row and
/// `two` give, they repeat what one row gives. A number that depends on how many rows there are, such as the divisor of
/// a mean, is another one for two.
static void repeatRows(Call &call, ArrayRef<Entry> one, ArrayRef<Entry> two) {
  SmallVector<Value> known;
  for (const Entry &entry : call.inputs)
    if (!entry.constant && entry.value)
      known.push_back(entry.value);
  RepeatedRows repeated(known);
  for (auto [whole, row, rows] : llvm::zip(call.outputs, one, two)) {
    if (!whole.value || !row.constant || !rows.constant || !repeated.contains(whole.value))
      continue;
    const RankedTensorType type = train::tensorType(whole.value);
    SmallVector<int64_t> shape(type.getShape());
    const int64_t size = std::exchange(shape.front(), 1);
    if (row.constant->type == type.clone(shape) && areTwice(*rows.constant, *row.constant))
      whole.value = repeatRow(call.b, *row.constant, size);
  }
}

LogicalResult CallBuilder::evaluateOrBuild(Call &call, llvm::function_ref<std::string()> key, Handler handler) {
  const bool known = llvm::all_of(call.inputs, [](const Entry &e) { return e.constant || !e.exists(); });
  if (known && !call.inputs.empty()) {
    // Every layer computes the same mask: do it once.
    std::string whole = key();
    for (const Entry &entry : call.inputs) {
      const auto address = reinterpret_cast<uintptr_t>(entry.constant.get());
      whole.append(reinterpret_cast<const char *>(&address), sizeof(address));
    }
    if (auto found = evaluated.find(whole); found != evaluated.end()) {
      call.outputs = found->second.outputs;
      return success();
    }
    if (evaluateCall(call, handler)) {
      evaluated[whole] = {call.inputs, call.outputs};
      return success();
    }
  }
  const std::vector<Entry> one = evaluateRows(call, handler, 1);
  const std::vector<Entry> two = one.empty() ? one : evaluateRows(call, handler, 2);
  call.reason.clear();
  call.outputs.assign(call.outputs.size(), Entry());
  Block *block = call.b.builder.getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  if (builtConstants > kMaxWork / 4 || builtOps > kMaxOps)
    return call.fail("the nodes before it become more than " + Twine(kMaxOps) + " ops, or constants of more than " +
                     Twine(kMaxWork / 4) + " elements");
  if (succeeded(handler())) {
    if (!two.empty())
      repeatRows(call, one, two);
    countBuilt(call, last ? std::next(last->getIterator()) : block->begin());
    return success();
  }
  // Drop what the handler built before it failed; nothing else uses it.
  while (!block->empty() && &block->back() != last)
    block->back().erase();
  return failure();
}

/// Of a call whose inputs are known, or repeat a known row along dimension 0: its results for `count` rows. Empty if
/// one is not known.
std::vector<Entry> CallBuilder::evaluateRows(Call &call, Handler handler, int64_t count) {
  const std::vector<Entry> inputs = call.inputs;
  auto mayBeKnown = [](const Entry &entry) {
    return !entry.exists() || entry.constant || (entry.value && entry.value.getDefiningOp<train::BroadcastOp>());
  };
  if (!llvm::all_of(inputs, mayBeKnown))
    return {};
  bool hasRow = false;
  for (Entry &entry : call.inputs)
    if (entry.exists() && !entry.constant) {
      entry.constant = rowsOf(std::exchange(entry.value, Value()), count);
      hasRow = entry.constant != nullptr;
      if (!hasRow)
        break;
    }
  std::vector<Entry> row;
  if (hasRow) {
    call.outputs.assign(call.outputs.size(), Entry());
    ofOneRow = true;
    if (evaluateCall(call, handler))
      row = call.outputs;
    ofOneRow = false;
  }
  call.inputs = inputs;
  return row;
}

/// Counts what the handler of a call made: ops from `first` on, and the elements of constants, in ops or not.
void CallBuilder::countBuilt(const Call &call, Block::iterator first) {
  for (Operation &op : llvm::make_range(first, call.b.builder.getInsertionBlock()->end())) {
    ++builtOps;
    if (auto constant = dyn_cast<train::ConstantOp>(op); constant && !constant.getValue().isSplat())
      builtConstants += constant.getValue().getNumElements();
  }
  auto isGiven = [&](const Constant &constant) {
    return llvm::any_of(call.inputs, [&](const Entry &entry) { return entry.constant == constant; });
  };
  for (const Entry &entry : call.outputs)
    if (entry.constant && !isGiven(entry.constant))
      builtConstants += entry.constant->size();
}

/// Runs the handler in a scratch block on known inputs and evaluates what it built. False: build it in the function.
bool CallBuilder::evaluateCall(Call &call, Handler handler) {
  if (work > kMaxWork)
    return false;
  Block scratch;
  ConstantMap values;
  std::vector<Entry> originals = call.inputs;
  for (Entry &entry : call.inputs)
    if (entry.constant) {
      entry.value = scratch.addArgument(entry.constant->type, call.b.loc);
      values[entry.value] = entry.constant;
    }
  OpBuilder::InsertionGuard guard(call.b.builder);
  call.b.builder.setInsertionPointToEnd(&scratch);
  bool done = succeeded(handler()) && evaluate(scratch, values, work);
  for (const Entry &entry : call.outputs)
    work += entry.constant ? entry.constant->size() : 0;
  auto resolve = [&](auto &self, std::vector<Entry> &entries) -> void {
    for (Entry &entry : entries) {
      if (entry.sequence)
        self(self, *entry.sequence);
      if (!entry.value)
        continue;
      entry.constant = values.lookup(entry.value);
      entry.value = {};
      done &= entry.constant != nullptr;
    }
  };
  resolve(resolve, call.outputs);
  call.inputs = std::move(originals);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(scratch)))
    op.erase();
  return done;
}

} // namespace tessera::frontend
