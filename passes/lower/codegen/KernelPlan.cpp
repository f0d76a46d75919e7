//===- KernelPlan.cpp - how a fusion becomes loops ------------------------===//

#include "passes/lower/codegen/KernelPlan.h"

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/codegen/BlockPlan.h"
#include "passes/lower/codegen/TilePlan.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using tessera::train::shapeOf;
using tessera::train::tensorType;

namespace tessera::codegen {

/// Elements that one thread should at least get.
static constexpr int64_t kGrainElements = 8192;
/// Shortest inner loop worth vectorising.
static constexpr int64_t kMinInner = 32;
/// Largest row buffer on the stack, in bytes.
static constexpr int64_t kMaxScratch = 256 << 10;
static constexpr unsigned kMaxCuts = 16;

StringRef kindName(KernelKind kind) {
  static constexpr StringLiteral names[] = {"elementwise", "row",          "column", "reduce_all",
                                            "scatter",     "rows_columns", "blocks"};
  return names[static_cast<unsigned>(kind)];
}

Pattern patternOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> reducedDims) {
  Pattern pattern;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (size == 1)
      continue;
    bool reduced = llvm::is_contained(reducedDims, static_cast<int64_t>(dim));
    if (!pattern.empty() && pattern.back().reduced == reduced)
      pattern.back().size *= size;
    else
      pattern.push_back({size, reduced});
  }
  return pattern;
}

SmallVector<int64_t> reducedDims(Operation *op) {
  if (auto reduce = dyn_cast<train::ReduceOp>(op))
    return SmallVector<int64_t>(reduce.getDimensions());
  return {static_cast<int64_t>(cast<train::ArgmaxOp>(op).getDim())};
}

namespace {

class Planner {
public:
  Planner(const KernelBody &body, bool isGpu, std::string &why) : body(body), isGpu(isGpu), why(why) {}

  std::optional<KernelPlan> run() {
    findLive();
    for (Operation *op : live)
      if (isa<train::ScatterAddRowsOp>(op))
        return planScatter(cast<train::ScatterAddRowsOp>(op));
    if (!chooseSpace() || !placeValues())
      return std::nullopt;
    for (unsigned cuts = 0; cuts <= kMaxCuts; ++cuts) {
      std::optional<Cut> cut;
      if (!analyse(cut))
        return std::nullopt;
      if (!cut) {
        arrangeLoops();
        if (isGpu)
          plan.tiles = planTiles(body, plan);
        return std::move(plan);
      }
      apply(*cut);
    }
    why = "too many index boundaries";
    return std::nullopt;
  }

private:
  const KernelBody &body;
  bool isGpu;
  std::string &why;
  KernelPlan plan;
  SmallVector<Operation *> live;
  DenseMap<Value, unsigned> depth;
  /// How columns are reduced where rows are too, and the values of these reductions.
  Pattern columnPattern;
  DenseSet<Value> ofColumns;
  /// Kernels of blocks: values that a reduction of rows has a part in.
  DenseSet<Value> ofRows;
  int64_t total = 1, kept = 1;
  /// Of each result, the transpose that it is of what the kernel iterates over.
  SmallVector<train::TransposeOp> transposes;

  void findLive() {
    DenseSet<Value> needed(body.outputs.begin(), body.outputs.end());
    for (Operation *op : llvm::reverse(body.ops)) {
      if (llvm::none_of(op->getResults(), [&](Value result) { return needed.contains(result); }))
        continue;
      live.push_back(op);
      needed.insert(op->operand_begin(), op->operand_end());
    }
    std::reverse(live.begin(), live.end());
  }

  bool fail(const Twine &reason) {
    why = reason.str();
    return false;
  }

