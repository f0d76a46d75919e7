//===- ModelFolderTest.cpp - weights from and to folders of Hugging Face's --------===//
//
// A model whose parameters its files have under other names: one stacked from the
// tensors of two experts, transposed, one tied.
//
//===----------------------------------------------------------------------===//

#include "runtime/state/ModelFolder.h"
#include "runtime/state/Safetensors.h"
#include "runtime/state/Weights.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/state/StateFixture.h"

#include <barrier>
#include <csignal>
#include <sys/resource.h>
#include <thread>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::FakeState;
using test::ScratchFolder;

const FakeState::Parameter experts{"net.experts", {2, 3, 4}, test::constant(7)},
    table{"net.head", {5, 2}, test::constant(7)}, bias{"net.bias", {3}, test::constant(7)};

/// Each expert is [4, 3] in the files.
WeightPiece expert(int number) {
  return {"model.experts." + std::to_string(number), {4, 3}, {3, 4}, number * 12, {4, 1}, 0, {1, 3}};
}

WeightMap mapOf(std::vector<std::string> unread = {}) {
  return {"net",
          "model",
          {{"net.experts", {{expert(0), expert(1)}, {}}},
           {"net.head", {{WeightPiece::whole("model.wte", {5, 2})}, {"head"}}}},
          std::move(unread)};
}

std::vector<float> numbers(int64_t count, float start) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = start + static_cast<float>(i);
  return values;
}

ByteSpan bytesOf(const std::vector<float> &values) {
  return {reinterpret_cast<const uint8_t *>(values.data()), values.size() * sizeof(float)};
}

class ModelFolder : public testing::Test {
protected:
  void SetUp() override {
    fs::create_directory(like());
    write("model-1.safetensors", {{"model.experts.0", DataType::F32, {4, 3}, {bytesOf(first)}},
                                  {"model.bias", DataType::F32, {3}, {bytesOf(biases)}}});
    write("model-2.safetensors", {{"model.experts.1", DataType::F32, {4, 3}, {bytesOf(second)}},
                                  {"model.wte", DataType::F32, {5, 2}, {bytesOf(rows)}},
                                  {"rotary", DataType::F32, {3}, {bytesOf(others)}}});
    writeIndex(R"("model.experts.0": "model-1.safetensors", "model.bias": "model-1.safetensors",
                 "model.experts.1": "model-2.safetensors", "model.wte": "model-2.safetensors",
                 "rotary": "model-2.safetensors")");
    test::writeFile(like() + "/config.json", R"({"dtype": "float32", "hidden_size": 4})");
    test::writeFile(like() + "/tokenizer.json", "{}");
    test::writeFile(like() + "/training_args.bin", "pickled");
  }

  std::string like() const { return scratch.path("like"); }
  void write(const std::string &name, const std::vector<SafetensorsTensor> &tensors) const {
    ASSERT_STATUS_OK(writeSafetensors(like() + "/" + name, tensors, {{"format", "pt"}}));
  }
  void writeIndex(const std::string &entries) const {
    test::writeFile(like() + "/model.safetensors.index.json", R"({"weight_map": {)" + entries + "}}");
  }

  static Status load(FakeState &state, const std::string &path, const WeightMap &map, WeightOptions options = {}) {
    TESSERA_ASSIGN_OR_RETURN(auto source, WeightSource::open(path));
    TESSERA_RETURN_IF_ERROR(source->assemble(map, shapes()));
    for (const RankState &rank : state.ranks)
      TESSERA_RETURN_IF_ERROR(loadWeights(rank, *source, 1, options));
    return Status::ok();
  }
  static ModelTensors shapes() {
    ModelTensors all;
    for (const FakeState::Parameter &parameter : {experts, table, bias})
      all[parameter.name] = {parameter.shape};
    return all;
  }
  std::vector<float> stacked() const {
    std::vector<float> values;
    for (const std::vector<float> *matrix : {&first, &second})
      for (int row = 0; row < 3; ++row)
        for (int column = 0; column < 4; ++column)
          values.push_back((*matrix)[column * 3 + row]);
    return values;
  }

