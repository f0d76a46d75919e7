//===- ChangedFilesTest.cpp - token files and text that change while they are read ------===//

#include "runtime/data/TokenSource.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/data/DataFixture.h"

#include <numeric>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::ScratchFolder;
using test::writeFile;

Status readAll(TokenSource &source) {
  std::vector<uint32_t> tokens(source.tokens());
  return source.read(0, tokens.size(), tokens.data());
}

std::string manyLines() {
  std::string lines;
  for (int i = 0; i < 4000; ++i)
    lines += "{\"text\": \"line " + std::to_string(i) + "\"}\n";
  return lines;
}

/// 0, 1, …, count-1 as uint32.
std::string countingWide(uint32_t count) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return test::rawBytes(tokens);
}

size_t openDescriptors() { return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()); }

TEST(ChangedFiles, WhatBecomesShorterIsAnErrorOfEveryKind) {
  struct Case {
    const char *name;
    std::string content;
    int tokenBytes;
  };
  for (const Case &test : {Case{"a.bin", test::countingTokens(40000), 0}, Case{"b.bin", countingWide(20000), 4},
                           Case{"c.txt", std::string(40000, 'x'), 0}, Case{"d.jsonl", manyLines(), 0}})
    for (uintmax_t left : {0, 5000}) {
      SCOPED_TRACE(test.name);
      ScratchFolder scratch;
      std::string path = scratch.path(test.name);
      writeFile(path, test.content);
      for (const std::string &data : {path, scratch.root()}) {
        auto source = TokenSource::open(data, {.tokenBytes = test.tokenBytes});
        ASSERT_STATUS_OK(source);
        ASSERT_STATUS_OK(readAll(**source));
        fs::resize_file(path, left);
        EXPECT_ERROR(readAll(**source), "'" + path + "' has become shorter while it was read: it had " +
                                            std::to_string(test.content.size()) + " bytes and has " +
                                            std::to_string(left));
        EXPECT_ERROR((*source)->fingerprint(), "'" + path + "' has become shorter while it was read");
        uint32_t token; // also where the token itself is still there
        EXPECT_ERROR((*source)->read(0, 1, &token), "has become shorter");
        writeFile(path, test.content);
      }
    }
}

TEST(ChangedFiles, JsonIsInMemory) {
  ScratchFolder scratch;
  writeFile(scratch.path("a.json"), R"(["one", "two"])");
  auto source = TokenSource::open(scratch.path("a.json"));
  ASSERT_STATUS_OK(source);
  fs::resize_file(scratch.path("a.json"), 0);
  ASSERT_STATUS_OK(readAll(**source));
}

TEST(ChangedFiles, WhatGrowsOrGoesAwayIsAnError) {
  ScratchFolder scratch;
  std::string path = scratch.path("a.bin");
  writeFile(path, test::countingTokens(100));
  auto source = TokenSource::open(path, {}, /*vocabulary=*/200);
  ASSERT_STATUS_OK(source);
  writeFile(path, test::countingTokens(101));
  EXPECT_ERROR(readAll(**source), "'" + path + "' has changed since it was opened: it had 200 bytes and has 202");
}

TEST(ChangedFiles, OfManyFilesSomeHaveDescriptorsAndOthersAreOpenedAgain) {
  ScratchFolder scratch;
  auto pathOf = [&](int i) { return scratch.path(std::to_string(1000 + i) + ".txt"); };
  size_t before = openDescriptors();
  for (int i = 0; i < 600; ++i)
    writeFile(pathOf(i), "text");
  auto source = TokenSource::open(scratch.root());
  ASSERT_STATUS_OK(source);
  ASSERT_STATUS_OK(readAll(**source));
  EXPECT_LE(openDescriptors(), before + 130);
  // Another file of the same name and length, with another time.
  uint32_t token;
  fs::rename(pathOf(1), scratch.path("kept"));
  writeFile(pathOf(1), "next");
  fs::last_write_time(pathOf(1), fs::last_write_time(scratch.path("kept")) + std::chrono::seconds(5));
  EXPECT_ERROR((*source)->read(5, 1, &token), "'" + pathOf(1) + "' has changed since it was opened");
  fs::remove(pathOf(2));
  EXPECT_ERROR((*source)->read(10, 1, &token), "cannot open '" + pathOf(2) + "': no such file");
  fs::resize_file(pathOf(3), 3);
  EXPECT_ERROR((*source)->read(15, 1, &token), "'" + pathOf(3) + "' has become shorter while it was read");
  ASSERT_STATUS_OK((*source)->read(0, 1, &token));
}

TEST(ChangedFiles, LinesAcrossBlocks) {
  // The index is read in blocks of 1 MiB: lines that are longer, and those that begin and end at the borders.
  ScratchFolder scratch;
  std::string content, expected;
  auto add = [&](size_t bytes) {
    std::string text(bytes - 3, static_cast<char>('a' + expected.size() % 26)); // two quotes and a line feed
    content += '"' + text + "\"\n";
    expected += text + '\0';
  };
  for (size_t bytes : {size_t{1} << 20, size_t{3} << 20, size_t{100}, (size_t{1} << 20) - 101, size_t{50}, size_t{10}})
    add(bytes);
  content += "\n\"last\"";
  expected += std::string("last\0", 5);
  writeFile(scratch.path("a.jsonl"), content);
  auto source = TokenSource::open(scratch.path("a.jsonl"));
  ASSERT_STATUS_OK(source);
  ASSERT_EQ((*source)->tokens(), expected.size());
  std::vector<uint32_t> tokens(expected.size());
  ASSERT_STATUS_OK((*source)->read(0, tokens.size(), tokens.data()));
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), expected.begin(),
                         [](uint32_t token, char c) { return token == static_cast<uint8_t>(c); }));
  EXPECT_EQ((*source)->describe(expected.size() - 2), "byte 3 of line 8 of '" + scratch.path("a.jsonl") + "'");
}

} // namespace
} // namespace tessera
