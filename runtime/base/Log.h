//===- Log.h - log lines on stderr -----------------------------------------===//
//
// A thin wrapper of spdlog, so that all parts log the same way: to stderr, lower case, one line per event. Levels by
// TESSERA_LOG_LEVEL (trace, debug, info, warn, error, off; default info).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BASE_LOG_H
#define TESSERA_RUNTIME_BASE_LOG_H

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

namespace tessera::log {

/// The process-wide logger; made on first use, safe from any thread.
spdlog::logger &logger();

/// Text before each message, e.g. the rank of this process.
void setPrefix(const std::string &prefix);

template <typename... Args> void debug(spdlog::format_string_t<Args...> format, Args &&...args) {
  logger().debug(format, std::forward<Args>(args)...);
}
template <typename... Args> void info(spdlog::format_string_t<Args...> format, Args &&...args) {
  logger().info(format, std::forward<Args>(args)...);
}
template <typename... Args> void warn(spdlog::format_string_t<Args...> format, Args &&...args) {
  logger().warn(format, std::forward<Args>(args)...);
}
template <typename... Args> void error(spdlog::format_string_t<Args...> format, Args &&...args) {
  logger().error(format, std::forward<Args>(args)...);
}

} // namespace tessera::log

#endif // TESSERA_RUNTIME_BASE_LOG_H
