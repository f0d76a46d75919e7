//===- Initializer.h - initial values of parameters --------------*- C++ -*-===//
//
// The text of `train.init`: zeros, constant:<a>, normal:<deviation> or
// uniform:<a>:<b>, all numbers finite in f32; or given: there is no rule, a file
// must bring the value. With `asked:` before it the user named the rule, which
// then counts more than a value in the model file.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_INITIALIZER_H
#define TESSERA_COMPILER_DIALECT_TRAIN_INITIALIZER_H

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace tessera::train {

struct Initializer {
  enum class Kind { Zeros, Constant, Normal, Uniform, Given };
  Kind kind;
  double a = 0; ///< the constant, the deviation, or the lower bound
  double b = 0; ///< the upper bound
  bool isAsked = false;
};

/// What is before the text of a rule that the user named.
inline constexpr llvm::StringLiteral kAskedPrefix = "asked:";

/// The forms that `parseInitializer` takes, for diagnostics.
inline constexpr llvm::StringLiteral kInitializerForms =
    "zeros, constant:<a>, normal:<deviation>, uniform:<a>:<b> or given";

std::optional<Initializer> parseInitializer(llvm::StringRef text);

/// On a module: the path of the file that it was imported from, whose values parameters begin with. A string.
inline constexpr llvm::StringLiteral kModelFile = "train.model_file";

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_INITIALIZER_H
