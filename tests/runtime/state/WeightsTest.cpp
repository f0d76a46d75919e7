//===- WeightsTest.cpp - parameters from safetensors and ONNX ----------------------===//

#include "runtime/state/Weights.h"
#include "runtime/state/Checkpoint.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/state/StateFixture.h"

#include <onnx/onnx_pb.h>

namespace tessera {
namespace {

using test::FakeState;
using test::ScratchFolder;

template <typename T> ByteSpan bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const uint8_t *>(values.data()), values.size() * sizeof(T)};
}

const std::vector<float> wValues = {1, 2, 3, 4, 5, 6}, bValues = {0.5f, 0.25f, 3};
const FakeState::Parameter w{"w", {2, 3}, {}}, b{"b", {3}, test::constant(9)};

Status load(FakeState &state, const std::string &path, const WeightOptions &options = {}) {
  TESSERA_ASSIGN_OR_RETURN(auto source, WeightSource::open(path));
  for (const RankState &rank : state.ranks)
    TESSERA_RETURN_IF_ERROR(loadWeights(rank, *source, 1, options));
  return Status::ok();
}

TEST(Weights, FillUnitsThroughTheirSegments) {
  ScratchFolder scratch;
  std::vector<uint16_t> halves = {0x3800, 0x3400, 0x4200}; // bValues
  ASSERT_STATUS_OK(writeSafetensors(scratch.path("w.safetensors"), {{"w", DataType::F32, {2, 3}, {bytesOf(wValues)}},
                                                                    {"b", DataType::F16, {3}, {bytesOf(halves)}}}));
  for (int ranks : {1, 2, 3, 4}) {
    FakeState state({{w, b}}, ranks);
    ASSERT_STATUS_OK(load(state, scratch.path("w.safetensors")));
    EXPECT_EQ(state.gather("w"), wValues);
    EXPECT_EQ(state.gather("b"), bValues);
    EXPECT_EQ(state.gather("w", test::moment1), std::vector<float>(6, 0.0f));
  }
}

TEST(Weights, FolderOfSeveralFiles) {
  ScratchFolder scratch;
  ASSERT_STATUS_OK(
      writeSafetensors(scratch.path("m-1.safetensors"), {{"w", DataType::F32, {2, 3}, {bytesOf(wValues)}}}));
  ASSERT_STATUS_OK(writeSafetensors(scratch.path("m-2.safetensors"), {{"b", DataType::F32, {3}, {bytesOf(bValues)}}}));
  FakeState state({{w, b}}, 2);
  ASSERT_STATUS_OK(load(state, scratch.root()));
  EXPECT_EQ(state.gather("b"), bValues);
  ASSERT_STATUS_OK(writeSafetensors(scratch.path("m-3.safetensors"), {{"b", DataType::F32, {3}, {bytesOf(bValues)}}}));
  EXPECT_ERROR(load(state, scratch.root()), "tensor 'b' is in");
  ScratchFolder empty;
  EXPECT_ERROR(load(state, empty.root()), "has no .safetensors file");
}

TEST(Weights, AFileThatBecomesShorterIsAnErrorOfReading) {
  ScratchFolder scratch;
  std::string path = scratch.path("w.safetensors");
  const FakeState::Parameter large{"w", {100, 100}, {}};
  std::vector<uint16_t> halves(10000);
  std::vector<float> values(10000, 2.0f);
  // With and without a conversion.
  for (const SafetensorsTensor &tensor : {SafetensorsTensor{"w", DataType::F32, {100, 100}, {bytesOf(values)}},
                                          SafetensorsTensor{"w", DataType::F16, {100, 100}, {bytesOf(halves)}}}) {
    ASSERT_STATUS_OK(writeSafetensors(path, {tensor}));
    FakeState state({{large}}, 2);
    auto source = WeightSource::open(path);
    ASSERT_STATUS_OK(source);
    std::filesystem::resize_file(path, 4096);
    EXPECT_ERROR(loadWeights(state.ranks[0], **source, 1), "'" + path + "' has become shorter while it was read");
    EXPECT_ERROR((*source)->fingerprint(), "'" + path + "' has become shorter while it was read");
  }
}

