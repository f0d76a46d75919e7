//===- ModelFolder.h - folders of models as Hugging Face has them ------------===//
//
// A folder holds a model's weights in one or several .safetensors files, and its
// configuration and tokenizer beside them. What a run leaves has the files and
// types of the folder that it began with, so that everything that reads the one
// reads the other. All ranks write their parts to their places: nothing is
// brought together.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_MODELFOLDER_H
#define TESSERA_RUNTIME_STATE_MODELFOLDER_H

#include "runtime/state/Adapters.h"
#include "runtime/state/Peers.h"
#include "runtime/state/WeightMap.h"

#include <set>

namespace tessera {

/// The files that hold a folder's model, and the tensors that its index says they have; none without an index.
using ModelFiles = std::map<std::string, std::set<std::string>>;

/// Its model.safetensors, or else those that model.safetensors.index.json names, or else all .safetensors files: a
/// folder may have the same weights in a form of the model's own, too. Errors: an index that names files that are not
/// there; no such files.
Result<ModelFiles> findModelFiles(const std::string &folder);

/// Whether a folder has a model's configuration and no weights in any form: it is trained from the beginning.
bool isWithoutWeights(const std::string &folder);

/// A tensor of a file that is to be written.
struct PlannedTensor {
  std::string name, typeName;
  std::optional<DataType> dtype; ///< None: a type that programs do not have.
  std::vector<int64_t> shape;
  uint64_t begin = 0, bytes = 0;       ///< In the file.
  ByteRange source;                    ///< Its bytes in the folder that is followed, …
  std::optional<DataType> sourceDtype; ///< … and their type.
};

struct PlannedFile {
  std::string name;
  std::map<std::string, std::string> metadata;
  std::vector<PlannedTensor> tensors;
  std::string header; ///< Its first bytes.
  uint64_t bytes = 0;
};

/// "bfloat16": as PyTorch and config.json call it.
std::string torchName(DataType dtype);

struct ModelFolderOptions {
  std::string folder; ///< Is made, and must not exist.
  /// The folder whose files it has; one with a config.json and no weights has none, and files are made for all tensors.
  std::string like;
  /// Of floats, instead of the types in `like`.
  std::optional<DataType> dtype = {};
  Peers peers = {};
  /// Asked by rank 0's process before the folder gets its name; an error withdraws it.
  std::function<Status()> mayPublish = {};
};

/// Where each element of a program's parameters goes.
class ModelFolderPlan {
public:
  /// `parameters`: of the program. Errors: parameters that the folder `like` has no place for, or of another shape, or
  /// integers where there are floats; tensors of it of which the program has a part only.
  static Result<ModelFolderPlan> make(const ModelFolderOptions &options, const WeightMap &map,
                                      const ModelTensors &parameters);

  /// The pieces of a parameter, and the tensor that each lies in: numbers of the file and of the tensor in it.
  struct Place {
    WeightPiece piece;
    size_t file, tensor;
  };
  const std::vector<Place> &placesOf(const std::string &parameter) const;

  const std::vector<PlannedFile> &files() const { return planned; }
  /// Tensors that no parameter is, and that stay as they are.
  const std::vector<std::pair<size_t, size_t>> &copies() const { return copied; }
  /// Their names, but for those that the model is known not to take.
  const std::vector<std::string> &unknownCopies() const { return unknown; }
  bool hasIndex() const { return isIndexed; }

private:
  std::vector<PlannedFile> planned;
  std::map<std::string, std::vector<Place>> places;
  std::vector<std::pair<size_t, size_t>> copied;
  std::vector<std::string> unknown;
  bool isIndexed = false;
};

/// Writes the folder: parameters (those of `role`, Parameter or Average, and what is frozen, and buffers), and the
/// configuration and tokenizer of `like`. `ranks` are those of this process; `products` are added to their matrices.
/// It gets its name when it is complete; on an error in any of the processes all return it, and nothing remains.
Status writeModelFolder(const ModelFolderOptions &options, const ModelFolderPlan &plan,
                        const std::vector<RankState> &ranks, StateRole role,
                        const std::vector<AdapterProduct> &products = {});

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_MODELFOLDER_H