  /// The digits before any cut: the pattern of the reductions, or all elements.
  bool chooseSpace() {
    std::optional<Pattern> pattern;
    for (Operation *op : live) {
      if (!isa<train::ReduceOp, train::ArgmaxOp>(op))
        continue;
      Pattern own = patternOf(shapeOf(op->getOperand(0)), reducedDims(op));
      if (!pattern || *pattern == own) {
        pattern = own;
      } else if (!own.empty() && (columnPattern.empty() || columnPattern == own)) {
        columnPattern = own;
      } else {
        return fail("reductions over different dimensions");
      }
    }
    if (isGpu && pattern && chooseBlockSpace(*pattern))
      return true;
    if (!columnPattern.empty())
      return chooseRowColumnSpace(*pattern);
    if (!pattern) {
      if (body.outputs.empty())
        return fail("nothing is computed");
      pattern = patternOf({elementsOf(shapeOf(body.outputs.front()))}, {});
    }
    for (const Segment &segment : *pattern)
      addDigit(segment.size, segment.reduced, /*walked=*/false);
    return true;
  }

  void addDigit(int64_t size, bool reduced, bool walked) {
    Digit digit;
    digit.size = size;
    digit.reduced = reduced;
    digit.walked = walked;
    plan.digits.push_back(digit);
    total *= size;
    kept *= reduced ? 1 : size;
  }

  /// Digits: chunk, row of the chunk, column. `first` and `columnPattern` are the two patterns, in any order.
  bool chooseRowColumnSpace(Pattern first) {
    if (!isGpu || first.empty() || first.back().reduced == columnPattern.back().reduced)
      return fail("reductions over different dimensions");
    if (columnPattern.back().reduced)
      std::swap(first, columnPattern);
    // Rows: [kept, reduced]; columns: [chunks,] [reduced, kept].
    bool isChunked = columnPattern.size() == 3;
    if (first.size() != 2 || columnPattern.size() < 2 || columnPattern.size() > 3 ||
        columnPattern.back().size != first.back().size)
      return fail("reductions over different dimensions");
    int64_t chunks = isChunked ? columnPattern.front().size : 1, rows = columnPattern[isChunked].size;
    if (chunks * rows != first.front().size)
      return fail("reductions over different dimensions");
    plan.kind = KernelKind::RowColumn;
    if (isChunked)
      addDigit(chunks, /*reduced=*/false, /*walked=*/false);
    addDigit(rows, /*reduced=*/false, /*walked=*/true);
    addDigit(first.back().size, /*reduced=*/true, /*walked=*/false);
    return true;
  }

  /// Digits: block down, row of the block, block across, column of the block.
  bool chooseBlockSpace(const Pattern &first) {
    const std::optional<BlockGrid> grid = findBlocks(body, first, columnPattern);
    if (!grid)
      return false;
    plan.kind = KernelKind::Blocks;
    if (columnPattern.empty() || columnPattern.back().reduced)
      columnPattern = first;
    if (grid->down != 1)
      addDigit(grid->down, /*reduced=*/false, /*walked=*/false);
    addDigit(grid->height, /*reduced=*/false, /*walked=*/true);
    if (grid->across != 1)
      addDigit(grid->across, /*reduced=*/false, /*walked=*/false);
    addDigit(grid->width, /*reduced=*/true, /*walked=*/false);
    return true;
  }

  /// Whether `op` is a reduction over the rows of a chunk or block.
  bool reducesColumns(Operation *op) const {
    return (plan.kind == KernelKind::RowColumn || plan.kind == KernelKind::Blocks) &&
           patternOf(shapeOf(op->getOperand(0)), reducedDims(op)) == columnPattern;
  }

  /// A thread holds a part of the row and of each sum. The sums are known after the last row: nothing else can use
  /// them.
  bool checkColumnSums() {
    int64_t columns = plan.digits.back().size, sums = 0;
    for (const Reduction &reduction : plan.reductions)
      sums += reduction.ofColumns;
    if (columns > kMostHeldColumns || columns * sums > kMostColumnSums)
      return fail("the sums of a row's columns, " + Twine(sums) + " x " + Twine(columns) +
                  ", do not fit the registers");
    return true;
  }

