//===- BatchPartTest.cpp - processes read what their ranks need -------------===//

#include "runtime/base/InputFile.h"
#include "runtime/data/Loader.h"
#include "runtime/state/Safetensors.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/data/DataFixture.h"

#include <algorithm>
#include <numeric>

namespace tessera {
namespace {

using artifact::BatchRole;
using artifact::DimRole;
using test::languageModel;
using test::makeSpec;
using test::ScratchFolder;
using test::valuesOf;
using test::writeFile;

constexpr int64_t length = 48, vocabulary = 5000;

/// Positions of a language model split over `ranks`, samples over `dataRanks`.
struct Split {
  int64_t ranks;
  bool isZigzag;
  int64_t dataRanks = 1;

  std::vector<DimPart> parts(const BatchSpec &spec, int64_t rank) const {
    std::vector<DimPart> parts;
    if (!spec.isShared() && dataRanks > 1)
      parts.push_back({spec.sampleDim(), dataRanks, rank / ranks});
    parts.push_back({static_cast<int64_t>(spec.dims.size()) - 1, ranks, rank % ranks, isZigzag});
    return parts;
  }

  BatchPart part(const std::vector<BatchSpec> &specs, int64_t rank) const {
    BatchPart part;
    for (const BatchSpec &spec : specs) {
      markRankRows(spec, parts(spec, rank), part.rows);
      part.elements.push_back(rankElements(spec, parts(spec, rank)));
    }
    return part;
  }
};

const Split splits[] = {{2, false}, {2, true}, {4, false}, {4, true}, {8, true}, {3, false, 2}, {3, true, 2}};

/// The reads of the process since this was made.
class Reads {
public:
  uint64_t calls() const { return InputFile::readsOfProcess().calls - begin.calls; }
  uint64_t bytes() const { return InputFile::readsOfProcess().bytes - begin.bytes; }

private:
  ReadCount begin = InputFile::readsOfProcess();
};

std::vector<uint8_t> partOf(const BatchSpec &spec, const HostBytes &rows, const std::vector<DimPart> &parts) {
  size_t bytes = spec.globalBytes();
  for (const DimPart &part : parts)
    bytes /= part.parts;
  std::vector<uint8_t> result(bytes);
  copyRankPart(spec, rows.data(), parts, result.data());
  return result;
}

Result<std::unique_ptr<Loader>> open(const std::string &path, const std::vector<BatchSpec> &specs, BatchPart part,
                                     uint64_t position = 0, bool shuffle = true) {
  TESSERA_ASSIGN_OR_RETURN(auto source, openSamples(path, specs));
  return Loader::create(
      std::move(source), specs,
      {.seed = 5, .position = position, .shuffle = shuffle, .prefetch = false, .part = std::move(part)});
}

/// Each rank's part of some steps is what it is of whole batches, and nothing else of them is filled.
void expectSameParts(const std::string &path, const std::vector<BatchSpec> &specs, const Split &split,
                     uint64_t position = 0, bool shuffle = true) {
  for (int64_t rank = 0; rank < split.ranks * split.dataRanks; ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank) + " of " + std::to_string(split.ranks));
    const BatchPart part = split.part(specs, rank);
    auto whole = open(path, specs, {}, position, shuffle), own = open(path, specs, part, position, shuffle);
    ASSERT_STATUS_OK(whole);
    ASSERT_STATUS_OK(own);
    for (int step = 0; step < 3; ++step) {
      auto expected = (*whole)->next(), batch = (*own)->next();
      ASSERT_STATUS_OK(expected);
      ASSERT_STATUS_OK(batch);
      for (size_t tensor = 0; tensor < specs.size(); ++tensor) {
        const BatchSpec &spec = specs[tensor];
        HostBytes all = (*expected)->tensors[tensor], masked(all.size());
        EXPECT_EQ(partOf(spec, (*batch)->tensors[tensor], split.parts(spec, rank)),
                  partOf(spec, all, split.parts(spec, rank)));
        const size_t width = elementBytes(spec.dtype);
        for (int64_t row = 0; row < spec.rows(); ++row)
          for (ElementRange range : part.elements[tensor])
            if (spec.isShared() || part.rows[row])
              std::memcpy(masked.data() + row * spec.sampleBytes() + range.begin * width,
                          all.data() + row * spec.sampleBytes() + range.begin * width, range.size() * width);
        EXPECT_EQ((*batch)->tensors[tensor], masked) << spec.name;
      }
    }
  }
}

