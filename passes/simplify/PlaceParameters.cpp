//===- PlaceParameters.cpp - which parameters axes of the mesh split ----------===//

#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/simplify/NameRules.h"
#include "passes/simplify/Passes.h"

using namespace mlir;
using namespace tessera::dist;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_PLACEPARAMETERS
#include "passes/simplify/Passes.h.inc"

namespace {

constexpr llvm::StringLiteral kForm = "<regex>=<dimension> or <regex>=<dimension>:<axis>";

struct PlaceParameters : impl::PlaceParametersBase<PlaceParameters> {
  using PlaceParametersBase::PlaceParametersBase;

  void runOnOperation() override {
    if (isStepFunction(getOperation()) && failed(run(getOperation())))
      signalPassFailure();
  }

private:
  /// Reads what follows the '=' of a rule: a dimension and the names of axes, as "1:a+b", or all axes if it names none.
  FailureOr<PlacementAttr> parsePlace(func::FuncOp func, MeshAttr mesh, StringRef rule, StringRef place) {
    auto [number, names] = place.split(':');
    int64_t dim = 0;
    if (number.getAsInteger(10, dim) || dim < 0 || place.ends_with(":"))
      return func.emitError() << "--place: expected " << kForm << ", got '" << rule << "'";
    Axes axes = parameterAxes(mesh);
    SmallVector<StringRef> wanted;
    if (!names.empty())
      names.split(wanted, '+');
    for (auto [index, name] : llvm::enumerate(wanted))
      if (llvm::none_of(axes, [&](unsigned axis) { return mesh.getAxisName(axis) == name; }) ||
          llvm::is_contained(ArrayRef(wanted).take_front(index), name))
        return func.emitError() << "--place: '" << rule << "' names the axis '" << name
                                << "', which is no model axis larger than 1 of the mesh, or is named twice";
    if (!wanted.empty())
      llvm::erase_if(axes, [&](unsigned axis) { return !llvm::is_contained(wanted, mesh.getAxisName(axis)); });
    return PlacementAttr::get(func.getContext(), dim, axisNames(mesh, axes), groupSize(mesh, axes));
  }

  LogicalResult place(func::FuncOp func, unsigned index, PlacementAttr placement) {
    BlockArgument arg = func.getArgument(index);
    auto type = cast<RankedTensorType>(arg.getType());
    const int64_t dim = placement.getDim();
    auto refuse = [&] {
      return emitError(arg.getLoc()) << "--place: '" << getArgName(func, index) << "' cannot be split: ";
    };
    if (!isFlattened(func, index))
      return refuse() << "it is a buffer of the model, which each rank has as a whole";
    if (dim >= type.getRank())
      return refuse() << "it has rank " << type.getRank() << ", so it has no dimension " << dim;
    if (!placement.fits(type.getShape()))
      return refuse() << "dimension " << dim << " has size " << type.getDimSize(dim) << ", which "
                      << placement.getParts() << " ranks do not divide";
    func.setArgAttr(index, kPlacement, placement);
    return success();
  }

  LogicalResult run(func::FuncOp func) {
    auto mesh = func->getParentOfType<ModuleOp>()->getAttrOfType<MeshAttr>(kMesh);
    if (!rules.empty() && (!mesh || parameterAxes(mesh).empty()))
      return func.emitError("--place needs a mesh with a model axis larger than 1, such as tp=2");
    NameRules<PlacementAttr> placements(func.getLoc(), "--place", kForm);
    auto readPlace = [&](StringRef rule, StringRef place) { return parsePlace(func, mesh, rule, place); };
    if (failed(placements.read(*rules, readPlace)))
      return failure();
    for (unsigned index = 0; index < func.getNumArguments(); ++index) {
      if (!isParameter(getArgRole(func, index)))
        continue;
      const PlacementAttr *placement = placements.find(getArgName(func, index));
      if (placement && failed(place(func, index, *placement)))
        return failure();
    }
    return placements.checkUsed("parameter");
  }
};

} // namespace
} // namespace tessera