  /// The pass of each reduction and output.
  bool placeValues() {
    unsigned passes = 0;
    for (Operation *op : live) {
      unsigned most = 0;
      for (Value operand : op->getOperands())
        most = std::max(most, depth.lookup(operand));
      bool isOfColumns = llvm::any_of(op->getOperands(), [&](Value operand) { return ofColumns.contains(operand); });
      if (plan.kind == KernelKind::RowColumn && isOfColumns && !isa<train::ReshapeOp>(op))
        return fail("a reduction of columns is used in the kernel that reduces rows");
      bool isOfRows = llvm::any_of(op->getOperands(), [&](Value operand) { return ofRows.contains(operand); });
      if (isa<train::ReduceOp, train::ArgmaxOp>(op)) {
        if (plan.kind == KernelKind::Blocks && (most > 0 || isa<train::ArgmaxOp>(op)))
          return fail("a reduction of blocks of what is reduced");
        isOfColumns = reducesColumns(op);
        isOfRows = !isOfColumns;
        if (isOfColumns && isa<train::ArgmaxOp>(op))
          return fail("reductions over different dimensions");
        plan.reductions.push_back({op, most, isOfColumns});
        passes = std::max(passes, ++most);
      }
      if (isOfColumns)
        ofColumns.insert(op->getResult(0));
      if (isOfRows)
        ofRows.insert(op->getResult(0));
      for (Value result : op->getResults())
        depth[result] = most;
    }
    for (Value value : body.outputs) {
      int64_t elements = elementsOf(shapeOf(value));
      if (plan.kind == KernelKind::Blocks && elements != total) {
        // Of square blocks there are as many rows as columns: what a value is of tells.
        const bool isOfColumns = ofColumns.contains(value);
        if (isOfColumns == ofRows.contains(value))
          return fail("a result is neither of rows of blocks nor of their columns");
        if (elements != (isOfColumns ? total / columnPattern[columnPattern.size() - 2].size : kept))
          return fail("a result has " + Twine(elements) + " elements");
        plan.outputs.push_back(
            {value, isOfColumns ? OutputExtent::Column : OutputExtent::Row, depth.lookup(value), {}, {}});
        continue;
      }
      if (plan.kind != KernelKind::Blocks && ofColumns.contains(value)) {
        plan.outputs.push_back({value, OutputExtent::Column, depth.lookup(value), {}, {}});
        continue;
      }
      if (elements != total && elements != kept)
        return fail("a result has " + Twine(elements) + " elements, the kernel " + Twine(total));
      const OutputExtent extent = elements == total ? OutputExtent::Full : OutputExtent::Row;
      unsigned pass = depth.lookup(value);
      if (extent == OutputExtent::Full)
        passes = std::max(passes, pass + 1);
      plan.outputs.push_back({value, extent, pass, {}, {}});
    }
    plan.passes = passes;
    transposes.assign(plan.outputs.size(), {});
    if (isGpu && plan.reductions.empty())
      transposes = findTransposes(body);
    if (plan.kind == KernelKind::Blocks)
      if (std::string problem = placeBlockResults(body, plan, transposes); !problem.empty())
        return fail(problem);
    return plan.kind != KernelKind::RowColumn || checkColumnSums();
  }

  /// Notes whether whole tensors are read across.
  void checkReads(ArrayRef<std::pair<Value, Index>> read) {
    const unsigned last = plan.digits.size() - 1;
    plan.readsAcross = isGpu && !plan.reductions.empty() && llvm::any_of(read, [&](const auto &one) {
                         return elementsOf(shapeOf(one.first)) * 16 > total && one.second.coefficient(last) > 1;
                       });
  }

  /// The positions in all results. `cut` is set if a transpose needs one.
  void placeResults(const Space &space, std::optional<Cut> &cut) {
    for (auto [output, transpose] : llvm::zip_equal(plan.outputs, transposes)) {
      output.position = plan.identityOf(output.extent);
      if (!transpose)
        continue;
      std::optional<Index> position = transposedIndex(space, transpose, plan.fullIdentity, cut);
      if (cut)
        return;
      if (position)
        output.position = *position;
      else
        transpose = {};
    }
  }

