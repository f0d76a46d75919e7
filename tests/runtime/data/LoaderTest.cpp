//===- LoaderTest.cpp - order, resuming, ranks, windows and checks --------------------===//

#include "runtime/data/Loader.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/data/DataFixture.h"

#include <algorithm>
#include <set>

namespace tessera {
namespace {

using test::languageModel;
using test::ScratchFolder;
using test::valuesOf;
using test::writeFile;

Result<std::unique_ptr<Loader>> makeLoader(const std::string &path, const std::vector<BatchSpec> &specs,
                                           const LoaderOptions &options = {}) {
  TESSERA_ASSIGN_OR_RETURN(auto source, openSamples(path, specs));
  return Loader::create(std::move(source), specs, options);
}

/// The inputs of the next `steps` steps, one after another.
std::vector<int64_t> inputsOf(Loader &loader, int steps) {
  std::vector<int64_t> all;
  for (int i = 0; i < steps; ++i) {
    auto batch = loader.next();
    EXPECT_TRUE(batch.isOk()) << batch.status();
    if (!batch.isOk())
      return all;
    auto values = valuesOf<int64_t>((*batch)->tensors[0]);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

class LoaderTest : public ::testing::Test {
protected:
  void SetUp() override { writeFile(path, test::countingTokens(401)); } // 100 samples of 4
  ScratchFolder scratch;
  std::string path = scratch.path("count.bin");
};

TEST_F(LoaderTest, WindowsAreShiftedByOne) {
  auto loader = makeLoader(path, languageModel({2, 4}), {.shuffle = false});
  ASSERT_STATUS_OK(loader);
  EXPECT_EQ((*loader)->samples(), 100u);
  auto batch = (*loader)->next();
  ASSERT_STATUS_OK(batch);
  EXPECT_EQ(valuesOf<int64_t>((*batch)->tensors[0]), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(valuesOf<int32_t>((*batch)->tensors[1]), (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ((*batch)->position, 0u);
}

TEST_F(LoaderTest, AnEpochHasEverySampleOnceAndEpochsDiffer) {
  auto loader = makeLoader(path, languageModel({10, 4}), {.seed = 3});
  ASSERT_STATUS_OK(loader);
  std::vector<int64_t> first = inputsOf(**loader, 10), second = inputsOf(**loader, 10);
  EXPECT_NE(first, second);
  for (const auto &epoch : {first, second}) {
    std::set<int64_t> starts;
    for (size_t i = 0; i < epoch.size(); i += 4)
      starts.insert(epoch[i]);
    EXPECT_EQ(starts.size(), 100u);
  }
}

TEST_F(LoaderTest, SameOrderWithAndWithoutPrefetchAndAnyBatchOrAccumulation) {
  auto reference = makeLoader(path, languageModel({6, 4}), {.seed = 9, .prefetch = false});
  ASSERT_STATUS_OK(reference);
  std::vector<int64_t> expected = inputsOf(**reference, 30); // across the end of an epoch
  for (const auto &specs : {languageModel({6, 4}), languageModel({12, 4}), languageModel({3, 4, 4}, 1),
                            languageModel({2, 3, 4}, 1), languageModel({1, 4})}) {
    auto loader = makeLoader(path, specs, {.seed = 9});
    ASSERT_STATUS_OK(loader);
    EXPECT_EQ(inputsOf(**loader, 180 / static_cast<int>(specs[0].rows())), expected);
  }
  auto other = makeLoader(path, languageModel({6, 4}), {.seed = 10});
  EXPECT_NE(inputsOf(**other, 30), expected);
}

TEST_F(LoaderTest, ResumesAnywhere) {
  auto whole = makeLoader(path, languageModel({8, 4}), {.seed = 1});
  ASSERT_STATUS_OK(whole);
  inputsOf(**whole, 11);
  auto resumed = makeLoader(path, languageModel({8, 4}), {.seed = 1, .position = 88});
  ASSERT_STATUS_OK(resumed);
  EXPECT_EQ(inputsOf(**resumed, 5), inputsOf(**whole, 5));
}

TEST_F(LoaderTest, RanksSeeTheRowsOfTheWholeBatch) {
  for (const auto &specs : {languageModel({12, 4}), languageModel({2, 12, 4}, 1)}) {
    auto loader = makeLoader(path, specs, {.seed = 2});
    ASSERT_STATUS_OK(loader);
    auto batch = (*loader)->next();
    ASSERT_STATUS_OK(batch);
    std::vector<int64_t> whole = valuesOf<int64_t>((*batch)->tensors[0]);
    for (int ranks : {1, 2, 3, 4}) {
      int64_t localBatch = 12 / ranks;
      for (int rank = 0; rank < ranks; ++rank) {
        std::vector<int64_t> local(specs[0].accumulate() * localBatch * 4);
        copyRankPart(specs[0], (*batch)->tensors[0].data(), {{specs[0].sampleDim(), ranks, rank}}, local.data());
        for (int64_t micro = 0; micro < specs[0].accumulate(); ++micro)
          for (int64_t i = 0; i < localBatch * 4; ++i)
            ASSERT_EQ(local[micro * localBatch * 4 + i], whole[(micro * 12 + rank * localBatch) * 4 + i]);
      }
    }
  }
}

TEST_F(LoaderTest, RanksReadPartsOfTwoDimensions) {
  using artifact::DimRole;
  for (int64_t accumulate : {1, 2}) {
    auto specs = languageModel(accumulate == 1 ? std::vector<int64_t>{6, 4} : std::vector<int64_t>{2, 6, 4},
                               accumulate == 1 ? 0 : 1);
    auto loader = makeLoader(path, specs, {.seed = 2});
    ASSERT_STATUS_OK(loader);
    auto batch = (*loader)->next();
    ASSERT_STATUS_OK(batch);
    const int64_t sampleDim = specs[0].sampleDim();
    std::vector<int64_t> whole = valuesOf<int64_t>((*batch)->tensors[0]);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 2; ++j) {
        const std::vector<DimPart> parts = {{sampleDim, 3, i}, {sampleDim + 1, 2, j}};
        std::vector<int64_t> local(accumulate * 2 * 2), expected;
        copyRankPart(specs[0], (*batch)->tensors[0].data(), parts, local.data());
        for (int64_t micro = 0; micro < accumulate; ++micro)
          for (int64_t row = 0; row < 2; ++row)
            for (int64_t column = 0; column < 2; ++column)
              expected.push_back(whole[((micro * 6) + i * 2 + row) * 4 + j * 2 + column]);
        EXPECT_EQ(local, expected);
        std::vector<bool> rows;
        markRankRows(specs[0], parts, rows);
        EXPECT_EQ(std::count(rows.begin(), rows.end(), true), 2 * accumulate);
        EXPECT_TRUE(rows[i * 2]);
      }
  }
}

TEST_F(LoaderTest, SamplesMayLieBehindPositions) {
  using artifact::DimRole;
  auto specs = languageModel({2, 4, 6}, 1);
  for (BatchSpec &spec : specs)
    spec.dims = {DimRole::MicroBatch, DimRole::Position, DimRole::Sample};
  EXPECT_EQ(specs[0].rows(), 12);
  auto loader = makeLoader(path, specs, {.seed = 2});
  ASSERT_STATUS_OK(loader);
  auto batch = (*loader)->next();
  ASSERT_STATUS_OK(batch);
  auto rowMajor = makeLoader(path, languageModel({2, 6, 4}, 1), {.seed = 2});
  ASSERT_STATUS_OK(rowMajor);
  auto same = (*rowMajor)->next();
  ASSERT_STATUS_OK(same);
  EXPECT_EQ((*batch)->tensors, (*same)->tensors); // in memory rows come first
  std::vector<int64_t> whole = valuesOf<int64_t>((*batch)->tensors[0]), local(2 * 2 * 3), expected;
  copyRankPart(specs[0], (*batch)->tensors[0].data(), {{2, 2, 1}, {1, 2, 0}}, local.data());
  for (int64_t micro = 0; micro < 2; ++micro)
    for (int64_t position = 0; position < 2; ++position)
      for (int64_t sample = 3; sample < 6; ++sample)
        expected.push_back(whole[(micro * 6 + sample) * 4 + position]);
  EXPECT_EQ(local, expected);
}

TEST_F(LoaderTest, SamplesMayShareATensor) {
  auto specs = languageModel({2, 4});
  specs.insert(specs.begin(), test::makeSpec("position_ids", artifact::BatchRole::Input, DataType::I64, {1, 4}));
  specs[0].dims[0] = artifact::DimRole::None;
  auto loader = makeLoader(path, specs, {.shuffle = false});
  ASSERT_STATUS_OK(loader);
  for (int step = 0; step < 2; ++step) {
    auto batch = (*loader)->next();
    ASSERT_STATUS_OK(batch);
    EXPECT_EQ(valuesOf<int64_t>((*batch)->tensors[0]), (std::vector<int64_t>{0, 1, 2, 3}));
    EXPECT_EQ(valuesOf<int64_t>((*batch)->tensors[1]).front(), step * 8);
  }
  specs[0].name = "ids";
  EXPECT_ERROR(makeLoader(path, specs), "cannot fill 'ids'");
}

TEST_F(LoaderTest, TokensBeyondTheVocabularyNameFileAndOffset) {
  auto loader = makeLoader(path, languageModel({2, 4}, 0, 398), {.position = 96, .shuffle = false});
  ASSERT_STATUS_OK(loader);
  inputsOf(**loader, 1);
  auto batch = (*loader)->next();
  EXPECT_ERROR(batch, "token 398 of '" + path + "' is 398, but 'input_ids' must be in [0, 398)");
  EXPECT_ERROR((*loader)->next(), "token 398 of"); // the error stays
  auto targets = makeLoader(path, languageModel({1, 4}, 0, 400), {.position = 99, .shuffle = false});
  ASSERT_STATUS_OK(targets);
  EXPECT_ERROR((*targets)->next(), "token 400 of '" + path + "' is 400, but 'targets' must be in [0, 400)");
}

TEST_F(LoaderTest, PositionsAndMasksAreFilled) {
  auto specs = languageModel({2, 4});
  specs.push_back(test::makeSpec("position_ids", artifact::BatchRole::Input, DataType::I64, {2, 4}));
  specs.push_back(test::makeSpec("attention_mask", artifact::BatchRole::Input, DataType::F32, {2, 4}));
  auto loader = makeLoader(path, specs, {.shuffle = false});
  ASSERT_STATUS_OK(loader);
  auto batch = (*loader)->next();
  ASSERT_STATUS_OK(batch);
  EXPECT_EQ(valuesOf<int64_t>((*batch)->tensors[2]), (std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(valuesOf<float>((*batch)->tensors[3]), std::vector<float>(8, 1.0f));
}

class DocumentsTest : public LoaderTest {
protected:
  void SetUp() override {
    // Windows of 4: [1 9 2 9], [9 3 4 5], [9 6 9 7]; each document ends with 9.
    writeFile(path, test::rawBytes(std::vector<uint16_t>{1, 9, 2, 9, 9, 3, 4, 5, 9, 6, 9, 7, 8}));
  }
  Result<std::unique_ptr<SampleSource>> open(const std::vector<BatchSpec> &specs, int64_t endOfDocument) {
    return openSamples(path, specs, {.endOfDocument = endOfDocument});
  }
  static std::vector<BatchSpec> withInput(const std::string &name, DataType dtype) {
    auto specs = languageModel({3, 4});
    specs.push_back(test::makeSpec(name, artifact::BatchRole::Input, dtype, {3, 4}));
    return specs;
  }
};

TEST_F(DocumentsTest, PositionsAndNumbersFollowDocuments) {
  for (const char *name : {"document_ids", "segment_ids", "seq_idx"}) {
    auto specs = withInput("position_ids", DataType::I64);
    specs.push_back(test::makeSpec(name, artifact::BatchRole::Input, DataType::I32, {3, 4}));
    auto source = open(specs, 9);
    ASSERT_STATUS_OK(source);
    auto loader = Loader::create(std::move(*source), specs, {.shuffle = false});
    ASSERT_STATUS_OK(loader);
    auto batch = (*loader)->next();
    ASSERT_STATUS_OK(batch);
    // The token that ends a document belongs to it; a window begins a document. Neither window follows from another.
    EXPECT_EQ(valuesOf<int64_t>((*batch)->tensors[2]), (std::vector<int64_t>{0, 1, 0, 1, 0, 0, 1, 2, 0, 0, 1, 0}));
    EXPECT_EQ(valuesOf<int32_t>((*batch)->tensors[3]), (std::vector<int32_t>{0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 2}));
    EXPECT_EQ(valuesOf<int64_t>((*batch)->tensors[0]), (std::vector<int64_t>{1, 9, 2, 9, 9, 3, 4, 5, 9, 6, 9, 7}));
  }
}

TEST_F(DocumentsTest, AWindowWithoutAnEndIsOneDocument) {
  auto specs = withInput("position_ids", DataType::I64);
  for (int64_t end : {int64_t{-1}, int64_t{1000}, (int64_t{1} << 32) - 1}) {
    auto source = open(specs, end);
    ASSERT_STATUS_OK(source);
    auto loader = Loader::create(std::move(*source), specs, {.shuffle = false});
    ASSERT_STATUS_OK(loader);
    auto batch = (*loader)->next();
    ASSERT_STATUS_OK(batch);
    EXPECT_EQ(valuesOf<int64_t>((*batch)->tensors[2]), (std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
  }
}

TEST_F(DocumentsTest, NoEndThatIsNoToken) {
  auto specs = withInput("position_ids", DataType::I64);
  EXPECT_ERROR(open(specs, int64_t{1} << 32), "--end-of-document is 4294967296, but tokens of 'input_ids' are in [0, "
                                              "4294967296)");
  specs[0].indexBound = 10;
  EXPECT_ERROR(open(specs, 10),
               "--end-of-document is 10, but tokens of 'input_ids' are in [0, 10) (the model's vocabulary)");
  EXPECT_TRUE(open(specs, 9).isOk());
}

TEST_F(DocumentsTest, NothingToFillAndNothingToTellDocumentsApartBy) {
  EXPECT_ERROR(open(languageModel({3, 4}), 9), "but the model has no such input");
  EXPECT_ERROR(open(withInput("document_ids", DataType::I64), -1),
               "'document_ids' numbers documents: --end-of-document says which token is the last one of a document; an "
               "input of another name takes tokens");
  auto specs = languageModel({3, 4});
  specs.insert(specs.begin(), test::makeSpec("position_ids", artifact::BatchRole::Input, DataType::I64, {1, 4}));
  specs[0].dims[0] = artifact::DimRole::None;
  EXPECT_ERROR(open(specs, 9), "all samples share 'position_ids'");
  EXPECT_ERROR(openSamples("x.npz", specs, {.endOfDocument = 9}), "--end-of-document is for tokens");
}

TEST_F(LoaderTest, TheVocabularyIsTheSmallestBoundOfInputAndTarget) {
  writeFile(scratch.path("wide.bin"), test::rawBytes(std::vector<uint32_t>(40, 9)));
  auto specs = languageModel({2, 4}, 0, 129280);
  specs[1].indexBound = 129000; // classes
  auto format = [&] {
    auto source = openSamples(scratch.path("wide.bin"), specs, {});
    EXPECT_TRUE(source.isOk()) << source.status();
    return source.isOk() ? (*source)->format() : "";
  };
  EXPECT_EQ(format(), "uint32 tokens (by values and a vocabulary of 129000)");
  specs[1].indexBound = -1;
  EXPECT_EQ(format(), "uint32 tokens (by values and a vocabulary of 129280)");
  // Bounds of parts: the largest one.
  specs[0].indexBound = -1;
  specs[0].indexParts = {{70000, -1, {0}, {3}, {1}}, {80000, -1, {3}, {4}, {1}}};
  EXPECT_EQ(format(), "uint32 tokens (by values and a vocabulary of 80000)");
  EXPECT_ERROR(openSamples("x.npz", specs, {.tokenBytes = 2}), "--token-bytes is for tokens, and 'x.npz' holds arrays");
  EXPECT_ERROR(openSamples("x.npz", specs, {.readsBytes = true}), "--tokenizer is for text, and 'x.npz' holds arrays");
}

TEST_F(LoaderTest, DataThatDoNotFit) {
  EXPECT_ERROR(makeLoader(path, languageModel({2, 500})), "is too short: it has 401 tokens, but one sample needs 501");
  EXPECT_ERROR(makeLoader(path, languageModel({101, 4})), "it has 100 samples, but one step needs 101");
  EXPECT_ERROR(makeLoader(path, {test::makeSpec("image", artifact::BatchRole::Input, DataType::F32, {2, 3, 8, 8})}),
               "cannot fill 'image' (F32[3,8,8] per sample)");
  auto two = languageModel({2, 4});
  two.push_back(test::makeSpec("more", artifact::BatchRole::Input, DataType::I64, {2, 4}));
  EXPECT_ERROR(makeLoader(path, two), "fill one input and one target, but the model has 2 and 1");
}

TEST_F(LoaderTest, EndsWithBatchesUnread) {
  for (int i = 0; i < 20; ++i) {
    auto loader = makeLoader(path, languageModel({2, 4}));
    ASSERT_STATUS_OK(loader);
    if (i % 2)
      inputsOf(**loader, 1);
  }
}

} // namespace
} // namespace tessera