TEST(RankElements, AreWhatIsCopied) {
  struct Case {
    std::vector<int64_t> shape;
    std::vector<DimRole> dims;
    std::vector<int64_t> split; ///< dimensions
  };
  const DimRole sample = DimRole::Sample, position = DimRole::Position, none = DimRole::None;
  for (const Case &test : {Case{{3, 24}, {sample, position}, {1}},
                           {{2, 24, 3}, {DimRole::MicroBatch, position, sample}, {1}},
                           {{2, 5, 24}, {sample, none, position}, {2}},
                           {{2, 24, 5}, {sample, position, none}, {1}},
                           {{2, 1, 12, 24}, {sample, none, position, position}, {2}},
                           {{2, 1, 12, 24}, {sample, none, position, position}, {2, 3}},
                           {{1, 24}, {none, position}, {1}},
                           {{4}, {sample}, {}}})
    for (bool isZigzag : {false, true})
      for (int64_t rank = 0; rank < 3; ++rank) {
        BatchSpec spec = makeSpec("x", BatchRole::Input, DataType::I32, test.shape);
        spec.dims = test.dims;
        std::vector<DimPart> parts;
        for (int64_t dim : test.split)
          parts.push_back({dim, 3, dim == 2 ? 2 - rank : rank, isZigzag && dim != 3});
        const auto count = static_cast<int64_t>(spec.sampleBytes() / 4);
        std::vector<int32_t> rows(spec.rows() * count);
        std::iota(rows.begin(), rows.end(), 0);
        std::vector<int32_t> local(rows.size());
        for (const DimPart &part : parts)
          local.resize(local.size() / part.parts);
        copyRankPart(spec, reinterpret_cast<const uint8_t *>(rows.data()), parts, local.data());
        std::vector<bool> isCopied(count), isListed(count);
        for (int32_t element : local)
          isCopied[element % count] = true;
        int64_t before = -1;
        for (ElementRange range : rankElements(spec, parts)) {
          EXPECT_GT(range.begin, before);
          EXPECT_GT(range.end, range.begin);
          before = range.end;
          std::fill(isListed.begin() + range.begin, isListed.begin() + range.end, true);
        }
        EXPECT_EQ(isListed, isCopied) << shapeToString(test.shape) << " rank " << rank;
      }
}

TEST(RankElements, RowsOfAZigzag) {
  BatchSpec spec = makeSpec("x", BatchRole::Input, DataType::I32, {8, 3});
  std::vector<bool> rows;
  markRankRows(spec, {{0, 2, 0, true}}, rows);
  EXPECT_EQ(rows, (std::vector<bool>{true, true, false, false, false, false, true, true}));
}

class BatchParts : public ::testing::Test {
protected:
  /// Tokens 0, 1, … at most the vocabulary's last.
  void SetUp() override {
    writeFile(path, test::countingTokens(20 * length + 1));
    for (BatchSpec &spec : specs)
      spec.dims.back() = DimRole::Position;
  }
  ScratchFolder scratch;
  std::string path = scratch.path("count.bin");
  std::vector<BatchSpec> specs = languageModel({2, length}, 0, vocabulary);
};

