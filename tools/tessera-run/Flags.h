//===- Flags.h - what values of flags may be -----------------------*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_RUN_FLAGS_H
#define TESSERA_TOOLS_TESSERA_RUN_FLAGS_H

#include "runtime/step/Schedule.h"
#include "tools/common/CommandLine.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

namespace tessera::flags {

/// A whole number that fits its type: CLI11 gives the nearest one that does, and -1 as the largest without a sign.
template <typename Number> CLI::Validator wholeNumber(Number least, Number most = std::numeric_limits<Number>::max()) {
  return {[least, most](const std::string &text) -> std::string {
            Number value = 0;
            const char *end = text.data() + text.size();
            auto [stop, error] = std::from_chars(text.data(), end, value);
            if (error == std::errc() && stop == end && value >= least && value <= most)
              return "";
            return "'" + text + "' is no whole number from " + std::to_string(least) + " to " + std::to_string(most);
          },
          ""};
}

/// Neither negative, nor infinite or "nan".
inline CLI::Validator amount(double most) {
  return {[most](const std::string &text) -> std::string {
            char *end = nullptr;
            double value = std::strtod(text.c_str(), &end);
            if (!text.empty() && *end == '\0' && value >= 0 && value <= most)
              return "";
            return "'" + text + "' is no number from 0 to " + CLI::detail::to_string(most);
          },
          ""};
}

/// An empty name is an unset variable of a script rather than a wish.
inline CLI::Validator someName() {
  return {[](const std::string &text) { return std::string(text.empty() ? "the name is empty" : ""); }, ""};
}

/// A number of steps, or a share of all of them: "5%". Below 2^53, which doubles have exactly.
inline CLI::Validator stepsOrShare() {
  return {[](std::string &text) {
            if (!text.ends_with('%'))
              return wholeNumber<int64_t>(0, (int64_t{1} << 53) - 1)(text);
            std::string number = text.substr(0, text.size() - 1);
            return amount(100)(number);
          },
          ""};
}

/// Of a text that stepsOrShare() takes; none of an empty one.
inline std::optional<StepCount> stepCount(const std::string &text) {
  if (text.empty())
    return std::nullopt;
  const double number = std::strtod(text.c_str(), nullptr);
  return text.ends_with('%') ? StepCount{number / 100, true} : StepCount{number, false};
}

/// One of the words of a list with commas.
inline CLI::Validator oneOf(const std::string &list) {
  return {[list](const std::string &text) {
            const std::string words = ", " + list + ",";
            const bool isThere = !text.empty() && words.find(", " + text + ",") != std::string::npos;
            return isThere ? std::string() : "unknown value '" + text + "', expected one of " + list;
          },
          ""};
}

} // namespace tessera::flags

#endif // TESSERA_TOOLS_TESSERA_RUN_FLAGS_H
