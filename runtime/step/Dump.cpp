//===- Dump.cpp - one step's numbers, for comparison with other systems ----===//

#include "runtime/step/Dump.h"

#include "runtime/base/Log.h"
#include "runtime/state/Checkpoint.h"
#include "runtime/state/DataTypes.h"
#include "runtime/state/Safetensors.h"

#include <cstring>
#include <filesystem>
#include <sstream>

namespace tessera {

Result<std::set<std::string>> StepDump::parseKinds(const std::string &list) {
  std::set<std::string> kinds;
  std::stringstream stream(list);
  for (std::string kind; std::getline(stream, kind, ',');) {
    if (kind != "gradients" && kind != "parameters" && kind != "losses")
      return TESSERA_ERROR(InvalidArgument,
                           "--dump: unknown kind '" + kind + "', expected gradients, parameters or losses");
    kinds.insert(kind);
  }
  return kinds;
}

void StepDump::prepare(int rank, const RankState &state, StepOptions &options) {
  if (!kinds.count("gradients"))
    return;
  options.onGradient = [this, rank, &state](size_t number, const TensorView &gradient) -> Status {
    const artifact::GradientProbe &probe = *artifact.training().probes()->Get(static_cast<uint32_t>(number));
    RankGradients &mine = ranks[rank];
    StateView view = state[probe.state()];
    int64_t part = gradient.numElements();
    // Narrow gradients are widened: readers without bf16 take the file, and nothing is lost.
    view.dtype = gradient.dtype == DataType::F64 ? DataType::F64 : DataType::F32;
    std::vector<uint8_t> &bytes = mine.storage.emplace_back(part * elementBytes(view.dtype));
    TESSERA_RETURN_IF_ERROR(convertElements(gradient.dtype, gradient.data, view.dtype, bytes.data(), part));
    for (int64_t i = 0; probe.scale() != 1 && i < part; ++i)
      if (view.dtype == DataType::F64)
        reinterpret_cast<double *>(bytes.data())[i] *= probe.scale();
      else
        reinterpret_cast<float *>(bytes.data())[i] *= probe.scale();
    view.kind = StateRole::Parameter;
    view.begin = probe.shard_group() < 0 ? 0 : artifact.positionInGroup(probe.shard_group(), rank) * part;
    view.end = view.begin + part;
    view.saves = true;
    view.data = bytes.data();
    mine.views.push_back(std::move(view));
    return Status::ok();
  };
}

std::string StepDump::withoutGradient(const RankState &state) const {
  std::set<uint32_t> known;
  if (const auto *probes = artifact.training().probes())
    for (const artifact::GradientProbe *probe : *probes)
      known.insert(probe->state());
  std::string missing;
  for (uint32_t index = 0; index < state.size(); ++index)
    if (state[index].kind == StateRole::Parameter && !known.count(index))
      for (const ParameterSegment *parameter : parametersOf(state[index]))
        missing += (missing.empty() ? "'" : ", '") + parameter->name + "'";
  return missing;
}

std::vector<RankState> StepDump::gradients(int firstRank, int numRanks) const {
  std::vector<RankState> views;
  for (int rank = firstRank; rank < firstRank + numRanks; ++rank)
    views.push_back(ranks[rank].views);
  return views;
}

Status StepDump::write(const std::string &folder, const std::vector<RankState> &gradients,
                       const std::vector<RankState> &states, double loss) const {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return TESSERA_ERROR(IoError, "cannot create folder '" + folder + "': " + error.message());
  if (kinds.count("gradients")) {
    std::string missing = withoutGradient(states.front());
    if (!missing.empty())
      log::warn(
          "--dump: the gradients of {} are never in memory and not written: the kernel of their update computes them "
          "(tessera-compile --keep-gradients keeps these), or they are constant",
          missing);
    TESSERA_ASSIGN_OR_RETURN(std::vector<SafetensorsTensor> tensors, gatherParameters(gradients));
    TESSERA_RETURN_IF_ERROR(writeSafetensors(folder + "/gradients.safetensors", tensors).status());
  }
  if (kinds.count("parameters")) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<SafetensorsTensor> tensors, gatherParameters(states));
    TESSERA_RETURN_IF_ERROR(writeSafetensors(folder + "/parameters.safetensors", tensors).status());
  }
  if (kinds.count("losses")) {
    SafetensorsTensor tensor{"loss", DataType::F64, {}, {{reinterpret_cast<const uint8_t *>(&loss), sizeof(loss)}}};
    TESSERA_RETURN_IF_ERROR(writeSafetensors(folder + "/losses.safetensors", {tensor}).status());
  }
  return Status::ok();
}

} // namespace tessera