  ScratchFolder scratch;
  const std::vector<float> first = numbers(12, 100), second = numbers(12, 200), rows = numbers(10, 300),
                           biases = numbers(3, 400), others = numbers(3, 500);
};

TEST_F(ModelFolder, ParametersAreAssembledOnAnyRanks) {
  for (int ranks : {1, 2, 3, 5}) {
    FakeState state({{experts, table}, {bias}}, ranks);
    ASSERT_STATUS_OK(load(state, like(), mapOf({"rotary"}), {.unread = {"rotary"}}));
    EXPECT_EQ(state.gather("net.experts"), stacked());
    EXPECT_EQ(state.gather("net.head"), rows);
    EXPECT_EQ(state.gather("net.bias"), biases);
  }
}

/// Of a transposed tensor, whose elements lie everywhere, it reads the whole once.
TEST_F(ModelFolder, EachRankReadsWhatItHolds) {
  constexpr int64_t long_ = 512, wide = 256;
  const FakeState::Parameter plain{"net.plain", {long_, wide}, {}}, more{"net.more", {long_, wide}, {}},
      turned{"net.turned", {wide, long_}, {}}, again{"net.again", {wide, long_}, {}};
  auto turn = [&](const std::string &name) {
    return WeightPiece{name, {long_, wide}, {wide, long_}, 0, {long_, 1}, 0, {1, wide}};
  };
  const WeightMap map("net", "", {{"net.turned", {{turn("turned")}, {}}}, {"net.again", {{turn("again")}, {}}}});
  const std::vector<float> values = numbers(long_ * wide, 1);
  const uint64_t tensor = values.size() * sizeof(float);
  std::vector<SafetensorsTensor> tensors;
  ModelTensors parameters;
  for (const FakeState::Parameter &parameter : {plain, more, turned, again}) {
    tensors.push_back({parameter.name.substr(4), DataType::F32, {long_, wide}, {bytesOf(values)}});
    parameters[parameter.name] = {parameter.shape};
  }
  ASSERT_STATUS_OK(writeSafetensors(scratch.path("large.safetensors"), tensors));
  FakeState state({{plain, more}, {turned, again}}, 8, true, {StateRole::Parameter});
  auto source = WeightSource::open(scratch.path("large.safetensors"));
  ASSERT_STATUS_OK(source);
  ASSERT_STATUS_OK((*source)->assemble(map, parameters));
  for (const RankState &rank : state.ranks) {
    uint64_t held = 0, turnedTensors = 0;
    for (const StateView &view : rank) {
      held += view.unit == "unit0" ? view.localBytes() : 0;
      for (const ParameterSegment &segment : view.segments)
        turnedTensors += view.unit == "unit1" && overlap(view, segment).begin < overlap(view, segment).end;
    }
    const uint64_t before = InputFile::readsOfProcess().bytes;
    ASSERT_STATUS_OK(loadWeights(rank, **source, 1, {}));
    EXPECT_EQ(InputFile::readsOfProcess().bytes - before, held + turnedTensors * tensor);
    EXPECT_LE(turnedTensors, 2u);
  }
  EXPECT_EQ(state.gather("net.more"), values);
  EXPECT_EQ(state.gather("net.again")[1], values[wide]);
}

TEST_F(ModelFolder, NamesAreThoseOfTheProgramToo) {
  const std::vector<float> all = numbers(24, 1);
  ASSERT_STATUS_OK(
      writeSafetensors(scratch.path("own.safetensors"), {{"net.experts", DataType::F32, {2, 3, 4}, {bytesOf(all)}},
                                                         {"net.head", DataType::F32, {5, 2}, {bytesOf(rows)}},
                                                         {"net.bias", DataType::F32, {3}, {bytesOf(biases)}}}));
  FakeState state({{experts, table, bias}}, 2);
  ASSERT_STATUS_OK(load(state, scratch.path("own.safetensors"), mapOf()));
  EXPECT_EQ(state.gather("net.experts"), all);
}