TEST_F(BatchParts, ARankReadsItsRangesAndOneTokenMoreOfEach) {
  for (const Split &split : splits) {
    expectSameParts(path, specs, split);
    for (int64_t rank = 0; rank < split.ranks * split.dataRanks; ++rank) {
      auto loader = open(path, specs, split.part(specs, rank));
      ASSERT_STATUS_OK(loader);
      Reads reads;
      ASSERT_STATUS_OK((*loader)->next());
      // The ranges of the last rank of a zigzag touch.
      const uint64_t rows = 2 / split.dataRanks,
                     ranges = split.isZigzag && rank % split.ranks < split.ranks - 1 ? 2 : 1;
      EXPECT_EQ(reads.calls(), rows * ranges);
      EXPECT_EQ(reads.bytes(), 2 * rows * (length / split.ranks + ranges));
    }
  }
}

TEST_F(BatchParts, OfOneProcessAllIsReadOnce) {
  auto loader = open(path, specs, {});
  ASSERT_STATUS_OK(loader);
  Reads reads;
  ASSERT_STATUS_OK((*loader)->next());
  EXPECT_EQ(reads.calls(), 2u);
  EXPECT_EQ(reads.bytes(), 2u * 2 * (length + 1));
}

TEST_F(BatchParts, WithMicroBatchesAndSequentially) {
  std::vector<BatchSpec> micro = languageModel({2, 2, length}, 1, vocabulary);
  for (const Split &split : splits)
    for (uint64_t position : {0, 7, 18}) {
      expectSameParts(path, specs, split, position, /*shuffle=*/false);
      expectSameParts(path, micro, split, position);
    }
}

TEST_F(BatchParts, PositionsAndMasksAreKnownWithoutTokens) {
  specs.push_back(makeSpec("position_ids", BatchRole::Input, DataType::I64, {1, length}));
  specs.back().dims = {DimRole::None, DimRole::Position};
  specs.push_back(makeSpec("attention_mask", BatchRole::Input, DataType::F32, {2, length}));
  const Split split{4, true};
  expectSameParts(path, specs, split);
  // A mask that is not split is filled whole, and still no more is read.
  BatchPart part = split.part(specs, 1);
  part.elements[3] = {{0, length}};
  auto loader = open(path, specs, part);
  ASSERT_STATUS_OK(loader);
  Reads reads;
  auto batch = (*loader)->next();
  ASSERT_STATUS_OK(batch);
  EXPECT_EQ(reads.bytes(), 2u * 2 * (length / 4 + 2));
  EXPECT_EQ(valuesOf<float>((*batch)->tensors[3]), std::vector<float>(2 * length, 1.0f));
}

TEST_F(BatchParts, AnInputThatIsNotSplitIsReadWhole) {
  BatchPart part = Split{4, false}.part(specs, 2);
  part.elements[0] = {{0, length}};
  auto loader = open(path, specs, part);
  ASSERT_STATUS_OK(loader);
  Reads reads;
  ASSERT_STATUS_OK((*loader)->next());
  EXPECT_EQ(reads.calls(), 2u);
  EXPECT_EQ(reads.bytes(), 2u * 2 * length); // its last token is no input but a target, of another rank
}

TEST_F(BatchParts, EachIdIsCheckedByARankThatReadsIt) {
  for (const Split &split : {Split{4, false}, Split{4, true}})
    for (int64_t bad = 0; bad <= length; ++bad) {
      std::string content = test::countingTokens(20 * length + 1);
      content[2 * bad + 1] = '\xff';
      writeFile(path, content);
      int64_t found = 0;
      for (int64_t rank = 0; rank < split.ranks; ++rank) {
        auto loader = open(path, specs, split.part(specs, rank), 0, /*shuffle=*/false);
        ASSERT_STATUS_OK(loader);
        auto batch = (*loader)->next();
        const ElementRanges ranges = rankElements(specs[0], split.parts(specs[0], rank));
        auto isIn = [&](int64_t element) {
          return std::any_of(ranges.begin(), ranges.end(),
                             [&](ElementRange range) { return range.begin <= element && element < range.end; });
        };
        // As an input, or as the target of the token before; the second sample begins with the last target of the
        // first.
        const bool isInput = isIn(bad == length ? 0 : bad), isTarget = bad > 0 && isIn(bad - 1);
        EXPECT_EQ(!batch.isOk(), isInput || isTarget);
        if (!batch.isOk())
          EXPECT_ERROR(batch, "token " + std::to_string(bad) + " of '" + path + "'");
        found += !batch.isOk();
      }
      EXPECT_GE(found, 1);
    }
}

