//===- Documents.cpp - masks that follow from documents -------------------===//

#include "passes/simplify/Documents.h"

#include "compiler/dialect/train/Running.h"
#include "passes/simplify/MaskTerms.h"
#include "passes/simplify/Match.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera::simplify {

namespace {
/// One operand of a comparison: a vector along queries or keys, of each sample, plus a number.
struct Side {
  Value vector;
  double offset = 0;
  int64_t along = -1;             ///< the dimension of the mask
  SmallVector<int64_t, 4> others; ///< those of the vector's other dimensions
  SmallVector<Type, 2> types;     ///< that its elements pass through
};

Side sideOf(View view) {
  Side side;
  while (true) {
    view = sourceOf(view);
    side.types.push_back(tensorType(view.value).getElementType());
    Operation *op = view.value.getDefiningOp();
    if (isa_and_nonnull<AddOp, SubOp>(op))
      if (auto number = uniformConstant(op->getOperand(1)); number && *number == std::trunc(*number)) {
        side.offset += isa<AddOp>(op) ? *number : -*number;
        view.value = op->getOperand(0);
        continue;
      }
    auto convert = dyn_cast_or_null<ConvertOp>(op);
    if (!convert || tensorType(convert.getOperand()).getElementType().isInteger(1))
      break;
    view.value = convert.getOperand();
  }
  side.vector = view.value;
  for (int64_t dim : view.dims)
    if (dim >= 0)
      side.others.push_back(dim);
  if (!side.others.empty())
    side.along = side.others.pop_back_val();
  return side;
}

/// The same, or both the same elements in another shape but for sizes of 1.
bool isSameVector(Value a, Value b) {
  auto x = a.getDefiningOp<ReshapeOp>(), y = b.getDefiningOp<ReshapeOp>();
  if (a == b || !x || !y || x.getOperand() != y.getOperand())
    return a == b;
  auto isWide = [](int64_t size) { return size != 1; };
  return llvm::equal(llvm::make_filter_range(shapeOf(a), isWide), llvm::make_filter_range(shapeOf(b), isWide));
}

CompareDirection inverse(CompareDirection direction) {
  switch (direction) {
  case CompareDirection::Eq:
    return CompareDirection::Ne;
  case CompareDirection::Ne:
    return CompareDirection::Eq;
  case CompareDirection::Lt:
    return CompareDirection::Ge;
  case CompareDirection::Le:
    return CompareDirection::Gt;
  case CompareDirection::Gt:
    return CompareDirection::Le;
  case CompareDirection::Ge:
    return CompareDirection::Lt;
  }
  return direction;
}

/// With operands exchanged.
CompareDirection mirrored(CompareDirection direction) {
  switch (direction) {
  case CompareDirection::Lt:
    return CompareDirection::Gt;
  case CompareDirection::Le:
    return CompareDirection::Ge;
  case CompareDirection::Gt:
    return CompareDirection::Lt;
  case CompareDirection::Ge:
    return CompareDirection::Le;
  default:
    return direction;
  }
}

/// `vector[key] <direction> vector[query] + distance`.
struct Comparison {
  Value vector;
  CompareDirection direction;
  double distance, largestOffset;
  SmallVector<Type, 4> types;
};

/// A term that compares one vector along keys with itself along queries.
std::optional<Comparison> comparisonOf(const Term &term, int64_t rank) {
  const View source = sourceOf(term.view);
  auto compare = source.value.getDefiningOp<CompareOp>();
  if (!compare || term.isAdded)
    return std::nullopt;
  Side key = sideOf({compare.getLhs(), source.dims}), query = sideOf({compare.getRhs(), source.dims});
  CompareDirection direction = term.attendIsTrue ? compare.getDirection() : inverse(compare.getDirection());
  if (key.along == rank - 2 && query.along == rank - 1) {
    std::swap(key, query);
    direction = mirrored(direction);
  }
  if (!isSameVector(key.vector, query.vector) || key.along != rank - 1 || query.along != rank - 2 ||
      key.others != query.others)
    return std::nullopt;
  // Samples may differ, heads may not.
  int64_t samples = 0;
  for (int64_t dim : key.others)
    if (dim != 0 || rank == 2 || ++samples > 1)
      return std::nullopt;
  Comparison found{
      key.vector, direction, query.offset - key.offset, std::max(std::abs(key.offset), std::abs(query.offset)), {}};
  found.types.append(key.types.begin(), key.types.end());
  found.types.append(query.types.begin(), query.types.end());
  return found;
}

/// The rows of a term that is known at compile time, one for each query.
std::optional<SmallVector<Shown, 0>> knownKeys(const Term &term, int64_t rank, int64_t length, bool &hidesFinitely) {
  const ArrayRef<int64_t> dims = term.view.dims;
  if (dims.size() < 2 || dims.back() != rank - 1 ||
      (dims.drop_back().back() != rank - 2 && dims.drop_back().back() != -1))
    return std::nullopt;
  constexpr double infinite = -std::numeric_limits<double>::infinity();
  auto rows = shownKeys({term.view.value, term.isAdded, term.attendIsTrue, infinite}, hidesFinitely);
  if (rows && rows->size() == 1)
    rows->assign(length, Shown(rows->front()));
  return rows;
}

/// The keys at these distances from each query, of all `rows.size()`.
void restrict(MutableArrayRef<Shown> rows, CompareDirection direction, int64_t distance) {
  const auto length = static_cast<int64_t>(rows.size());
  for (auto [query, row] : llvm::enumerate(rows)) {
    const int64_t at = std::clamp<int64_t>(static_cast<int64_t>(query) + distance, -1, length);
    if (direction == CompareDirection::Lt || direction == CompareDirection::Le)
      row.end = std::min(row.end, std::clamp<int64_t>(at + (direction == CompareDirection::Le), 0, length));
    else
      row.begin = std::max(row.begin, std::clamp<int64_t>(at + (direction == CompareDirection::Gt), 0, length));
  }
}

/// Numbers that a position plus an offset does not leave: positions beyond 2^30 are taken not to occur.
bool isPosition(const Comparison &compared) {
  return llvm::all_equal(compared.types) && compared.types.front().isInteger() &&
         compared.types.front().getIntOrFloatBitWidth() >= 32 && compared.largestOffset <= std::ldexp(1.0, 30);
}

/// Whether elements that differ still do where they are compared.
bool keepsApart(const Comparison &compared) {
  const unsigned width = tensorType(compared.vector).getElementTypeBitWidth();
  return compared.largestOffset == 0 && llvm::all_of(compared.types, [&](Type type) {
           return type.isInteger() && type.getIntOrFloatBitWidth() >= width;
         });
}

bool isOrder(CompareDirection direction) {
  return direction != CompareDirection::Eq && direction != CompareDirection::Ne;
}
} // namespace

