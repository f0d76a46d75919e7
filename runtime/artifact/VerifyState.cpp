//===- VerifyState.cpp - checks what lives across steps --------------------===//

#include "runtime/artifact/ParameterPart.h"
#include "runtime/artifact/VerifyContext.h"
#include "runtime/artifact/WeightPiece.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace tessera {

using artifact::DataType;

/// Of a-z, 0-9 and _, and none of the roles: names and roles are told apart by their text in checkpoints.
static bool isStateName(const flatbuffers::String *name) {
  const std::string_view text = name ? name->string_view() : std::string_view();
  for (std::string_view role : {"parameter", "frozen", "average", "buffer"})
    if (text == role)
      return false;
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// Each average is of one parameter and laid out as it is; all parameters have one, or none has.
static Status verifyAverages(const artifact::Package &package) {
  std::map<std::string_view, const artifact::StateTensor *> parameters;
  std::set<std::string_view> averages;
  for (uint32_t index = 0; index < sizeOf(package.state()); ++index)
    if (const artifact::StateTensor *state = package.state()->Get(index);
        state->role() == artifact::StateRole::Parameter)
      if (!parameters.emplace(state->name()->string_view(), state).second)
        return bad("parameter '" + state->name()->str() + "'", "occurs twice");
  for (uint32_t index = 0; index < sizeOf(package.state()); ++index) {
    const artifact::StateTensor *state = package.state()->Get(index);
    if (state->role() != artifact::StateRole::Average)
      continue;
    const std::string what = "average of '" + state->name()->str() + "'";
    const auto of = parameters.find(state->name()->string_view());
    if (of == parameters.end() || of->second->elements() != state->elements() ||
        of->second->shard_group() != state->shard_group())
      return bad(what, "there is no parameter of that name and layout");
    if (!averages.insert(state->name()->string_view()).second)
      return bad(what, "occurs twice");
  }
  if (!averages.empty() && averages.size() != parameters.size())
    return bad("averages",
               std::to_string(averages.size()) + " for " + std::to_string(parameters.size()) + " parameters");
  return Status::ok();
}

/// Each parameter is there once in each kind of state: whole, or all of its parts, in one tensor.
static Status verifyParts(const artifact::Package &package) {
  using Key = std::tuple<artifact::StateRole, std::string_view, std::string_view>; // role, state, parameter
  struct Listed {
    std::vector<ShapedPart> parts;
    std::set<uint32_t> tensors;
  };
  std::map<Key, Listed> parameters;
  for (uint32_t index = 0; index < sizeOf(package.state()); ++index) {
    const artifact::StateTensor &state = *package.state()->Get(index);
    for (uint32_t number = 0; number < sizeOf(state.segments()); ++number) {
      const artifact::Segment &segment = *state.segments()->Get(number);
      Listed &listed =
          parameters[{state.role(), state.state() ? state.state()->string_view() : "", segment.name()->string_view()}];
      listed.parts.push_back(partOf(segment));
      listed.tensors.insert(index);
    }
  }
  for (const auto &[key, listed] : parameters) {
    std::string problem = checkParts(listed.parts);
    if (problem.empty() && listed.tensors.size() > 1)
      problem = "has parts in several units";
    if (!problem.empty())
      return bad("parameter '" + std::string(std::get<2>(key)) + "'", problem);
  }
  return Status::ok();
}

Status verifyState(const VerifyContext &context) {
  const artifact::Package &package = context.package;
  for (uint32_t index = 0; index < sizeOf(package.state()); ++index) {
    const artifact::StateTensor &state = *package.state()->Get(index);
    std::string what = "state '" + state.name()->str() + "'";
    if (!isKnown(state.dtype()) || !isKnown(state.role()))
      return bad(what, "unknown type or role");
    if ((state.role() == artifact::StateRole::Optimizer) != isStateName(state.state()))
      return bad(what, "is an optimizer's without a name there, or has a name and is none");
    const bool isRounded = state.role() == artifact::StateRole::Frozen && state.model_dtype() == DataType::F32 &&
                           (state.dtype() == DataType::BF16 || state.dtype() == DataType::F16);
    if (state.model_dtype() != state.dtype() && !isRounded)
      return bad(what, "is not of the model's type, and no frozen parameter that is rounded to bf16 or f16");
    if (state.elements() < 1 || state.elements() > maxElements)
      return bad(what, std::to_string(state.elements()) + " elements");
    TESSERA_RETURN_IF_ERROR(context.checkGroup(state.shard_group(), what));
    int64_t parts = context.groupSize(state.shard_group());
    if (state.elements() % parts != 0)
      return bad(what, std::to_string(state.elements()) + " elements do not divide by " + std::to_string(parts));
    TESSERA_RETURN_IF_ERROR(expectDense(context, state.buffer(), state.dtype(), state.elements() / parts, what));
    for (uint32_t number = 0; number < sizeOf(state.segments()); ++number) {
      const artifact::Segment &segment = *state.segments()->Get(number);
      if (!isAligned(segment.shape()))
        return bad(what + ", parameter '" + segment.name()->str() + "'", "misaligned shape");
      WideInt elements = 1;
      for (uint32_t dim = 0; dim < sizeOf(segment.shape()); ++dim) {
        int64_t size = segment.shape()->Get(dim);
        if (size < 1 || size > maxElements || (elements *= size) > maxElements)
          return bad(what + ", parameter '" + segment.name()->str() + "'",
                     "a dimension of size " + std::to_string(size));
      }
      const auto [shape, part] = partOf(segment);
      if (!part.fits(shape))
        return bad(what + ", parameter '" + segment.name()->str() + "'", "is no part of its shape");
      elements /= part.count;
      if (segment.offset() < 0 || WideInt(segment.offset()) + elements > WideInt(state.elements()))
        return bad(what + ", parameter '" + segment.name()->str() + "'", "reaches beyond the unit");
      if (segment.init() && !isKnown(segment.init()->kind()))
        return bad(what + ", parameter '" + segment.name()->str() + "'", "unknown initialiser");
    }
  }
  TESSERA_RETURN_IF_ERROR(verifyParts(package));
  return verifyAverages(package);
}

Status verifyDerived(const VerifyContext &context) {
  const artifact::Package &package = context.package;
  for (uint32_t index = 0; index < sizeOf(package.derived()); ++index) {
    const artifact::DerivedTensor &derived = *package.derived()->Get(index);
    std::string what = "derived tensor " + std::to_string(index);
    if (derived.state() >= sizeOf(package.state()))
      return bad(what, "state " + std::to_string(derived.state()) + " does not exist");
    const artifact::StateTensor &state = *package.state()->Get(derived.state());
    if (state.dtype() != DataType::F32)
      return bad(what, std::string("is made from ") + artifact::EnumNameDataType(state.dtype()) + ", expected F32");
    int64_t elements = state.elements() / context.groupSize(state.shard_group());
    TESSERA_RETURN_IF_ERROR(expectDense(context, derived.buffer(), DataType::BF16, elements, what));
  }
  return Status::ok();
}

/// Each adapter is of a frozen matrix and of two trained ones that fit it.
Status verifyAdapters(const VerifyContext &context) {
  const artifact::Package &package = context.package;
  std::map<std::string_view, std::pair<const artifact::StateTensor *, const artifact::Segment *>> segments;
  for (uint32_t index = 0; index < sizeOf(package.state()); ++index)
    for (uint32_t number = 0; number < sizeOf(package.state()->Get(index)->segments()); ++number) {
      const artifact::StateTensor *state = package.state()->Get(index);
      if (state->role() == artifact::StateRole::Parameter || state->role() == artifact::StateRole::Frozen)
        segments.emplace(state->segments()->Get(number)->name()->string_view(),
                         std::pair(state, state->segments()->Get(number)));
    }
  for (uint32_t index = 0; index < sizeOf(package.adapters()); ++index) {
    const artifact::Adapter &adapter = *package.adapters()->Get(index);
    const std::string what = "adapter of '" + adapter.parameter()->str() + "'";
    if (adapter.rank() < 1 || adapter.input_dim() < 0 || adapter.input_dim() > 1 || !std::isfinite(adapter.scale()))
      return bad(what, "its rank, input dimension or scale is impossible");
    auto check = [&](const flatbuffers::String &name, artifact::StateRole role, int64_t rows, int64_t columns) {
      const auto found = segments.find(name.string_view());
      if (found == segments.end() || found->second.first->role() != role)
        return bad(what, "there is no " + std::string(artifact::EnumNameStateRole(role)) + " '" + name.str() + "'");
      const artifact::Segment &segment = *found->second.second;
      if (sizeOf(segment.shape()) != 2 || (rows > 0 && segment.shape()->Get(0) != rows) ||
          (columns > 0 && segment.shape()->Get(1) != columns))
        return bad(what, "'" + name.str() + "' is of another shape");
      return Status::ok();
    };
    TESSERA_RETURN_IF_ERROR(check(*adapter.parameter(), artifact::StateRole::Frozen, 0, 0));
    const auto &shape = *segments.find(adapter.parameter()->string_view())->second.second->shape();
    const auto inputDim = static_cast<uint32_t>(adapter.input_dim());
    TESSERA_RETURN_IF_ERROR(check(*adapter.a(), artifact::StateRole::Parameter, adapter.rank(), shape.Get(inputDim)));
    TESSERA_RETURN_IF_ERROR(
        check(*adapter.b(), artifact::StateRole::Parameter, shape.Get(1 - inputDim), adapter.rank()));
  }
  return Status::ok();
}

/// Each parameter of the map is one of the program, or none (which the model has and no step reads), and its pieces
/// have each of its elements.
Status verifyWeightMap(const VerifyContext &context) {
  const artifact::Package &package = context.package;
  if (!package.weight_map())
    return Status::ok();
  std::map<std::string_view, const artifact::Segment *> segments;
  for (uint32_t index = 0; index < sizeOf(package.state()); ++index)
    for (uint32_t number = 0; number < sizeOf(package.state()->Get(index)->segments()); ++number) {
      const artifact::Segment *segment = package.state()->Get(index)->segments()->Get(number);
      segments.emplace(segment->name()->string_view(), segment);
    }
  std::set<std::string_view> seen;
  for (uint32_t index = 0; index < sizeOf(package.weight_map()->parameters()); ++index) {
    const artifact::StoredParameter &parameter = *package.weight_map()->parameters()->Get(index);
    const std::string what = "weight map of '" + parameter.name()->str() + "'";
    if (!seen.insert(parameter.name()->string_view()).second)
      return bad(what, "is there twice");
    const auto found = segments.find(parameter.name()->string_view());
    WideInt expected = 1, sum = 0;
    if (found != segments.end() && found->second->shape())
      for (int64_t size : *found->second->shape())
        expected *= size;
    for (uint32_t number = 0; number < sizeOf(parameter.pieces()); ++number) {
      const artifact::WeightPiece &stored = *parameter.pieces()->Get(number);
      if (!isAligned(stored.shape()) || !isAligned(stored.sizes()) || !isAligned(stored.strides()) ||
          !isAligned(stored.tensor_strides()))
        return bad(what, "its numbers are not aligned");
      const WeightPiece piece = WeightPiece::of(stored);
      const int64_t elements = found == segments.end() ? maxElements : static_cast<int64_t>(expected);
      if (std::string problem = piece.check(elements); !problem.empty())
        return bad(what, "the piece of '" + piece.tensor + "' " + problem);
      sum += piece.elements();
    }
    if (found != segments.end() && sizeOf(parameter.pieces()) > 0 && sum != expected)
      return bad(what, "its pieces have not each of its elements once");
  }
  return Status::ok();
}

} // namespace tessera
