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
#include "runtime/state/WeightMap.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace tessera {

/// Why an entry has no values that can be read.
enum class WeightProblem : uint8_t {
  None,
  Valueless,  ///< It never had any: the program was exported with fake tensors.
  Unreadable, ///< They are in a form that is not read, or in a file that is not there.
  Misshapen,  ///< A tensor that some of them are in has another shape.
};

/// Elements of a parameter, and the tensor of a file that they are in.
struct WeightPart {
  WeightPiece piece;
  DataType dtype = DataType::F32;
  ByteRange bytes;
};

struct WeightEntry {
  DataType dtype = DataType::F32;
  std::vector<int64_t> shape = {};
  ByteRange bytes = {};               ///< All elements in row-major order, …
  std::vector<WeightPart> parts = {}; ///< … or what they are put together from.
  uint32_t checksum = 0;              ///< Of the file's entry that the bytes lie in, where its format has one.
  WeightProblem problem = WeightProblem::None;
  std::string reason = {}; ///< The problem in words, as in "is pickled".

  bool hasValues() const { return problem == WeightProblem::None; }
};

class WeightSource {
public:
  /// A .safetensors file, a folder of them, an .onnx model or a .pt2 archive (known by its content, too). Of a folder,
  /// its model.safetensors, or else the files that its model.safetensors.index.json names, or else all.
  static Result<std::unique_ptr<WeightSource>> open(const std::string &path);

  /// Has `parameters` of a program (and their shapes) by their names in it, put together by `map` from the tensors that
  /// the files have. Files that have more of them under the program's names stay as they are. Errors: tensors that are
  /// one parameter and differ.
  Status assemble(const WeightMap &map, const ModelTensors &parameters);
  /// Tensors that a parameter is made of and the files do not have; empty if it is not made of others.
  std::vector<std::string> absentParts(const std::string &parameter) const;

  const std::string &path() const { return name; }
  const std::map<std::string, WeightEntry> &entries() const { return weights; }
  /// An ONNX model has initialisers that are no parameters (shapes, axes), and an exported program has buffers and
  /// second names of tied parameters; then names too many are no error.
  bool mayHaveOthers() const { return others; }
  /// Of names, types, shapes, checksums and bytes; of more than 64 MiB, about 4 MiB at even distances. The same under
  /// any path. Errors: of reading.
  Result<std::string> fingerprint() const;

private:
  Status addFolder();
  Status addSafetensors(const std::string &path);
  /// What a parameter is made of, and the names of these tensors here.
  struct Found {
    StoredParameter stored;
    std::vector<std::string> spellings; ///< Of the pieces.
    std::vector<std::string> copies;    ///< Other names of the same.
  };
  const WeightEntry *find(const WeightMap &map, const std::string &tensor, std::string &spelling) const;
  /// Nothing if tensors are missing, which are noted. Errors: as of `assemble`.
  Result<std::optional<Found>> findParameter(const WeightMap &map, const std::string &parameter,
                                             const std::vector<int64_t> &shape);
  WeightEntry join(Found &found, const std::vector<int64_t> &shape) const;
  Status addOnnx(const std::string &path);
  Status addPt2(const std::string &path);

  std::string name;
  bool others = false;
  std::map<std::string, WeightEntry> weights;
  std::map<std::string, std::vector<std::string>> absent; ///< By parameter.
  std::vector<std::shared_ptr<const void>> storage;       ///< What the entries' bytes in memory lie in.
};

/// The float initialisers of an ONNX model and what keeps their bytes alive. External data must lie beside the model;
/// where it is missing, its entries are unreadable.
Status readOnnxInitializers(const std::string &path, std::map<std::string, WeightEntry> &weights,
                            std::vector<std::shared_ptr<const void>> &storage);

/// The weights and constants that torch.export.save wrote. Those that are not contiguous are copied to memory.
Status readPt2Weights(const std::string &path, std::map<std::string, WeightEntry> &weights,
                      std::vector<std::shared_ptr<const void>> &storage);

/// Tells names that a user named by a pattern.
using NameFilter = std::function<bool(const std::string &)>;

struct WeightOptions {
  bool allowMissing = false;           ///< Parameters that the file lacks keep their seeded initial value.
  std::set<std::string> optional = {}; ///< As allowMissing, of these parameters alone.
  bool allowExtra = false;             ///< Tensors of the file that the program lacks are ignored.
  std::set<std::string> unread = {};   ///< As allowExtra, of these alone: nothing reads them.
  /// Tensors of the model that are part of the compiled step, so that their values in the file would change nothing.
  std::set<std::string> constants = {};
  /// Parameters that the file may lack, or have in another shape, and then begin by their rule; and tensors that the
  /// program may lack. None: no such name.
  NameFilter isPartial = {};
  /// Why the program has no map to Hugging Face's files; empty: nothing.
  std::string unmapped = {};
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
