//===- Weights.h - parameters from files ---------------------------------------===//
//
// Finds parameters by name in safetensors files, among the initialisers of an ONNX model or among the weights of a
// program that torch.export.save wrote, and fills flat units with them, whatever their sharding and wrapping.
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

struct WeightEntry {
  DataType dtype = DataType::F32;
  std::vector<int64_t> shape;
  ByteRange bytes;
  std::string problem = {}; ///< Why the values cannot be read, as in "is pickled"; mostly empty.
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
  /// Of names, types, shapes and bytes; of more than 64 MiB, about 4 MiB at even distances. The same under any path.
  /// Errors: of reading.
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

/// The float initialisers of an ONNX model and what keeps their bytes alive. External data must lie beside the model.
Status readOnnxInitializers(const std::string &path, std::map<std::string, WeightEntry> &weights,
                            std::vector<std::shared_ptr<const void>> &storage);

/// The weights and constants that torch.export.save wrote. Those that are not contiguous are copied to memory.
Status readPt2Weights(const std::string &path, std::map<std::string, WeightEntry> &weights,
                      std::vector<std::shared_ptr<const void>> &storage);

struct WeightOptions {
  bool allowMissing = false;           ///< Parameters that the file lacks keep their seeded initial value.
  std::set<std::string> optional = {}; ///< As allowMissing, of these parameters alone.
  bool allowExtra = false;             ///< Tensors of the file that the program lacks are ignored.
  bool isZeroed = false;               ///< The memory is new, and zero already.
};

/// Sets a rank's whole state from weights: parameters converted to the program's type, optimizer states zero. All names
/// that are missing, too many or of another shape are reported in one error.
Status loadWeights(const RankState &views, const WeightSource &source, uint64_t seed,
                   const WeightOptions &options = {});

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_WEIGHTS_H