TEST_F(ModelFolder, PrefixesAndOtherNames) {
  std::vector<float> other = rows;
  auto save = [&](const std::string &name, const std::vector<float> &head) {
    std::vector<SafetensorsTensor> tensors = {{"experts.0", DataType::F32, {4, 3}, {bytesOf(first)}},
                                              {"experts.1", DataType::F32, {4, 3}, {bytesOf(second)}},
                                              {"bias", DataType::F32, {3}, {bytesOf(biases)}},
                                              {"head", DataType::F32, {5, 2}, {bytesOf(head)}}};
    if (name == "both")
      tensors.push_back({"wte", DataType::F32, {5, 2}, {bytesOf(rows)}});
    return writeSafetensors(scratch.path(name + ".safetensors"), tensors).status();
  };
  FakeState state({{experts, table, bias}}, 2);
  ASSERT_STATUS_OK(save("other", other));
  ASSERT_STATUS_OK(load(state, scratch.path("other.safetensors"), mapOf()));
  EXPECT_EQ(state.gather("net.head"), rows);
  ASSERT_STATUS_OK(save("both", other));
  ASSERT_STATUS_OK(load(state, scratch.path("both.safetensors"), mapOf()));
  other[3] = 0;
  ASSERT_STATUS_OK(save("both", other));
  EXPECT_ERROR(load(state, scratch.path("both.safetensors"), mapOf()),
               "the tensors 'wte' and 'head' are one parameter of the model, and have different values here");
}

TEST_F(ModelFolder, WhatIsMissingAndWhatDoesNotFit) {
  FakeState state({{experts, table, bias}}, 2);
  write("model-2.safetensors", {{"model.wte", DataType::F32, {2, 5}, {bytesOf(rows)}}});
  writeIndex(R"("model.experts.0": "model-1.safetensors", "model.wte": "model-2.safetensors")");
  EXPECT_ERROR(load(state, like(), mapOf()),
               "missing: 'net.experts' (tensor 'model.experts.1'); not in the program: 'model.experts.0'; mismatched: "
               "'net.head' has shape [2,5], expected [5,2]");
  write("model-2.safetensors", {{"model.experts.1", DataType::F32, {3, 4}, {bytesOf(second)}},
                                {"model.wte", DataType::F32, {5, 2}, {bytesOf(rows)}}});
  EXPECT_ERROR(load(state, like(), mapOf()), "'net.experts' is made of 'model.experts.1', which has shape [3,4], "
                                             "expected [4,3]");
  EXPECT_ERROR(load(state, like(), WeightMap("net", "model", {}), {.unmapped = "a rule is not understood"}),
               "does not know the names of Hugging Face's files: a rule is not understood");
}

TEST_F(ModelFolder, PartsThatMayBeMissing) {
  FakeState state({{experts, table, bias}}, 2);
  write("model-2.safetensors", {{"model.experts.1", DataType::F32, {4, 3}, {bytesOf(second)}},
                                {"model.wte", DataType::F32, {2, 5}, {bytesOf(rows)}},
                                {"score", DataType::F32, {3}, {bytesOf(others)}}});
  writeIndex(R"("model.experts.0": "model-1.safetensors", "score": "model-2.safetensors")");
  WeightOptions options;
  options.isPartial = [](const std::string &name) { return name == "net.head" || name == "score"; };
  ASSERT_STATUS_OK(load(state, like(), mapOf(), options));
  EXPECT_EQ(state.gather("net.head"), std::vector<float>(10, 7));
  EXPECT_EQ(state.gather("net.experts"), stacked());
}

