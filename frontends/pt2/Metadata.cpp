//===- Metadata.cpp - where in the user's code a node comes from ----------===//

#include "frontends/pt2/Parse.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

namespace tessera::pt2 {

namespace {
/// Splits at a character outside brackets: paths and class names may hold indices with it.
void splitOutside(StringRef text, char separator, llvm::SmallVectorImpl<StringRef> &parts) {
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(')
      ++depth;
    else if (text[i] == ']' || text[i] == ')')
      --depth;
    else if (text[i] == separator && depth == 0) {
      parts.push_back(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push_back(text.drop_front(start));
}

/// Whether a file is PyTorch's own code rather than the user's.
bool isPyTorchFile(StringRef file) {
  return file.contains("-packages/torch/") || file.contains("/torch/nn/modules/") ||
         file.contains("/torch/nn/functional.py") || file.starts_with("<");
}

/// `  File "path", line 12, in forward`. False if the line is something else.
bool parseFrame(StringRef line, SourceLine &frame) {
  line = line.trim();
  if (!line.consume_front("File \""))
    return false;
  const size_t quote = line.rfind("\", line ");
  if (quote == StringRef::npos)
    return false;
  frame.file = line.take_front(quote).str();
  line = line.drop_front(quote + StringRef("\", line ").size());
  if (line.consumeInteger(10, frame.line) || frame.line < 0)
    return false;
  if (line.consume_front(", in "))
    frame.function = line.str();
  return true;
}
} // namespace

bool parseModuleStack(StringRef text, std::vector<ModuleFrame> &frames) {
  if (text.empty())
    return true;
  llvm::SmallVector<StringRef> items;
  splitOutside(text, ';', items);
  for (StringRef item : items) {
    llvm::SmallVector<StringRef> parts;
    splitOutside(item, ',', parts);
    if (parts.size() != 3)
      return false;
    ModuleFrame frame;
    frame.path = parts[1].str();
    frame.className = parts[2].str();
    // The second call of a module has the key "fc@1".
    const size_t at = parts[0].rfind('@');
    if (at != StringRef::npos && !llvm::to_integer(parts[0].drop_front(at + 1), frame.call, 10))
      frame.call = 0;
    frames.push_back(std::move(frame));
  }
  return true;
}

std::optional<SourceLine> parseStackTrace(StringRef text) {
  std::optional<SourceLine> innermost, user;
  bool awaitsText = false;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    SourceLine frame;
    if (parseFrame(line, frame)) {
      innermost = frame;
      if (!isPyTorchFile(frame.file))
        user = frame;
      awaitsText = true;
    } else if (awaitsText) {
      // The line of code follows its frame.
      awaitsText = false;
      innermost->text = line.trim().str();
      if (user && user->file == innermost->file && user->line == innermost->line)
        user->text = innermost->text;
    }
  }
  return user ? user : innermost;
}

} // namespace tessera::pt2
