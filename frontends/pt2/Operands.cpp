//===- Operands.cpp - operands of one type and shape ------------------------===//

#include "frontends/pt2/Operands.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

static FailureOr<Value> operand(Call &c, StringRef name, Type element) {
  if (c.isTensor(name))
    return c.b.convert(c.value(name), element);
  std::optional<double> value = c.number(name);
  if (!value)
    return c.fail("'" + name + "' is neither a tensor nor a number that a double holds");
  return c.splat(element, *value);
}

FailureOr<SmallVector<Value>> operands(Call &c, Type element, ArrayRef<StringRef> names, ArrayRef<int64_t> shape) {
  if (!element)
    return c.fail("the operands have no common type that is supported");
  SmallVector<Value> made;
  SmallVector<int64_t> common(shape);
  for (StringRef name : names) {
    FailureOr<Value> value = operand(c, name, element);
    if (failed(value))
      return failure();
    auto both = broadcastShape(common, shapeOf(*value));
    if (!both)
      return c.fail("shapes " + shapeText(common) + " and " + shapeText(shapeOf(*value)) + " do not broadcast");
    common = *both;
    made.push_back(*value);
  }
  for (Value &value : made)
    value = c.b.broadcastTo(value, common);
  return made;
}

LogicalResult binaryIn(Call &c, Type computed, llvm::function_ref<Value(Build &, Value, Value)> make) {
  auto both = operands(c, computed, {"self", "other"});
  if (failed(both))
    return failure();
  Value result = make(c.b, (*both)[0], (*both)[1]);
  return c.set(c.resultElement() ? c.b.convert(result, c.resultElement()) : result);
}

} // namespace tessera::pt2
