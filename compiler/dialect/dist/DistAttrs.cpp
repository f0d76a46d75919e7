//===- DistAttrs.cpp - mesh and sharding attributes -----------------------===//

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/dist/Dist.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera::dist;

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/dist/DistAttrs.cpp.inc"

void DistDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/dist/DistAttrs.cpp.inc"
      >();
}

// --- Mesh ----------------------------------------------------------------------

LogicalResult MeshAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, ArrayAttr names,
                               ArrayRef<int64_t> sizes, ArrayRef<AxisRole> roles) {
  if (names.size() != sizes.size() || names.size() != roles.size())
    return emitError() << "mesh has " << names.size() << " axis names, " << sizes.size() << " sizes and "
                       << roles.size() << " roles";
  llvm::StringSet<> seen;
  int64_t ranks = 1;
  for (auto [name, size] : llvm::zip_equal(names.getAsRange<StringAttr>(), sizes)) {
    // dist.mesh_c2
    if (!seen.insert(name.getValue()).second)
      return emitError() << "mesh axis '" << name.getValue() << "' occurs twice";
    // dist.mesh_c3
    if (size < 1)
      return emitError() << "mesh axis '" << name.getValue() << "' has size " << size << ", expected at least 1";
    // dist.mesh_c4
    if (llvm::MulOverflow(ranks, size, ranks) || ranks > std::numeric_limits<int32_t>::max())
      return emitError() << "mesh has more ranks than a 32-bit number counts";
  }
  return success();
}

MeshAttr MeshAttr::get(MLIRContext *context, ArrayAttr names, ArrayRef<int64_t> sizes) {
  SmallVector<AxisRole> roles;
  for (auto name : names.getAsRange<StringAttr>())
    roles.push_back(findDefaultRole(name.getValue()).value());
  return get(context, names, sizes, roles);
}

int64_t MeshAttr::getNumRanks() const {
  int64_t ranks = 1;
  for (int64_t size : getSizes())
    ranks *= size;
  return ranks;
}

int64_t MeshAttr::getAxisIndex(StringRef name) const {
  for (auto [index, axis] : llvm::enumerate(getNames().getAsRange<StringAttr>()))
    if (axis.getValue() == name)
      return static_cast<int64_t>(index);
  return -1;
}

int64_t MeshAttr::getAxisSize(StringRef name) const {
  int64_t index = getAxisIndex(name);
  return index < 0 ? 1 : getSizes()[index];
}

int64_t MeshAttr::getGroupSize(ArrayAttr axes) const {
  int64_t size = 1;
  for (auto axis : axes.getAsRange<StringAttr>())
    size *= getAxisSize(axis.getValue());
  return size;
}

StringRef MeshAttr::getAxisName(unsigned index) const { return cast<StringAttr>(getNames()[index]).getValue(); }

/// `: role`, or nothing after a name that says it.
static ParseResult parseRole(AsmParser &parser, StringRef axis, AxisRole &role) {
  const SMLoc loc = parser.getCurrentLocation();
  std::optional<AxisRole> found = findDefaultRole(axis);
  std::string name;
  if (succeeded(parser.parseOptionalColon())) {
    if (parser.parseKeywordOrString(&name))
      return failure();
    // dist.mesh_c5
    if (!(found = findAxisRole(name)))
      return parser.emitError(loc) << "mesh axis '" << axis << "' has the unknown role '" << name << "', expected "
                                   << axisRoleNames();
  }
  // dist.mesh_c6
  if (!found)
    return parser.emitError(loc) << "mesh axis '" << axis << "' needs a role: " << axisRoleNames();
  role = *found;
  return success();
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<Attribute> names;
  SmallVector<int64_t> sizes;
  SmallVector<AxisRole> roles;
  SMLoc loc = parser.getCurrentLocation();
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name) || parseRole(parser, name, roles.emplace_back()) || parser.parseEqual() ||
        parser.parseInteger(sizes.emplace_back()))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseAxis))
    return {};
  return parser.getChecked<MeshAttr>(loc, parser.getContext(), ArrayAttr::get(parser.getContext(), names), sizes,
                                     roles);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(llvm::seq<unsigned>(0, getNames().size()), printer, [&](unsigned axis) {
    printer.printKeywordOrString(getAxisName(axis));
    if (findDefaultRole(getAxisName(axis)) != getRoles()[axis])
      printer << " : " << getAxisInfo(axis).name;
    printer << " = " << getSizes()[axis];
  });
  printer << ">";
}

