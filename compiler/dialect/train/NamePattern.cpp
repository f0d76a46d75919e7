//===- NamePattern.cpp - regular expressions of names ---------------------===//

#include "compiler/dialect/train/NamePattern.h"

#include "runtime/base/Nearest.h"

#include "llvm/ADT/STLExtras.h"

#include <re2/re2.h>

using namespace mlir;

namespace tessera::train {

static re2::StringPiece pieceOf(StringRef text) { return {text.data(), text.size()}; }

NamePattern::NamePattern(StringRef flag, StringRef text)
    : flag(flag), text(text), regex(std::make_unique<re2::RE2>(pieceOf(text), re2::RE2::Quiet)) {}
NamePattern::NamePattern(NamePattern &&) noexcept = default;
NamePattern &NamePattern::operator=(NamePattern &&) noexcept = default;
NamePattern::~NamePattern() = default;

FailureOr<NamePattern> NamePattern::parse(Location loc, StringRef flag, StringRef text) {
  NamePattern pattern(flag, text);
  if (text.empty() || !pattern.regex->ok())
    return emitError(loc) << flag << ": '" << text << "' is not a regular expression of RE2: "
                          << (text.empty() ? "it is empty" : pattern.regex->error());
  return pattern;
}

LogicalResult NamePattern::read(Location loc, StringRef flag, StringRef text, std::optional<NamePattern> &pattern) {
  if (text.empty())
    return success();
  FailureOr<NamePattern> parsed = parse(loc, flag, text);
  if (failed(parsed))
    return failure();
  if (text == "none")
    parsed->regex.reset();
  pattern.emplace(std::move(*parsed));
  return success();
}

std::string NamePattern::escape(StringRef name) { return re2::RE2::QuoteMeta(pieceOf(name)); }

bool NamePattern::match(StringRef name) const { return regex && re2::RE2::PartialMatch(pieceOf(name), *regex); }

LogicalResult NamePattern::expectMatch(Location loc, StringRef what, ArrayRef<StringRef> names) const {
  if (!regex || llvm::any_of(names, [&](StringRef name) { return match(name); }))
    return success();
  return emitError(loc) << flag << ": no " << what << " matches '" << text << "'" << nearestNames(text, names);
}

/// What a pattern asks for letter by letter: a digit for \d, without what repeats, groups and anchors.
static std::string lettersOf(StringRef pattern) {
  std::string letters;
  for (size_t at = 0; at < pattern.size(); ++at)
    if (pattern[at] == '\\' && at + 1 < pattern.size())
      letters += pattern[++at] == 'd' ? '0' : pattern[at];
    else if (!StringRef("^$*+?()[]{}|").contains(pattern[at]))
      letters += pattern[at];
  return letters;
}

std::string nearestNames(StringRef text, ArrayRef<StringRef> names) {
  constexpr size_t kShown = 3;
  std::string list;
  for (std::string_view name : nearestTo(lettersOf(text), {names.begin(), names.end()}, kShown))
    list += (list.empty() ? "; nearest: '" : ", '") + std::string(name) + "'";
  return list;
}

} // namespace tessera::train
