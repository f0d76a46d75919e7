//===- Segments.cpp - what a flat unit is made of -------------------------===//

#include "compiler/dialect/train/Segments.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Initializer.h"
#include "compiler/dialect/train/Signature.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::train {

// --- Placements --------------------------------------------------------------------

LogicalResult PlacementAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t dim, ArrayAttr axes,
                                    int64_t parts) {
  // train.placement_c1
  if (dim < 0)
    return emitError() << "a placement splits dimension " << dim << ", expected at least 0";
  // train.placement_c2
  if (parts < 2)
    return emitError() << "a placement has " << parts << " parts, expected at least 2";
  // train.placement_c3
  llvm::SmallDenseSet<Attribute> seen;
  if (axes.empty() || !llvm::all_of(axes, [&](Attribute axis) {
        auto name = dyn_cast<StringAttr>(axis);
        return name && !name.empty() && seen.insert(axis).second;
      }))
    return emitError() << "a placement is on " << axes << ", expected names of axes, each once";
  return success();
}

bool PlacementAttr::fits(ArrayRef<int64_t> shape) const {
  return getDim() < static_cast<int64_t>(shape.size()) && shape[getDim()] % getParts() == 0;
}

// --- Segments ----------------------------------------------------------------------

LogicalResult SegmentAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringAttr name, int64_t offset,
                                  ArrayRef<int64_t> shape, StringAttr init, PlacementAttr placement) {
  // train.segment_c1
  if (name.empty() || offset < 0)
    return emitError() << "segment '" << name.getValue() << "' at " << offset
                       << ": expected a name, and an offset of at least 0";
  // train.segment_c2
  int64_t elements = 1;
  for (int64_t size : shape)
    if (size < 0 || llvm::MulOverflow(elements, size, elements))
      return emitError() << "segment '" << name.getValue() << "' has a shape that is negative or too large";
  // train.segment_c3
  if (init && !parseInitializer(init.getValue()))
    return emitError() << "segment '" << name.getValue() << "': expected " << kInitializerForms << ", got " << init;
  // train.segment_c4
  if (placement && !placement.fits(shape))
    return emitError() << "segment '" << name.getValue() << "': its shape [" << shape << "] has no dimension "
                       << placement.getDim() << " that divides into " << placement.getParts() << " parts";
  return success();
}

int64_t SegmentAttr::getParts() const { return getPlacement() ? getPlacement().getParts() : 1; }

int64_t SegmentAttr::getNumElements() const { return llvm::product_of(getShape()) / getParts(); }

SmallVector<int64_t> SegmentAttr::getPartShape() const {
  SmallVector<int64_t> shape(getShape());
  if (PlacementAttr placement = getPlacement())
    shape[placement.getDim()] /= placement.getParts();
  return shape;
}

int64_t SegmentAttr::getParameterElement(int64_t part, int64_t index) const {
  if (!getPlacement())
    return index;
  // A part is a run of elements in each block of the dimensions before the one that is split.
  const int64_t run = llvm::product_of(llvm::ArrayRef(getPartShape()).drop_front(getPlacement().getDim()));
  return (index / run * getParts() + part) * run + index % run;
}

Attribute SegmentAttr::parse(AsmParser &parser, Type) {
  StringAttr name, init;
  PlacementAttr placement;
  int64_t offset = 0;
  SmallVector<int64_t> shape;
  const SMLoc loc = parser.getCurrentLocation();
  auto parseSize = [&] { return parser.parseInteger(shape.emplace_back()); };
  if (parser.parseLess() || parser.parseAttribute(name) || parser.parseComma() || parser.parseKeyword("offset") ||
      parser.parseEqual() || parser.parseInteger(offset) || parser.parseComma() || parser.parseKeyword("shape") ||
      parser.parseEqual() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseSize))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef key;
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return {};
    if (key == "init" && !init && succeeded(parser.parseAttribute(init)))
      continue;
    if (key == "placement" && !placement &&
        (placement = llvm::cast_or_null<PlacementAttr>(PlacementAttr::parse(parser, {}))))
      continue;
    parser.emitError(parser.getCurrentLocation(), "expected init or placement, once each");
    return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<SegmentAttr>(loc, parser.getContext(), name, offset, ArrayRef<int64_t>(shape), init,
                                        placement);
}

void SegmentAttr::print(AsmPrinter &printer) const {
  printer << "<" << getName() << ", offset = " << getOffset() << ", shape = [" << getShape() << "]";
  if (getInit())
    printer << ", init = " << getInit();
  if (getPlacement()) {
    printer << ", placement = ";
    getPlacement().print(printer);
  }
  printer << ">";
}

// --- Of arguments ------------------------------------------------------------------

static SmallVector<SegmentAttr> listSegments(ArrayAttr segments) {
  if (!segments)
    return {};
  return llvm::map_to_vector(segments, [](Attribute segment) { return cast<SegmentAttr>(segment); });
}

SmallVector<SegmentAttr> getSegments(func::FuncOp func, unsigned index) {
  return listSegments(func.getArgAttrOfType<ArrayAttr>(index, kSegments));
}

SmallVector<SegmentAttr> getSegments(Operation *op) { return listSegments(op->getAttrOfType<ArrayAttr>(kSegments)); }

bool isFlattened(func::FuncOp func, unsigned index) {
  const std::optional<ArgRole> role = getArgRole(func, index);
  if (role != ArgRole::Frozen)
    return role == ArgRole::Param;
  auto text = func.getArgAttrOfType<StringAttr>(index, kInit);
  const std::optional<Initializer> init = text ? parseInitializer(text.getValue()) : std::nullopt;
  return isa<FloatType>(tensorType(func.getArgument(index)).getElementType()) &&
         !(init && init->kind == Initializer::Kind::Given);
}

PlacementAttr getPlacement(ArrayRef<SegmentAttr> segments) {
  return segments.empty() ? PlacementAttr() : segments.front().getPlacement();
}

} // namespace tessera::train
