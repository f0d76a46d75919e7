//===- ModelFile.cpp - where a run finds its initial values ---------------===//

#include "tools/tessera-compile/driver/ModelFile.h"

#include "compiler/dialect/train/Initializer.h"
#include "compiler/dialect/train/Train.h"
#include "runtime/state/Weights.h"

#include "mlir/IR/Diagnostics.h"

#include <filesystem>

using namespace mlir;

namespace fs = std::filesystem;

namespace tessera {

/// Whether the file has, or should have, the value of a tensor that a run begins with, a parameter or a buffer;
/// `unreadable` is the first that cannot be read.
static bool hasValues(const WeightSource &source, ArrayAttr tensors,
                      const std::pair<const std::string, WeightEntry> *&unreadable) {
  bool found = false;
  for (auto tensor : tensors.getAsRange<train::TensorInfoAttr>()) {
    if (tensor.getRole() == train::TensorRole::Constant || tensor.getRole() == train::TensorRole::Unused)
      continue;
    const auto entry = source.entries().find(tensor.getName().str());
    if (entry == source.entries().end() || entry->second.problem == WeightProblem::Valueless)
      continue;
    found = true;
    if (!entry->second.hasValues() && !unreadable)
      unreadable = &*entry;
  }
  return found;
}

FailureOr<std::optional<artifact::ModelFileT>> describeModelFile(const CompileOptions &options, ModuleOp module) {
  const auto tensors = module->getAttrOfType<ArrayAttr>(train::kTensors);
  const auto path = module->getAttrOfType<StringAttr>(train::kModelFile);
  if (!tensors || !path) // the step was written as IR
    return std::optional<artifact::ModelFileT>();
  artifact::ModelFileT file;
  file.path = path.str();
  std::error_code code;
  const fs::path folder = fs::path(options.output).parent_path();
  file.from_artifact = fs::proximate(file.path, folder.empty() ? "." : folder, code).string();
  if (code)
    return emitError(module.getLoc()) << file.path << ": " << code.message();
  auto unknown = [&](const Twine &reason) {
    emitWarning(module.getLoc()) << "initial values: " << reason << "; a run needs --weights";
    return std::optional(std::move(file));
  };
  if (!fs::is_regular_file(file.path, code) || StringRef(file.path).ends_with(".onnxtxt"))
    return unknown("'" + file.path + "' cannot be read again");
  Result<std::unique_ptr<WeightSource>> source = WeightSource::open(file.path);
  Result<std::string> content = source.isOk() ? (*source)->fingerprint() : source.status();
  if (content.status().code() == StatusCode::Unsupported)
    return unknown(content.status().message());
  if (!content.isOk())
    return emitError(module.getLoc()) << content.status().toString();
  const std::pair<const std::string, WeightEntry> *unreadable = nullptr;
  if (!hasValues(**source, tensors, unreadable))
    return std::optional<artifact::ModelFileT>();
  if (unreadable)
    return unknown("'" + Twine(unreadable->first) + "' " + unreadable->second.reason);
  file.content = *content;
  return std::optional(std::move(file));
}

} // namespace tessera
