//===- fuzz_pt2.cpp - reader and importer of exported programs on any bytes -===//
//
// Bytes that start with `{` are the program's JSON, and after a zero byte that of its weights: they are packed into an
// archive, since a changed byte of an archive mostly fails its checksum. Other bytes are an archive. Whatever they are,
// the result is a program whose weights can be read or one error, and of it a module that
// verifies, or null after at least one error.
//
//===----------------------------------------------------------------------===//

#include "frontends/pt2/Import.h"
#include "frontends/pt2/Reader.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <cstdlib>
#include <zip.h>

using namespace tessera::pt2;

namespace {
void add(zip_t *archive, const char *name, llvm::StringRef bytes) {
  if (zip_file_add(archive, name, zip_source_buffer(archive, bytes.data(), bytes.size(), 0), 0) < 0)
    std::abort();
}

std::string pack(llvm::StringRef program, llvm::StringRef weights) {
  zip_source_t *target = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_source_keep(target);
  zip_t *archive = zip_open_from_source(target, ZIP_TRUNCATE, nullptr);
  if (!archive)
    std::abort();
  static const std::string values(64, 'x');
  add(archive, "a/archive_format", "pt2");
  add(archive, "a/models/model.json", program);
  add(archive, "a/data/weights/model_weights_config.json", weights);
  add(archive, "a/data/weights/weight_0", values);
  add(archive, "a/data/weights/weight_1", "");
  add(archive, "a/data/weights/weight_2", values);
  add(archive, "a/data/constants/model_constants_config.json", "{\"config\": {}}");
  zip_stat_t stat;
  if (zip_close(archive) != 0 || zip_source_open(target) != 0 || zip_source_stat(target, &stat) != 0)
    std::abort();
  std::string packed(stat.size, '\0');
  zip_source_read(target, packed.data(), packed.size());
  zip_source_close(target);
  zip_source_free(target);
  return packed;
}
} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  std::string packed;
  if (bytes.starts_with("{")) {
    auto [program, weights] = bytes.split('\0');
    packed = pack(program, weights);
    bytes = packed;
  }
  auto archive = Archive::openBytes(bytes, "fuzz");
  if (!archive) {
    if (toString(archive.takeError()).empty())
      std::abort();
    return 0;
  }
  auto program = readProgram(*archive);
  if (!program) {
    if (toString(program.takeError()).empty())
      std::abort();
    return 0;
  }
  for (const auto &[name, weight] : program->weights) {
    auto values = readWeight(*archive, *program, name);
    if (!values) {
      consumeError(values.takeError());
      continue;
    }
    uint64_t expected = scalarTypeBytes(weight.dtype);
    for (int64_t dim : weight.sizes)
      expected *= dim;
    if (values->size() != expected)
      std::abort();
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  bool hasError = false;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    hasError |= diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::success();
  });
  tessera::ImportOptions options;
  options.batch = 2;
  options.sequence = 3;
  if (!tessera::importPt2Archive(*archive, options, context) && !hasError)
    std::abort();
  return 0;
}
