//===- Record.h - what whoever exported a model noted of it -----*- C++ -*-===//
//
// The record of python -m tessera export: JSON in a file's metadata; docs/onnx.md
// has its format. A frontend whose files say as much by themselves fills one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_RECORD_H
#define TESSERA_FRONTENDS_COMMON_RECORD_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace tessera::frontend {

/// One tensor that the exported module registers.
struct RecordedTensor {
  std::string name;
  llvm::SmallVector<int64_t> shape;
  bool isParameter = false;          ///< else a buffer
  bool trained = false;              ///< the parameter's requires_grad
  bool unused = false;               ///< no output depends on it: it may be absent from the graph
  std::optional<int64_t> paddingIdx; ///< lookups of this row take no gradient
};

/// The record of python -m tessera export.
struct ModelRecord {
  std::string exporter;                ///< for messages
  std::vector<RecordedTensor> tensors; ///< in the order of the record
  llvm::StringMap<size_t> byName;      ///< into `tensors`
  llvm::StringMap<bool> batchNorms;    ///< running mean's name -> the module used the batch's statistics
  int64_t activeDropouts = 0;          ///< calls of dropout with a rate above 0 in one forward pass
  int64_t clearedDropouts = 0;         ///< rates that the export tool set to 0
  std::string evaluationDiffers;       ///< `train.evaluation_differs`; empty: nothing that is known

  const RecordedTensor *find(llvm::StringRef name) const {
    auto found = byName.find(name);
    return found == byName.end() ? nullptr : &tensors[found->second];
  }
};

/// Where a file's metadata hold it.
inline constexpr llvm::StringLiteral kRecordKey = "tessera";
/// Reads a record. One that is malformed, or of another version, is an error.
llvm::Expected<ModelRecord> parseRecord(llvm::StringRef text);
llvm::Error malformedRecord(const llvm::Twine &what);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_RECORD_H