std::optional<MaskClass> classifyDocuments(const Mask &mask, bool promiseRuns) {
  const ArrayRef<int64_t> shape = shapeOf(mask.value);
  const auto rank = static_cast<int64_t>(shape.size());
  if (rank < 2 || shape[rank - 1] != shape[rank - 2] || shape[rank - 1] < 2)
    return std::nullopt;
  const int64_t length = shape[rank - 1];
  const MaskTerms parts(mask);
  MaskClass found;
  found.hidesFinitely = parts.hidesFinitely;
  SmallVector<Runs> runs;
  Documents promised;
  SmallVector<Comparison> orders;
  SmallVector<const Term *> others;
  bool isUnproven = false;
  for (const Term &term : parts.terms) {
    const auto compared = comparisonOf(term, rank);
    const bool isEqual = compared && compared->direction == CompareDirection::Eq && compared->distance == 0;
    if (isEqual)
      if (auto own = runsOf(compared->vector); own && llvm::all_of(compared->types, [&](Type type) {
                                                 return holdsWhole(type, own->most + compared->largestOffset);
                                               })) {
        runs.push_back(*own);
        continue;
      }
    if (isEqual && promiseRuns && keepsApart(*compared))
      if (BlockArgument input = inputOf(compared->vector)) {
        promised.push_back({compared->vector, /*isAfter=*/true, input});
        continue;
      }
    if (compared && isOrder(compared->direction) && isPosition(*compared))
      orders.push_back(*compared);
    else
      others.push_back(&term);
    isUnproven |= isEqual && !knownKeys(term, rank, length, found.hidesFinitely);
  }
  if (runs.empty() && promised.empty() && !isUnproven)
    return std::nullopt;
  if (isUnproven) {
    found.remark =
        "equal ids are not known to lie side by side, as integers of an input do that --document-ids contiguous "
        "has checked in every batch, or running sums of where documents begin: "
        "F.pad((ids[:, 1:] != ids[:, :-1]).long(), (1, 0)).cumsum(1)";
    return found;
  }
  SmallVector<Shown, 0> rows(length, Shown{0, length});
  for (const Comparison &order : orders) {
    if (llvm::none_of(runs, [&](const Runs &own) { return countsInRuns(order.vector, own); })) {
      found.remark = "positions are compared that are not known to count in each document";
      return found;
    }
    restrict(rows, order.direction, static_cast<int64_t>(order.distance));
  }
  for (const Term *term : others) {
    const auto known = knownKeys(*term, rank, length, found.hidesFinitely);
    if (!known || known->size() != rows.size()) {
      found.remark = "another condition of the mask is not a range of keys that is known at compile time";
      return found;
    }
    for (auto [row, shown] : llvm::zip_equal(rows, *known))
      row = {std::max(row.begin, shown.begin), std::min(row.end, shown.end)};
  }
  for (Shown &row : rows)
    row.end = std::max(row.begin, row.end);
  MaskClass rest = classifyRanges(rows, length);
  rest.hidesFinitely = found.hidesFinitely;
  rest.takesPositionsAsSmall = !orders.empty();
  for (const Runs &own : runs)
    rest.documents.push_back({own.steps, own.isAfter});
  rest.documents.append(promised);
  return rest;
}

