//===- DataFolderTest.cpp - links inside a folder of data ---------------------------===//

#include "runtime/data/TokenSource.h"
#include "tests/runtime/TestSupport.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::writeFile;

class DataFolderTest : public ::testing::Test {
protected:
  /// All documents, each followed by '|'.
  std::string documents() {
    auto source = TokenSource::open(scratch.path("data"));
    EXPECT_TRUE(source.isOk()) << source.status();
    if (!source.isOk())
      return "";
    std::vector<uint32_t> tokens((*source)->tokens());
    EXPECT_TRUE((*source)->read(0, tokens.size(), tokens.data()).isOk());
    std::string text(tokens.begin(), tokens.end());
    std::replace(text.begin(), text.end(), '\0', '|');
    return text;
  }
  void link(const std::string &target, const std::string &name) { fs::create_symlink(target, scratch.path(name)); }

  test::ScratchFolder scratch;
};

TEST_F(DataFolderTest, LinksToFoldersAndFilesAreFollowed) {
  writeFile(scratch.path("data/b.txt"), "b");
  writeFile(scratch.path("elsewhere/x.txt"), "x");
  writeFile(scratch.path("elsewhere/deep/y.txt"), "y");
  writeFile(scratch.path("single/z"), "z");
  link(scratch.path("elsewhere"), "data/a");
  link("../single/z", "data/c.txt");
  link("../../single", "elsewhere/deep/more");
  writeFile(scratch.path("single/w.txt"), "w");
  EXPECT_EQ(documents(),
            "w|y|x|b|z|"); // data/a/deep/more/w.txt, data/a/deep/y.txt, data/a/x.txt, data/b.txt, data/c.txt
}

TEST_F(DataFolderTest, TheFolderItselfMayBeALink) {
  writeFile(scratch.path("real/a.txt"), "a");
  link("real", "data");
  EXPECT_EQ(documents(), "a|");
}

TEST_F(DataFolderTest, LinksThatLeadBackAreNotFollowed) {
  writeFile(scratch.path("data/a.txt"), "a");
  writeFile(scratch.path("data/sub/b.txt"), "b");
  link("..", "data/sub/up");
  link(".", "data/here");
  EXPECT_EQ(documents(), "a|b|");
  // A link to the folder above, in which the data lie.
  writeFile(scratch.path("c.txt"), "c");
  link("../..", "data/sub/out");
  EXPECT_EQ(documents(), "a|b|c|");
}

TEST_F(DataFolderTest, EachFileIsReadOnce) {
  writeFile(scratch.path("data/z/a.txt"), "a");
  link("z", "data/early");
  link("z/a.txt", "data/again.txt");
  EXPECT_EQ(documents(), "a|");
  // Twice from elsewhere: the first path counts.
  writeFile(scratch.path("elsewhere/x.txt"), "x");
  link("../elsewhere/x.txt", "data/b.txt");
  link("../elsewhere", "data/c");
  link("../elsewhere", "data/y");
  EXPECT_EQ(documents(), "x|a|");
  // Copies that are no links are copies, also where they share their bytes.
  fs::create_hard_link(scratch.path("data/z/a.txt"), scratch.path("data/z/b.txt"));
  EXPECT_EQ(documents(), "x|a|a|");
}

TEST_F(DataFolderTest, LinksThatLeadNowhereAreErrors) {
  writeFile(scratch.path("data/a.txt"), "a");
  link("gone.txt", "data/b.txt");
  EXPECT_ERROR(TokenSource::open(scratch.path("data")),
               "'" + scratch.path("data/b.txt") + "' is a link to 'gone.txt', which does not exist");
  fs::remove(scratch.path("data/b.txt"));
  link("shards-2", "data/shards");
  EXPECT_ERROR(TokenSource::open(scratch.path("data")), "is a link to 'shards-2', which does not exist");
  fs::remove(scratch.path("data/shards"));
  link("circle.txt", "data/circle.txt");
  EXPECT_ERROR(TokenSource::open(scratch.path("data")), "cannot follow the link '" + scratch.path("data/circle.txt"));
}

} // namespace
} // namespace tessera