  void apply(const Cut &cut) {
    Digit low = plan.digits[cut.digit];
    Digit high = low;
    high.size = low.size / cut.factor;
    low.size = cut.factor;
    plan.digits[cut.digit] = high;
    plan.digits.insert(plan.digits.begin() + cut.digit + 1, low);
  }

  /// Walks through every pass without making code. Returns false if that fails; `cut` is set if digits do not align.
  bool analyse(std::optional<Cut> &cut) {
    plan.setIdentities();
    plan.visits = 0;
    Space space;
    space.digits = plan.digits;
    for (Digit &digit : space.digits)
      digit.unroll = false;
    placeResults(space, cut);
    if (cut)
      return true;

    struct Reads {
      unsigned lastPass = 0;
      bool full = true, perRow = true;
    };
    DenseMap<Value, Reads> reads;
    SmallVector<std::pair<Value, Index>> read;
    const bool isOfBlocks = plan.kind == KernelKind::Blocks;
    llvm::MapVector<Value, SmallVector<unsigned, 2>> expensive;
    std::optional<Evaluator> held;
    for (unsigned pass = 0; pass <= plan.passes; ++pass) {
      // A thread holds what it has of a block from pass to pass.
      if (!isOfBlocks || !held)
        held.emplace(body, space, UnknownLoc::get(body.outputs.front().getContext()));
      Evaluator &evaluator = *held;
      const unsigned before = evaluator.seen.visits;
      evaluator.keptIdentity = plan.keptIdentity;
      evaluator.ownIdentity = plan.ownIdentities();
      evaluator.seen.onRead = [&](Value value, const Index &index) {
        Reads &own = reads[value];
        own.lastPass = pass;
        own.full &= index == plan.fullIdentity;
        own.perRow &= index == plan.keptIdentity;
        read.emplace_back(value, index);
      };
      evaluator.seen.onVisit = [&](Value value, const Index &index) {
        if (Operation *op = value.getDefiningOp(); op && index == plan.fullIdentity && isExpensive(op))
          expensive[value].push_back(pass);
      };
      for (const Reduction &reduction : plan.reductions)
        if (reduction.pass == pass)
          evaluator.evaluate(reduction.op->getOperand(0), plan.fullIdentity);
      for (const Output &output : plan.outputs)
        if ((isOfBlocks || output.extent != OutputExtent::Column) &&
            pass == (output.extent == OutputExtent::Full ? output.pass : plan.passes))
          evaluator.evaluate(output.value, output.position);
      if (evaluator.seen.cut) {
        cut = evaluator.seen.cut;
        return true;
      }
      if (!evaluator.seen.problem.empty())
        return fail(evaluator.seen.problem);
      plan.visits += evaluator.seen.visits - before;
    }
    for (size_t i = 0; i < plan.digits.size(); ++i)
      plan.digits[i].unroll = space.digits[i].unroll;
    checkReads(read);
    if (std::string problem = isOfBlocks ? checkBlockAccess(plan) : ""; !problem.empty())
      return fail(problem);

    const DenseSet<Value> own = readAtOwnPosition(space);
    plan.scratch.clear();
    for (auto &[value, passes] : expensive)
      if (passes.size() > 1 && !llvm::is_contained(body.outputs, value))
        plan.scratch.push_back(value);
    for (auto [output, transpose] : llvm::zip_equal(plan.outputs, transposes)) {
      output.mayOverwrite.clear();
      if (output.extent == OutputExtent::Column || transpose || (isOfBlocks && output.extent == OutputExtent::Row))
        continue;
      for (auto [number, input] : llvm::enumerate(body.inputs)) {
        auto it = reads.find(input);
        if (input.getType() != output.value.getType() || it == reads.end())
          continue;
        if (output.extent == OutputExtent::Row
                ? it->second.perRow
                : (it->second.full && it->second.lastPass <= output.pass) || own.contains(input))
          output.mayOverwrite.push_back(number);
      }
    }
    return true;
  }

