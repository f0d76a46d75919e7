//===- InputFileTest.cpp - files read at any place, and contents told apart --===//

#include "runtime/base/InputFile.h"
#include "runtime/base/Fingerprint.h"
#include "tests/runtime/TestSupport.h"

#include <unistd.h>

namespace tessera {
namespace {

using test::ScratchFolder;

void write(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// Even where the clock of the file system has not ticked since the file was written.
void setTime(const std::string &path, int seconds) {
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(seconds));
}

size_t descriptorsOf(const std::string &path) {
  size_t count = 0;
  std::error_code error;
  for (const auto &each : std::filesystem::directory_iterator("/proc/self/fd"))
    count += std::filesystem::read_symlink(each.path(), error) == path;
  return count;
}

TEST(InputFile, ChangesAreSeen) {
  ScratchFolder folder;
  const std::string path = folder.path("data"), other = folder.path("other");
  write(path, "0123456789");
  Result<InputFile> file = InputFile::open(path);
  ASSERT_STATUS_OK(file.status());
  ASSERT_STATUS_OK(file->checkUnchanged());

  write(path, "0123456789ab");
  EXPECT_ERROR(file->checkUnchanged(), "has changed since it was opened: it had 10 bytes and has 12");
  write(path, "0123");
  EXPECT_ERROR(file->checkUnchanged(), "has become shorter while it was read: it had 10 bytes and has 4");
  char bytes[4];
  EXPECT_ERROR(file->read(0, bytes, 4), "has become shorter");
  write(path, "9876543210");
  setTime(path, 1);
  EXPECT_ERROR(file->checkUnchanged(), "has changed since it was opened");
  write(other, "abcdefghij");
  setTime(other, 2);
  std::filesystem::rename(other, path);
  EXPECT_ERROR(file->checkUnchanged(), "has changed since it was opened");
  std::filesystem::remove(path);
  EXPECT_ERROR(file->checkUnchanged(), path);
}

TEST(InputFile, OnlyOpenFilesCountTowardsTheDescriptors) {
  ScratchFolder folder;
  const std::string path = folder.path("first");
  write(path, "kept");
  Result<InputFile> first = InputFile::open(path);
  ASSERT_STATUS_OK(first.status());
  write(folder.path("other"), "closed");
  for (int count = 0; count < 300; ++count)
    ASSERT_TRUE(InputFile::open(folder.path("other")).isOk());
  EXPECT_EQ(descriptorsOf(path), 1u);

  std::vector<InputFile> open;
  for (int count = 0; count < 300; ++count)
    open.push_back(*InputFile::open(folder.path("other")));
  EXPECT_EQ(descriptorsOf(path), 0u);
  EXPECT_LE(descriptorsOf(folder.path("other")), 128u);
  char bytes[5] = "";
  ASSERT_STATUS_OK(first->read(0, bytes, 4)); // opened again
  EXPECT_STREQ(bytes, "kept");
}

std::string contentOf(const ScratchFolder &folder, const std::vector<std::string> &texts, uint64_t limit) {
  std::vector<ByteRange> parts;
  for (size_t index = 0; index < texts.size(); ++index) {
    const std::string path = folder.path(std::to_string(index));
    write(path, texts[index]);
    InputFile file = *InputFile::open(path);
    parts.emplace_back(file, 0, file.size());
  }
  Fingerprint fingerprint;
  EXPECT_TRUE(fingerprint.addContent(parts, limit).isOk());
  return fingerprint.text();
}

TEST(Fingerprint, TellsContentsApart) {
  ScratchFolder folder;
  const std::string text(1000, 'a');
  const std::string whole = contentOf(folder, {text, text}, 1 << 20);
  EXPECT_EQ(whole, contentOf(folder, {text, text}, 1 << 20));
  EXPECT_EQ(whole.size(), 16u);
  for (size_t at : {0, 500, 999}) {
    std::string changed = text;
    changed[at] = 'b';
    EXPECT_NE(whole, contentOf(folder, {text, changed}, 1 << 20)) << at;
  }
  EXPECT_NE(whole, contentOf(folder, {text, text + "a"}, 1 << 20));
  EXPECT_NE(whole, contentOf(folder, {text + "a", text.substr(1)}, 1 << 20)) << "the border of the files";
  EXPECT_NE(whole, contentOf(folder, {text}, 1 << 20));
}

/// Beyond the limit blocks are read, the first and the last among them.
TEST(Fingerprint, ReadsBlocksOfALongContent) {
  ScratchFolder folder;
  std::string text(fingerprintBytes * 3, 'a');
  const std::string sampled = contentOf(folder, {text}, 1 << 20);
  for (size_t at : {size_t{0}, text.size() - 1}) {
    std::string changed = text;
    changed[at] = 'b';
    EXPECT_NE(sampled, contentOf(folder, {changed}, 1 << 20)) << at;
  }
  EXPECT_NE(sampled, contentOf(folder, {text + "a"}, 1 << 20));
}

TEST(Fingerprint, AFileThatHasShrunkIsAnError) {
  ScratchFolder folder;
  write(folder.path("data"), std::string(1000, 'a'));
  InputFile file = *InputFile::open(folder.path("data"));
  write(folder.path("data"), "a");
  Fingerprint fingerprint;
  ByteRange part(file, 0, file.size());
  EXPECT_ERROR(fingerprint.addContent({&part, 1}, 1 << 20), "has become shorter");
}

} // namespace
} // namespace tessera