// --- Origin --------------------------------------------------------------------

OriginAttr OriginAttr::get(MLIRContext *context, OriginPhase phase, StringRef unit) {
  return get(context, phase, ArrayRef(StringAttr::get(context, unit)));
}

std::string OriginAttr::getText() const {
  std::string text = getPhase() == OriginPhase::Result ? "" : stringifyOriginPhase(getPhase()).str() + ":";
  for (auto [index, unit] : llvm::enumerate(getUnits()))
    text += (index == 0 ? "" : ",") + unit.getValue().str();
  return text;
}

OriginAttr OriginAttr::join(ArrayRef<OriginAttr> origins) {
  OriginAttr first;
  SmallVector<StringAttr> units;
  for (OriginAttr origin : origins) {
    if (!origin)
      continue;
    first = first ? first : origin;
    llvm::append_range(units, origin.getUnits());
  }
  return first ? get(first.getContext(), first.getPhase(), units) : OriginAttr();
}

// --- Sharding ------------------------------------------------------------------

/// The names in the list of a dimension.
static ArrayAttr axesIn(ArrayAttr list) {
  SmallVector<Attribute> names;
  llvm::copy_if(list, std::back_inserter(names), llvm::IsaPred<StringAttr>);
  return names.size() == list.size() ? list : ArrayAttr::get(list.getContext(), names);
}

LogicalResult ShardingAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, ArrayAttr dims,
                                   ArrayAttr unreduced, ArrayRef<ReductionKind> kinds) {
  llvm::StringSet<> seen;
  auto checkAxes = [&](ArrayAttr axes) -> LogicalResult {
    for (auto axis : axes.getAsRange<StringAttr>())
      // dist.sharding_attr_c1
      if (!seen.insert(axis.getValue()).second)
        return emitError() << "axis '" << axis.getValue() << "' occurs twice in a sharding";
    return success();
  };
  for (auto list : dims.getAsRange<ArrayAttr>()) {
    for (auto [index, item] : llvm::enumerate(list)) {
      auto blocks = dyn_cast<IntegerAttr>(item);
      const bool hasAxis = index + 1 < list.size() && isa<StringAttr>(list[index + 1]);
      // dist.sharding_attr_c2
      if (blocks && (blocks.getInt() < 2 || !hasAxis))
        return emitError() << "a dimension has " << blocks.getInt() << " blocks"
                           << (hasAxis ? "" : ", and no axis splits them") << ", expected at least 2, and an axis";
      // dist.sharding_attr_c4
      if (isa<UnitAttr, DealtAttr>(item) ? index == 0 || !isa<StringAttr>(list[index - 1])
                                         : !isa<StringAttr, IntegerAttr>(item))
        return emitError() << "a dimension has " << item << ", expected an axis";
      // dist.sharding_attr_c5
      if (auto dealt = dyn_cast<DealtAttr>(item);
          dealt && (dealt.getBlocks() < 2 || dealt.getBlocks() > std::numeric_limits<int32_t>::max()))
        return emitError() << "a dimension is dealt in " << dealt.getBlocks()
                           << " blocks, expected at least 2 and less than 2^31";
    }
    if (failed(checkAxes(axesIn(list))))
      return failure();
  }
  // dist.sharding_attr_c3
  for (ReductionKind kind : kinds)
    if (kind != kinds.front())
      return emitError() << "a value owes a " << stringifyReductionKind(kinds.front()) << " and a "
                         << stringifyReductionKind(kind)
                         << ", expected reductions of one kind: which of two comes first "
                         << "would matter";
  return checkAxes(unreduced);
}

ShardingAttr ShardingAttr::replicated(MLIRContext *context, int64_t rank) {
  auto none = ArrayAttr::get(context, {});
  return get(context, ArrayAttr::get(context, SmallVector<Attribute>(rank, none)), none);
}

ArrayAttr ShardingAttr::getAxes(int64_t dim) const { return axesIn(cast<ArrayAttr>(getDims()[dim])); }

bool ShardingAttr::isReplicated() const {
  return !hasUnreduced() &&
         llvm::all_of(getDims().getAsRange<ArrayAttr>(), [](ArrayAttr axes) { return axes.empty(); });
}