  /// Inputs that are read, at each position of the digits that are not unrolled, only where results are written at that
  /// position: the loads of all unrolled ones come before their stores.
  DenseSet<Value> readAtOwnPosition(Space space) {
    // The first digit may be the outer loop.
    SmallVector<unsigned> unrolled;
    int64_t parts = 1;
    for (unsigned digit = 1; digit < plan.digits.size(); ++digit)
      if (plan.digits[digit].unroll) {
        unrolled.push_back(digit);
        parts *= plan.digits[digit].size;
      }
    constexpr int64_t kMostParts = 64;
    if (unrolled.empty() || !plan.reductions.empty() || plan.passes > 1 || parts > kMostParts)
      return {};
    llvm::MapVector<Value, SmallVector<Index>> reads;
    SmallVector<Index> written;
    unsigned visits = 0;
    for (int64_t part = 0; part < parts; ++part) {
      int64_t rest = part;
      for (unsigned digit : unrolled) {
        space.digits[digit].known = rest % plan.digits[digit].size;
        rest /= plan.digits[digit].size;
      }
      written.push_back(space.substitute(plan.fullIdentity));
      Evaluator evaluator(body, space, UnknownLoc::get(body.outputs.front().getContext()));
      evaluator.keptIdentity = plan.keptIdentity;
      evaluator.seen.onRead = [&](Value value, const Index &index) {
        reads[value].push_back(space.outside(space.substitute(index)));
      };
      for (const Output &output : plan.outputs)
        evaluator.evaluate(output.value, output.position);
      if (evaluator.seen.failed())
        return {};
      visits += evaluator.seen.visits;
    }
    plan.visits = visits / parts; // of each part only its own ops
    DenseSet<Value> own;
    for (auto &[value, places] : reads)
      if (llvm::all_of(places, [&](const Index &place) { return llvm::is_contained(written, place); }))
        own.insert(value);
    return own;
  }

  void arrangeLoops() {
    auto all = llvm::to_vector(llvm::seq<unsigned>(0, plan.digits.size()));
    auto isReduced = [&](unsigned digit) { return plan.digits[digit].reduced; };
    bool anyReduced = llvm::any_of(all, isReduced);
    if (plan.kind == KernelKind::RowColumn || plan.kind == KernelKind::Blocks) {
      for (unsigned digit : all)
        (isReduced(digit) ? plan.inner : plan.digits[digit].walked ? plan.walked : plan.outer).push_back(digit);
    } else if (anyReduced || !plan.reductions.empty()) {
      for (unsigned digit : all)
        (isReduced(digit) ? plan.inner : plan.outer).push_back(digit);
      plan.kind = plan.outer.empty() && anyReduced ? KernelKind::ReduceAll : KernelKind::Row;
      if (anyReduced && !isReduced(all.back())) {
        plan.kind = KernelKind::Column;
        plan.lane = plan.outer.pop_back_val();
      }
    } else if (all.size() == 1) {
      plan.outer = all;
    } else if (!all.empty()) {
      // The inner loop covers enough elements to be worth it, and the digits that must be unrolled.
      size_t split = all.size() - 1;
      int64_t covered = plan.digits[split].size;
      auto unrolledBefore = [&](size_t end) {
        return llvm::any_of(llvm::seq<size_t>(1, end), [&](size_t i) { return plan.digits[i].unroll; });
      };
      while (split > 1 && (covered < kMinInner || unrolledBefore(split))) {
        --split;
        covered *= plan.digits[split].size;
      }
      plan.outer.assign(all.begin(), all.begin() + split);
      plan.inner.assign(all.begin() + split, all.end());
      // Unrolled parts share what they read, and are stored together.
      std::stable_partition(plan.inner.begin(), plan.inner.end(),
                            [&](unsigned digit) { return !plan.digits[digit].unroll; });
    }
    for (unsigned digit : plan.outer)
      plan.extent *= plan.digits[digit].size;
    for (unsigned digit : plan.inner)
      plan.innerElements *= plan.digits[digit].size;
    int64_t work = plan.innerElements;
    if (plan.lane && plan.outer.empty()) {
      plan.extent = plan.digits[*plan.lane].size;
      // Whole cache lines, so that threads do not share one.
      plan.grain = 16;
      work = 0;
    } else if (plan.lane) {
      work *= plan.digits[*plan.lane].size;
    }
    if (work > 0)
      plan.grain = std::max<int64_t>(1, kGrainElements / work);
    int64_t scratchBytes = 0;
    for (Value value : plan.scratch)
      scratchBytes += plan.innerElements * ((tensorType(value).getElementTypeBitWidth() + 7) / 8);
    if (plan.lane || scratchBytes > kMaxScratch)
      plan.scratch.clear();
  }

