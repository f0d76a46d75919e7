//===- Dump.h - one step's numbers, for comparison with other systems ------===//
//
// Writes gradients, parameters and the loss of one step as safetensors files: whole tensors by parameter name, however
// they were sharded.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_DUMP_H
#define TESSERA_RUNTIME_STEP_DUMP_H

#include "runtime/state/StateView.h"
#include "runtime/step/Session.h"

#include <set>
#include <string>
#include <vector>

namespace tessera {

class StepDump {
public:
  /// What may be dumped: "gradients", "parameters", "losses".
  static Result<std::set<std::string>> parseKinds(const std::string &list);

  StepDump(const Artifact &artifact, std::set<std::string> kinds, int64_t step)
      : artifact(artifact), kinds(std::move(kinds)), atStep(step), ranks(artifact.numRanks()) {}

  bool isWanted(int64_t step) const { return !kinds.empty() && step == atStep; }
  bool isWantedBefore(int64_t step) const { return !kinds.empty() && atStep < step; }
  /// Asks the step for this rank's gradients. Each rank calls it for itself.
  void prepare(int rank, const RankState &state, StepOptions &options);
  /// After the step: what `prepare` let some ranks keep.
  std::vector<RankState> gradients(int firstRank, int numRanks) const;
  /// Writes `folder`/{gradients,parameters,losses}.safetensors from the gradients and states of all ranks.
  Status write(const std::string &folder, const std::vector<RankState> &gradients, const std::vector<RankState> &states,
               double loss) const;

private:
  /// Names of parameters whose update is one kernel with what computes their gradient.
  std::string withoutGradient(const RankState &state) const;

  /// Copies of one rank's gradients, as views like those of its parameters.
  struct RankGradients {
    RankState views;
    std::vector<std::vector<uint8_t>> storage;
  };

  const Artifact &artifact;
  std::set<std::string> kinds;
  int64_t atStep;
  std::vector<RankGradients> ranks; ///< by rank
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_DUMP_H
