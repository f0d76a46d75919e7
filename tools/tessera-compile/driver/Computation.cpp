//===- Computation.cpp - tells what steps compute apart -------------------===//

#include "tools/tessera-compile/driver/Computation.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace tessera {

/// Whether a setting may follow from sizes: shapes, and numbers of more than one dimension.
static bool maySaySizes(Attribute attr) { return isa<TypeAttr, DenseArrayAttr, ArrayAttr, DictionaryAttr>(attr); }

static void addSetting(NamedAttribute setting, llvm::raw_ostream &text) {
  Attribute value = setting.getValue();
  if (maySaySizes(value))
    return;
  text << ' ' << setting.getName().getValue() << '=';
  if (auto table = dyn_cast<ElementsAttr>(value)) {
    // A number of floats is the model's own, one of integers may count samples.
    auto dense = dyn_cast<DenseFPElementsAttr>(value);
    if (dense && dense.isSplat()) {
      SmallString<32> digits;
      dense.getSplatValue<APFloat>().toString(digits);
      text << digits;
    }
    return;
  }
  text << value;
}

std::string describeComputation(func::FuncOp step) {
  std::string described;
  llvm::raw_string_ostream text(described);
  DenseMap<Value, unsigned> numbers;
  for (BlockArgument argument : step.getArguments())
    numbers[argument] = numbers.size();
  step.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == step)
      return;
    text << op->getName();
    for (NamedAttribute setting : op->getAttrDictionary())
      addSetting(setting, text);
    for (Value operand : op->getOperands())
      text << ' ' << numbers.lookup(operand);
    for (Value result : op->getResults())
      numbers[result] = numbers.size();
    text << '\n';
  });
  return llvm::utohexstr(llvm::xxh3_64bits(described), /*LowerCase=*/true, /*Width=*/16);
}

} // namespace tessera
