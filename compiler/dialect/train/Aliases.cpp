//===- Aliases.cpp - results that are the next values of arguments --------===//

#include "compiler/dialect/train/Aliases.h"

#include "compiler/dialect/train/Train.h"

using namespace mlir;

namespace tessera::train {

LogicalResult verifyAliases(func::FuncOp func) {
  ArrayRef<Type> arguments = func.getArgumentTypes();
  for (auto [index, type] : llvm::enumerate(func.getResultTypes())) {
    Attribute attr = func.getResultAttr(index, kAlias);
    if (!attr)
      continue;
    auto alias = dyn_cast<IntegerAttr>(attr);
    if (!alias || !alias.getType().isSignlessInteger(64))
      return func.emitError() << "result " << index << ": " << kAlias << " expected an i64, got " << attr;
    if (alias.getInt() < 0 || alias.getInt() >= static_cast<int64_t>(arguments.size()))
      return func.emitError() << "result " << index << ": " << kAlias << " is " << alias.getInt()
                              << ", the function has " << arguments.size() << " arguments";
    if (arguments[alias.getInt()] != type)
      return func.emitError() << "result " << index << " has type " << type << ", expected that of argument "
                              << alias.getInt() << ", " << arguments[alias.getInt()];
  }
  return success();
}

} // namespace tessera::train