TEST_F(BatchParts, BoundsOfSomeElementsHoldInAPart) {
  // Every fifth element from the third on must be below 3.
  BatchSpec spec = makeSpec("x", BatchRole::Input, DataType::I32, {1, length});
  spec.indexParts = {{3, -1, {2}, {length}, {5}}};
  std::vector<int32_t> sample(length, 9);
  for (int64_t i = 2; i < length; i += 5)
    sample[i] = 1;
  sample[37] = 4;
  auto find = [&](const ElementRanges &ranges) {
    return findBadIndex(spec, reinterpret_cast<const uint8_t *>(sample.data()), ranges);
  };
  EXPECT_FALSE(find({{0, 37}, {38, length}}));
  auto bad = find({{3, 5}, {20, 22}, {36, 38}, {40, 41}});
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->element, 37);
  EXPECT_FALSE(find({}));
}

TEST_F(BatchParts, TextAndJsonLines) {
  for (BatchSpec &spec : specs)
    spec.indexBound = spec.indexBound == vocabulary ? 256 : spec.indexBound;
  std::string text, lines;
  for (int i = 0; i < 40; ++i) {
    const std::string document(1 + i * 7 % 61, static_cast<char>('a' + i % 26));
    text += document + "\n";
    lines += "{\"text\": \"" + document + "\"}\n";
  }
  writeFile(scratch.path("a.txt"), text);
  writeFile(scratch.path("a.jsonl"), lines);
  writeFile(scratch.path("both/a.txt"), text.substr(0, 301));
  writeFile(scratch.path("both/b.jsonl"), lines);
  writeFile(scratch.path("both/c.json"), "[\"one\", {\"text\": \"" + std::string(100, 'x') + "\"}]");
  for (const char *name : {"a.txt", "a.jsonl", "both"})
    for (const Split &split : splits)
      expectSameParts(scratch.path(name), specs, split);
  // A byte is a token.
  const Split split{4, true};
  auto loader = open(scratch.path("a.txt"), specs, split.part(specs, 1), 0, /*shuffle=*/false);
  ASSERT_STATUS_OK(loader);
  Reads reads;
  ASSERT_STATUS_OK((*loader)->next());
  EXPECT_EQ(reads.bytes(), 2u * (length / 4 + 2));
}

ByteSpan bytesOf(const auto &values) {
  return {reinterpret_cast<const uint8_t *>(values.data()), values.size() * sizeof(values[0])};
}

