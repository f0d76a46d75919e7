//===- Computation.cpp - tells what steps compute apart -------------------===//

#include "tools/tessera-compile/driver/Computation.h"

#include "compiler/dialect/train/Train.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace tessera {

/// Whether an op may be there, or not, as the sizes are, or has sizes as its value.
static bool followsSizes(Operation &op) {
  return isa<train::ConstantOp, train::IotaOp, train::ReshapeOp, train::BroadcastOp, train::TransposeOp, train::SliceOp,
             train::PadOp, train::ConcatOp>(op);
}

/// Settings of the op itself, which have no dialect in their name, that are one number or name.
static bool isOfTheModel(NamedAttribute setting) {
  Attribute value = setting.getValue();
  return !setting.getName().getValue().contains('.') &&
         (isa<FloatAttr, IntegerAttr, UnitAttr>(value) || isa<train::TrainDialect>(value.getDialect()));
}

std::string fingerprintOf(func::FuncOp step) {
  std::string described;
  llvm::raw_string_ostream text(described);
  DenseMap<Value, unsigned> numbers; // of what arranges elements, that of the elements
  for (BlockArgument argument : step.getArguments())
    numbers[argument] = argument.getArgNumber() + 1;
  unsigned next = step.getNumArguments() + 1;
  for (Operation &op : step.getBody().front()) {
    if (followsSizes(op)) {
      const Value first = op.getNumOperands() > 0 ? op.getOperand(0) : Value();
      for (Value result : op.getResults())
        numbers[result] = numbers.lookup(first);
      continue;
    }
    text << op.getName();
    for (NamedAttribute setting : op.getAttrDictionary())
      if (isOfTheModel(setting))
        text << ' ' << setting.getName().getValue() << '=' << setting.getValue();
    for (Value operand : op.getOperands())
      text << ' ' << numbers.lookup(operand);
    for (Value result : op.getResults())
      numbers[result] = next++;
    text << '\n';
  }
  return llvm::utohexstr(llvm::xxh3_64bits(described), /*LowerCase=*/true, /*Width=*/16);
}

} // namespace tessera