  /// Columns of the table are the outer loop; digits: updated row, column, table row.
  std::optional<KernelPlan> planScatter(train::ScatterAddRowsOp op) {
    if (body.outputs.size() != 1 || body.outputs.front() != op.getResult()) {
      why = "a scatter with other results";
      return std::nullopt;
    }
    // Also of one row, where the reduction seems to be read at its own position.
    if (llvm::any_of(live, [](Operation *each) { return isa<train::ReduceOp, train::ArgmaxOp>(each); })) {
      why = "a scatter of what the kernel would have to reduce";
      return std::nullopt;
    }
    int64_t tableRows = shapeOf(op.getInit()).front();
    int64_t columns = elementsOf(shapeOf(op.getInit()).drop_front());
    int64_t rows = elementsOf(shapeOf(op.getIndices()));
    for (int64_t size : {rows, columns, tableRows}) {
      Digit digit;
      digit.size = size;
      plan.digits.push_back(digit);
    }
    plan.kind = KernelKind::Scatter;
    Space space;
    space.digits = plan.digits;
    Evaluator evaluator(body, space, op.getLoc());
    evaluator.exactOnly = false;
    plan.fullIdentity = Index::ofDigit(0, columns) + Index::ofDigit(1);
    plan.keptIdentity = Index::ofDigit(2, columns) + Index::ofDigit(1);
    bool initIdentity = true;
    evaluator.evaluate(op.getUpdates(), plan.fullIdentity);
    evaluator.evaluate(op.getIndices(), Index::ofDigit(0));
    for (Value read : {op.getUpdates(), op.getIndices()})
      initIdentity &= read != op.getInit();
    evaluator.evaluate(op.getInit(), plan.keptIdentity);
    if (evaluator.seen.failed()) {
      why = evaluator.seen.problem;
      return std::nullopt;
    }
    plan.visits = evaluator.seen.visits;
    plan.outputs.push_back({op.getResult(), OutputExtent::Full, 0, {}, plan.keptIdentity});
    for (auto [number, input] : llvm::enumerate(body.inputs))
      if (input == op.getInit() && initIdentity && llvm::hasSingleElement(input.getUses()))
        plan.outputs.front().mayOverwrite.push_back(number);
    plan.outer = {1};
    plan.extent = columns;
    plan.grain = 16;
    return std::move(plan);
  }
};

} // namespace

void KernelPlan::setIdentities() {
  fullIdentity = keptIdentity = columnIdentity = Index::constant(0);
  for (auto [number, digit] : llvm::enumerate(digits)) {
    Index own = Index::ofDigit(number);
    fullIdentity = fullIdentity * digit.size + own;
    if (!digit.reduced)
      keptIdentity = keptIdentity * digit.size + own;
    if (!digit.walked)
      columnIdentity = columnIdentity * digit.size + own;
  }
}

const Index &KernelPlan::identityOf(OutputExtent extent) const {
  return extent == OutputExtent::Column ? columnIdentity : extent == OutputExtent::Row ? keptIdentity : fullIdentity;
}

llvm::DenseMap<Operation *, Index> KernelPlan::ownIdentities() const {
  llvm::DenseMap<Operation *, Index> own;
  for (const Reduction &reduction : reductions)
    if (kind == KernelKind::Blocks && reduction.ofColumns)
      own[reduction.op] = columnIdentity;
  return own;
}

std::optional<KernelPlan> planKernel(const KernelBody &body, bool isGpu, std::string &why) {
  return Planner(body, isGpu, why).run();
}

} // namespace tessera::codegen