TEST(ArrayParts, AreReadFromFilesByRange) {
  constexpr int64_t samples = 5, time = 16384, channels = 2;
  ScratchFolder scratch;
  const std::string path = scratch.path("data.safetensors");
  std::vector<int64_t> tokens(samples * time);
  std::vector<float> features(samples * channels * time), table(time);
  std::iota(tokens.begin(), tokens.end(), 1);
  std::iota(features.begin(), features.end(), 1.0f);
  std::iota(table.begin(), table.end(), 1.0f);
  ASSERT_STATUS_OK(writeSafetensors(path, {{"tokens", DataType::I64, {samples, time}, {bytesOf(tokens)}},
                                           {"features", DataType::F32, {samples, channels, time}, {bytesOf(features)}},
                                           {"table", DataType::F32, {time}, {bytesOf(table)}}}));
  std::vector<BatchSpec> specs = {makeSpec("tokens", BatchRole::Input, DataType::I32, {2, time}),
                                  makeSpec("features", BatchRole::Input, DataType::F32, {2, channels, time}),
                                  makeSpec("table", BatchRole::Input, DataType::F32, {time})};
  specs[2].dims = {DimRole::Position};
  for (const Split &split : {Split{2, false}, Split{2, true}, Split{4, true}, Split{2, true, 2}})
    expectSameParts(path, specs, split);
  const uint64_t stored[] = {8, 4, 4}; // bytes of an element in the file
  for (int64_t rank = 0; rank < 4; ++rank) {
    const BatchPart part = Split{4, true}.part(specs, rank);
    uint64_t calls = 0, bytes = 0;
    for (size_t tensor = 0; tensor < specs.size(); ++tensor)
      for (ElementRange range : part.elements[tensor]) {
        calls += specs[tensor].rows();
        bytes += specs[tensor].rows() * range.size() * stored[tensor];
      }
    EXPECT_EQ(bytes, time / 4 * (2 * 8 + 2 * channels * 4 + 4));
    auto loader = open(path, specs, part);
    ASSERT_STATUS_OK(loader);
    Reads reads;
    ASSERT_STATUS_OK((*loader)->next());
    EXPECT_EQ(reads.calls(), calls);
    EXPECT_EQ(reads.bytes(), bytes);
  }
  // Of ranges less than a page apart what is between is read along: one call for both.
  BatchPart part = Split{4, true}.part(specs, 0);
  part.elements = {{{10, 20}, {30, 40}}, {{0, 5}, {1029, 1030}, {2055, 2056}}, {{0, 1}}};
  auto loader = open(path, specs, part);
  ASSERT_STATUS_OK(loader);
  Reads reads;
  ASSERT_STATUS_OK((*loader)->next());
  EXPECT_EQ(reads.calls(), 2u + 2 * 2 + 1);
  EXPECT_EQ(reads.bytes(), 2u * 30 * 8 + 2 * (1030 + 1) * 4 + 4);
}

/// Equal elements of a row that are apart, in each integer type.
TEST(Runs, TheFirstElementThatComesBackIsFound) {
  auto found = [](auto values, DataType dtype) {
    BatchSpec spec = makeSpec("ids", BatchRole::Input, dtype, {1, 2, 5});
    spec.hasRuns = true;
    spec.dims = {DimRole::Sample, DimRole::None, DimRole::Position};
    return findApart(spec, reinterpret_cast<const uint8_t *>(values.data()));
  };
  const std::array<int64_t, 10> fine = {7, 7, -3, 0, 0, 7, 5, 5, 5, 1}, apart = {7, 7, -3, 0, 0, 9, 5, 9, 9, 5};
  EXPECT_FALSE(found(fine, DataType::I64));
  ASSERT_TRUE(found(apart, DataType::I64));
  EXPECT_EQ(found(apart, DataType::I64)->element, 7);
  EXPECT_EQ(found(apart, DataType::I64)->value, 9);
  EXPECT_EQ(found(std::array<int32_t, 10>{1, 2, 2, 2, -1, 1, 1, -4, 1, 0}, DataType::I32)->element, 8);
  EXPECT_EQ(found(std::array<uint8_t, 10>{1, 200, 1, 3, 4, 5, 6, 7, 8, 9}, DataType::U8)->element, 2);
  EXPECT_EQ(found(std::array<int8_t, 10>{1, 2, 3, 4, 5, -6, -7, -6, 8, 9}, DataType::I8)->value, -6);
}

TEST(ArrayParts, ErrorsNameTheElementOfTheSample) {
  ScratchFolder scratch;
  const std::string path = scratch.path("data.safetensors");
  std::vector<int64_t> tokens(2 * 16, 3);
  tokens[16 + 9] = int64_t{1} << 40;
  ASSERT_STATUS_OK(writeSafetensors(path, {{"tokens", DataType::I64, {2, 16}, {bytesOf(tokens)}}}));
  std::vector<BatchSpec> specs = {makeSpec("tokens", BatchRole::Input, DataType::I32, {2, 16})};
  auto part = [&](int64_t rank) { return Split{2, false}.part(specs, rank); };
  ASSERT_STATUS_OK((*open(path, specs, part(0)))->next());
  EXPECT_ERROR((*open(path, specs, part(1)))->next(), "the value 1099511627776 at element 9 does not fit");
}

} // namespace
} // namespace tessera
