//===- TokenRowsTest.cpp - folders of "python -m tessera data" as samples --------===//

#include "runtime/data/Loader.h"
#include "runtime/data/TokenizedData.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/data/DataFixture.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <numeric>

namespace tessera {
namespace {

using test::rawBytes;
using test::ScratchFolder;
using test::valuesOf;
using test::writeFile;

constexpr int64_t none = -100;

/// Tokens 100, 101, …: documents of 3, 5, 1 and 4 tokens in two shards. Of the second the last two tokens are targets,
/// of the others all but the first.
class TokenRowsTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::filesystem::create_directories(folder + "/tokens");
    writeShard("00000", 100, 8, {0, 1, 1, 0, 0, 0, 1, 1});
    writeShard("00001", 108, 5, {0, 0, 1, 1, 1});
    writeRows("train", {0, 2, 3, 4}, {{3, 5}, {8, 1}, {9, 4}, {0, 3}});
    writeRows("valid", {0, 1}, {{0, 3}});
    writeManifest();
  }

  void writeShard(const std::string &name, uint16_t first, uint16_t count, const std::vector<int> &mask) {
    std::vector<uint16_t> tokens(count);
    std::iota(tokens.begin(), tokens.end(), first);
    writeFile(folder + "/tokens/" + name + ".tokens", rawBytes(tokens));
    std::vector<uint8_t> bits((count + 7) / 8);
    for (size_t i = 0; i < mask.size(); ++i)
      bits[i / 8] |= mask[i] << (i % 8);
    writeFile(folder + "/tokens/" + name + ".mask", rawBytes(bits));
  }

  void writeRows(const std::string &split, const std::vector<uint64_t> &first,
                 const std::vector<std::pair<uint64_t, uint64_t>> &pieces, uint64_t sequence = 6) {
    uint64_t magic;
    std::memcpy(&magic, "TSSRROWS", 8);
    std::vector<uint64_t> words = {magic, 1, first.size() - 1, pieces.size(), sequence};
    words.insert(words.end(), first.begin(), first.end());
    for (auto [begin, count] : pieces)
      words.insert(words.end(), {begin, count});
    writeFile(folder + "/" + split + ".rows", rawBytes(words));
  }

  void writeManifest(const std::string &from = "", const std::string &to = "") {
    std::string text =
        R"({"format": "tessera-data", "version": 1, "sequence": 6, "packing": "best-fit", "counts": {"longest": 5},
 "token_bytes": 2, "largest_token": 112, "padding_token": 7,
 "shards": [{"name": "00000", "tokens": 8}, {"name": "00001", "tokens": 5}],
 "splits": {"train": {"rows": 3, "pieces": 4}, "valid": {"rows": 1, "pieces": 1}}})";
    if (!from.empty()) {
      const size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    }
    writeFile(folder + "/manifest.json", text);
  }

  static std::vector<BatchSpec> packedModel(int64_t length = 6) {
    auto specs = test::languageModel({1, length}, 0, 200);
    specs[1].ignoreIndex = none;
    specs.push_back(test::makeSpec("position_ids", artifact::BatchRole::Input, DataType::I64, {1, length}));
    specs.push_back(test::makeSpec("document_ids", artifact::BatchRole::Input, DataType::I32, {1, length}));
    specs.push_back(test::makeSpec("attention_mask", artifact::BatchRole::Input, DataType::BF16, {1, length}));
    return specs;
  }

  Result<std::unique_ptr<Loader>> load(const std::vector<BatchSpec> &specs, const LoaderOptions &options = {},
                                       const DataOptions &data = {}) {
    TESSERA_ASSIGN_OR_RETURN(auto source, openSamples(folder, specs, data));
    return Loader::create(std::move(source), specs, options);
  }

  ScratchFolder scratch;
  std::string folder = scratch.path("data");
};

