//===- CommandLine.h - how all tools read their command line --------*- C++ -*-===//
//
// What is wrong with a command line is reported in one way, and ends every tool with one status.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_COMMON_COMMANDLINE_H
#define TESSERA_TOOLS_COMMON_COMMANDLINE_H

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace tessera {

/// The exit status of a tool that was called wrongly.
inline constexpr int kUsageError = 2;

/// Reads the command line. The status to end with at once, if there is one: of --help and --version, or `kUsageError`
/// of words that are no flags, with the flags that are like them, and of values that are none, on standard error.
std::optional<int> readCommandLine(CLI::App &app, int argc, char **argv);

/// Lists the options that were added since the last call under `group` in the help.
void groupOptions(CLI::App &app, const std::string &group);

/// Says on standard error what is wrong with the command line; returns `kUsageError`.
int failUsage(const CLI::App &app, const std::string &message);

} // namespace tessera

#endif // TESSERA_TOOLS_COMMON_COMMANDLINE_H
