//===- TokenizedData.h - folders of "python -m tessera data" ----------------===//
//
// A folder has tokens in shards, a bit for each that says whether it is a target, and for each split a file of rows:
// what becomes one sample, as pieces of documents. A mixture names such folders and their weights. The format is in
// docs/data-build.md.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DATA_TOKENIZEDDATA_H
#define TESSERA_RUNTIME_DATA_TOKENIZEDDATA_H

#include "runtime/data/Samples.h"

#include <optional>

namespace tessera {

/// A manifest.json, checked by itself: what it says of other files is not.
struct TokenizedData {
  struct Shard {
    std::string name;
    uint64_t tokens = 0;
  };
  struct Split {
    uint64_t rows = 0, pieces = 0;
  };
  struct Source {
    std::string folder;
    double weight = 0; ///< of all samples
  };

  std::string folder;
  uint64_t sequence = 0; ///< positions of a row
  std::string packing;   ///< best-fit, windows or none
  int tokenBytes = 2;    ///< 2 or 4
  uint64_t largestToken = 0, paddingToken = 0;
  uint64_t longestDocument = 0; ///< tokens; it may be cut
  std::vector<Shard> shards;
  std::map<std::string, Split> splits;
  std::vector<Source> mixture; ///< of a mixture, which has nothing of the above

  /// Nothing for any other folder. Errors: a damaged manifest, another version.
  static Result<std::optional<TokenizedData>> read(const std::string &folder);
};

/// The rows of a split, as samples. `split` empty: `train`, or, to evaluate, `valid`, else the only other one. Errors:
/// files that do not suit the manifest, rows of another length than the model's, documents that the model would not
/// tell apart.
Result<std::unique_ptr<SampleSource>> openRows(const TokenizedData &data, const std::string &split,
                                               const std::vector<BatchSpec> &specs, const DataOptions &options);

/// The samples of the sources of a mixture, one source behind the other.
Result<std::unique_ptr<SampleSource>> openMixture(const TokenizedData &data, const std::vector<BatchSpec> &specs,
                                                  const DataOptions &options);

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_TOKENIZEDDATA_H
