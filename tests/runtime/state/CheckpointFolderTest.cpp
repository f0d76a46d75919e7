//===- CheckpointFolderTest.cpp - which checkpoint counts, and what a crash leaves ===//

#include "runtime/state/Checkpoint.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/state/StateFixture.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

/// What the next exchanges of two names answer, as file systems that cannot do it would; 0: the system's answer.
static int exchangeError = 0;

/// Takes the place of the C library's.
extern "C" int renameat2(int fromFolder, const char *from, int toFolder, const char *to, unsigned flags) noexcept {
  if (exchangeError != 0 && (flags & RENAME_EXCHANGE)) {
    errno = exchangeError;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_renameat2, fromFolder, from, toFolder, to, flags));
}

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::FakeState;
using test::ScratchFolder;

const FakeState::Parameter w{"w", {5, 7}, {}};

class Checkpoints : public ::testing::Test {
protected:
  ~Checkpoints() override { exchangeError = 0; }

  void save(uint64_t step, float fill) {
    state.fillDistinct(fill);
    CheckpointInfo info;
    info.step = step;
    ASSERT_STATUS_OK(saveCheckpoint({.folder = scratch.root()}, info, state.ranks));
  }
  /// The first element of `w`.
  float load(const std::string &path) {
    FakeState loaded({{w}}, 1);
    EXPECT_TRUE(loadCheckpoint(path, loaded.ranks).isOk());
    return loaded.gather("w", StateRole::Parameter).front();
  }
  float filled(float fill) {
    FakeState other({{w}}, 1);
    other.fillDistinct(fill);
    return other.gather("w", StateRole::Parameter).front();
  }
  void damage(const std::string &name) { fs::resize_file(scratch.path(name + "/rank-0.safetensors"), 10); }

  ScratchFolder scratch;
  FakeState state{{{w}}, 1};
};

TEST_F(Checkpoints, AreReplacedWhereNamesCannotBeExchanged) {
  for (int error : {EINVAL, ENOSYS, EOPNOTSUPP}) {
    save(5, 1);
    exchangeError = error;
    save(5, 2);
    EXPECT_EQ(load(scratch.root()), filled(2));
    EXPECT_EQ(scratch.numFiles(), 2u); // ckpt-5, latest
    exchangeError = 0;
  }
  exchangeError = EIO;
  CheckpointInfo info;
  info.step = 5;
  EXPECT_ERROR(saveCheckpoint({.folder = scratch.root()}, info, state.ranks), "checkpoint of step 5 is not written");
  EXPECT_EQ(load(scratch.root()), filled(2));
}

TEST_F(Checkpoints, AReplacementThatACrashInterruptedIsUndone) {
  save(5, 1);
  // The old one is aside, the new one has no name yet.
  fs::rename(scratch.path("ckpt-5"), scratch.path(".ckpt-5.old"));
  fs::create_directory(scratch.path(".ckpt-5.tmp-00ff-3"));
  test::writeFile(scratch.path("latest.tmp-12-0"), "ckpt");
  test::writeFile(scratch.path("notes.txt"), "mine");
  ASSERT_STATUS_OK(recoverCheckpoints(scratch.root()));
  EXPECT_EQ(load(scratch.root()), filled(1));
  EXPECT_EQ(scratch.numFiles(), 3u); // ckpt-5, latest, notes.txt
  // The new one has its name, the old one was not removed yet.
  fs::copy(scratch.path("ckpt-5"), scratch.path(".ckpt-5.old"));
  ASSERT_STATUS_OK(recoverCheckpoints(scratch.root()));
  EXPECT_EQ(scratch.numFiles(), 3u);
  ASSERT_STATUS_OK(recoverCheckpoints(scratch.path("absent")));
}

TEST_F(Checkpoints, NewestWholeOne) {
  auto newest = [&] { return newestWholeCheckpoint(scratch.root()); };
  ASSERT_STATUS_OK(newest());
  EXPECT_FALSE(newest()->has_value());
  for (uint64_t step : {10, 20, 30})
    save(step, static_cast<float>(step));
  save(15, 15); // the run was resumed at step 10: this one is the newest
  EXPECT_EQ(*newest(), scratch.path("ckpt-15"));
  damage("ckpt-15");
  EXPECT_EQ(*newest(), scratch.path("ckpt-30"));
  fs::remove(scratch.path("ckpt-30/manifest.json"));
  EXPECT_EQ(*newest(), scratch.path("ckpt-20"));
  damage("ckpt-20");
  damage("ckpt-10");
  EXPECT_ERROR(newest(), "none of the 4 checkpoints in '" + scratch.root() + "' is complete: checkpoint '" +
                             scratch.path("ckpt-15") + "' is corrupted: 'rank-0.safetensors' has 10 bytes");
}

TEST_F(Checkpoints, AFolderThatCannotBeReadIsNotAnEmptyOne) {
  std::string file = scratch.path("checkpoints");
  test::writeFile(file, "");
  EXPECT_ERROR(newestWholeCheckpoint(file), "cannot read '" + file + "': Not a directory");
  fs::create_directories(scratch.path("ckpt-5")); // one of which nothing can be read
  EXPECT_ERROR(newestWholeCheckpoint(scratch.root()), "none of the 1 checkpoints in");
}

TEST_F(Checkpoints, LatestThatNamesAMissingOneProposesAnother) {
  for (uint64_t step : {10, 20, 30})
    save(step, static_cast<float>(step));
  fs::remove_all(scratch.path("ckpt-30"));
  damage("ckpt-20");
  EXPECT_ERROR(findCheckpoint(scratch.root()), "'" + scratch.path("latest") +
                                                   "' names 'ckpt-30', which is missing or has no manifest.json; the "
                                                   "newest whole checkpoint is '" +
                                                   scratch.path("ckpt-10") + "'");
  fs::remove(scratch.path("latest"));
  EXPECT_ERROR(findCheckpoint(scratch.root()),
               "nor a file 'latest'; the newest whole checkpoint is '" + scratch.path("ckpt-10") + "'");
}

TEST_F(Checkpoints, OneThatMayNotBePublishedLeavesNothing) {
  save(5, 1);
  CheckpointInfo info;
  info.step = 6;
  CheckpointOptions options;
  options.folder = scratch.root();
  options.mayPublish = [] { return TESSERA_ERROR(Aborted, "the run folder was taken over"); };
  EXPECT_ERROR(saveCheckpoint(options, info, state.ranks),
               "checkpoint of step 6 is not written: the run folder was taken over");
  EXPECT_EQ(scratch.numFiles(), 2u);
}

} // namespace
} // namespace tessera
