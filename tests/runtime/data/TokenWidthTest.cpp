//===- TokenWidthTest.cpp - how many bytes a token of a file has ------------------===//

#include "runtime/data/TokenWidth.h"
#include "runtime/data/TokenSource.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/data/DataFixture.h"

#include <fcntl.h>
#include <unistd.h>

namespace tessera {
namespace {

using test::rawBytes;

class TokenWidthTest : public ::testing::Test {
protected:
  template <typename T>
  Result<std::unique_ptr<TokenSource>> open(const std::vector<T> &tokens, int64_t vocabulary = -1, int tokenBytes = 0) {
    test::writeFile(path, rawBytes(tokens));
    return TokenSource::open(path, {.tokenBytes = tokenBytes}, vocabulary);
  }
  /// The tokens are read as they were written.
  template <typename T> void expectRead(const std::vector<T> &tokens, int64_t vocabulary = -1, int tokenBytes = 0) {
    auto source = open(tokens, vocabulary, tokenBytes);
    ASSERT_STATUS_OK(source);
    ASSERT_EQ((*source)->tokens(), tokens.size());
    std::vector<uint32_t> read(tokens.size());
    ASSERT_STATUS_OK((*source)->read(0, read.size(), read.data()));
    EXPECT_TRUE(std::equal(read.begin(), read.end(), tokens.begin()));
  }
  /// Like text: small tokens are frequent, and all below `vocabulary` occur.
  template <typename T> static std::vector<T> text(size_t count, int64_t vocabulary) {
    std::vector<T> tokens(count);
    uint64_t state = 1;
    for (T &token : tokens) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double uniform = static_cast<double>(state >> 11) / 9007199254740992.0;
      token = static_cast<T>(static_cast<double>(vocabulary) * uniform * uniform);
    }
    return tokens;
  }