ShardingAttr ShardingAttr::reduced() const { return get(getContext(), getDims(), ArrayAttr::get(getContext(), {})); }

RankedTensorType ShardingAttr::getLocalType(RankedTensorType global, MeshAttr mesh) const {
  SmallVector<int64_t> shape(global.getShape());
  for (auto [dim, size] : llvm::enumerate(shape)) {
    const Split split = getSplit(*this, static_cast<int64_t>(dim), mesh);
    for (size_t level = 0; level < split.size(); ++level) {
      if (!split.divides(level, size, mesh))
        return {};
      size /= mesh.getSizes()[split[level].axis];
    }
  }
  return global.clone(shape);
}

/// `{"data", 4, "seq": zigzag}`: names of axes and numbers of blocks.
static ParseResult parseAxes(AsmParser &parser, Attribute &axes) {
  SmallVector<Attribute> names;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    int64_t blocks = 0;
    if (OptionalParseResult parsed = parser.parseOptionalInteger(blocks); parsed.has_value()) {
      names.push_back(parser.getBuilder().getI64IntegerAttr(blocks));
      return *parsed;
    }
    if (parser.parseKeywordOrString(&name))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), name));
    if (failed(parser.parseOptionalColon()))
      return success();
    if (succeeded(parser.parseOptionalKeyword("dealt"))) {
      int64_t ranges = 0;
      if (parser.parseInteger(ranges))
        return failure();
      names.push_back(DealtAttr::get(parser.getContext(), ranges));
      return success();
    }
    names.push_back(UnitAttr::get(parser.getContext()));
    return parser.parseKeyword("zigzag");
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseAxis))
    return failure();
  axes = ArrayAttr::get(parser.getContext(), names);
  return success();
}

/// `{"shard", "seq": max}`; where all are sums, `kinds` is left empty.
static ParseResult parseUnreduced(AsmParser &parser, SmallVectorImpl<Attribute> &axes,
                                  SmallVectorImpl<ReductionKind> &kinds) {
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
    kinds.push_back(ReductionKind::Sum);
    if (failed(parser.parseOptionalColon()))
      return success();
    SMLoc loc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return failure();
    std::optional<ReductionKind> kind = symbolizeReductionKind(keyword);
    if (!kind)
      return parser.emitError(loc) << "expected sum, max or min, got '" << keyword << "'";
    kinds.back() = *kind;
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseOne))
    return failure();
  if (llvm::all_of(kinds, [](ReductionKind kind) { return kind == ReductionKind::Sum; }))
    kinds.clear();
  return success();
}

static void printAxes(AsmPrinter &printer, ArrayAttr axes) {
  printer << "{";
  for (auto [index, item] : llvm::enumerate(axes)) {
    if (isa<UnitAttr>(item)) {
      printer << ": zigzag";
      continue;
    }
    if (auto dealt = dyn_cast<DealtAttr>(item)) {
      printer << ": dealt " << dealt.getBlocks();
      continue;
    }
    printer << (index == 0 ? "" : ", ");
    if (auto blocks = dyn_cast<IntegerAttr>(item))
      printer << blocks.getInt();
    else
      printer << '"' << cast<StringAttr>(item).getValue() << '"';
  }
  printer << "}";
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<Attribute> dims, unreduced;
  SmallVector<ReductionKind> kinds;
  SMLoc loc = parser.getCurrentLocation();
  auto parseDim = [&]() -> ParseResult { return parseAxes(parser, dims.emplace_back()); };
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  if (succeeded(parser.parseOptionalComma()))
    if (parser.parseKeyword("unreduced") || parser.parseEqual() || parseUnreduced(parser, unreduced, kinds))
      return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ShardingAttr>(loc, parser.getContext(), ArrayAttr::get(parser.getContext(), dims),
                                         ArrayAttr::get(parser.getContext(), unreduced), kinds);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims().getAsRange<ArrayAttr>(), printer, [&](ArrayAttr axes) { printAxes(printer, axes); });
  printer << "]";
  if (hasUnreduced()) {
    printer << ", unreduced = {";
    llvm::interleaveComma(getUnreduced().getAsRange<StringAttr>(), printer, [&](StringAttr axis) {
      printer << '"' << axis.getValue() << '"';
      if (getReduction() != ReductionKind::Sum)
        printer << ": " << stringifyReductionKind(getReduction());
    });
    printer << "}";
  }
  printer << ">";
}
