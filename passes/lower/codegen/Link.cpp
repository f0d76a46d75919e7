//===- Link.cpp - object code to a shared object --------------------------===//
//
// LLD works on files, so the object passes through a private temporary directory.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/codegen/Link.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

namespace tessera::codegen {

namespace {
/// A directory that disappears with this object.
struct TemporaryDirectory {
  llvm::SmallString<128> path;
  std::error_code error = llvm::sys::fs::createUniqueDirectory("tessera", path);
  ~TemporaryDirectory() {
    if (!error)
      llvm::sys::fs::remove_directories(path);
  }
  std::string file(llvm::StringRef name) const {
    llvm::SmallString<128> file(path);
    llvm::sys::path::append(file, name);
    return std::string(file);
  }
};
} // namespace

bool linkSharedObject(llvm::StringRef object, std::string &sharedObject, std::string &error) {
  // LLD keeps its state in globals.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  TemporaryDirectory directory;
  if (directory.error) {
    error = "no temporary directory: " + directory.error.message();
    return false;
  }
  std::string input = directory.file("kernels.o"), output = directory.file("kernels.so");
  std::error_code code;
  {
    llvm::raw_fd_ostream stream(input, code);
    if (!code)
      stream << object;
    stream.close();
    if (code || stream.has_error()) {
      error = "cannot write " + input + ": " + (code ? code : stream.error()).message();
      stream.clear_error();
      return false;
    }
  }
  std::string messages;
  llvm::raw_string_ostream out(messages);
  std::vector<const char *> arguments = {"ld.lld",           "-shared", "--threads=1",  "--build-id=none",
                                         "--hash-style=gnu", "-z",      "noexecstack",  "-soname",
                                         "kernels.so",       "-o",      output.c_str(), input.c_str()};
  lld::Result result = lld::lldMain(arguments, out, out, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) {
    error = messages;
    return false;
  }
  auto buffer = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    error = "cannot read " + output;
    return false;
  }
  sharedObject = (*buffer)->getBuffer().str();
  return true;
}

bool checkUndefinedSymbols(llvm::StringRef sharedObject, std::string &error) {
  static const llvm::StringSet<> allowed = {
      "memcpy", "memmove",    "memset",    "sinf",   "cosf",  "powf",    "expf",   "logf",      "tanhf",
      "erff",   "floorf",     "sqrtf",     "fmaf",   "sin",   "cos",     "pow",    "exp",       "log",
      "tanh",   "erf",        "floor",     "sqrt",   "fma",   "sincosf", "sincos", "fmaximumf", "fminimumf",
      "expm1f", "expm1",      "log1pf",    "log1p",  "atanf", "atan",    "asinf",  "asin",      "acosf",
      "acos",   "roundevenf", "roundeven", "ldexpf", "ldexp"}; // of pow(2, integer)
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(sharedObject, "kernels.so"));
  if (!file) {
    error = llvm::toString(file.takeError());
    return false;
  }
  using namespace llvm::object;
  for (const ELFSymbolRef &symbol : llvm::cast<ELFObjectFileBase>(file->get())->getDynamicSymbolIterators()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      llvm::consumeError(flags.takeError());
      llvm::consumeError(name.takeError());
      error = "a symbol that cannot be read";
      return false;
    }
    if ((*flags & SymbolRef::SF_Undefined) && !name->empty() && !allowed.contains(*name)) {
      error += (error.empty() ? "" : ", ") + name->str();
    }
  }
  return error.empty();
}

} // namespace tessera::codegen
