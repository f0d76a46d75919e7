//===- FileTest.cpp - temporary names and files written all or nothing -----===//

#include "runtime/base/File.h"
#include "tests/runtime/TestSupport.h"

namespace tessera {
namespace {

using test::ScratchFolder;

TEST(TemporaryName, DoesNotRepeatAndIsRecognised) {
  std::string first = temporaryName("a/model.safetensors"), second = temporaryName("a/model.safetensors");
  EXPECT_NE(first, second);
  EXPECT_TRUE(first.starts_with("a/model.safetensors.tmp-"));
  EXPECT_TRUE(isTemporaryName(first));
  EXPECT_TRUE(isTemporaryName(".ckpt-5.tmp-1234")) << "of an earlier version";
  for (const char *name : {"model.safetensors", "notes.tmp", "notes.tmp-", "notes.tmp-mine", ".tmp-12"})
    EXPECT_FALSE(isTemporaryName(name)) << name;
}

TEST(AtomicFile, IsNotBlockedByWhatAProcessOfTheSameNumberLeft) {
  ScratchFolder scratch;
  std::string path = scratch.path("latest");
  for (int count = 0; count < 64; ++count)
    test::writeFile(path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(count), "left over");
  ASSERT_STATUS_OK(writeFileAtomically(path, "ckpt-5\n"));
  EXPECT_EQ(test::readFile(path), "ckpt-5\n");
}

} // namespace
} // namespace tessera
