//===- VerifyStateTest.cpp - checks of what lives across steps --------------===//

#include "tests/runtime/artifact/VerifyTestSupport.h"

#include <tuple>

namespace tessera {
namespace {

using test::ArtifactBuilder;
using test::expectError;

/// A state tensor of one parameter [rows, columns] that is called as the tensor.
void addState(ArtifactBuilder &builder, const char *name, artifact::StateRole role, int64_t rows, int64_t columns) {
  auto state = std::make_unique<artifact::StateTensorT>();
  state->name = name;
  state->role = role;
  state->elements = rows * columns;
  state->buffer = builder.buffer({static_cast<uint32_t>(state->elements)});
  if (role != artifact::StateRole::Average) {
    auto segment = std::make_unique<artifact::SegmentT>();
    segment->name = name;
    segment->shape = {rows, columns};
    state->segments.push_back(std::move(segment));
  }
  builder.package.state.push_back(std::move(state));
}

TEST(Verify, APlacedParameterIsThereInAllItsParts) {
  ArtifactBuilder builder;
  addState(builder, "u", artifact::StateRole::Parameter, 4, 6);
  addState(builder, "v", artifact::StateRole::Parameter, 4, 6);
  auto &segments = builder.package.state[0]->segments;
  segments.push_back(std::make_unique<artifact::SegmentT>(*segments[0]));
  artifact::SegmentT &first = *segments[0], &second = *segments[1];
  expectError(builder, "parameter 'u': appears twice");
  for (artifact::SegmentT *segment : {&first, &second}) {
    segment->split_dim = 1;
    segment->parts = 2;
  }
  expectError(builder, "parameter 'u': appears twice");
  second.part = 1;
  second.offset = 12;
  ASSERT_STATUS_OK(builder.build());
  second.split_dim = 0;
  expectError(builder, "parameter 'u': has parts that do not belong together");
  second.split_dim = 1;
  second.shape = {6, 4};
  expectError(builder, "parameter 'u': has parts that do not belong together");
  second.shape = first.shape;
  second.name = "w";
  expectError(builder, "parameter 'u': has 1 of 2 parts");
  second.name = "u";
  for (auto [dim, parts, part] : {std::tuple(2, 2, 1), {1, 4, 1}, {1, 2, 2}, {1, 1, 0}, {1, 0, 0}, {-1, 2, 1}}) {
    second.split_dim = dim;
    second.parts = static_cast<uint32_t>(parts);
    second.part = static_cast<uint32_t>(part);
    expectError(builder, "state 'u', parameter 'u': is no part of its shape");
  }
  second.split_dim = 1;
  second.parts = 2;
  second.part = 1;
  builder.package.state[1]->segments[0] = std::make_unique<artifact::SegmentT>(second);
  segments.pop_back();
  expectError(builder, "parameter 'u': has parts in several units");
}

TEST(Verify, AveragesAreOfAllParametersOrNone) {
  ArtifactBuilder builder;
  addState(builder, "u", artifact::StateRole::Parameter, 2, 3);
  addState(builder, "v", artifact::StateRole::Parameter, 2, 3);
  addState(builder, "u", artifact::StateRole::Average, 2, 3);
  expectError(builder, "averages: 1 for 2 parameters");
  addState(builder, "v", artifact::StateRole::Average, 2, 3);
  ASSERT_STATUS_OK(builder.build());
  builder.package.state[3]->name = "u";
  expectError(builder, "average of 'u': occurs twice");
  builder.package.state[3]->name = "w";
  expectError(builder, "average of 'w': there is no parameter of that name and layout");
  builder.package.state[1]->name = "u";
  expectError(builder, "parameter 'u': occurs twice");
}

TEST(Verify, AdaptersFitTheirMatrices) {
  ArtifactBuilder builder;
  addState(builder, "w", artifact::StateRole::Frozen, 4, 6);
  addState(builder, "a", artifact::StateRole::Parameter, 2, 6);
  addState(builder, "b", artifact::StateRole::Parameter, 4, 2);
  auto made = std::make_unique<artifact::AdapterT>();
  artifact::AdapterT &adapter = *made;
  builder.package.adapters.push_back(std::move(made));
  adapter.parameter = "w";
  adapter.a = "a";
  adapter.b = "b";
  adapter.rank = 2;
  adapter.input_dim = 1;
  adapter.scale = 2;
  ASSERT_STATUS_OK(builder.build());
  adapter.input_dim = 0;
  expectError(builder, "adapter of 'w': 'a' is of another shape");
  adapter.input_dim = 2;
  expectError(builder, "its rank, input dimension or scale is impossible");
  adapter.input_dim = 1;
  adapter.scale = std::numeric_limits<double>::infinity();
  expectError(builder, "its rank, input dimension or scale is impossible");
  adapter.scale = 2;
  adapter.b = "none";
  expectError(builder, "adapter of 'w': there is no Parameter 'none'");
  adapter.b = "w";
  expectError(builder, "adapter of 'w': there is no Parameter 'w'");
}

TEST(Verify, PiecesAreAllOfTheirParameter) {
  ArtifactBuilder builder;
  addState(builder, "w", artifact::StateRole::Parameter, 4, 6);
  auto map = std::make_unique<artifact::WeightMapT>();
  auto parameter = std::make_unique<artifact::StoredParameterT>();
  parameter->name = "w";
  for (int half = 0; half < 2; ++half) {
    auto piece = std::make_unique<artifact::WeightPieceT>();
    piece->tensor = half ? "up" : "gate";
    piece->shape = {2, 6};
    piece->sizes = piece->strides = piece->tensor_strides = {1};
    piece->sizes = {12};
    piece->offset = 12 * half;
    parameter->pieces.push_back(std::move(piece));
  }
  auto &pieces = parameter->pieces;
  auto &name = parameter->name;
  map->parameters.push_back(std::move(parameter));
  builder.package.weight_map = std::move(map);
  ASSERT_STATUS_OK(builder.build());
  pieces[1]->offset = 13;
  expectError(builder, "weight map of 'w': the piece of 'up' ends outside the parameter");
  pieces[1]->offset = 12;
  pieces[1]->tensor_offset = 1;
  expectError(builder, "weight map of 'w': the piece of 'up' ends outside the tensor");
  pieces[1]->tensor_offset = 0;
  pieces[1]->sizes = {11};
  expectError(builder, "weight map of 'w': its pieces have not each of its elements once");
  name = "of no step"; // a parameter of the model that no step reads
  ASSERT_STATUS_OK(builder.build());
  builder.package.weight_map->parameters.push_back(
      std::make_unique<artifact::StoredParameterT>(*builder.package.weight_map->parameters[0]));
  expectError(builder, "weight map of 'of no step': is there twice");
}

TEST(Verify, OnlyFrozenParametersAreRounded) {
  ArtifactBuilder builder;
  auto made = std::make_unique<artifact::StateTensorT>();
  artifact::StateTensorT &state = *made;
  state.name = "u";
  state.role = artifact::StateRole::Frozen;
  state.dtype = artifact::DataType::BF16; // of a model in F32
  state.elements = 10;
  state.buffer = builder.buffer({10}, artifact::DataType::BF16);
  builder.package.state.push_back(std::move(made));
  ASSERT_STATUS_OK(builder.build());
  state.model_dtype = artifact::DataType::F64;
  expectError(builder, "state 'u': is not of the model's type, and no frozen parameter that is rounded to bf16 or f16");
  state.model_dtype = artifact::DataType::BF16;
  ASSERT_STATUS_OK(builder.build());
  state.model_dtype = artifact::DataType::F32;
  state.role = artifact::StateRole::Parameter;
  expectError(builder, "state 'u': is not of the model's type");
}

TEST(Verify, DerivedTensorsAreOfAState) {
  ArtifactBuilder builder({{"shard", 2}});
  builder.group({"shard"});
  auto state = std::make_unique<artifact::StateTensorT>();
  state->name = "u";
  state->elements = 20;
  state->shard_group = 0;
  state->buffer = builder.buffer({10});
  builder.package.state.push_back(std::move(state));
  auto derived = std::make_unique<artifact::DerivedTensorT>();
  derived->buffer = builder.buffer({10}, artifact::DataType::BF16);
  builder.package.derived.push_back(std::move(derived));
  ASSERT_TRUE(builder.build().isOk()) << builder.build().status();
  builder.package.derived[0]->state = 1;
  expectError(builder, "derived tensor 0: state 1 does not exist");
  builder.package.derived[0]->state = 0;
  builder.package.derived[0]->buffer = builder.buffer({20}, artifact::DataType::BF16);
  expectError(builder, "derived tensor 0: its buffer of shape [20] does not hold this rank's part");
  builder.package.derived[0]->buffer = builder.buffer({10}, artifact::DataType::F16);
  expectError(builder, "derived tensor 0: its buffer is of type F16, expected BF16");
  builder.package.derived[0]->buffer = 99;
  expectError(builder, "derived tensor 0");
  builder.package.state[0]->dtype = builder.package.state[0]->model_dtype = artifact::DataType::F64;
  builder.package.state[0]->buffer = builder.buffer({10}, artifact::DataType::F64);
  expectError(builder, "derived tensor 0: is made from F64, expected F32");
}

} // namespace
} // namespace tessera