namespace {
/// Of [samples or 1, positions], for each position but the last: whether the next one has another id.
Value differsFromNext(Build &b, Value ids) {
  const int64_t length = shapeOf(ids).back(), samples = tensorType(ids).getNumElements() / length;
  ids = b.reshape(ids, {samples, length});
  auto from = [&](int64_t first) { return b.slice(ids, {0, first}, {samples, length - 1 + first}); };
  return b.compare(CompareDirection::Ne, from(1), from(0));
}

/// The keys of one kind of documents.
DocumentRanges rangesOf(Build &b, const DocumentStarts &starts, int64_t length, bool causal) {
  Value isStep = starts.promised ? differsFromNext(b, starts.steps) : starts.steps;
  const int64_t steps = shapeOf(isStep).back(), samples = tensorType(isStep).getNumElements() / steps;
  if (auto convert = isStep.getDefiningOp<ConvertOp>();
      convert && tensorType(convert.getOperand()).getElementType().isInteger(1))
    isStep = convert.getOperand();
  isStep = b.reshape(isStep, {samples, steps});
  if (!tensorType(isStep).getElementType().isInteger(1))
    isStep = b.compare(CompareDirection::Ne, isStep, b.splatLike(isStep, 0));
  if (steps != length)
    isStep = b.pad(isStep, {0, 0}, {0, length - steps});
  auto type = RankedTensorType::get({samples, length}, b.builder.getI64Type());
  Value place = b.iota(type, 1), none = b.zeros(type), count = b.splat(type, static_cast<double>(length));
  if (starts.isAfter)
    place = b.add(place, b.splat(type, 1));
  // The last place up to here at which a document begins, and the first one beyond.
  DocumentRanges found;
  found.begin = runningMaxima(b, b.select(isStep, place, none), 1, {.exclusive = starts.isAfter, .reverse = false});
  if (causal) {
    found.end = count;
    return found;
  }
  Value rest = b.select(isStep, b.sub(count, place), none);
  found.end = b.sub(count, runningMaxima(b, rest, 1, {.exclusive = !starts.isAfter, .reverse = true}));
  return found;
}
} // namespace

DocumentRanges rangesOfDocuments(Build &b, const Documents &documents, int64_t length, DocumentRanges within,
                                 bool causal) {
  for (const DocumentStarts &starts : documents) {
    DocumentRanges own = rangesOf(b, starts, length, causal);
    if (!within.begin) {
      within = own;
      continue;
    }
    const SmallVector<int64_t> wide{std::max(shapeOf(within.begin)[0], shapeOf(own.begin)[0]), shapeOf(own.begin)[1]};
    within.begin = b.max(b.broadcastTo(within.begin, wide), b.broadcastTo(own.begin, wide));
    Value end = b.broadcastTo(within.end, wide), ownEnd = b.broadcastTo(own.end, wide);
    within.end = b.select(b.compare(CompareDirection::Lt, end, ownEnd), end, ownEnd);
  }
  return within;
}

} // namespace tessera::simplify
