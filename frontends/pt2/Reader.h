//===- Reader.h - reading exported programs ---------------------*- C++ -*-===//
//
// Reads files of `torch.export.save` without PyTorch: the program from its JSON, weights from raw bytes on demand.
// Nothing is unpickled. Files are not trusted: whatever they hold, the result is a program that fits together or one
// error, and no exception leaves.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_READER_H
#define TESSERA_FRONTENDS_PT2_READER_H

#include "frontends/pt2/Archive.h"
#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// Versions of the schema that are known: major 8, minors up to 20 (PyTorch 2.12 to 2.15).
constexpr int64_t kSchemaMajor = 8;
constexpr int64_t kSchemaMinor = 20;

/// Reads a program. `model` names it if the file holds several.
llvm::Expected<Program> readProgram(const std::string &path, llvm::StringRef model = "");
llvm::Expected<Program> readProgram(const Archive &archive, llvm::StringRef model = "");

/// The values of a weight, contiguous in row-major order, little endian. Refuses a weight without data.
llvm::Expected<std::vector<char>> readWeight(const Archive &archive, const Program &program, llvm::StringRef name);
/// The same, opening the program's file.
llvm::Expected<std::vector<char>> readWeight(const Program &program, llvm::StringRef name);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_READER_H
