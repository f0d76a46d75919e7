//===- Log.cpp - log lines on stderr ---------------------------------------===//

#include "runtime/base/Log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>

namespace tessera::log {

spdlog::logger &logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("tessera", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%l: %v");
    const char *level = std::getenv("TESSERA_LOG_LEVEL");
    made->set_level(level ? spdlog::level::from_str(level) : spdlog::level::info);
    return made;
  }();
  return *instance;
}

void setPrefix(const std::string &prefix) { logger().set_pattern("%l: " + prefix + "%v"); }

} // namespace tessera::log
