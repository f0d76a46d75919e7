//===- Complex.cpp - complex operands of a call -----------------------------===//

#include "frontends/pt2/Complex.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

static std::optional<std::complex<double>> numberOf(Call &c, StringRef name) {
  const Argument *argument = c.node.input(name.str());
  if (const auto *value = argument ? argument->as<std::complex<double>>() : nullptr)
    return *value;
  std::optional<double> value = c.number(name);
  return value ? std::optional<std::complex<double>>(*value) : std::nullopt;
}

FailureOr<Value> pairsOf(Call &c, StringRef name) {
  Build &b = c.b;
  Type element = c.resultElement();
  if (!isa_and_nonnull<FloatType>(element))
    return c.fail(kNoComplex);
  if (c.isTensor(name)) {
    Value x = b.convert(c.value(name), element);
    return c.isComplex(name) ? x : frontend::joinParts(b, x, b.splatLike(x, 0));
  }
  auto number = numberOf(c, name);
  if (!number)
    return c.fail("'" + name + "' is neither a tensor nor a number that a double holds");
  auto real = c.splat(element, number->real()), imaginary = c.splat(element, number->imag());
  return failed(real) || failed(imaginary) ? FailureOr<Value>() : frontend::joinParts(b, *real, *imaginary);
}

bool isReal(Call &c, StringRef name) { return c.isTensor(name) ? !c.isComplex(name) : c.number(name).has_value(); }

FailureOr<Value> factorOf(Call &c, StringRef name) {
  if (!isa_and_nonnull<FloatType>(c.resultElement()))
    return c.fail(kNoComplex);
  auto x = c.isTensor(name) ? c.b.convert(c.value(name), c.resultElement())
                            : c.splat(c.resultElement(), c.numberOr(name, 0));
  if (failed(x))
    return failure();
  SmallVector<int64_t> shape(shapeOf(*x));
  shape.push_back(1);
  return c.b.reshape(*x, shape);
}

LogicalResult broadcast(Call &c, Value &x, Value &y) {
  auto shape = broadcastShape(shapeOf(x), shapeOf(y));
  if (!shape)
    return c.fail("shapes do not broadcast");
  x = c.b.broadcastTo(x, *shape);
  y = c.b.broadcastTo(y, *shape);
  return success();
}

LogicalResult ofParts(Call &c, llvm::function_ref<LogicalResult(Build &, Value, Value)> set) {
  if (!c.isComplex("self"))
    return c.fail(kNoComplex);
  Value x = c.value("self");
  return set(c.b, frontend::partOf(c.b, x, 0), frontend::partOf(c.b, x, 1));
}

FailureOr<Call> callReal(Call &c, llvm::function_ref<Value(int)> replaced) {
  const OpRow *row = findOp(shortTarget(c.node.target));
  if (!row)
    return c.fail(kNoComplex);
  Call real = c;
  for (int i = 0; i < c.inputCount(); ++i)
    if (Value value = replaced(i)) {
      real.inputs[i] = Entry();
      real.inputs[i].value = value;
    }
  real.outputs.assign(c.outputs.size(), Entry());
  return failed(real.run(row->handler)) ? FailureOr<Call>(c.fail(real.reason)) : FailureOr<Call>(std::move(real));
}

FailureOr<Call> callOfParts(Call &c, Parts parts, ArrayRef<StringRef> widened) {
  auto isWidened = [&](int i) {
    return llvm::any_of(widened, [&](StringRef name) { return c.isTensor(name) && c.at(name) == i; });
  };
  Call kept = c;
  for (int i = 0; i < c.inputCount(); ++i)
    if (parts[i] == kLeftOut)
      kept.inputs[i] = Entry();
  auto real = callReal(kept, [&](int i) -> Value {
    if (kept.inputs[i].isComplex)
      return frontend::partOf(c.b, c.input(i), parts[i]);
    return isWidened(i) && parts[i] == 1 ? c.b.splatLike(c.input(i), 0) : Value();
  });
  return failed(real) ? FailureOr<Call>(c.fail(kept.reason)) : real;
}

} // namespace tessera::pt2
