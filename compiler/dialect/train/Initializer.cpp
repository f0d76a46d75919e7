//===- Initializer.cpp - initial values of parameters ---------------------===//

#include "compiler/dialect/train/Initializer.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

namespace tessera::train {

std::optional<Initializer> parseInitializer(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  const bool isAsked = text.consume_front(kAskedPrefix);
  text.split(parts, ':');
  using Kind = Initializer::Kind;
  auto kind = llvm::StringSwitch<std::optional<Kind>>(parts.front())
                  .Case("zeros", Kind::Zeros)
                  .Case("constant", Kind::Constant)
                  .Case("normal", Kind::Normal)
                  .Case("uniform", Kind::Uniform)
                  .Case("given", Kind::Given)
                  .Default(std::nullopt);
  if (!kind)
    return std::nullopt;
  const size_t numbers = *kind == Kind::Zeros || *kind == Kind::Given ? 0 : *kind == Kind::Uniform ? 2 : 1;
  if (parts.size() != 1 + numbers)
    return std::nullopt;
  Initializer init{*kind};
  init.isAsked = isAsked;
  for (auto [text, value] : {std::pair(1, &init.a), std::pair(2, &init.b)})
    if (static_cast<size_t>(text) <= numbers &&
        (parts[text].getAsDouble(*value) || !std::isfinite(static_cast<float>(*value))))
      return std::nullopt;
  if ((*kind == Kind::Normal && init.a < 0) || (*kind == Kind::Uniform && init.a > init.b))
    return std::nullopt;
  return init;
}

} // namespace tessera::train
