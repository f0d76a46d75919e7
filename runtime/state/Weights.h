//===- Weights.h - parameters from files ---------------------------------------===//
//
// Finds parameters by name in safetensors files, among the initialisers of an ONNX model or among the weights of a
// program that torch.export.save wrote, and fills flat units with them, whatever their sharding and wrapping. Where a
// run finds its file is in InitialValues.h.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_WEIGHTS_H
#define TESSERA_RUNTIME_STATE_WEIGHTS_H

#include "runtime/base/InputFile.h"
#include "runtime/state/StateView.h"

#include <map>
#include <memory>
#include <set>

namespace tessera {

/// Why an entry has no values that can be read.
enum class WeightProblem : uint8_t {
  None,
  Valueless,  ///< It never had any: the program was exported with fake tensors.
  Unreadable, ///< They are in a form that is not read, or in a file that is not there.
};

struct WeightEntry {
  DataType dtype = DataType::F32;
  std::vector<int64_t> shape = {};
  ByteRange bytes = {};
  uint32_t checksum = 0; ///< Of the file's entry that the bytes lie in, where its format has one.
  WeightProblem problem = WeightProblem::None;
  std::string reason = {}; ///< The problem in words, as in "is pickled".

  bool hasValues() const { return problem == WeightProblem::None; }
};

class WeightSource {
public:
  /// A .safetensors file, a folder of them (a model split into several files), an .onnx model or a .pt2 archive (known
  /// by its content, too).
  static Result<std::unique_ptr<WeightSource>> open(const std::string &path);

  const std::string &path() const { return name; }
  const std::map<std::string, WeightEntry> &entries() const { return weights; }
  /// An ONNX model has initialisers that are no parameters (shapes, axes), and an exported program has buffers and
  /// second names of tied parameters; then names too many are no error.
  bool mayHaveOthers() const { return others; }
  /// Of names, types, shapes, checksums and bytes; of more than 64 MiB, about 4 MiB at even distances. The same under
  /// any path. Errors: of reading.
  Result<std::string> fingerprint() const;

private:
  Status addSafetensors(const std::string &path);
  Status addOnnx(const std::string &path);
  Status addPt2(const std::string &path);

  std::string name;
  bool others = false;
  std::map<std::string, WeightEntry> weights;
  std::vector<std::shared_ptr<const void>> storage; ///< What the entries' bytes in memory lie in.
};

/// The float initialisers of an ONNX model and what keeps their bytes alive. External data must lie beside the model;
/// where it is missing, its entries are unreadable.
Status readOnnxInitializers(const std::string &path, std::map<std::string, WeightEntry> &weights,
                            std::vector<std::shared_ptr<const void>> &storage);

/// The weights and constants that torch.export.save wrote. Those that are not contiguous are copied to memory.
Status readPt2Weights(const std::string &path, std::map<std::string, WeightEntry> &weights,
                      std::vector<std::shared_ptr<const void>> &storage);

struct WeightOptions {
  bool allowMissing = false;           ///< Parameters that the file lacks keep their seeded initial value.
  std::set<std::string> optional = {}; ///< As allowMissing, of these parameters alone.
  bool allowExtra = false;             ///< Tensors of the file that the program lacks are ignored.
  std::set<std::string> unread = {};   ///< As allowExtra, of these alone: nothing reads them.
  /// Tensors of the model that are part of the compiled step, so that their values in the file would change nothing.
  std::set<std::string> constants = {};
  bool isZeroed = false; ///< The memory is new, and zero already.
  /// The file is the one that the program was compiled from: what has no values in it, or a rule that the user asked
  /// for, begins by its rule.
  bool isModelFile = false;
};

/// The entry that a parameter begins with; null if its rule is what it begins by, or it has none.
const WeightEntry *entryOf(const WeightSource &source, const ParameterSegment &parameter, const WeightOptions &options);

/// Sets a rank's whole state from weights: parameters converted to the program's type, optimizer states zero. All names
/// that are missing, too many or of another shape are reported in one error.
Status loadWeights(const RankState &views, const WeightSource &source, uint64_t seed,
                   const WeightOptions &options = {});

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_WEIGHTS_H
