//===- Pt2WeightsTest.cpp - parameters from what torch.export.save writes ----------===//

#include "runtime/state/Weights.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/state/StateFixture.h"

#include <map>
#include <zip.h>

namespace tessera {
namespace {

using test::FakeState;
using test::ScratchFolder;

template <typename T> std::string textOf(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

/// Entries of an archive by name.
using Entries = std::map<std::string, std::string>;

void writeZip(const std::string &path, const Entries &entries, int method = ZIP_CM_STORE) {
  int code = 0;
  zip_t *archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  ASSERT_NE(archive, nullptr);
  for (const auto &[name, content] : entries) {
    zip_int64_t index = zip_file_add(archive, name.c_str(),
                                     zip_source_buffer(archive, content.data(), content.size(), 0), ZIP_FL_ENC_UTF_8);
    ASSERT_GE(index, 0);
    ASSERT_EQ(zip_set_file_compression(archive, index, method, 0), 0);
  }
  ASSERT_EQ(zip_close(archive), 0);
}

std::string numbers(const std::vector<int64_t> &values) {
  std::string text;
  for (int64_t value : values)
    text += (text.empty() ? "{\"as_int\": " : ", {\"as_int\": ") + std::to_string(value) + "}";
  return "[" + text + "]";
}

std::string payload(const std::string &file, int type, const std::vector<int64_t> &sizes,
                    const std::vector<int64_t> &strides, int64_t offset = 0, const std::string &pickled = "false") {
  return "{\"path_name\": \"" + file + "\", \"is_param\": true, \"use_pickle\": " + pickled +
         ", \"tensor_meta\": {\"dtype\": " + std::to_string(type) + ", \"sizes\": " + numbers(sizes) +
         ", \"requires_grad\": true, \"device\": {\"type\": \"cpu\", \"index\": null}, \"strides\": " +
         numbers(strides) + ", \"storage_offset\": {\"as_int\": " + std::to_string(offset) + "}, \"layout\": 7}}";
}

std::string table(const std::map<std::string, std::string> &payloads) {
  std::string text;
  for (const auto &[name, description] : payloads)
    text += (text.empty() ? "" : ", ") + ("\"" + name + "\": ") + description;
  return "{\"config\": {" + text + "}}";
}

constexpr int isF16 = 6, isF32 = 7, isComplexHalf = 9, isComplex = 10;
const std::string weightTable = "m/data/weights/model_weights_config.json";
const std::vector<float> wValues = {1, 2, 3, 4, 5, 6}, bValues = {0.5f, 0.25f, 3};

/// An archive of weights that `payloads` describe, with the two storages "weight_0" (wValues) and "weight_1" (bValues).
Entries archiveOf(const std::map<std::string, std::string> &payloads) {
  return {{"m/archive_format", "pt2"},
          {"m/archive_version", "0"},
          {"m/byteorder", "little"},
          {"m/models/model.json", "{}"},
          {"m/data/weights/weight_0", textOf(wValues)},
          {"m/data/weights/weight_1", textOf(bValues)},
          {weightTable, table(payloads)},
          {"m/data/constants/model_constants_config.json", "{\"config\": {}}"}};
}

Status load(FakeState &state, const std::string &path, const WeightOptions &options = {}) {
  TESSERA_ASSIGN_OR_RETURN(auto source, WeightSource::open(path));
  for (const RankState &rank : state.ranks)
    TESSERA_RETURN_IF_ERROR(loadWeights(rank, *source, 1, options));
  return Status::ok();
}

class Pt2Weights : public ::testing::Test {
protected:
  /// What comes of loading a parameter "w" of 3 from such an archive.
  Status tryEntries(const Entries &entries, int method = ZIP_CM_STORE) {
    writeZip(path, entries, method);
    FakeState state({{{"w", {3}, {}}}}, 1);
    return load(state, path);
  }
  Status tryPayload(const std::string &description) { return tryEntries(archiveOf({{"w", description}})); }

  ScratchFolder scratch;
  std::string path = scratch.path("m.pt2");
};

TEST_F(Pt2Weights, ContiguousStridedTiedAndConstant) {
  Entries entries = archiveOf({{"w", payload("weight_0", isF32, {2, 3}, {3, 1})},
                               {"tied", payload("weight_0", isF32, {2, 3}, {3, 1})},
                               {"transposed", payload("weight_0", isF32, {3, 2}, {1, 3})},
                               {"row", payload("weight_0", isF32, {3}, {1}, 3)},
                               {"column", payload("weight_0", isF32, {2}, {3}, 1)},
                               {"repeated", payload("weight_1", isF32, {2, 3}, {0, 1})},
                               {"half", payload("weight_2", isF16, {2}, {1})},
                               {"scalar", payload("weight_1", isF32, {}, {}, 2)}});
  entries["m/data/weights/weight_2"] = textOf(std::vector<uint16_t>{0x3c00, 0x4000});
  entries["m/data/constants/tensor_0"] = textOf(bValues);
  entries["m/data/constants/model_constants_config.json"] = table(
      {{"constant", payload("tensor_0", isF32, {3}, {1})},
       {"object", R"({"path_name": "custom_obj_0", "is_param": false, "use_pickle": true, "tensor_meta": null})"}});
  entries["m/data/"] = "";
  writeZip(path, entries);
  for (int ranks : {1, 2, 3}) {
    FakeState state({{{"w", {2, 3}, {}}, {"transposed", {3, 2}, {}}, {"row", {3}, {}}, {"column", {2}, {}}},
                     {{"repeated", {2, 3}, {}}, {"half", {2}, {}}, {"scalar", {}, {}}, {"constant", {3}, {}}}},
                    ranks);
    ASSERT_STATUS_OK(load(state, path));
    EXPECT_EQ(state.gather("w"), wValues);
    EXPECT_EQ(state.gather("transposed"), (std::vector<float>{1, 4, 2, 5, 3, 6}));
    EXPECT_EQ(state.gather("row"), (std::vector<float>{4, 5, 6}));
    EXPECT_EQ(state.gather("column"), (std::vector<float>{2, 5}));
    EXPECT_EQ(state.gather("repeated"), (std::vector<float>{0.5f, 0.25f, 3, 0.5f, 0.25f, 3}));
    EXPECT_EQ(state.gather("half"), (std::vector<float>{1, 2}));
    EXPECT_EQ(state.gather("scalar"), std::vector<float>{3});
    EXPECT_EQ(state.gather("constant"), bValues);
  }
  FakeState other({{{"tied", {2, 3}, {}}}}, 1); // by its other name, and under another name of the file
  std::filesystem::rename(path, scratch.path("weights"));
  ASSERT_STATUS_OK(load(other, scratch.path("weights")));
  EXPECT_EQ(other.gather("tied"), wValues);
}

TEST_F(Pt2Weights, ComplexNumbersArePairs) {
  writeZip(path, archiveOf({{"z", payload("weight_0", isComplex, {3}, {1})},
                            {"end", payload("weight_0", isComplex, {2}, {1}, 1)},
                            {"ends", payload("weight_0", isComplex, {2, 1}, {2, 1})},
                            {"one", payload("weight_0", isComplex, {}, {}, 2)}}));
  FakeState state({{{"z", {3, 2}, {}}, {"end", {2, 2}, {}}, {"ends", {2, 1, 2}, {}}, {"one", {2}, {}}}}, 2);
  ASSERT_STATUS_OK(load(state, path));
  EXPECT_EQ(state.gather("z"), wValues);
  EXPECT_EQ(state.gather("end"), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(state.gather("ends"), (std::vector<float>{1, 2, 5, 6}));
  EXPECT_EQ(state.gather("one"), (std::vector<float>{5, 6}));
  EXPECT_ERROR(tryPayload(payload("weight_0", isComplex, {4}, {1})), "does not fit the 24 bytes");
  EXPECT_ERROR(tryPayload(payload("weight_0", isComplex, {2}, {INT64_MAX})), "does not fit");
  EXPECT_ERROR(tryPayload(payload("weight_0", isComplex, {2}, {1}, INT64_MAX)), "does not fit");
}

TEST_F(Pt2Weights, NamesAndShapesThatDoNotFit) {
  writeZip(path, archiveOf({{"w", payload("weight_0", isF32, {2, 3}, {3, 1})}}));
  FakeState state({{{"w", {6}, {}}, {"x", {3}, test::constant(9)}}}, 1);
  Status status = load(state, path);
  EXPECT_ERROR(status, "missing: 'x'");
  EXPECT_ERROR(status, "'w' has shape [2,3], expected [6]");
  FakeState partial({{{"w", {2, 3}, {}}, {"x", {3}, test::constant(9)}}}, 1);
  ASSERT_STATUS_OK(load(partial, path, {.allowMissing = true}));
  EXPECT_EQ(partial.gather("x"), std::vector<float>(3, 9.0f));
}

TEST_F(Pt2Weights, ValuesThatCannotBeReadAreRefusedByName) {
  EXPECT_ERROR(tryPayload(payload("weight_1", isF32, {3}, {1}, 0, "true")), "not readable: 'w' is pickled");
  EXPECT_ERROR(tryPayload(payload("weight_1", isComplexHalf, {3}, {1})), "not readable: 'w' has the type 9 of PyTorch");
  Entries entries = archiveOf({{"w", payload("weight_1", isF32, {3}, {1})}});
  entries["m/data/weights/weight_1"] = "";
  EXPECT_ERROR(tryEntries(entries), "not readable: 'w' has no values: the program was exported with fake tensors");
  // What the program lacks need not be readable.
  ASSERT_STATUS_OK(tryEntries(archiveOf({{"w", payload("weight_1", isF32, {3}, {1})},
                                         {"frequencies", payload("weight_0", isComplexHalf, {3}, {1})},
                                         {"object", payload("weight_0", isF32, {3}, {1}, 0, "true")}})));
}

TEST_F(Pt2Weights, TablesThatAreWrong) {
  for (auto [description, message] : std::initializer_list<std::pair<std::string, const char *>>{
           {payload("weight_1", isF32, {4}, {1}), "'w' of shape [4] does not fit the 12 bytes of its entry"},
           {payload("weight_1", isF32, {3}, {1}, 1), "does not fit the 12 bytes"},
           {payload("weight_1", isF32, {3}, {2}), "does not fit the 12 bytes"},
           {payload("weight_1", isF32, {3}, {INT64_MAX}), "does not fit the 12 bytes"},
           {payload("weight_1", isF32, {3}, {1}, INT64_MAX), "does not fit the 12 bytes"},
           {payload("weight_1", isF32, {INT64_MAX, INT64_MAX}, {0, 0}), "has an invalid shape"},
           {payload("weight_1", isF32, {int64_t{1} << 32}, {0}), "that are not contiguous have more than"},
           {payload("weight_1", isF32, {-3}, {1}), "not lists of numbers"},
           {payload("weight_1", isF32, {3}, {1, 1}), "or not as many of each"},
           {payload("weight_1", isF32, {3}, {-1}), "not lists of numbers"},
           {payload("weight_9", isF32, {3}, {1}), "has no entry 'm/data/weights/weight_9'"},
           {payload("../../models/none", isF32, {3}, {1}), "has no entry"},
           {"7", "has a description that is not an object"},
           {"{}", "has no path_name or use_pickle"},
           {R"({"path_name": "weight_1", "use_pickle": false})", "has no tensor_meta"},
           {R"({"path_name": "weight_1", "use_pickle": false, "tensor_meta": {}})", "has no dtype or layout"}})
    EXPECT_ERROR(tryPayload(description), message);
  Entries entries = archiveOf({});
  for (auto [text, message] : std::initializer_list<std::pair<std::string, const char *>>{
           {"", "is not a JSON object"},
           {"[]", "is not a JSON object"},
           {"{\"config\": 3}", "is not a JSON object with a 'config'"},
           {std::string(1'000'000, '['), "is not a JSON object"},
           {R"({"config": {"w": 1, "w": 2}})", "has 'w' twice"}}) {
    entries[weightTable] = text;
    EXPECT_ERROR(tryEntries(entries), message);
  }
}

TEST_F(Pt2Weights, ArchivesThatAreWrong) {
  EXPECT_ERROR(WeightSource::open(path), "no such file");
  test::writeFile(path, "");
  EXPECT_ERROR(WeightSource::open(path), "is not a zip archive");
  const Entries whole = archiveOf({{"w", payload("weight_1", isF32, {3}, {1})}});
  auto with = [&](const std::string &name, const std::string &content) {
    Entries changed = whole;
    changed[name] = content;
    return tryEntries(changed);
  };
  auto without = [&](const std::string &name) {
    Entries changed = whole;
    changed.erase(name);
    return tryEntries(changed);
  };
  ASSERT_STATUS_OK(tryEntries(whole));
  EXPECT_ERROR(with("m/models/other.json", "{}"), "holds 2 models ('model', 'other'…), expected one");
  EXPECT_ERROR(with("m/byteorder", "big"), "has the byteorder 'big', expected 'little'");
  EXPECT_ERROR(with("m/archive_version", "1"), "has the archive_version '1', expected '0'");
  EXPECT_ERROR(with("m/archive_format", "pt3"), "has the archive_format 'pt3', expected 'pt2'");
  EXPECT_ERROR(with("n/archive_format", "pt2"), "has entries outside the folder 'm/'");
  EXPECT_ERROR(without("m/archive_format"), "not torch.save");
  EXPECT_ERROR(without("m/models/model.json"), "holds no exported program");
  EXPECT_ERROR(without(weightTable), "is missing");
  Entries old = whole;
  old.erase(weightTable);
  old["m/data/weights/model.pt"] = "pickle";
  EXPECT_ERROR(tryEntries(old), "holds its weights pickled");
  Entries large = whole;
  large["m/data/weights/weight_1"] = std::string(1000, '\0');
  EXPECT_ERROR(tryEntries(large, ZIP_CM_DEFLATE), "is compressed, expected it stored");
}

TEST_F(Pt2Weights, SurvivesDamage) {
  writeZip(path,
           archiveOf({{"w", payload("weight_1", isF32, {3}, {1})}, {"x", payload("weight_0", isF32, {3, 2}, {1, 3})}}));
  const std::string whole = test::readFile(path);
  auto tryBytes = [&](const std::string &bytes) {
    test::writeFile(path, bytes);
    FakeState state({{{"w", {3}, {}}, {"x", {3, 2}, {}}}}, 1);
    return load(state, path).isOk();
  };
  ASSERT_TRUE(tryBytes(whole));
  for (size_t length = 0; length < whole.size(); length += 7)
    EXPECT_FALSE(tryBytes(whole.substr(0, length))) << length;
  int accepted = 0;
  for (unsigned seed = 0; seed < 2000; ++seed)
    accepted += tryBytes(test::damaged(whole, seed));
  EXPECT_LT(accepted, 1500);
}

TEST_F(Pt2Weights, AFileThatBecomesShorterIsAnErrorOfReading) {
  writeZip(path, archiveOf({{"w", payload("weight_1", isF32, {3}, {1})}}));
  FakeState state({{{"w", {3}, {}}}}, 1);
  auto source = WeightSource::open(path);
  ASSERT_STATUS_OK(source);
  std::filesystem::resize_file(path, 40);
  EXPECT_ERROR(loadWeights(state.ranks[0], **source, 1), "has become shorter while it was read");
}

} // namespace
} // namespace tessera
