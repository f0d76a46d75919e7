//===- Cursor.cpp - typed access to JSON ----------------------------------===//

#include "frontends/pt2/Cursor.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using llvm::StringRef;

namespace tessera::pt2 {

namespace {
const Json kNothing;

/// Names of the file in messages and warnings: their start.
std::string shown(StringRef name) { return name.take_front(80).str(); }
} // namespace

std::string Cursor::path() const {
  if (!parent)
    return "";
  std::string text = parent->path();
  if (name.empty())
    return text + "[" + std::to_string(index) + "]";
  return text + (text.empty() ? "" : ".") + shown(name);
}

void Cursor::fail(const std::string &message) const {
  if (failed())
    return;
  const std::string where = path();
  diagnostics->error = where.empty() ? message : where + ": " + message;
}

template <typename T> const T *Cursor::expect(const char *what) const {
  if (failed())
    return nullptr;
  const T *value = std::get_if<T>(&json->value);
  if (!value)
    fail(std::string("expected ") + what + ", found " + json->kind());
  return value;
}

Cursor Cursor::child(const Json *value, StringRef childName, size_t childIndex) const {
  Cursor cursor(value ? *value : kNothing, *diagnostics);
  cursor.parent = this;
  cursor.name = childName;
  cursor.index = childIndex;
  return cursor;
}

void Cursor::fields(std::initializer_list<StringRef> known) const {
  const auto *object = expect<Json::Object>("an object");
  if (!object)
    return;
  for (const auto &[key, unused] : *object) {
    if (llvm::is_contained(known, key))
      continue;
    if (!diagnostics->unknownFields)
      return fail("unknown field '" + shown(key) + "'");
    diagnostics->warn("field '" + shown(key) + "' of a newer schema is ignored");
  }
}

Cursor Cursor::field(StringRef fieldName) const {
  const Json *value = nullptr;
  if (expect<Json::Object>("an object")) {
    value = json->find(fieldName);
    if (!value)
      fail(("field '" + fieldName + "' is missing").str());
  }
  return child(value, fieldName, 0);
}

std::optional<Cursor> Cursor::optional(StringRef fieldName) const {
  if (!expect<Json::Object>("an object"))
    return std::nullopt;
  const Json *value = json->find(fieldName);
  if (!value || std::holds_alternative<std::nullptr_t>(value->value))
    return std::nullopt;
  return child(value, fieldName, 0);
}

size_t Cursor::size() const {
  const auto *array = expect<Json::Array>("a list");
  return array ? array->size() : 0;
}

Cursor Cursor::element(size_t at) const {
  const auto *array = expect<Json::Array>("a list");
  return child(array && at < array->size() ? &(*array)[at] : nullptr, "", at);
}

size_t Cursor::members() const {
  const auto *object = expect<Json::Object>("an object");
  return object ? object->size() : 0;
}

const std::string &Cursor::memberName(size_t at) const {
  static const std::string kNone;
  const auto *object = std::get_if<Json::Object>(&json->value);
  return object && at < object->size() ? (*object)[at].first : kNone;
}

Cursor Cursor::member(size_t at) const {
  const auto *object = std::get_if<Json::Object>(&json->value);
  return child(object && at < object->size() ? &(*object)[at].second : nullptr, memberName(at), at);
}

StringRef Cursor::alternative() const {
  const size_t count = members();
  if (!failed() && count != 1)
    fail("expected an object with one name, found " + std::to_string(count));
  return failed() ? StringRef() : StringRef(memberName(0));
}

std::string Cursor::string() const {
  const auto *value = expect<std::string>("a string");
  return value ? *value : std::string();
}

int64_t Cursor::integer() const {
  const auto *value = expect<int64_t>("an integer");
  return value ? *value : 0;
}

bool Cursor::boolean() const {
  const auto *value = expect<bool>("a bool");
  return value && *value;
}

double Cursor::number() const {
  using Limits = std::numeric_limits<double>;
  if (const auto *text = std::get_if<std::string>(&json->value)) {
    if (*text == "Infinity")
      return Limits::infinity();
    if (*text == "-Infinity")
      return -Limits::infinity();
    if (*text == "NaN")
      return Limits::quiet_NaN();
  }
  if (const auto *whole = std::get_if<int64_t>(&json->value))
    return static_cast<double>(*whole);
  const auto *value = expect<double>("a number");
  return value ? *value : 0;
}

} // namespace tessera::pt2