TEST_F(ModelFolder, IndexesThatLie) {
  FakeState state({{experts, table, bias}}, 1);
  const WeightMap map = mapOf();
  writeIndex(R"("model.wte": "model-3.safetensors")");
  EXPECT_ERROR(load(state, like(), map), "model-3.safetensors', which '");
  writeIndex(R"("model.nothing": "model-1.safetensors")");
  EXPECT_ERROR(load(state, like(), map), "has no tensor 'model.nothing', which the folder's index says is there");
  writeIndex(R"("model.wte": "../model-1.safetensors")");
  EXPECT_ERROR(load(state, like(), map), "is in no file of the folder");
  writeIndex("");
  EXPECT_ERROR(load(state, like(), map), "is not an index of weights");
  fs::remove_all(like());
  fs::create_directory(like());
  test::writeFile(like() + "/pytorch_model-00001-of-00002.bin", "pickled");
  EXPECT_ERROR(load(state, like(), map), "pickled weights, which are not read");
}

TEST_F(ModelFolder, IsWrittenAsItWasRead) {
  for (int ranks : {1, 2, 3, 5}) {
    FakeState state({{experts, table}, {bias}}, ranks), again({{bias, experts, table}}, 2);
    ASSERT_STATUS_OK(load(state, like(), mapOf(), {.unread = {"rotary"}}));
    const std::string out = scratch.path("out" + std::to_string(ranks));
    const ModelFolderOptions options{.folder = out, .like = like()};
    auto plan = ModelFolderPlan::make(options, mapOf({"rotary"}), shapes());
    ASSERT_STATUS_OK(plan.status());
    EXPECT_TRUE(plan->unknownCopies().empty());
    ASSERT_STATUS_OK(writeModelFolder(options, *plan, state.ranks, StateRole::Parameter));
    ASSERT_STATUS_OK(load(again, out, mapOf(), {.unread = {"rotary"}}));
    EXPECT_EQ(again.gather("net.experts"), stacked());
    for (const char *name : {"model-1.safetensors", "model-2.safetensors"}) {
      auto made = SafetensorsFile::open(out + "/" + name), was = SafetensorsFile::open(like() + "/" + name);
      ASSERT_STATUS_OK(made.status());
      EXPECT_EQ(made->metadata(), was->metadata());
      for (const auto &[tensor, entry] : was->tensors()) {
        ASSERT_TRUE(made->find(tensor));
        EXPECT_EQ(*made->find(tensor)->bytes.readAll(), *entry.bytes.readAll()) << tensor;
      }
    }
    EXPECT_EQ(test::readFile(out + "/config.json"), test::readFile(like() + "/config.json"));
    EXPECT_TRUE(fs::exists(out + "/tokenizer.json"));
    EXPECT_FALSE(fs::exists(out + "/training_args.bin"));
    EXPECT_ERROR(writeModelFolder(options, *plan, state.ranks, StateRole::Parameter), "is not written");
  }
  for (const fs::directory_entry &entry : fs::directory_iterator(scratch.root()))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
}

TEST_F(ModelFolder, AnotherType) {
  FakeState state({{experts, table, bias}}, 2), again({{experts, table, bias}}, 1);
  ASSERT_STATUS_OK(load(state, like(), mapOf(), {.unread = {"rotary"}}));
  const ModelFolderOptions options{.folder = scratch.path("out"), .like = like(), .dtype = DataType::BF16};
  auto plan = ModelFolderPlan::make(options, mapOf(), shapes());
  ASSERT_STATUS_OK(plan.status());
  EXPECT_EQ(plan->unknownCopies(), std::vector<std::string>{"rotary"});
  ASSERT_STATUS_OK(writeModelFolder(options, *plan, state.ranks, StateRole::Parameter));
  auto file = SafetensorsFile::open(options.folder + "/model-2.safetensors");
  ASSERT_STATUS_OK(file.status());
  for (const auto &[name, entry] : file->tensors())
    EXPECT_EQ(entry.dtype, DataType::BF16) << name;
  ASSERT_STATUS_OK(load(again, options.folder, mapOf(), {.unread = {"rotary"}}));
  EXPECT_EQ(again.gather("net.head"), std::vector<float>({300, 300, 302, 304, 304, 304, 306, 308, 308, 308}));
  EXPECT_NE(test::readFile(options.folder + "/config.json").find(R"("dtype": "bfloat16")"), std::string::npos);
}

