//===- NamePattern.h - regular expressions of names -------------*- C++ -*-===//
//
// Flags name tensors, parameters and units by regular expressions. All are of
// one dialect, RE2's, and match a name if they match a part of it. A bad one,
// and one that matches nothing, are told in one way.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_NAMEPATTERN_H
#define TESSERA_COMPILER_DIALECT_TRAIN_NAMEPATTERN_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/ArrayRef.h"

#include <memory>
#include <optional>
#include <string>

namespace re2 {
class RE2;
} // namespace re2

namespace tessera::train {

class NamePattern {
public:
  /// The regular expression `text` that `flag` was given. Emits an error at `loc` if it is none.
  static llvm::FailureOr<NamePattern> parse(mlir::Location loc, llvm::StringRef flag, llvm::StringRef text);
  /// The same of a flag that may be left out: `pattern` stays empty if `text` is. The text "none" names nothing on
  /// purpose.
  static llvm::LogicalResult read(mlir::Location loc, llvm::StringRef flag, llvm::StringRef text,
                                  std::optional<NamePattern> &pattern);
  /// The pattern that matches `name` wherever it occurs, and nothing else.
  static std::string escape(llvm::StringRef name);

  NamePattern(NamePattern &&) noexcept;
  NamePattern &operator=(NamePattern &&) noexcept;
  ~NamePattern();

  bool match(llvm::StringRef name) const;
  /// Emits an error if no name matches but some should, with the nearest ones. `what` they are of: "parameter".
  llvm::LogicalResult expectMatch(mlir::Location loc, llvm::StringRef what,
                                  llvm::ArrayRef<llvm::StringRef> names) const;

  llvm::StringRef getFlag() const { return flag; }
  llvm::StringRef getText() const { return text; }

private:
  NamePattern(llvm::StringRef flag, llvm::StringRef text);

  std::string flag, text;
  std::unique_ptr<const re2::RE2> regex; ///< null: names nothing
};

/// "; nearest: 'a', 'b', 'c'": the names that are most like `text`, which a user wrote for one of them or as a pattern.
/// Empty if there are no names.
std::string nearestNames(llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> names);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_NAMEPATTERN_H
