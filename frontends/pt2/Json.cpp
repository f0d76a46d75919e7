//===- Json.cpp - JSON of untrusted files ---------------------------------===//

#include "frontends/pt2/Json.h"

#include "frontends/pt2/Errors.h"

#include "llvm/ADT/StringSet.h"

#include <nlohmann/json.hpp>

using llvm::StringRef;
using llvm::Twine;

namespace tessera::pt2 {

const char *Json::kind() const {
  static constexpr const char *kNames[] = {"null",     "a bool", "an integer", "a number with a fraction",
                                           "a string", "a list", "an object"};
  static_assert(std::size(kNames) == std::variant_size_v<decltype(value)>);
  return kNames[value.index()];
}

const Json *Json::find(StringRef name) const {
  if (const auto *object = std::get_if<Object>(&value))
    for (const auto &[key, member] : *object)
      if (key == name)
        return &member;
  return nullptr;
}

namespace {
/// Lists and objects within each other. Reading and freeing a value recurse as deep.
constexpr size_t kDeepestJson = 256;
/// A program of ten thousand nodes has about a million.
constexpr size_t kMaxValues = size_t{1} << 24;

/// Receives nlohmann's events. Each function returns false to stop.
class Builder {
public:
  Json root;
  std::string message;  // why it stopped
  size_t errorByte = 0; // where nlohmann stopped, if it did; 1 is the first
  bool stopped = false; // by this class, not by the grammar

  // NOLINTBEGIN(readability-identifier-naming): nlohmann's names.
  bool null() { return put(Json{nullptr}); }
  bool boolean(bool value) { return put(Json{value}); }
  bool number_integer(int64_t value) { return put(Json{value}); }
  bool number_unsigned(uint64_t value) {
    if (value > static_cast<uint64_t>(INT64_MAX))
      return stop("the integer " + std::to_string(value) + " is out of range");
    return put(Json{static_cast<int64_t>(value)});
  }
  bool number_float(double value, const std::string &text) {
    // nlohmann makes a float of an integer that does not fit.
    if (text.find_first_of(".eE") == std::string::npos)
      return stop("the integer " + text.substr(0, 40) + " is out of range");
    return put(Json{value});
  }
  bool string(std::string &value) { return put(Json{std::move(value)}); }
  bool binary(std::vector<uint8_t> &) { return stop("binary value"); }
  bool key(std::string &value) {
    std::get<Json::Object>(open.back()->value).emplace_back(std::move(value), Json{});
    return true;
  }
  bool start_object(size_t) { return push(Json{Json::Object{}}); }
  bool start_array(size_t) { return push(Json{Json::Array{}}); }
  bool end_array() {
    open.pop_back();
    return true;
  }
  bool end_object() {
    llvm::StringSet<> seen;
    for (const auto &member : std::get<Json::Object>(open.back()->value))
      if (!seen.insert(member.first).second)
        return stop("the name '" + member.first + "' occurs twice in one object");
    open.pop_back();
    return true;
  }
  bool parse_error(size_t byte, const std::string &, const nlohmann::detail::exception &what) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: why": the part before `why` is ours.
    StringRef text(what.what());
    StringRef reason = text.split("] ").second;
    if (reason.starts_with("parse error at "))
      reason = reason.split(": ").second;
    message = (reason.empty() ? text : reason).str();
    errorByte = byte;
    return false;
  }
  // NOLINTEND(readability-identifier-naming)

private:
  size_t values = 0;
  std::vector<Json *> open; // lists and objects that are not closed; a parent does not grow while its child is open

  bool stop(std::string why) {
    message = std::move(why);
    stopped = true;
    return false;
  }

  Json *place(Json value) {
    if (open.empty()) {
      root = std::move(value);
      return &root;
    }
    if (auto *array = std::get_if<Json::Array>(&open.back()->value))
      return &array->emplace_back(std::move(value));
    Json &member = std::get<Json::Object>(open.back()->value).back().second;
    member = std::move(value);
    return &member;
  }
  bool put(Json value) {
    if (++values > kMaxValues)
      return stop("more than " + std::to_string(kMaxValues) + " values");
    place(std::move(value));
    return true;
  }
  bool push(Json value) {
    if (++values > kMaxValues)
      return stop("more than " + std::to_string(kMaxValues) + " values");
    if (open.size() >= kDeepestJson)
      return stop("lists and objects are nested deeper than " + std::to_string(kDeepestJson));
    open.push_back(place(std::move(value)));
    return true;
  }
};
} // namespace

llvm::Expected<Json> parseJson(StringRef text) {
  Builder builder;
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    return std::move(builder.root);
  if (builder.stopped)
    return error(builder.message);
  return error("malformed JSON at byte " + Twine(builder.errorByte) + " of " + Twine(text.size()) + ": " +
               builder.message);
}

} // namespace tessera::pt2
