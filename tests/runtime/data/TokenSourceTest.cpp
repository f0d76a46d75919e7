//===- TokenSourceTest.cpp - token files, text and JSON as tokens ------------------===//

#include "runtime/data/TokenSource.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/data/DataFixture.h"

#include <cmath>

namespace tessera {
namespace {

using test::rawBytes;
using test::ScratchFolder;
using test::writeFile;

/// All tokens as a string, each token one char; documents end with '\0'.
std::string tokensOf(TokenSource &source) {
  std::vector<uint32_t> tokens(source.tokens());
  EXPECT_TRUE(source.read(0, tokens.size(), tokens.data()).isOk());
  return {tokens.begin(), tokens.end()};
}

std::string header(uint32_t magic, uint32_t version, uint32_t count) {
  std::vector<uint32_t> words(256);
  words[0] = magic;
  words[1] = version;
  words[2] = count;
  return rawBytes(words);
}

TEST(TokenFile, WithAndWithoutHeader) {
  ScratchFolder scratch;
  std::vector<uint16_t> narrow = {5, 50256, 7};
  std::vector<uint32_t> wide = {5, 128000, 7};
  struct Case {
    std::string content;
    int tokenBytes;
    uint32_t middle;
  };
  for (const Case &test : {Case{rawBytes(narrow), 0, 50256},
                           {rawBytes(wide), 4, 128000},
                           {header(20240520, 1, 3) + rawBytes(narrow), 0, 50256},
                           {header(20240801, 7, 3) + rawBytes(wide), 0, 128000}}) {
    writeFile(scratch.path("a.bin"), test.content);
    auto source = TokenSource::open(scratch.path("a.bin"), {.tokenBytes = test.tokenBytes});
    ASSERT_STATUS_OK(source);
    ASSERT_EQ((*source)->tokens(), 3u);
    EXPECT_FALSE((*source)->isText());
    uint32_t tokens[2];
    ASSERT_STATUS_OK((*source)->read(1, 2, tokens));
    EXPECT_EQ(tokens[0], test.middle);
    EXPECT_EQ(tokens[1], 7u);
    EXPECT_EQ((*source)->describe(2), "token 2 of '" + scratch.path("a.bin") + "'");
  }
}

TEST(TokenFile, BadFiles) {
  ScratchFolder scratch;
  std::string path = scratch.path("a.bin");
  writeFile(path, "odd");
  EXPECT_ERROR(TokenSource::open(path), "has 3 bytes, expected a multiple of 2");
  EXPECT_ERROR(TokenSource::open(path, {.tokenBytes = 3}), "tokens of 3 bytes, expected 2, 4 or 8");
  writeFile(path, header(20240520, 2, 0));
  EXPECT_ERROR(TokenSource::open(path), "has version 2, expected 1");
  writeFile(path, header(20240520, 1, 9) + "1234");
  EXPECT_ERROR(TokenSource::open(path), "says it has 9 tokens, but there are 2 (truncated?)");
  EXPECT_ERROR(TokenSource::open(scratch.path("b.bin")), "no such file or directory");
  writeFile(scratch.path("a.xyz"), "?");
  EXPECT_ERROR(TokenSource::open(scratch.path("a.xyz")), "unknown ending");
}

TEST(TokenFile, FolderOfShardsReadsAcrossFiles) {
  ScratchFolder scratch;
  writeFile(scratch.path("s/b.bin"), rawBytes(std::vector<uint16_t>{3, 4}));
  writeFile(scratch.path("s/a.bin"), rawBytes(std::vector<uint16_t>{1, 2}));
  auto source = TokenSource::open(scratch.path("s"), {}, /*vocabulary=*/10);
  ASSERT_STATUS_OK(source);
  uint32_t tokens[3];
  ASSERT_STATUS_OK((*source)->read(1, 3, tokens));
  EXPECT_EQ(std::vector<uint32_t>(tokens, tokens + 3), (std::vector<uint32_t>{2, 3, 4}));
  writeFile(scratch.path("s/c.txt"), "text");
  EXPECT_ERROR(TokenSource::open(scratch.path("s")), "has both token files");
}

TEST(Text, FolderInOrderOfPathsWithSeparators) {
  ScratchFolder scratch;
  writeFile(scratch.path("b.txt"), "two");
  writeFile(scratch.path("a/z.txt"), "one");
  writeFile(scratch.path("c.jsonl"), "{\"text\": \"three\"}\r\n\n{\"text\": \"f\\u00f6ur\", \"x\": 1}");
  writeFile(scratch.path("d.json"), R"([{"text": "five"}, "six"])");
  writeFile(scratch.path("empty.txt"), "");
  writeFile(scratch.path("image.png"), "ignored");
  auto source = TokenSource::open(scratch.root());
  ASSERT_STATUS_OK(source);
  EXPECT_TRUE((*source)->isText());
  std::string expected("one\0two\0three\0f\xc3\xb6ur\0five\0six\0", 29);
  EXPECT_EQ(tokensOf(**source), expected);
  for (size_t begin = 0; begin < expected.size(); ++begin)
    for (size_t count = 0; begin + count <= expected.size(); count += 5) {
      std::vector<uint32_t> part(count);
      ASSERT_STATUS_OK((*source)->read(begin, count, part.data()));
      EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + begin,
                             [](uint32_t token, char c) { return token == static_cast<uint8_t>(c); }));
    }
  EXPECT_EQ((*source)->describe(9), "byte 1 of line 1 of '" + scratch.path("c.jsonl") + "'");
  EXPECT_EQ((*source)->describe(5), "byte 1 of '" + scratch.path("b.txt") + "'");
  EXPECT_EQ((*source)->describe(25), "byte 0 of item 2 of '" + scratch.path("d.json") + "'");
}

