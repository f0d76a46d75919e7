//===- Frontend.cpp - the kinds of files that models come in --------------===//

#include "frontends/Frontend.h"

#include "frontends/onnx/Import.h"
#include "frontends/pt2/Import.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

namespace tessera {

namespace {
constexpr llvm::StringLiteral kOnnxSuffixes[] = {".onnx", ".onnxtxt"};
constexpr llvm::StringLiteral kPt2Suffixes[] = {".pt2"};

/// A zip archive.
bool isPt2(llvm::StringRef start) { return start.starts_with("PK\x03\x04"); }

/// One row for each frontend. The first reads what has neither a name nor bytes to go by.
const Frontend kFrontends[] = {
    {"ONNX", kOnnxSuffixes, isOnnx, importOnnx, /*keepsSizes=*/false},
    {"exported PyTorch program", kPt2Suffixes, isPt2, importPt2, /*keepsSizes=*/true},
};

/// The first bytes of a file; empty if they cannot be read.
std::string startOf(llvm::StringRef path) {
  llvm::Expected<llvm::sys::fs::file_t> file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return "";
  }
  std::string bytes(kStartBytes, '\0');
  llvm::Expected<size_t> size = llvm::sys::fs::readNativeFile(*file, llvm::MutableArrayRef(bytes.data(), bytes.size()));
  llvm::sys::fs::closeFile(*file);
  if (!size) {
    llvm::consumeError(size.takeError());
    return "";
  }
  bytes.resize(*size);
  return bytes;
}
} // namespace

const Frontend *frontendOf(llvm::StringRef path) {
  for (const Frontend &frontend : kFrontends)
    if (llvm::any_of(frontend.suffixes, [&](llvm::StringRef suffix) { return path.ends_with(suffix); }))
      return &frontend;
  if (!llvm::sys::fs::is_regular_file(path))
    return &kFrontends[0]; // a pipe can be read only once
  const std::string start = startOf(path);
  for (const Frontend &frontend : kFrontends)
    if (frontend.recognises(start))
      return &frontend;
  return nullptr;
}

std::string frontendKinds() {
  std::string kinds;
  for (const Frontend &frontend : kFrontends)
    kinds += (kinds.empty() ? "" : ", ") + frontend.name.str() + " (" + llvm::join(frontend.suffixes, ", ") + ")";
  return kinds;
}

} // namespace tessera
