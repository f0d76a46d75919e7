//===- Cursor.h - typed access to JSON --------------------------*- C++ -*-===//
//
// A place in a JSON value that knows its path. The first thing that is not as expected is kept as the error; what is
// read after it is empty, and loops end.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_CURSOR_H
#define TESSERA_FRONTENDS_PT2_CURSOR_H

#include "frontends/pt2/Json.h"

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tessera::pt2 {

/// What one reading has met.
struct Diagnostics {
  std::string error;                 // the first one; empty if none
  std::vector<std::string> warnings; // each once
  bool unknownFields = false;        // whether fields of a newer schema are tolerated, with a warning
  std::set<std::string> warned;

  bool failed() const { return !error.empty(); }
  void warn(const std::string &text) {
    if (warned.insert(text).second)
      warnings.push_back(text);
  }
};

/// A cursor refers to the one that it was made from: keep that alive.
class Cursor {
public:
  Cursor(const Json &json, Diagnostics &diagnostics) : json(&json), diagnostics(&diagnostics) {}

  bool failed() const { return diagnostics->failed(); }
  /// "graph.nodes[3].inputs[0].arg".
  std::string path() const;
  void fail(const std::string &message) const;
  Diagnostics &log() const { return *diagnostics; }

  /// Whether it is this text.
  bool isString(llvm::StringRef text) const {
    const auto *value = std::get_if<std::string>(&json->value);
    return value && text == *value;
  }

  /// Checks that it is an object, with no field besides these.
  void fields(std::initializer_list<llvm::StringRef> known) const;
  /// A field of an object, which must be there.
  Cursor field(llvm::StringRef name) const;
  /// A field that may be missing or null.
  std::optional<Cursor> optional(llvm::StringRef name) const;

  /// Elements of a list; 0 if it is none or something failed.
  size_t size() const;
  Cursor element(size_t index) const;

  /// Members of an object whose names are data.
  size_t members() const;
  const std::string &memberName(size_t index) const;
  Cursor member(size_t index) const;

  /// The name of the only member: the alternative of a union. Empty if something failed.
  llvm::StringRef alternative() const;
  Cursor alternativeValue() const { return member(0); }

  std::string string() const;
  int64_t integer() const;
  bool boolean() const;
  /// A number, or one of the texts "Infinity", "-Infinity" and "NaN".
  double number() const;

private:
  const Json *json;
  Diagnostics *diagnostics;
  const Cursor *parent = nullptr;
  llvm::StringRef name; // in the parent, unless it is an element
  size_t index = 0;

  Cursor child(const Json *value, llvm::StringRef childName, size_t childIndex) const;
  template <typename T> const T *expect(const char *what) const;
};

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_CURSOR_H