TEST(Text, AnotherField) {
  ScratchFolder scratch;
  writeFile(scratch.path("a.jsonl"), "{\"content\": \"x\"}\n\"y\"\n");
  auto source = TokenSource::open(scratch.path("a.jsonl"), {.textField = "content"});
  ASSERT_STATUS_OK(source);
  EXPECT_EQ(tokensOf(**source), std::string("x\0y\0", 4));
}

TEST(Text, BadDocuments) {
  ScratchFolder scratch;
  std::string lines = scratch.path("a.jsonl"), json = scratch.path("a.json");
  for (auto [content, message] : std::initializer_list<std::pair<const char *, const char *>>{
           {"{\"text\": \"a\"}\n{\"text\": ", "line 2 is not valid JSON"},
           {"{\"body\": \"a\"}", "line 1 has no field 'text'"},
           {"{\"text\": 3}", "line 1 has a field 'text' that is not a string"},
           {"{\"text\": \"\xff\"}", "line 1 is not valid JSON"},
           {"[1]", "line 1 is neither a string nor an object"}}) {
    writeFile(lines, content);
    EXPECT_ERROR(TokenSource::open(lines), message);
    EXPECT_ERROR(TokenSource::open(lines), lines);
  }
  writeFile(json, "[\"a\", {\"body\": 1}]");
  EXPECT_ERROR(TokenSource::open(json), "item 2 has no field 'text'");
  writeFile(json, "nonsense");
  EXPECT_ERROR(TokenSource::open(json), "is not valid JSON");
}

TEST(Text, EmptyFolders) {
  ScratchFolder scratch;
  EXPECT_ERROR(TokenSource::open(scratch.root()), "has no .txt, .json, .jsonl or .bin file");
  writeFile(scratch.path("a.md"), "x");
  EXPECT_ERROR(TokenSource::open(scratch.root()), "(1 other files)");
  EXPECT_ERROR(TokenSource::open(scratch.path("missing")), "no such file or directory");
}

TEST(Text, AChangedFileIsNoticed) {
  ScratchFolder scratch;
  writeFile(scratch.path("a.txt"), "before");
  auto source = TokenSource::open(scratch.path("a.txt"));
  ASSERT_STATUS_OK(source);
  writeFile(scratch.path("a.txt"), "after that");
  uint32_t token;
  EXPECT_ERROR((*source)->read(0, 1, &token), "has changed since it was opened");
}

TEST(Text, MoreFilesThanDescriptors) {
  ScratchFolder scratch;
  std::string expected;
  for (int i = 1000; i < 1600; ++i) {
    writeFile(scratch.path(std::to_string(i) + ".txt"), std::to_string(i));
    expected += std::to_string(i) + '\0';
  }
  auto source = TokenSource::open(scratch.root());
  ASSERT_STATUS_OK(source);
  EXPECT_EQ(tokensOf(**source), expected);
  EXPECT_EQ(tokensOf(**source), expected);
}

TEST(Text, UnigramEntropy) {
  ScratchFolder scratch;
  writeFile(scratch.path("a.txt"), "aabbaab"); // a 4, b 3, separator 1
  auto source = TokenSource::open(scratch.path("a.txt"));
  ASSERT_STATUS_OK(source);
  auto entropy = (*source)->unigramEntropy();
  ASSERT_STATUS_OK(entropy);
  EXPECT_NEAR(*entropy, -(0.5 * std::log(0.5) + 0.375 * std::log(0.375) + 0.125 * std::log(0.125)), 1e-12);
  writeFile(scratch.path("b.bin"), rawBytes(std::vector<uint32_t>{1, 70000, 1, 70000}));
  auto wide = TokenSource::open(scratch.path("b.bin"), {.tokenBytes = 4});
  ASSERT_STATUS_OK(wide);
  EXPECT_NEAR(*(*wide)->unigramEntropy(), std::log(2.0), 1e-12);
  // Of more tokens than the limit, blocks that are spread evenly: the last quarter is another token.
  std::vector<uint32_t> many(8 << 16, 1);
  std::fill(many.begin() + (6 << 16), many.end(), 2);
  writeFile(scratch.path("c.bin"), rawBytes(many));
  auto large = TokenSource::open(scratch.path("c.bin"), {.tokenBytes = 4});
  ASSERT_STATUS_OK(large);
  double whole = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  EXPECT_NEAR(*(*large)->unigramEntropy(), whole, 1e-12);
  EXPECT_NEAR(*(*large)->unigramEntropy(4 << 16), whole, 1e-12);
  EXPECT_EQ(*(*large)->unigramEntropy(100), 0.0); // one block
  writeFile(scratch.path("b.bin"), rawBytes(std::vector<uint32_t>{1u << 30}));
  EXPECT_ERROR(
      TokenSource::open(scratch.path("b.bin"), {.tokenBytes = 4}),
      "is not of any vocabulary: as uint32, 1 of 1 values sampled are not in [0, 16777216), the first: token 0 "
      "is 1073741824");
}

} // namespace
} // namespace tessera
