//===- Flags.h - the flags of tessera-compile --------------------*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERACOMPILE_FLAGS_H
#define TESSERA_TOOLS_TESSERACOMPILE_FLAGS_H

#include "tools/tessera-compile/driver/Compile.h"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tessera {

/// What the command line says: options, and the words that options are made from by finishFlags().
struct Flags {
  CompileOptions options;
  std::vector<std::string> dims;
  std::string mesh, report, fit;
  bool printPipelines = false;
};

/// Adds all flags, in the order and groups of --help; they fill `flags`.
void addFlags(CLI::App &app, Flags &flags);

/// Completes flags.options once the command line has been read. Returns an error text, empty on success.
std::string finishFlags(const CLI::App &app, Flags &flags);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERACOMPILE_FLAGS_H
