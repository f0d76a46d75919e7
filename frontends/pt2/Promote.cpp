//===- Promote.cpp - the common type of operands ---------------------------===//

#include "frontends/pt2/Promote.h"

using namespace mlir;

namespace tessera::pt2 {

namespace {
int category(Type type) { return isa<FloatType>(type) ? 2 : type.isInteger(1) ? 0 : 1; }

/// Of one priority: the wider of the higher category.
Type wider(Type a, Type b) {
  if (!a || !b || a == b)
    return a ? a : b;
  if (category(a) != category(b))
    return category(a) > category(b) ? a : b;
  const unsigned left = a.getIntOrFloatBitWidth(), right = b.getIntOrFloatBitWidth();
  if (left == right)
    return {}; // bf16 and f16, or signed and unsigned bytes: a third type
  Type wide = left > right ? a : b, narrow = left > right ? b : a;
  return isa<IntegerType>(wide) && wide.isUnsignedInteger() && !narrow.isUnsignedInteger() ? Type() : wide;
}
} // namespace

Type promoted(const Call &call, StringRef first, StringRef second) {
  Type dimensioned, scalar, number;
  for (StringRef name : {first, second}) {
    if (call.isTensor(name)) {
      Type &place = call.rank(name) == 0 ? scalar : dimensioned;
      Type both = wider(place, call.element(name));
      if (place && !both)
        return {};
      place = both;
    } else if (call.number(name)) {
      Builder builder(call.b.builder.getContext());
      number = wider(number, call.isFloatNumber(name) ? Type(builder.getF32Type()) : Type(builder.getI64Type()));
    }
  }
  // What has a lower priority counts only where its category is higher.
  Type result = dimensioned;
  for (Type other : {scalar, number})
    if (other && (!result || category(other) > category(result)))
      result = other;
  return result;
}

Type computedIn(Type element) {
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32 ? Float32Type::get(element.getContext())
                                                                         : element;
}

} // namespace tessera::pt2