TEST(Weights, FingerprintIsOfNamesAndContent) {
  ScratchFolder scratch;
  auto fingerprintOf = [&](const std::string &file, const std::string &name, const std::vector<float> &values,
                           std::vector<int64_t> shape) {
    EXPECT_TRUE(
        writeSafetensors(scratch.path(file), {{name, DataType::F32, std::move(shape), {bytesOf(values)}}}).isOk());
    auto source = WeightSource::open(scratch.path(file));
    EXPECT_TRUE(source.isOk()) << source.status();
    return *(*source)->fingerprint();
  };
  std::string first = fingerprintOf("a.safetensors", "w", wValues, {2, 3});
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(fingerprintOf("sub.safetensors", "w", wValues, {2, 3}), first);
  EXPECT_NE(fingerprintOf("b.safetensors", "v", wValues, {2, 3}), first);
  EXPECT_NE(fingerprintOf("b.safetensors", "w", wValues, {3, 2}), first);
  std::vector<float> other = wValues;
  other[5] = 7;
  EXPECT_NE(fingerprintOf("b.safetensors", "w", other, {2, 3}), first);
}

TEST(Weights, AllDifferencesAreReportedAtOnce) {
  ScratchFolder scratch;
  ASSERT_STATUS_OK(writeSafetensors(scratch.path("w.safetensors"), {{"b", DataType::F32, {1, 3}, {bytesOf(bValues)}},
                                                                    {"x", DataType::F32, {3}, {bytesOf(bValues)}}}));
  FakeState state({{w, b}}, 1);
  Status status = load(state, scratch.path("w.safetensors"));
  EXPECT_ERROR(status, "missing: 'w'");
  EXPECT_ERROR(status, "not in the program: 'x'");
  EXPECT_ERROR(status, "'b' has shape [1,3], expected [3]");
}

TEST(Weights, OfTensorsThatNothingReadsNoneIsMissed) {
  ScratchFolder scratch;
  ASSERT_STATUS_OK(
      writeSafetensors(scratch.path("w.safetensors"), {{"w", DataType::F32, {2, 3}, {bytesOf(wValues)}},
                                                       {"b", DataType::F32, {3}, {bytesOf(bValues)}},
                                                       {"unused", DataType::F32, {3}, {bytesOf(bValues)}},
                                                       {"table", DataType::F32, {3}, {bytesOf(bValues)}}}));
  FakeState state({{w, b}}, 1);
  WeightOptions options;
  options.unread = {"unused"};
  options.constants = {"table"};
  EXPECT_ERROR(load(state, scratch.path("w.safetensors"), options),
               "constants of the compiled step, whose values here would change nothing: leave out: 'table'");
  options.unread.insert("table");
  ASSERT_STATUS_OK(load(state, scratch.path("w.safetensors"), options));
}

TEST(Weights, MissingAndExtraNamesCanBeAllowed) {
  ScratchFolder scratch;
  ASSERT_STATUS_OK(writeSafetensors(scratch.path("w.safetensors"), {{"w", DataType::F32, {2, 3}, {bytesOf(wValues)}},
                                                                    {"x", DataType::F32, {3}, {bytesOf(bValues)}}}));
  FakeState state({{w, b}}, 2);
  ASSERT_STATUS_OK(load(state, scratch.path("w.safetensors"), {.allowMissing = true, .allowExtra = true}));
  EXPECT_EQ(state.gather("w"), wValues);
  EXPECT_EQ(state.gather("b"), std::vector<float>(3, 9.0f)); // its seeded value
}

onnx::TensorProto *addTensor(onnx::ModelProto &model, const std::string &name, const std::vector<int64_t> &shape,
                             onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT) {
  onnx::TensorProto *tensor = model.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (int64_t size : shape)
    tensor->add_dims(size);
  return tensor;
}