TEST_F(TokenRowsTest, RowsHaveDocumentsTargetsAndPadding) {
  auto loader = load(packedModel(), {.shuffle = false, .prefetch = false});
  ASSERT_STATUS_OK(loader);
  EXPECT_EQ((*loader)->samples(), 3u);
  EXPECT_EQ((*openSamples(folder, packedModel()))->format(),
            "split 'train', 6 positions (best-fit, documents told apart by 'position_ids') of uint16 tokens");
  auto batch = (*loader)->readAt(0);
  ASSERT_STATUS_OK(batch);
  EXPECT_EQ(valuesOf<int64_t>((*batch)->tensors[0]), (std::vector<int64_t>{103, 104, 105, 106, 107, 108}));
  EXPECT_EQ(valuesOf<int32_t>((*batch)->tensors[1]), (std::vector<int32_t>{none, none, 106, 107, none, none}));
  EXPECT_EQ(valuesOf<int64_t>((*batch)->tensors[2]), (std::vector<int64_t>{0, 1, 2, 3, 4, 0}));
  EXPECT_EQ(valuesOf<int32_t>((*batch)->tensors[3]), (std::vector<int32_t>{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(valuesOf<uint16_t>((*batch)->tensors[4]), (std::vector<uint16_t>(6, 0x3f80)));
  batch = (*loader)->readAt(1);
  ASSERT_STATUS_OK(batch);
  EXPECT_EQ(valuesOf<int64_t>((*batch)->tensors[0]), (std::vector<int64_t>{109, 110, 111, 112, 7, 7}));
  EXPECT_EQ(valuesOf<int32_t>((*batch)->tensors[1]), (std::vector<int32_t>{110, 111, 112, none, none, none}));
  EXPECT_EQ(valuesOf<int64_t>((*batch)->tensors[2]), (std::vector<int64_t>{0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(valuesOf<int32_t>((*batch)->tensors[3]), (std::vector<int32_t>{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(valuesOf<uint16_t>((*batch)->tensors[4]), (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f80, 0x3f80, 0, 0}));
}

TEST_F(TokenRowsTest, PartsOfARowAreThoseOfTheWhole) {
  const auto specs = packedModel();
  auto source = openSamples(folder, specs);
  ASSERT_STATUS_OK(source);
  auto readPart = [&](uint64_t row, ElementRanges ranges) {
    std::vector<std::vector<uint8_t>> rows;
    std::vector<uint8_t *> targets;
    for (const BatchSpec &spec : specs)
      rows.emplace_back(spec.sampleBytes(), 0xee);
    for (auto &bytes : rows)
      targets.push_back(bytes.data());
    EXPECT_TRUE((*source)->read(row, targets, std::vector<ElementRanges>(specs.size(), ranges)).isOk());
    return rows;
  };
  for (uint64_t row = 0; row < 3; ++row) {
    const auto whole = readPart(row, {{0, 6}});
    for (int64_t begin = 0; begin < 6; ++begin)
      for (int64_t end = begin + 1; end <= 6; ++end) {
        readPart((row + 1) % 3, {{0, 6}}); // nothing of another row stays
        const auto part = readPart(row, {{begin, end}});
        for (size_t tensor = 0; tensor < specs.size(); ++tensor) {
          const size_t width = elementBytes(specs[tensor].dtype);
          for (size_t byte = 0; byte < part[tensor].size(); ++byte) {
            const bool isRead = byte / width >= static_cast<size_t>(begin) && byte / width < static_cast<size_t>(end);
            ASSERT_EQ(part[tensor][byte], isRead ? whole[tensor][byte] : 0xee);
          }
        }
      }
  }
}

TEST_F(TokenRowsTest, SplitsAreChosenByUseOrByName) {
  const auto specs = packedModel();
  auto count = [&](const std::string &path, bool isEvaluation) {
    auto source = openSamples(path, specs, {.isEvaluation = isEvaluation});
    EXPECT_TRUE(source.isOk()) << path;
    return source.isOk() ? (*source)->samples() : 0;
  };
  EXPECT_EQ(count(folder, false), 3u);
  EXPECT_EQ(count(folder, true), 1u);
  EXPECT_EQ(count(folder + "/", false), 3u);
  EXPECT_EQ(count(folder + "/valid.rows", false), 1u);
  EXPECT_EQ(count(folder + "/train.rows", true), 3u);
  EXPECT_ERROR(openSamples(folder + "/test.rows", specs), "has no split 'test' (its splits: train, valid)");
  writeManifest("\"valid\"", "\"other\"");
  EXPECT_ERROR(openSamples(folder, specs, {.isEvaluation = true}), "other.rows");
  writeManifest(", \"valid\": {\"rows\": 1, \"pieces\": 1}", "");
  EXPECT_ERROR(openSamples(folder, specs, {.isEvaluation = true}), "has no split to evaluate");
  writeFile(scratch.path("x.rows"), "");
  EXPECT_ERROR(openSamples(scratch.path("x.rows"), specs), "lies in no folder of");
}

TEST_F(TokenRowsTest, ModelsThatDoNotSuitAreRefused) {
  EXPECT_ERROR(load(packedModel(8)), "have 6 positions, but the model has 8: compile it with --seq 6");
  auto specs = packedModel();
  specs[0].indexBound = 112;
  EXPECT_ERROR(load(specs), "has tokens up to 112, but the model's vocabulary is 112");
  specs = packedModel();
  specs[2].indexBound = 4;
  EXPECT_ERROR(load(specs), "has documents of 5 tokens in a row, but the model has 4 positions");
  specs[2].indexBound = 5; // padding needs none
  ASSERT_STATUS_OK(load(specs));
  writeManifest("\"padding_token\": 7", "\"padding_token\": 200");
  EXPECT_ERROR(load(packedModel()), "the padding token of '" + folder + "' is 200");
  writeManifest();
  specs = packedModel();
  specs[1].ignoreIndex = std::numeric_limits<int64_t>::min();
  EXPECT_ERROR(load(specs), "the loss of the model counts every one");
  specs = packedModel();
  specs.erase(specs.begin() + 1);
  EXPECT_ERROR(load(specs), "has no input for that");
  specs = packedModel();
  specs.erase(specs.begin() + 2, specs.begin() + 4);
  EXPECT_ERROR(load(specs), "hold several documents, and the model does not tell them apart");
  specs = packedModel();
  specs.erase(specs.begin() + 3);
  specs[2].globalShape = {6}; // shared positions are the same in all rows
  specs[2].dims = {artifact::DimRole::None};
  EXPECT_ERROR(load(specs), "does not tell them apart");
  EXPECT_ERROR(load(packedModel(), {}, {.endOfDocument = 3}), "--end-of-document is for tokens");
  EXPECT_ERROR(load(packedModel(), {}, {.tokenBytes = 2}), "holds rows that know their documents");
}

TEST_F(TokenRowsTest, DocumentsMayMeetInWindowsAndAreAloneInRowsOfOne) {
  auto specs = packedModel();
  specs.erase(specs.begin() + 2, specs.begin() + 4);
  writeManifest("best-fit", "windows");
  ASSERT_STATUS_OK(load(specs));
  writeManifest("\"rows\": 3, \"pieces\": 4", "\"rows\": 2, \"pieces\": 2");
  writeRows("train", {0, 1, 2}, {{0, 3}, {3, 5}});
  ASSERT_STATUS_OK(load(specs));
}

TEST_F(TokenRowsTest, DamagedFoldersAreOneError) {
  const auto specs = packedModel();
  for (auto [from, to, problem] : std::vector<std::array<std::string, 3>>{
           {"\"best-fit\"", "\"other\"", "field 'packing'"},
           {"\"version\": 1", "\"version\": 9", "has version 9, this runtime reads 1"},
           {"\"sequence\": 6", "\"sequence\": 0", "field 'sequence'"},
           {"\"sequence\": 6", "\"sequence\": -1", "field 'sequence'"},
           {"\"token_bytes\": 2", "\"token_bytes\": 3", "field 'token_bytes'"},
           {"\"tokens\": 8", "\"tokens\": 9", "00000.tokens' has 16 bytes, but the manifest"},
           {"\"tokens\": 8", "\"tokens\": 9223372036854775807", "field 'shards.tokens'"},
           {"\"00001\"", "\"../x\"", "field 'shards.name'"},
           {"\"pieces\": 4", "\"pieces\": 5", "is not what the manifest"},
           {"\"rows\": 3", "\"rows\": 2305843009213693951", "field 'splits.train'"},
           {"\"tessera-data\"", "\"other\"", "has no format"},
           {"\"format\"", "format", "has no format"}}) {
    writeManifest(from, to);
    EXPECT_ERROR(openSamples(folder, specs), problem);
  }
  writeManifest();
  struct Rows {
    std::vector<uint64_t> first;
    std::vector<std::pair<uint64_t, uint64_t>> pieces;
    std::string problem;
  };
  for (const Rows &rows :
       {Rows{{1, 1, 2, 4}, {{0, 1}, {0, 1}, {0, 1}, {0, 1}}, "has no valid pieces"},
        Rows{{0, 9, 2, 4}, {{0, 1}, {0, 1}, {0, 1}, {0, 1}}, "has no valid pieces"},
        Rows{{0, 2, 3, 4}, {{0, 4}, {0, 3}, {0, 1}, {0, 1}}, "has more tokens than positions"},
        Rows{{0, 2, 3, 4}, {{0, 0}, {0, 3}, {0, 1}, {0, 1}}, "has a piece outside of the tokens"},
        Rows{{0, 2, 3, 4}, {{10, 4}, {0, 1}, {0, 1}, {0, 1}}, "has a piece outside of the tokens"},
        Rows{{0, 2, 3, 4}, {{~0ull, 2}, {0, 1}, {0, 1}, {0, 1}}, "has a piece outside of the tokens"}}) {
    writeRows("train", rows.first, rows.pieces);
    auto source = openSamples(folder, specs);
    ASSERT_STATUS_OK(source);
    auto loader = Loader::create(*std::move(source), specs, {.shuffle = false});
    ASSERT_STATUS_OK(loader);
    EXPECT_ERROR((*loader)->next(), "row 0 of '" + folder + "/train.rows' " + rows.problem);
  }
  writeRows("train", {0, 2, 3, 4}, {{3, 5}, {8, 1}, {9, 4}, {0, 3}}, 7);
  EXPECT_ERROR(openSamples(folder, specs), "is not what the manifest");
  std::filesystem::remove(folder + "/tokens/00001.mask");
  EXPECT_ERROR(openSamples(folder, specs), "00001.mask': no such file");
}

TEST_F(TokenRowsTest, AFolderOfTextsMayHaveAManifest) {
  const std::string texts = scratch.path("texts");
  std::filesystem::create_directories(texts);
  writeFile(texts + "/manifest.json", R"({"text": "some words of a document"})");
  ASSERT_STATUS_OK(openSamples(texts, test::languageModel({1, 4}, 0, 256)));
}

TEST_F(TokenRowsTest, EntropyAndFingerprintAreOfTargets) {
  auto source = openSamples(folder, packedModel());
  ASSERT_STATUS_OK(source);
  auto entropy = (*source)->unigramEntropy();
  ASSERT_STATUS_OK(entropy);
  EXPECT_NEAR(*entropy, std::log(7.0), 1e-12); // two of document 2, three of document 4, two of document 1
  auto first = (*source)->fingerprint();
  ASSERT_STATUS_OK(first);
  writeShard("00001", 108, 5, {0, 0, 1, 0, 1});
  auto other = openSamples(folder, packedModel());
  ASSERT_STATUS_OK(other);
  EXPECT_NE(*first, *(*other)->fingerprint());
}

TEST_F(TokenRowsTest, AMixtureHasItsSourcesByWeight) {
  const std::string mixed = scratch.path("mixed");
  std::filesystem::create_directories(mixed);
  auto write = [&](const std::string &sources) {
    writeFile(mixed + "/manifest.json",
              R"({"format": "tessera-data-mixture", "version": 1, "sources": [)" + sources + "]}");
  };
  write(fmt::format(R"({{"path": "../data", "weight": 3}}, {{"path": "{}", "weight": 1}})", folder));
  const auto specs = packedModel();
  auto source = openSamples(mixed, specs);
  ASSERT_STATUS_OK(source);
  EXPECT_EQ((*source)->samples(), 6u);
  ASSERT_EQ((*source)->parts().size(), 2u);
  EXPECT_EQ((*source)->parts()[0].weight, 0.75);
  auto loader = Loader::create(*std::move(source), specs, {.seed = 4});
  ASSERT_STATUS_OK(loader);
  int ofFirst = 0;
  for (uint64_t place = 0; place < 400; ++place)
    ofFirst += (*loader)->sampleAt(place) < 3;
  EXPECT_NEAR(ofFirst, 300, 3);
  ASSERT_STATUS_OK((*loader)->next());
  EXPECT_ERROR(openSamples(mixed, specs, {.isEvaluation = true}), "is a mixture, and is not evaluated as one");
  write(R"({"path": ".", "weight": 1})");
  EXPECT_ERROR(openSamples(mixed, specs), "is not a folder of");
  write(R"({"path": "../nowhere", "weight": 1})");
  EXPECT_ERROR(openSamples(mixed, specs), "is not a folder of");
  write(R"({"path": "../data", "weight": 1e-9}, {"path": "../data", "weight": 1})");
  EXPECT_ERROR(openSamples(mixed, specs), "is less than a millionth");
  write(R"({"path": "../data", "weight": 0})");
  EXPECT_ERROR(openSamples(mixed, specs), "field 'sources.weight'");
  write("");
  EXPECT_ERROR(openSamples(mixed, specs), "field 'sources'");
}

} // namespace
} // namespace tessera
