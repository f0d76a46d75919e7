//===- Parse.h - parts of the reader ----------------------------*- C++ -*-===//
//
// Functions that the sources of this folder share. Users include Reader.h.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_PARSE_H
#define TESSERA_FRONTENDS_PT2_PARSE_H

#include "frontends/pt2/Archive.h"
#include "frontends/pt2/Cursor.h"
#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

// Arguments.cpp
SymInt parseSymInt(const Cursor &at);
SymFloat parseSymFloat(const Cursor &at);
SymBool parseSymBool(const Cursor &at);
TensorMeta parseTensorMeta(const Cursor &at);
/// `depth`: how many graphs it lies in.
Argument parseArgument(const Cursor &at, int depth);
TensorArg parseTensorArg(const Cursor &at);
CustomObjectArg parseCustomObjectArg(const Cursor &at);

// ParseGraph.cpp
Graph parseGraph(const Cursor &at, int depth);
Signature parseSignature(const Cursor &at);

// Metadata.cpp
/// "key,path,class;key,path,class" as the exporter writes it. False if it is something else.
bool parseModuleStack(llvm::StringRef text, std::vector<ModuleFrame> &frames);
/// The innermost frame of a traceback that is not PyTorch's own code, or the innermost if all are.
std::optional<SourceLine> parseStackTrace(llvm::StringRef text);

// Check.cpp
/// Whether the parts of a program fit together: every name is defined once and before its use, the signature and the
/// weights are those of the graph's inputs and outputs.
llvm::Error checkProgram(const Program &program);

// Reader.cpp
std::vector<std::string> parseStrings(const Cursor &at);
/// An entry of JSON. An error says in which entry it is.
llvm::Expected<Json> readJson(const Archive &archive, llvm::StringRef entry);

// Note.cpp
/// Reads what tessera.export notes beside the program: its mode, and which tensors of files its parameters are.
llvm::Error readNote(const Archive &archive, Program &program);

// Weights.cpp
/// Reads where the weights and constants of `program.modelName` lie.
llvm::Error readWeightTable(const Archive &archive, Program &program);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_PARSE_H
