//===- FieldReader.h - fields of untrusted JSON files -----------------------===//

#ifndef TESSERA_RUNTIME_STATE_FIELDREADER_H
#define TESSERA_RUNTIME_STATE_FIELDREADER_H

#include "runtime/base/File.h"

#include <nlohmann/json.hpp>

#include <string>

namespace tessera {

/// Reads fields and remembers the first one that is missing or of the wrong type.
class FieldReader {
public:
  using Json = nlohmann::ordered_json;

  uint64_t number(const Json &object, const char *key, uint64_t most = INT64_MAX) {
    return value<uint64_t>(
        object, key, [most](const Json &found) { return found.is_number_unsigned() && found.get<uint64_t>() <= most; });
  }
  double real(const Json &object, const char *key) {
    return value<double>(object, key, [](const Json &found) { return found.is_number(); });
  }
  std::string text(const Json &object, const char *key) {
    return value<std::string>(object, key, [](const Json &found) { return found.is_string(); });
  }
  const Json &list(const Json &object, const char *key) {
    static const Json none = Json::array();
    const Json *value = field(object, key);
    if (value && value->is_array())
      return *value;
    fail(key);
    return none;
  }
  const Json &object(const Json &object, const char *key) {
    static const Json none = Json::object();
    const Json *value = field(object, key);
    if (value && value->is_object())
      return *value;
    fail(key);
    return none;
  }
  void fail(const std::string &key) {
    if (problem.empty())
      problem = "field '" + key + "' is missing or invalid";
  }

  std::string problem;

private:
  template <typename T, typename Test> T value(const Json &object, const char *key, Test isValid) {
    const Json *found = field(object, key);
    if (found && isValid(*found))
      return found->get<T>();
    fail(key);
    return T();
  }
  static const Json *field(const Json &object, const char *key) {
    if (!object.is_object())
      return nullptr;
    auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
  }
};

/// Discarded if it is not JSON, or nested more than 16 deep: writing it again is recursive.
inline nlohmann::ordered_json parseShallowJson(ByteSpan bytes) {
  using Json = nlohmann::ordered_json;
  constexpr int maxDepth = 16;
  bool isTooDeep = false;
  Json::parser_callback_t callback = [&](int depth, Json::parse_event_t, Json &) {
    isTooDeep |= depth > maxDepth;
    return !isTooDeep;
  };
  Json json = Json::parse(bytes.begin(), bytes.end(), callback, /*allow_exceptions=*/false);
  return isTooDeep ? Json(Json::value_t::discarded) : json;
}

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_FIELDREADER_H
