//===- Arguments.cpp - values of the schema: sizes, tensors, arguments ----===//

#include "frontends/pt2/Parse.h"

#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;

namespace tessera::pt2 {

namespace {
/// A list, each element by `parse`.
template <typename Parse> auto listOf(const Cursor &at, Parse parse) {
  std::vector<decltype(parse(at))> list;
  const size_t count = at.size();
  list.reserve(count);
  for (size_t i = 0; i < count && !at.failed(); ++i)
    list.push_back(parse(at.element(i)));
  return list;
}

int64_t integer(const Cursor &at) { return at.integer(); }
double number(const Cursor &at) { return at.number(); }
bool boolean(const Cursor &at) { return at.boolean(); }
std::string string(const Cursor &at) { return at.string(); }

void unknown(const Cursor &at, const char *what, StringRef alternative) {
  at.fail((StringRef("unknown ") + what + " '" + alternative.take_front(80) + "'").str());
}

/// An enum whose numbers are 0 to `last`.
template <typename Enum> Enum parseEnum(const Cursor &at, const char *what, Enum last) {
  const int64_t value = at.integer();
  if (!at.failed() && (value < 0 || value > static_cast<int64_t>(last)))
    at.fail(std::string("unknown ") + what + " " + std::to_string(value));
  return at.failed() ? Enum::Unknown : static_cast<Enum>(value);
}

ScalarType parseScalarType(const Cursor &at) {
  const int64_t value = at.integer();
  const auto type = static_cast<ScalarType>(value);
  if (at.failed() || value == 0)
    return ScalarType::Unknown;
  if (value < 0 || value > 255 || scalarTypeBytes(type) == 0)
    at.fail("unknown scalar type " + std::to_string(value));
  return type;
}

Layout parseLayout(const Cursor &at) { return parseEnum(at, "layout", Layout::Strided); }

Device parseDevice(const Cursor &at) {
  at.fields({"type", "index"});
  Device device;
  device.type = at.field("type").string();
  if (auto index = at.optional("index"))
    device.index = index->integer();
  return device;
}

/// The expression of a SymInt, SymFloat or SymBool, with its hint by `read`.
template <typename Sym, typename Read> void parseExpression(const Cursor &at, Sym &sym, StringRef hintName, Read read) {
  at.fields({"expr_str", "hint"});
  sym.expression = at.field("expr_str").string();
  if (!at.failed() && sym.expression.empty())
    at.field("expr_str").fail("expected an expression, found an empty string");
  if (auto tree = Expression::parse(sym.expression)) {
    sym.expression = tree->text();
    if constexpr (std::is_same_v<Sym, SymInt>)
      sym.tree = std::make_shared<const Expression>(std::move(*tree));
  }
  sym.hasHint = false;
  if (auto hint = at.optional("hint")) {
    const StringRef kind = hint->alternative();
    if (kind == hintName) {
      sym.value = read(hint->alternativeValue());
      sym.hasHint = true;
    } else if (!at.failed()) {
      hint->fail(("expected '" + hintName + "', found '" + kind.take_front(80) + "'").str());
    }
  }
}

template <typename Sym, typename Read>
Sym parseSym(const Cursor &at, StringRef constantName, const char *what, Read read) {
  Sym sym;
  const StringRef kind = at.alternative();
  if (at.failed())
    return sym;
  if (kind == constantName)
    sym.value = read(at.alternativeValue());
  else if (kind == "as_expr")
    parseExpression(at.alternativeValue(), sym, constantName, read);
  else
    unknown(at, what, kind);
  return sym;
}

/// SymIntArgument and its like.
template <typename Arg, typename Read>
Arg parseSymArg(const Cursor &at, StringRef constantName, const char *what, Read read) {
  Arg arg;
  const StringRef kind = at.alternative();
  if (at.failed())
    return arg;
  if (kind == constantName) {
    arg.value = read(at.alternativeValue());
  } else if (kind == "as_name") {
    arg.name = at.alternativeValue().string();
    if (!at.failed() && arg.name.empty())
      at.fail("expected a name, found an empty string");
  } else {
    unknown(at, what, kind);
  }
  return arg;
}
SymIntArg parseSymIntArg(const Cursor &at) { return parseSymArg<SymIntArg>(at, "as_int", "symbolic int", integer); }
SymFloatArg parseSymFloatArg(const Cursor &at) {
  return parseSymArg<SymFloatArg>(at, "as_float", "symbolic float", number);
}
SymBoolArg parseSymBoolArg(const Cursor &at) {
  return parseSymArg<SymBoolArg>(at, "as_bool", "symbolic bool", boolean);
}

OptionalTensorArg parseOptionalTensor(const Cursor &at) {
  const StringRef kind = at.alternative();
  if (kind == "as_tensor")
    return parseTensorArg(at.alternativeValue());
  if (!at.failed() && kind != "as_none")
    unknown(at, "optional tensor", kind);
  return std::nullopt;
}

std::complex<double> parseComplex(const Cursor &at) {
  at.fields({"real", "imag"});
  return {at.field("real").number(), at.field("imag").number()};
}

GraphArg parseGraphArg(const Cursor &at, int depth) {
  at.fields({"name", "graph"});
  GraphArg arg;
  arg.name = at.field("name").string();
  arg.graph = std::make_shared<Graph>(parseGraph(at.field("graph"), depth + 1));
  return arg;
}

DictArg parseDict(const Cursor &at, int depth) {
  DictArg dict;
  const size_t count = at.members();
  for (size_t i = 0; i < count && !at.failed(); ++i)
    dict.entries.push_back({at.memberName(i), parseArgument(at.member(i), depth)});
  return dict;
}
} // namespace

SymInt parseSymInt(const Cursor &at) { return parseSym<SymInt>(at, "as_int", "size", integer); }
SymFloat parseSymFloat(const Cursor &at) { return parseSym<SymFloat>(at, "as_float", "symbolic float", number); }
SymBool parseSymBool(const Cursor &at) { return parseSym<SymBool>(at, "as_bool", "symbolic bool", boolean); }

TensorArg parseTensorArg(const Cursor &at) {
  at.fields({"name"});
  TensorArg arg{at.field("name").string()};
  if (!at.failed() && arg.name.empty())
    at.fail("expected the name of a tensor, found an empty string");
  return arg;
}

CustomObjectArg parseCustomObjectArg(const Cursor &at) {
  at.fields({"name", "class_fqn"});
  return {at.field("name").string(), at.field("class_fqn").string()};
}

TensorMeta parseTensorMeta(const Cursor &at) {
  at.fields({"dtype", "sizes", "requires_grad", "device", "strides", "storage_offset", "layout"});
  TensorMeta meta;
  meta.dtype = parseScalarType(at.field("dtype"));
  meta.sizes = listOf(at.field("sizes"), parseSymInt);
  meta.strides = listOf(at.field("strides"), parseSymInt);
  meta.requiresGrad = at.field("requires_grad").boolean();
  meta.device = parseDevice(at.field("device"));
  meta.storageOffset = parseSymInt(at.field("storage_offset"));
  meta.layout = parseLayout(at.field("layout"));
  if (at.failed())
    return meta;
  if (meta.layout == Layout::Strided && meta.strides.size() != meta.sizes.size())
    at.fail("has " + std::to_string(meta.sizes.size()) + " sizes and " + std::to_string(meta.strides.size()) +
            " strides");
  for (const SymInt &size : meta.sizes)
    if (size.isConstant() && size.value < 0)
      at.fail("has the size " + std::to_string(size.value));
  return meta;
}

Argument parseArgument(const Cursor &at, int depth) {
  Argument argument;
  auto &value = argument.value;
  const StringRef kind = at.alternative();
  if (at.failed())
    return argument;
  const Cursor inner = at.alternativeValue();
  auto is = [&](StringRef name) { return kind == name; };
  // Scalars and names.
  if (is("as_none"))
    value = NoneArg{};
  else if (is("as_tensor"))
    value = parseTensorArg(inner);
  else if (is("as_int"))
    value = inner.integer();
  else if (is("as_float"))
    value = inner.number();
  else if (is("as_bool"))
    value = inner.boolean();
  else if (is("as_string"))
    value = inner.string();
  else if (is("as_complex"))
    value = parseComplex(inner);
  else if (is("as_sym_int"))
    value = parseSymIntArg(inner);
  else if (is("as_sym_float"))
    value = parseSymFloatArg(inner);
  else if (is("as_sym_bool"))
    value = parseSymBoolArg(inner);
  else if (is("as_optional_tensor"))
    value = parseOptionalTensor(inner);
  // Lists.
  else if (is("as_tensors"))
    value = listOf(inner, parseTensorArg);
  else if (is("as_optional_tensors"))
    value = listOf(inner, parseOptionalTensor);
  else if (is("as_ints"))
    value = listOf(inner, integer);
  else if (is("as_floats"))
    value = listOf(inner, number);
  else if (is("as_bools"))
    value = listOf(inner, boolean);
  else if (is("as_strings"))
    value = listOf(inner, string);
  else if (is("as_sym_ints"))
    value = listOf(inner, parseSymIntArg);
  else if (is("as_sym_floats"))
    value = listOf(inner, parseSymFloatArg);
  else if (is("as_sym_bools"))
    value = listOf(inner, parseSymBoolArg);
  else if (is("as_nested_tensors"))
    value = listOf(inner, [](const Cursor &list) { return listOf(list, parseTensorArg); });
  else if (is("as_int_lists"))
    value = listOf(inner, [](const Cursor &list) { return listOf(list, integer); });
  else if (is("as_float_lists"))
    value = listOf(inner, [](const Cursor &list) { return listOf(list, number); });
  // Properties of tensors.
  else if (is("as_scalar_type"))
    value = parseScalarType(inner);
  else if (is("as_memory_format"))
    value = parseEnum(inner, "memory format", MemoryFormat::Preserve);
  else if (is("as_layout"))
    value = parseLayout(inner);
  else if (is("as_device"))
    value = parseDevice(inner);
  // The rest.
  else if (is("as_operator"))
    value = OperatorArg{inner.string()};
  else if (is("as_graph"))
    value = parseGraphArg(inner, depth);
  else if (is("as_custom_obj"))
    value = parseCustomObjectArg(inner);
  else if (is("as_string_to_argument"))
    value = parseDict(inner, depth);
  else
    unknown(at, "kind of argument", kind);
  return argument;
}

} // namespace tessera::pt2
