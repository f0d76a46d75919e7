//===- Json.h - JSON of untrusted files -------------------------*- C++ -*-===//
//
// A JSON value as plain data. Its parser bounds nesting and refuses what would be read differently by two readers:
// names that occur twice and integers that do not fit 64 bits.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_JSON_H
#define TESSERA_FRONTENDS_PT2_JSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tessera::pt2 {

struct Json {
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>; // in the order of the file

  std::variant<std::nullptr_t, bool, int64_t, double, std::string, Array, Object> value = nullptr;

  /// What it is, for messages: "a string".
  const char *kind() const;
  /// The value of a name if it is an object that has it, else null.
  const Json *find(llvm::StringRef name) const;
};

/// Reads a text. An error says the byte at which it is wrong.
llvm::Expected<Json> parseJson(llvm::StringRef text);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_JSON_H
