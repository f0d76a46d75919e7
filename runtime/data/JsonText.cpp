//===- JsonText.cpp - the text inside JSON documents ------------------------------===//

#include "runtime/data/TokenSource.h"

#include <nlohmann/json.hpp>

namespace tessera {

using Json = nlohmann::json;

static bool textOf(const Json &json, const std::string &field, std::string &text, std::string &problem) {
  const Json *value = &json;
  if (json.is_object()) {
    auto found = json.find(field);
    if (found == json.end()) {
      problem = "has no field '" + field + "'";
      return false;
    }
    value = &*found;
  }
  if (!value->is_string()) {
    problem =
        json.is_object() ? "has a field '" + field + "' that is not a string" : "is neither a string nor an object";
    return false;
  }
  text = value->get<std::string>();
  return true;
}

bool jsonText(const char *begin, const char *end, const std::string &field, std::string &text, std::string &problem) {
  Json json = Json::parse(begin, end, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    problem = "is not valid JSON";
    return false;
  }
  return textOf(json, field, text, problem);
}

bool jsonTexts(ByteSpan bytes, const std::string &field, std::vector<std::string> &texts, std::string &problem) {
  Json json = Json::parse(bytes.begin(), bytes.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    problem = "is not valid JSON";
    return false;
  }
  std::string text;
  if (!json.is_array()) {
    if (!textOf(json, field, text, problem))
      return false;
    texts.push_back(std::move(text));
    return true;
  }
  for (const Json &item : json) {
    if (!textOf(item, field, text, problem)) {
      problem.insert(0, "item " + std::to_string(texts.size() + 1) + " ");
      return false;
    }
    texts.push_back(std::move(text));
  }
  return true;
}

} // namespace tessera
