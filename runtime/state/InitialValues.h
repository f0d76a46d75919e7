//===- InitialValues.h - what the parameters of a new run begin with ---------===//
//
// A run that continues none begins with the values of the file that its artifact was compiled from, with those of a
// file that the user names, or by the artifact's rules.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_INITIALVALUES_H
#define TESSERA_RUNTIME_STATE_INITIALVALUES_H

#include "runtime/state/Weights.h"

namespace tessera {

/// As a name of weights: values by rule, whatever the model file has. A file of this name is `./fresh`.
inline constexpr std::string_view freshWeights = "fresh";

class InitialValues {
public:
  /// `weights`: a file (which may be the model file), "fresh", or nothing for the model file, or for rules where that
  /// has no values. `modelFile`: where the model file is; empty: where it was. Errors: of opening a file; a model file
  /// that is gone or has changed; adapters beside matrices without values, unless "fresh".
  /// `isPartial`: as in WeightOptions; of no name of the file or the program it is an error.
  static Result<InitialValues> open(const Artifact &artifact, const std::string &weights,
                                    const std::string &modelFile = "", const NameFilter &isPartial = {});

  /// Sets a rank's whole state, in memory that is zero. Errors: names and shapes that do not fit, as of loadWeights;
  /// parameters that have neither a value nor a rule.
  Status set(const RankState &views, uint64_t seed) const;

  /// Equal where the values are: "fresh", or the fingerprint of the file.
  const std::string &content() const { return contentText; }

  /// In one line: how many parameters the file gives, and which rule each kind of the others gets.
  std::string describe(const Artifact &artifact, uint64_t seed) const;

private:
  std::string leftOver(const ModelTensors &parameters) const;
  InitialValues() = default;
  Status openModelFile(const Artifact &artifact, const artifact::ModelFile &file, const std::string &place);
  Status checkAdapters(const Artifact &artifact) const;

  std::unique_ptr<WeightSource> source; ///< None: all by rule.
  WeightOptions options;
  std::string contentText{freshWeights};
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_INITIALVALUES_H
