//===- StateView.cpp - what lives across steps, as one rank holds it ---------===//

#include "runtime/state/StateView.h"

#include <algorithm>

namespace tessera {

static constexpr std::pair<StateRole, std::string_view> roleNames[] = {{StateRole::Parameter, "parameter"},
                                                                       {StateRole::Frozen, "frozen"},
                                                                       {StateRole::Average, "average"},
                                                                       {StateRole::Buffer, "buffer"}};

std::string toString(const StateKind &kind) {
  for (auto [role, name] : roleNames)
    if (role == kind.role)
      return std::string(name);
  return kind.state;
}

std::optional<StateKind> stateKindFromString(std::string_view text) {
  for (auto [role, name] : roleNames)
    if (name == text)
      return StateKind(role);
  const bool isName = !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == text.npos;
  return isName ? std::optional(StateKind(StateRole::Optimizer, std::string(text))) : std::nullopt;
}

Overlap overlap(const StateView &view, const ParameterSegment &segment) {
  return {std::max(view.begin, segment.offset), std::min(view.end, segment.end())};
}

std::vector<const ParameterSegment *> parametersOf(const StateView &view) {
  std::vector<const ParameterSegment *> parameters;
  for (const ParameterSegment &segment : view.segments)
    if (segment.part.index == 0)
      parameters.push_back(&segment);
  return parameters;
}

static std::vector<int64_t> toVector(const flatbuffers::Vector<int64_t> *sizes) {
  return sizes ? std::vector<int64_t>(sizes->begin(), sizes->end()) : std::vector<int64_t>();
}

static Result<std::vector<ParameterSegment>> readSegments(const artifact::StateTensor &tensor) {
  std::vector<ParameterSegment> segments;
  if (tensor.segments())
    for (const artifact::Segment *stored : *tensor.segments()) {
      ShapedPart listed = partOf(*stored);
      ParameterSegment segment;
      segment.name = stored->name()->str();
      segment.shape = std::move(listed.shape);
      segment.part = listed.part;
      segment.offset = stored->offset();
      auto elements = elementsOfPart(segment.shape, segment.part);
      if (!elements || segment.offset < 0 || segment.offset > tensor.elements() ||
          *elements > tensor.elements() - segment.offset)
        return TESSERA_ERROR(DataLoss,
                             "parameter '" + segment.name + "' is not inside its unit '" + tensor.name()->str() + "'");
      segment.elements = *elements;
      if (const artifact::Init *init = stored->init())
        segment.init = InitSpec{init->kind(), init->a(), init->b(), init->asked()};
      segments.push_back(std::move(segment));
    }
  std::sort(segments.begin(), segments.end(), [](const auto &a, const auto &b) { return a.offset < b.offset; });
  for (size_t i = 1; i < segments.size(); ++i)
    if (segments[i - 1].end() > segments[i].offset)
      return TESSERA_ERROR(DataLoss, "parameters '" + segments[i - 1].name + "' and '" + segments[i].name +
                                         "' overlap in unit '" + tensor.name()->str() + "'");
  return segments;
}

Result<RankState> makeRankState(const Artifact &artifact, int rank,
                                const std::function<void *(size_t state)> &address) {
  const artifact::Package &package = artifact.package();
  RankState views;
  if (!package.state())
    return views;
  for (const artifact::StateTensor *tensor : *package.state()) {
    StateView view;
    view.unit = tensor->name()->str();
    view.kind = {tensor->role(), tensor->state() ? tensor->state()->str() : ""};
    view.dtype = tensor->dtype();
    view.modelDtype = tensor->model_dtype();
    view.elements = tensor->elements();
    int64_t parts = artifact.groupSize(tensor->shard_group());
    if (view.elements < 0 || view.elements % parts != 0)
      return TESSERA_ERROR(DataLoss, "state '" + tensor->name()->str() + "' has " + std::to_string(view.elements) +
                                         " elements, which do not divide by " + std::to_string(parts) + " ranks");
    int64_t length = view.elements / parts, position = artifact.positionInGroup(tensor->shard_group(), rank);
    view.begin = position * length;
    view.end = view.begin + length;
    // Of the ranks that hold equal copies, the first one saves: it is at 0 on all axes that do not shard the tensor.
    std::vector<std::string> copyAxes;
    std::vector<std::string> shardAxes = artifact.groupAxes(tensor->shard_group());
    for (const Mesh::Axis &axis : artifact.mesh().axes)
      if (std::find(shardAxes.begin(), shardAxes.end(), axis.name) == shardAxes.end())
        copyAxes.push_back(axis.name);
    view.saves = artifact.mesh().positionInGroup(copyAxes, rank) == 0;
    TESSERA_ASSIGN_OR_RETURN(view.segments, readSegments(*tensor));
    view.data = static_cast<uint8_t *>(address(views.size()));
    views.push_back(std::move(view));
  }

  // A state without segments of its own has its parameter's; a single tensor is one segment.
  for (StateView &view : views) {
    if (!view.segments.empty())
      continue;
    for (const StateView &other : views)
      if (other.unit == view.unit && other.kind == StateRole::Parameter && other.elements == view.elements)
        view.segments = other.segments;
    if (view.segments.empty()) {
      const artifact::StateTensor *tensor = package.state()->Get(&view - views.data());
      std::vector<int64_t> shape = toVector(package.buffers()->Get(tensor->buffer())->shape());
      if (checkedElements(shape) != view.elements)
        shape = {view.elements};
      view.segments.push_back({view.unit, shape, 0, view.elements, std::nullopt, {}});
    }
  }
  return views;
}

ModelTensors modelTensorsOf(const Artifact &artifact) {
  ModelTensors found;
  const Result<RankState> views = makeRankState(artifact, 0, [](size_t) { return nullptr; });
  for (const StateView &view : views.isOk() ? *views : RankState())
    if (view.kind.isOfModel())
      for (const ParameterSegment *parameter : parametersOf(view))
        found.emplace(parameter->name, ModelTensor{parameter->shape, view.modelDtype});
  return found;
}

bool hasAverages(const Artifact &artifact) {
  const auto *states = artifact.package().state();
  return states && std::any_of(states->begin(), states->end(),
                               [](const auto *state) { return state->role() == StateRole::Average; });
}

} // namespace tessera