void setExternal(onnx::TensorProto *tensor, const std::map<std::string, std::string> &entries) {
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  tensor->clear_external_data();
  for (const auto &[key, value] : entries) {
    onnx::StringStringEntryProto *entry = tensor->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
}

TEST(OnnxWeights, AllWaysToStoreValues) {
  ScratchFolder scratch;
  onnx::ModelProto model;
  addTensor(model, "w", {2, 3})->set_raw_data(std::string(reinterpret_cast<const char *>(wValues.data()), 24));
  onnx::TensorProto *floats = addTensor(model, "b", {3});
  for (float value : bValues)
    floats->add_float_data(value);
  onnx::TensorProto *halves = addTensor(model, "half", {2}, onnx::TensorProto::FLOAT16);
  halves->add_int32_data(0x3c00);
  halves->add_int32_data(0x4000);
  addTensor(model, "shape", {1}, onnx::TensorProto::INT64)->add_int64_data(3); // no parameter
  std::string pad(8, '\0');
  test::writeFile(scratch.path("data/model.bin"),
                  pad + std::string(reinterpret_cast<const char *>(bValues.data()), 12));
  setExternal(addTensor(model, "outside", {3}), {{"location", "data/model.bin"}, {"offset", "8"}, {"length", "12"}});
  test::writeFile(scratch.path("m.onnx"), model.SerializeAsString());

  FakeState state({{w, b, {"half", {2}, {}}, {"outside", {3}, {}}}}, 2);
  ASSERT_STATUS_OK(load(state, scratch.path("m.onnx")));
  EXPECT_EQ(state.gather("w"), wValues);
  EXPECT_EQ(state.gather("b"), bValues);
  EXPECT_EQ(state.gather("half"), (std::vector<float>{1, 2}));
  EXPECT_EQ(state.gather("outside"), bValues);
}

TEST(OnnxWeights, ExternalDataThatBecomeShorterAreAnErrorOfReading) {
  ScratchFolder scratch;
  onnx::ModelProto model;
  setExternal(addTensor(model, "w", {10000}), {{"location", "x.bin"}});
  test::writeFile(scratch.path("x.bin"), std::string(40000, '\0'));
  test::writeFile(scratch.path("m.onnx"), model.SerializeAsString());
  FakeState state({{{"w", {10000}, {}}}}, 1);
  auto source = WeightSource::open(scratch.path("m.onnx"));
  ASSERT_STATUS_OK(source);
  std::filesystem::resize_file(scratch.path("x.bin"), 4096);
  EXPECT_ERROR(loadWeights(state.ranks[0], **source, 1),
               "'" + scratch.path("x.bin") + "' has become shorter while it was read");
}

TEST(OnnxWeights, SurvivesDamage) {
  ScratchFolder scratch;
  std::string path = scratch.path("m.onnx");
  onnx::ModelProto model;
  addTensor(model, "w", {2, 3})->set_raw_data(std::string(reinterpret_cast<const char *>(wValues.data()), 24));
  for (float value : bValues)
    (model.mutable_graph()->initializer_size() == 1 ? addTensor(model, "b", {3})
                                                    : model.mutable_graph()->mutable_initializer(1))
        ->add_float_data(value);
  test::writeFile(scratch.path("x.bin"), "123412341234");
  setExternal(addTensor(model, "e", {3}), {{"location", "x.bin"}, {"offset", "0"}, {"length", "12"}});
  std::string whole = model.SerializeAsString();
  int accepted = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    test::writeFile(path, test::damaged(whole, seed));
    FakeState state({{w, b, {"e", {3}, {}}}}, 1);
    accepted += load(state, path).isOk();
  }
  EXPECT_LT(accepted, 700);
}

TEST(OnnxWeights, BadModels) {
  ScratchFolder scratch;
  FakeState state({{{"w", {3}, {}}}}, 1);
  std::string path = scratch.path("m.onnx");
  EXPECT_ERROR(load(state, path), "no such file");
  for (const char *content : {"", "random bytes that are no model"}) {
    test::writeFile(path, content);
    EXPECT_ERROR(load(state, path), "is not an ONNX model");
  }
  onnx::ModelProto model;
  onnx::TensorProto *tensor = addTensor(model, "w", {3});
  auto tryModel = [&] {
    test::writeFile(path, model.SerializeAsString());
    return load(state, path);
  };
  tensor->set_raw_data("12345678");
  EXPECT_ERROR(tryModel(), "'w' has 8 bytes, expected 12 for shape [3]");
  tensor->set_dims(0, -3);
  EXPECT_ERROR(tryModel(), "invalid shape, [-3]");
  tensor->set_dims(0, 3);
  test::writeFile(scratch.path("short.bin"), "1234");
  for (auto [location, message] :
       std::initializer_list<std::pair<const char *, const char *>>{{"../x.bin", "not inside the model's folder"},
                                                                    {"a/../../x.bin", "not inside the model's folder"},
                                                                    {"/etc/passwd", "not inside the model's folder"},
                                                                    {"", "not inside the model's folder"},
                                                                    {"missing.bin", "no such file"},
                                                                    {"short.bin", "which has only 4"}}) {
    setExternal(tensor, {{"location", location}});
    EXPECT_ERROR(tryModel(), message);
  }
  setExternal(tensor, {{"location", "short.bin"}, {"offset", "-1"}});
  EXPECT_ERROR(tryModel(), "expected a number");
  setExternal(tensor, {{"location", "short.bin"}, {"offset", "900000000000000000"}});
  EXPECT_ERROR(tryModel(), "which has only 4");
}

} // namespace
} // namespace tessera
