//===- CommandLine.cpp - how all tools read their command line ----------------===//

#include "tools/common/CommandLine.h"

#include "runtime/base/Nearest.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace tessera {

/// The flags of a tool, with their dashes.
static std::vector<std::string> flagsOf(const CLI::App &app) {
  std::vector<std::string> flags;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      flags.push_back("--" + name);
  return flags;
}

/// What is wrong with the first word that the tool does not take. A flag explains the values that follow it.
static std::string describeUnknown(const CLI::App &app, const std::vector<std::string> &words) {
  auto isFlag = [](const std::string &word) {
    return word.size() > 1 && word[0] == '-' && (word[1] == '-' || std::isalpha(word[1]));
  };
  const auto flag = std::find_if(words.begin(), words.end(), isFlag);
  if (flag == words.end())
    return "'" + words.front() + "' is one word too many; a flag may be missing before it";
  constexpr size_t shown = 3;
  const std::vector<std::string> known = flagsOf(app);
  const std::string name = flag->substr(0, flag->find('='));
  std::string text = "unknown flag " + name, nearest;
  for (std::string_view each : nearestTo(name, {known.begin(), known.end()}, shown, 1 + name.size() / 4))
    nearest += (nearest.empty() ? "; nearest: " : ", ") + std::string(each);
  return text + (nearest.empty() ? "; --help lists those there are" : nearest);
}

int failUsage(const CLI::App &app, const std::string &message) {
  std::fprintf(stderr, "%s: error: %s\n", app.get_name().c_str(), message.c_str());
  return kUsageError;
}

std::optional<int> readCommandLine(CLI::App &app, int argc, char **argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError &) {
    return failUsage(app, describeUnknown(app, app.remaining()));
  } catch (const CLI::Success &information) {
    return app.exit(information);
  } catch (const CLI::ParseError &problem) {
    return failUsage(app, problem.what());
  }
  return std::nullopt;
}

} // namespace tessera