  test::ScratchFolder scratch;
  std::string path = scratch.path("a.bin");
};

TEST_F(TokenWidthTest, TheFileAndTheVocabularyDecide) {
  for (int64_t vocabulary : {256, 50257, 65536})
    for (size_t count : {20, 100, 1000, 1001, 300000}) {
      SCOPED_TRACE(std::to_string(count) + " of " + std::to_string(vocabulary));
      expectRead(text<uint16_t>(count, vocabulary), vocabulary);
      expectRead(text<uint16_t>(count, vocabulary), vocabulary, 2);
      if (count < 100)
        continue;
      if (vocabulary > 256)
        expectRead(text<uint16_t>(count, vocabulary));
      for (int64_t known : {vocabulary, int64_t{-1}}) {
        expectRead(text<uint32_t>(count, vocabulary), known);
        expectRead(text<int64_t>(count, vocabulary), known);
      }
      expectRead(text<uint32_t>(count, vocabulary), vocabulary, 4);
      expectRead(text<int64_t>(count, vocabulary), vocabulary, 8);
    }
  for (int64_t vocabulary : {65537, 129280, 262144})
    for (size_t count : {100, 300001}) {
      SCOPED_TRACE(std::to_string(count) + " of " + std::to_string(vocabulary));
      expectRead(text<uint32_t>(count, vocabulary), vocabulary);
      expectRead(text<uint32_t>(count, vocabulary));
      expectRead(text<int64_t>(count, vocabulary), vocabulary);
    }
  expectRead(std::vector<uint32_t>{5, 128000, 7}, 129280); // too few to tell, but uint16 has no such vocabulary
}

TEST_F(TokenWidthTest, TheFormatSaysHow) {
  auto format = [&](auto tokens, int64_t vocabulary, int tokenBytes = 0) {
    auto source = open(tokens, vocabulary, tokenBytes);
    EXPECT_TRUE(source.isOk()) << source.status();
    return source.isOk() ? (*source)->format() : "";
  };
  EXPECT_EQ(format(text<uint16_t>(1000, 50257), 50257), "uint16 tokens (by values and a vocabulary of 50257)");
  EXPECT_EQ(format(text<uint32_t>(1000, 50257), -1), "uint32 tokens (by values)");
  EXPECT_EQ(format(text<int64_t>(1000, 50257), 50257, 8), "int64 tokens (by --token-bytes)");
}

TEST_F(TokenWidthTest, AnotherWidthThanTheFlagSays) {
  auto narrow = text<uint16_t>(3000, 50257);
  EXPECT_ERROR(open(narrow, 50257, 4), "is not of the model's vocabulary of 50257: as uint32, ");
  EXPECT_ERROR(open(narrow, 50257, 4), "of 1500 values sampled are not in [0, 50257), the first: token 0 is ");
  EXPECT_ERROR(open(narrow, 50257, 4), "as uint16, all of 3000 values sampled are in [0, 50257): if that is what it "
                                       "holds, give --token-bytes 2");
  EXPECT_ERROR(open(narrow, 50257, 8), "give --token-bytes 2");
  EXPECT_ERROR(
      open(text<uint32_t>(3000, 50257), 50257, 2),
      "does not look like uint16 (--token-bytes 2): every second 16-bit word is near 0 and the others are not, "
      "as in uint32; give --token-bytes 4, or a file with a header of llm.c, if it really is so");
  EXPECT_ERROR(open(text<uint32_t>(3000, 129280), 129280, 2), "give --token-bytes 4");
  EXPECT_ERROR(
      open(text<int64_t>(3000, 129280), 129280, 4),
      "does not look like uint32 (--token-bytes 4): every second 32-bit word is near 0 and the others are not, "
      "as in int64; give --token-bytes 8");
  EXPECT_ERROR(open(text<uint32_t>(3000, 129280), 129280, 8), "give --token-bytes 4");
  EXPECT_ERROR(open(text<uint16_t>(1001, 300), 300, 4), "has 2002 bytes, expected a multiple of 4 (--token-bytes 4)");
}

TEST_F(TokenWidthTest, TokensOfAnotherTokenizer) {
  EXPECT_ERROR(open(text<uint16_t>(3000, 50257), 129280), "is not of the model's vocabulary of 129280: as uint32, ");
  EXPECT_ERROR(open(text<uint16_t>(3000, 50257), 129280), "give --token-bytes 2");
  expectRead(text<uint16_t>(3000, 50257), 129280, 2);
  EXPECT_ERROR(open(text<uint32_t>(3000, 129280), 256), "the tokens must be those of the model's tokenizer");
  EXPECT_ERROR(open(text<uint16_t>(3000, 50257), 256), "the tokens must be those of the model's tokenizer");
}

TEST_F(TokenWidthTest, WhatMayBeSeveralTypesIsRefused) {
  EXPECT_ERROR(open(std::vector<uint16_t>(300000), 50257), "may be of several types: as uint16, all of ");
  EXPECT_ERROR(open(std::vector<uint16_t>(300000)), "--token-bytes says which it is");
  expectRead(std::vector<uint16_t>(300000), 50257, 2);
  expectRead(std::vector<uint32_t>(300000), 50257, 4);
  // Too few to tell, and small tokens for a model of which nothing is known.
  EXPECT_ERROR(open(text<uint32_t>(60, 50257), 50257), "may be of several types");
  EXPECT_ERROR(open(text<int64_t>(40, 65536), 65536), "may be of several types");
  EXPECT_ERROR(open(text<uint16_t>(1000, 256)), "may be of several types");
}

TEST_F(TokenWidthTest, PaddingIsOfNoType) {
  auto pad = [](auto tokens) {
    std::fill(tokens.begin() + 300, tokens.end(), 0);
    return tokens;
  };
  for (int64_t vocabulary : {50257, 65536}) {
    expectRead(pad(text<uint16_t>(2000, vocabulary)), vocabulary);
    expectRead(pad(text<uint32_t>(2000, vocabulary)), vocabulary);
    expectRead(pad(text<int64_t>(2000, vocabulary)), vocabulary);
  }
}

TEST_F(TokenWidthTest, FewTokensMayBeWrongInThemselves) {
  std::vector<uint16_t> inTurn(1000);
  for (size_t i = 0; i < inTurn.size(); i += 2)
    inTurn[i] = 500, inTurn[i + 1] = 1;
  expectRead(inTurn, 1000);
  auto wrong = text<uint32_t>(1000, 50257);
  wrong[500] = 1 << 20; // which is found where it is read
  expectRead(wrong, 50257);
  auto many = text<uint16_t>(1000, 300);
  std::fill(many.begin(), many.begin() + 300, 300);
  EXPECT_ERROR(open(many, 300), "as uint16, 300 of 1000 values sampled are not in [0, 300), the first: token 0 is 300");
}

TEST_F(TokenWidthTest, Truncated) {
  for (int64_t vocabulary : {int64_t{-1}, int64_t{50257}}) {
    auto bytes = rawBytes(text<uint32_t>(1000, 50257));
    test::writeFile(path, bytes.substr(0, bytes.size() - 2));
    EXPECT_ERROR(TokenSource::open(path, {}, vocabulary),
                 "has 3998 bytes, expected a multiple of 4: every second 16-bit "
                 "word is near 0 and the others are not, as in uint32");
  }
  EXPECT_ERROR(
      open(text<uint16_t>(1001, 50257), 129280),
      "has 2002 bytes, expected a multiple of 4 for a vocabulary of 129280 (truncated? --token-bytes says if it "
      "is another type)");
  test::writeFile(path, "");
  auto empty = TokenSource::open(path, {}, 50257);
  ASSERT_STATUS_OK(empty);
  EXPECT_EQ((*empty)->tokens(), 0u);
}

TEST_F(TokenWidthTest, NegativeTokensOfInt64AreNamed) {
  auto tokens = text<int64_t>(1000, 50257);
  for (size_t i = 7; i < tokens.size(); i += 100)
    tokens[i] = -100;
  auto source = open(tokens, 50257);
  ASSERT_STATUS_OK(source);
  uint32_t read[8];
  ASSERT_STATUS_OK((*source)->read(0, 7, read));
  EXPECT_ERROR((*source)->read(1, 8, read), "token 7 of '" + path + "' is -100, which no vocabulary has");
  for (size_t i = 7; i < tokens.size(); i += 4)
    tokens[i] = -100;
  EXPECT_ERROR(open(tokens, 50257),
               "as int64, 249 of 1000 values sampled are not in [0, 50257), the first: token 7 is -100");
}

TEST_F(TokenWidthTest, FilesOfAFolderAreOfOneType) {
  test::writeFile(scratch.path("s/a.bin"), rawBytes(text<uint32_t>(1000, 50257)));
  test::writeFile(scratch.path("s/b.bin"), rawBytes(text<uint32_t>(10, 50257))); // alone it could be uint16
  auto source = TokenSource::open(scratch.path("s"), {}, 50257);
  ASSERT_STATUS_OK(source);
  EXPECT_EQ((*source)->tokens(), 1010u);
  EXPECT_EQ((*source)->format(), "uint32 tokens (by values and a vocabulary of 50257) and uint32 tokens (by the files "
                                 "beside it)");
  test::writeFile(scratch.path("t/a.bin"), rawBytes(text<uint16_t>(1000, 50257)));
  test::writeFile(scratch.path("t/b.bin"), rawBytes(std::vector<uint16_t>(10)));
  auto narrow = TokenSource::open(scratch.path("t"), {}, 50257);
  ASSERT_STATUS_OK(narrow);
  EXPECT_EQ((*narrow)->tokens(), 1010u);
  test::writeFile(scratch.path("s/c.bin"), rawBytes(text<uint16_t>(1000, 50257)));
  EXPECT_ERROR(TokenSource::open(scratch.path("s"), {}, 50257), "are of different types: uint32 and uint16 (by values");
}

TEST_F(TokenWidthTest, ALargeFileIsSampledAllOver) {
  // 16 GiB of zeros in no blocks of the disk, and text at both ends and in the middle: bounded reads.
  test::writeFile(path, "");
  const uint64_t bytes = uint64_t{16} << 30;
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(bytes)), 0);
  const ReadCount before = InputFile::readsOfProcess();
  EXPECT_ERROR(TokenSource::open(path, {}, 50257), "may be of several types");
  EXPECT_LE(InputFile::readsOfProcess().bytes - before.bytes, (256u << 10) + 64);
}

