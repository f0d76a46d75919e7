//===- TensorBoard.h - scalars as TensorBoard event files ------------------===//
//
// An event file is a sequence of records (length, its masked CRC-32C, data, their masked CRC-32C); each record is an
// Event message in protobuf's wire format. Only scalars are needed, which are five fields, so that they are encoded
// here and the runtime does not depend on protobuf for them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_TELEMETRY_TENSORBOARD_H
#define TESSERA_RUNTIME_TELEMETRY_TENSORBOARD_H

#include "runtime/telemetry/Metrics.h"

#include <memory>
#include <optional>
#include <string>

namespace tessera {

class TensorBoardWriter {
public:
  /// Begins a file in `folder`. With `resumeStep` TensorBoard drops what earlier files have after that step.
  static Result<std::unique_ptr<TensorBoardWriter>> open(const std::string &folder,
                                                         std::optional<int64_t> resumeStep = std::nullopt);
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter &) = delete;
  TensorBoardWriter &operator=(const TensorBoardWriter &) = delete;

  Status write(const StepMetrics &metrics, const MemorySummary &memory);
  Status write(const EvaluationMetrics &metrics);
  const std::string &path() const { return name; }

private:
  TensorBoardWriter(std::string name, std::FILE *file) : name(std::move(name)), file(file) {}
  Status writeRecord(const std::string &event);

  std::string name;
  std::FILE *file;
};

/// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t crc32c(const std::string &data);

} // namespace tessera

#endif // TESSERA_RUNTIME_TELEMETRY_TENSORBOARD_H
