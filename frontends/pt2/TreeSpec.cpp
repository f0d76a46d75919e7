//===- TreeSpec.cpp - names of what a module returns -----------------------===//

#include "frontends/pt2/TreeSpec.h"

#include "frontends/pt2/Json.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

namespace tessera::pt2 {

namespace {

constexpr int64_t maxDepth = 64;
constexpr size_t maxLeaves = 1 << 16, maxName = 1 << 10;

/// A list of texts, as keys are; numbers as they are written.
std::optional<std::vector<std::string>> textsOf(const Json &json) {
  const auto *list = std::get_if<Json::Array>(&json.value);
  if (!list)
    return std::nullopt;
  std::vector<std::string> texts;
  for (const Json &element : *list) {
    if (const auto *text = std::get_if<std::string>(&element.value))
      texts.push_back(*text);
    else if (const auto *number = std::get_if<int64_t>(&element.value))
      texts.push_back(std::to_string(*number));
    else
      return std::nullopt;
  }
  return texts;
}

class Walk {
public:
  explicit Walk(const NamedTuples &tuples) : tuples(tuples) {}

  bool visit(const Json &node, const std::string &name, int64_t depth) {
    const Json *type = node.find("type"), *children = node.find("children_spec");
    const auto *list = children ? std::get_if<Json::Array>(&children->value) : nullptr;
    if (!type || !list || depth > maxDepth || leaves.size() > maxLeaves || name.size() > maxName)
      return false;
    if (std::holds_alternative<std::nullptr_t>(type->value)) {
      leaves.push_back(name.empty() ? "output" : name);
      return list->empty();
    }
    const auto *kind = std::get_if<std::string>(&type->value);
    const auto keys = kind ? keysOf(*kind, node.find("context")) : std::nullopt;
    if (!kind || (keys && keys->size() != list->size()))
      return false;
    for (const auto &[i, child] : llvm::enumerate(*list)) {
      std::string step = keys ? (*keys)[i] : std::to_string(i);
      if (name.empty() && !keys)
        step = "output" + step;
      if (!visit(child, name.empty() ? step : name + "." + step, depth + 1))
        return false;
    }
    return true;
  }

  std::vector<std::string> leaves;

private:
  /// Keys of the children, if the container has any: its context lists them. Dictionaries have a list as JSON in a
  /// text, dataclasses the list of fields and one of those that are None, default dictionaries an object with the list.
  std::optional<std::vector<std::string>> keysOf(llvm::StringRef kind, const Json *context) const {
    const auto *text = context ? std::get_if<std::string>(&context->value) : nullptr;
    if (text && kind == "collections.namedtuple") {
      const auto found = tuples.find(*text);
      return found == tuples.end() ? std::nullopt : std::optional(found->second);
    }
    const Json *list = context ? context->find("dict_context") : nullptr;
    if (list)
      return textsOf(*list);
    if (!text)
      return std::nullopt;
    auto parsed = parseJson(*text);
    if (!parsed) {
      llvm::consumeError(parsed.takeError());
      return std::nullopt;
    }
    const auto *parts = std::get_if<Json::Array>(&parsed->value);
    const bool isDataclass = parts && parts->size() == 2 && std::holds_alternative<Json::Array>((*parts)[0].value);
    return textsOf(isDataclass ? (*parts)[0] : *parsed);
  }

  const NamedTuples &tuples;
};

} // namespace

std::optional<std::vector<std::string>> leafNames(llvm::StringRef spec, const NamedTuples &tuples) {
  auto parsed = parseJson(spec);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return std::nullopt;
  }
  const auto *outer = std::get_if<Json::Array>(&parsed->value); // [version of the format, tree]
  const auto *version = outer && outer->size() == 2 ? std::get_if<int64_t>(&(*outer)[0].value) : nullptr;
  if (!version || *version != 1)
    return std::nullopt;
  Walk walk(tuples);
  if (!walk.visit((*outer)[1], "", 0))
    return std::nullopt;
  const std::set<std::string> once(walk.leaves.begin(), walk.leaves.end());
  return once.size() == walk.leaves.size() && !once.count("") ? std::optional(walk.leaves) : std::nullopt;
}

} // namespace tessera::pt2