TEST_F(TokenWidthTest, TextForAModelOfMoreTokensThanBytes) {
  test::writeFile(scratch.path("a.txt"), "text");
  for (int64_t vocabulary : {-1, 128, 256, 300, 512})
    EXPECT_TRUE(TokenSource::open(scratch.path("a.txt"), {}, vocabulary).isOk()) << vocabulary;
  for (int64_t vocabulary : {513, 50257, 129280})
    EXPECT_ERROR(TokenSource::open(scratch.path("a.txt"), {}, vocabulary),
                 "is text, which would be read as bytes (tokens 0 to 255), but the model has a vocabulary of " +
                     std::to_string(vocabulary) + ": give the tokens that its tokenizer makes of the text");
  auto asBytes = TokenSource::open(scratch.path("a.txt"), {.readsBytes = true}, 129280);
  ASSERT_STATUS_OK(asBytes);
  EXPECT_EQ((*asBytes)->format(), "bytes of text");
}

TEST_F(TokenWidthTest, OptionsOfOtherData) {
  test::writeFile(scratch.path("a.txt"), "text");
  EXPECT_ERROR(TokenSource::open(scratch.path("a.txt"), {.tokenBytes = 2}), "--token-bytes is for files of tokens");
  test::writeFile(path, rawBytes(text<uint16_t>(1000, 256)));
  EXPECT_ERROR(TokenSource::open(path, {.readsBytes = true}, 256), "--tokenizer is for text");
  std::vector<uint32_t> header(256 + 5);
  header[0] = 20240801, header[1] = 7, header[2] = 5;
  test::writeFile(path, rawBytes(header));
  EXPECT_ERROR(TokenSource::open(path, {.tokenBytes = 2}),
               "has tokens of 4 bytes, as its header says, and not of 2 (--token-bytes)");
  test::writeFile(path, "\x93NUMPY\x01" + std::string(200, 'x'));
  EXPECT_ERROR(TokenSource::open(path), "is an array of NumPy (.npy), expected its bare values");
  test::writeFile(path, "PK\x03\x04" + std::string(200, 'x'));
  EXPECT_ERROR(TokenSource::open(path), "is a zip archive (weights of PyTorch?), not tokens");
}

} // namespace
} // namespace tessera