TEST_F(ModelFolder, NoSpaceLeavesNothing) {
  FakeState state({{experts, table, bias}}, 2);
  ASSERT_STATUS_OK(load(state, like(), mapOf(), {.unread = {"rotary"}}));
  const ModelFolderOptions options{.folder = scratch.path("out"), .like = like()};
  auto plan = ModelFolderPlan::make(options, mapOf(), shapes());
  ASSERT_STATUS_OK(plan.status());
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{64, before.rlim_max}; // bytes of a file, less than its header has
  setrlimit(RLIMIT_FSIZE, &limit);
  const Status written = writeModelFolder(options, *plan, state.ranks, StateRole::Parameter);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_ERROR(written, "is not written");
  for (const fs::directory_entry &entry : fs::directory_iterator(scratch.root()))
    EXPECT_EQ(entry.path().filename(), "like");
}

TEST_F(ModelFolder, OfATrainingFromTheBeginning) {
  FakeState state({{experts, table, bias}}, 2), again({{experts, table, bias}}, 1);
  ASSERT_STATUS_OK(load(state, like(), mapOf(), {.unread = {"rotary"}}));
  for (const char *name : {"model-1.safetensors", "model-2.safetensors", "model.safetensors.index.json"})
    fs::remove(like() + "/" + name);
  for (DataType dtype : {DataType::F32, DataType::BF16}) {
    test::writeFile(like() + "/config.json", dtype == DataType::F32 ? "{}" : R"({"dtype": "bfloat16"})");
    const ModelFolderOptions options{.folder = scratch.path(safetensorsName(dtype).data()), .like = like()};
    auto plan = ModelFolderPlan::make(options, mapOf(), shapes());
    ASSERT_STATUS_OK(plan.status());
    ASSERT_STATUS_OK(writeModelFolder(options, *plan, state.ranks, StateRole::Parameter));
    EXPECT_FALSE(fs::exists(options.folder + "/model.safetensors.index.json"));
    EXPECT_TRUE(fs::exists(options.folder + "/tokenizer.json"));
    auto file = SafetensorsFile::open(options.folder + "/model.safetensors");
    ASSERT_STATUS_OK(file.status());
    EXPECT_EQ(file->metadata().at("format"), "pt");
    ASSERT_EQ(file->tensors().size(), 4u); // both experts, the table, the bias
    EXPECT_EQ(file->find("model.experts.1")->shape, (std::vector<int64_t>{4, 3}));
    for (const auto &[name, entry] : file->tensors())
      EXPECT_EQ(entry.dtype, dtype) << name;
    ASSERT_STATUS_OK(load(again, options.folder, mapOf()));
    EXPECT_EQ(again.gather("net.bias"), dtype == DataType::F32 ? biases : std::vector<float>({400, 400, 402}));
    if (dtype == DataType::F32) {
      EXPECT_EQ(again.gather("net.experts"), stacked());
    }
  }
  test::writeFile(like() + "/pytorch_model.bin", "pickled");
  EXPECT_ERROR(ModelFolderPlan::make({.folder = "out", .like = like()}, mapOf(), shapes()), "pickled weights");
}

