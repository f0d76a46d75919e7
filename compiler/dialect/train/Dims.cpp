//===- Dims.cpp - which dimension of a batch argument counts what ---------===//

#include "compiler/dialect/train/Dims.h"

#include "compiler/dialect/train/Signature.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::train {

// --- The attribute -----------------------------------------------------------------

LogicalResult DimsAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, ArrayRef<DimRole> roles) {
  // train.dims_c1
  for (DimRole role : {DimRole::Sample, DimRole::MicroBatch})
    if (llvm::count(roles, role) > 1)
      return emitError() << "two dimensions have the role " << stringifyDimRole(role) << ", expected one at most";
  // train.dims_c2
  if (llvm::is_contained(roles.drop_front(roles.empty() ? 0 : 1), DimRole::MicroBatch))
    return emitError() << "dimension " << llvm::find(roles, DimRole::MicroBatch) - roles.begin()
                       << " counts micro-batches, expected dimension 0";
  return success();
}

static int64_t findRole(ArrayRef<DimRole> roles, DimRole role) {
  const auto *found = llvm::find(roles, role);
  return found == roles.end() ? -1 : found - roles.begin();
}

int64_t DimsAttr::getSampleDim() const { return findRole(getRoles(), DimRole::Sample); }
int64_t DimsAttr::getPositionDim() const { return findRole(getRoles(), DimRole::Position); }

SmallVector<DimRole> DimsAttr::getSampleRoles() const {
  SmallVector<DimRole> roles(getRoles());
  llvm::erase_if(roles, [](DimRole role) { return role == DimRole::Sample || role == DimRole::MicroBatch; });
  return roles;
}

DimsAttr DimsAttr::withMicroBatches() const {
  SmallVector<DimRole> roles = {DimRole::MicroBatch};
  llvm::append_range(roles, getRoles());
  return get(getContext(), roles);
}

Attribute DimsAttr::parse(AsmParser &parser, Type) {
  SmallVector<DimRole> roles;
  const SMLoc loc = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    FailureOr<DimRole> role = FieldParser<DimRole>::parse(parser);
    if (failed(role))
      return failure();
    roles.push_back(*role);
    return success();
  };
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<DimsAttr>(loc, parser.getContext(), ArrayRef<DimRole>(roles));
}

void DimsAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getRoles(), printer, [&](DimRole role) { printer << stringifyDimRole(role); });
  printer << "]>";
}

// --- Of arguments ------------------------------------------------------------------

bool isBatchArgument(func::FuncOp func, unsigned index) { return isBatch(getArgRole(func, index)); }

/// The dimension that counts samples where nothing says which: the first, behind the one that `train.accumulate` goes
/// through.
static int64_t assumedDim(func::FuncOp func, unsigned index) {
  return !func.isExternal() && llvm::any_of(func.getArgument(index).getUsers(), llvm::IsaPred<AccumulateOp>) ? 1 : 0;
}

/// Samples of a micro-batch; nothing if no argument has a dimension for them.
static std::optional<int64_t> findBatchSize(func::FuncOp func) {
  std::optional<int64_t> first;
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    auto type = dyn_cast<RankedTensorType>(func.getArgumentTypes()[index]);
    if (!type || !isBatchArgument(func, index))
      continue;
    if (auto dims = func.getArgAttrOfType<DimsAttr>(index, kDims)) {
      if (dims.getSampleDim() >= 0)
        return type.getDimSize(dims.getSampleDim());
    } else if (const int64_t dim = assumedDim(func, index); !first && dim < type.getRank()) {
      first = type.getDimSize(dim);
    }
  }
  return first;
}

DimsAttr getDims(func::FuncOp func, unsigned index) {
  if (auto dims = func.getArgAttrOfType<DimsAttr>(index, kDims))
    return dims;
  auto type = cast<RankedTensorType>(func.getArgumentTypes()[index]);
  SmallVector<DimRole> roles(type.getRank(), DimRole::None);
  const int64_t dim = assumedDim(func, index);
  if (dim == 1 && type.getRank() > 0)
    roles.front() = DimRole::MicroBatch;
  if (dim < type.getRank() && type.getDimSize(dim) == findBatchSize(func))
    roles[dim] = DimRole::Sample;
  return DimsAttr::get(func.getContext(), roles);
}

int64_t getBatchSize(func::FuncOp func) { return std::max<int64_t>(1, findBatchSize(func).value_or(1)); }

} // namespace tessera::train