TEST_F(ModelFolder, SeveralProcessesWriteOne) {
  FakeState state({{experts, table}, {bias}}, 3), again({{experts, table, bias}}, 1);
  ASSERT_STATUS_OK(load(state, like(), mapOf(), {.unread = {"rotary"}}));
  std::vector<std::string> texts(3);
  std::barrier meeting(3);
  std::vector<Status> statuses(3);
  auto run = [&](const std::string &folder, bool fails) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        ModelFolderOptions options{.folder = folder, .like = like()};
        options.peers = {rank, [&, rank](const std::string &text) -> Result<std::vector<std::string>> {
                           texts[rank] = text;
                           meeting.arrive_and_wait();
                           std::vector<std::string> all = texts;
                           if (fails && rank == 2 && all[0].size() > 1 && fs::exists(all[0].substr(1)))
                             fs::remove(all[0].substr(1) + "/model-2.safetensors");
                           meeting.arrive_and_wait();
                           return all;
                         }};
        auto plan = ModelFolderPlan::make(options, mapOf({"rotary"}), shapes());
        statuses[rank] = writeModelFolder(options, *plan, {state.ranks[rank]}, StateRole::Parameter);
      });
    for (std::thread &thread : threads)
      thread.join();
  };
  run(scratch.path("out"), false);
  for (const Status &status : statuses)
    ASSERT_STATUS_OK(status);
  ASSERT_STATUS_OK(load(again, scratch.path("out"), mapOf(), {.unread = {"rotary"}}));
  EXPECT_EQ(again.gather("net.experts"), stacked());
  EXPECT_EQ(again.gather("net.bias"), biases);
  run(scratch.path("failed"), true);
  for (const Status &status : statuses)
    EXPECT_ERROR(status, "is not written");
  size_t entries = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator(scratch.root()))
    entries += entry.is_directory();
  EXPECT_EQ(entries, 2u); // `like` and `out`
}

TEST_F(ModelFolder, OfAnotherModel) {
  const ModelFolderOptions options{.folder = scratch.path("out"), .like = like()};
  auto parameters = shapes();
  parameters["net.more"] = {{2}};
  EXPECT_ERROR(ModelFolderPlan::make(options, mapOf(), parameters), "it has no tensor for 'net.more'");
  parameters = shapes();
  parameters["net.bias"] = {{4}};
  EXPECT_ERROR(ModelFolderPlan::make(options, mapOf(), parameters), "'model.bias' has shape [3] there, expected [4]");
  parameters["net.bias"] = {{3}, DataType::I32};
  EXPECT_ERROR(ModelFolderPlan::make(options, mapOf(), parameters), "'model.bias' is of type F32 there");
  const WeightMap half("net", "model",
                       {{"net.experts", {{expert(0), expert(1)}, {}}},
                        {"net.head", {{{"model.wte", {5, 2}, {5}, 0, {1}, 0, {1}}}, {}}}});
  EXPECT_ERROR(ModelFolderPlan::make(options, half, shapes()), "the program has a part of 'model.wte' only");
  EXPECT_ERROR(ModelFolderPlan::make(options, WeightMap("", "", {}, {}, "why not"), shapes()), "why not");
}

TEST_F(ModelFolder, AdaptersAreAddedWhereTheirMatrixLies) {
  const FakeState::Parameter a{"net.head.lora_A.weight", {1, 2}, {}}, b{"net.head.lora_B.weight", {5, 1}, {}};
  for (int ranks : {1, 3}) {
    FakeState state({{experts, table, bias}, {a, b}}, ranks), again({{experts, table, bias}}, 1);
    ASSERT_STATUS_OK(load(again, like(), mapOf(), {.unread = {"rotary"}}));
    state.fill(2);
    auto products = gatherProducts({}, state.ranks, {{"net.head", a.name, b.name, 1, 1, 0.5}}, StateRole::Parameter);
    ASSERT_STATUS_OK(products.status());
    const ModelFolderOptions options{.folder = scratch.path("out" + std::to_string(ranks)), .like = like()};
    auto plan = ModelFolderPlan::make(options, mapOf(), shapes());
    ASSERT_STATUS_OK(plan.status());
    ASSERT_STATUS_OK(writeModelFolder(options, *plan, state.ranks, StateRole::Parameter, *products));
    ASSERT_STATUS_OK(load(again, options.folder, mapOf(), {.unread = {"rotary"}}));
    EXPECT_EQ(again.gather("net.head"), std::vector<float>(10, 4)); // 2 + 0.5 * (2 * 2)
    EXPECT_EQ(again.gather("net.bias"), std::vector<float>(3, 2));
  }
}

} // namespace
} // namespace tessera
