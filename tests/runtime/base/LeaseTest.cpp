//===- LeaseTest.cpp - one process per folder ------------------------------===//

#include "runtime/base/Lease.h"
#include "tests/runtime/TestSupport.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <optional>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

/// What link(2), and a rename that replaces nothing, answer, as file systems that cannot do it would; 0: the system's.
static int linkError = 0, renameError = 0;
/// A number that no process has: kill(2) answers as for one of another user.
static constexpr pid_t hiddenProcess = 99999999;

// These take the place of the C library's.
extern "C" int link(const char *from, const char *to) noexcept {
  if (linkError != 0) {
    errno = linkError;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
extern "C" int renameat2(int fromFolder, const char *from, int toFolder, const char *to, unsigned flags) noexcept {
  if (renameError != 0 && (flags & RENAME_NOREPLACE)) {
    errno = renameError;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_renameat2, fromFolder, from, toFolder, to, flags));
}
extern "C" int kill(pid_t process, int number) noexcept {
  if (process == hiddenProcess) {
    errno = EPERM;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_kill, process, number));
}

namespace tessera {
namespace {

using test::ScratchFolder;

constexpr LeaseOptions quick{.takesOver = true, .beatSeconds = 0.05, .staleSeconds = 0.5};

/// A lease as another host would have written it.
std::string ofElsewhere(const std::string &beat = "000000000007") {
  return "beat " + beat +
         "\nid 0123\nhost node7\npid 42\nspace other/pid:[1]\nstarted 5\nsince 2026-01-01T00:00:00Z\njob 99\n";
}

TEST(Lease, HasOneHolderWhoIsNamed) {
  ScratchFolder scratch;
  std::string path = scratch.path("lease");
  auto first = Lease::acquire(path);
  ASSERT_STATUS_OK(first);
  EXPECT_ERROR(Lease::acquire(path),
               "run folder '" + scratch.root() + "' is in use by process " + std::to_string(::getpid()) + " on host '");
  EXPECT_ERROR(Lease::acquire(path, quick), "is in use by"); // it is alive, and nobody takes it over
  EXPECT_EQ(scratch.numFiles(), 1u);
  (*first)->release();
  EXPECT_EQ(scratch.numFiles(), 0u);
  ASSERT_STATUS_OK(Lease::acquire(path));
  EXPECT_EQ(scratch.numFiles(), 0u);
}

TEST(Lease, OfAProcessThatWasKilledIsFree) {
  ScratchFolder scratch;
  std::string path = scratch.path("lease");
  pid_t child = ::fork();
  if (child == 0) {
    auto lease = Lease::acquire(path);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(scratch.numFiles(), 1u);
  auto lease = Lease::acquire(path);
  ASSERT_STATUS_OK(lease);
  ASSERT_STATUS_OK((*lease)->check());
}

TEST(Lease, OfAnotherHostIsTakenOnlyWhenAskedToAndStale) {
  ScratchFolder scratch;
  std::string path = scratch.path("lease");
  test::writeFile(path, ofElsewhere());
  EXPECT_ERROR(Lease::acquire(path), "is in use by process 42 on host 'node7' (Slurm job 99) since "
                                     "2026-01-01T00:00:00Z; if that run has ended, --take-over takes the folder after "
                                     "30 s without a sign of life");
  EXPECT_EQ(test::readFile(path), ofElsewhere());
  auto lease = Lease::acquire(path, quick);
  ASSERT_STATUS_OK(lease);
  EXPECT_NE(test::readFile(path).find("pid " + std::to_string(::getpid())), std::string::npos);
}

TEST(Lease, WhoShowsSignsOfLifeKeepsIt) {
  ScratchFolder scratch;
  std::string path = scratch.path("lease");
  test::writeFile(path, ofElsewhere());
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    test::writeFile(scratch.path("next"), ofElsewhere("000000000008"));
    std::filesystem::rename(scratch.path("next"), path);
  });
  EXPECT_ERROR(Lease::acquire(path, quick), "is in use by process 42 on host 'node7' (Slurm job 99) since "
                                            "2026-01-01T00:00:00Z, which shows signs of life");
  other.join();
}

TEST(Lease, OfTwoTakersOneWins) {
  ScratchFolder scratch;
  std::string path = scratch.path("lease");
  for (int trial = 0; trial < 3; ++trial) {
    test::writeFile(path, ofElsewhere());
    constexpr int numTakers = 4;
    std::vector<std::unique_ptr<Lease>> taken(numTakers);
    std::vector<std::thread> takers;
    for (int index = 0; index < numTakers; ++index)
      takers.emplace_back([&, index] {
        if (auto lease = Lease::acquire(path, quick); lease.isOk())
          taken[index] = *std::move(lease);
      });
    for (std::thread &taker : takers)
      taker.join();
    EXPECT_EQ(numTakers - std::count(taken.begin(), taken.end(), nullptr), 1);
    for (const std::unique_ptr<Lease> &lease : taken)
      if (lease)
        ASSERT_STATUS_OK(lease->check());
  }
}

TEST(Lease, TheHolderNoticesThatItHasLostIt) {
  ScratchFolder scratch;
  std::string path = scratch.path("lease");
  auto lease = Lease::acquire(path, quick);
  ASSERT_STATUS_OK(lease);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE((*lease)->isLost());
  EXPECT_NE(test::readFile(path).substr(0, 18), "beat 000000000000\n") << "signs of life";
  test::writeFile(scratch.path("next"), ofElsewhere());
  std::filesystem::rename(scratch.path("next"), path);
  EXPECT_ERROR((*lease)->check(), "the run folder was taken over by process 42 on host 'node7'");
  EXPECT_TRUE((*lease)->isLost());
  lease->reset();
  EXPECT_EQ(test::readFile(path), ofElsewhere()) << "the taker's file is not touched";
}

TEST(Lease, WaitingForASignOfLifeEndsWithASignal) {
  ScratchFolder scratch;
  std::string path = scratch.path("lease");
  test::writeFile(path, ofElsewhere());
  std::atomic<int> signal{SIGTERM};
  LeaseOptions options = quick;
  options.staleSeconds = 1e9;
  options.stopSignal = &signal;
  EXPECT_ERROR(Lease::acquire(path, options), "asked to end by signal 15");
}

TEST(Lease, IsHeldOnFileSystemsWithoutHardLinks) {
  for (int error : {0, EINVAL, ENOSYS}) { // of a rename that replaces nothing
    linkError = EPERM;
    renameError = error;
    ScratchFolder scratch;
    std::string path = scratch.path("lease");
    {
      auto lease = Lease::acquire(path);
      ASSERT_STATUS_OK(lease);
      ASSERT_STATUS_OK((*lease)->check());
      EXPECT_EQ(scratch.numFiles(), 1u);
      EXPECT_ERROR(Lease::acquire(path), "is in use by process " + std::to_string(::getpid()) + " on host '");
    }
    EXPECT_EQ(scratch.numFiles(), 0u);
  }
  linkError = renameError = 0;
}

TEST(Lease, OfAProcessThatCannotBeSeenIsHeld) {
  ScratchFolder scratch;
  std::string path = scratch.path("lease");
  std::string own;
  {
    auto lease = Lease::acquire(path);
    ASSERT_STATUS_OK(lease);
    own = test::readFile(path);
  }
  // As with hidepid, whose /proc does not show the processes of other users.
  size_t line = own.find("\npid ");
  own.replace(line, own.find('\n', line + 1) - line, "\npid " + std::to_string(hiddenProcess));
  test::writeFile(path, own);
  EXPECT_ERROR(Lease::acquire(path), "is in use by process " + std::to_string(hiddenProcess));
}

TEST(Lease, NothingMayBePublishedAfterTheRelease) {
  ScratchFolder scratch;
  auto lease = Lease::acquire(scratch.path("lease"));
  ASSERT_STATUS_OK(lease);
  (*lease)->release();
  EXPECT_ERROR((*lease)->check(), "was given back");
}

TEST(Lease, SaysEachTimeHowItWasLost) {
  ScratchFolder scratch;
  auto lease = Lease::acquire(scratch.path("lease"));
  ASSERT_STATUS_OK(lease);
  std::filesystem::remove(scratch.path("lease"));
  for (int look = 0; look < 2; ++look)
    EXPECT_ERROR((*lease)->check(), "was removed: the run folder may be in use by another process");
}

/// Runs `body` in a process of its own; its answer, or nothing if it crashed.
std::optional<int> inProcess(const std::function<int()> &body) {
  pid_t child = ::fork();
  if (child == 0)
    ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? std::optional<int>(WEXITSTATUS(status)) : std::nullopt;
}

TEST(Lease, CanBeTakenOverWhereProcShowsOtherProcesses) {
  ScratchFolder scratch;
  std::string path = scratch.path("lease");
  constexpr int cannot = 77;
  // In a space of their own, the second process dies without a release; under its number /proc shows a stranger.
  std::optional<int> answer = inProcess([&] {
    if (::unshare(CLONE_NEWPID) != 0)
      return cannot;
    return *inProcess([&] {
      inProcess([&] {
        auto lease = Lease::acquire(path);
        ::_exit(0);
        return 0;
      });
      return Lease::acquire(path, quick).isOk() ? 0 : 1;
    });
  });
  if (answer == cannot)
    GTEST_SKIP() << "processes cannot be separated here";
  EXPECT_EQ(answer, 0);
}

TEST(Lease, ALinkThatLeadsNowhereIsAnError) {
  ScratchFolder scratch;
  std::filesystem::create_symlink("nowhere", scratch.path("lease"));
  EXPECT_ERROR(Lease::acquire(scratch.path("lease")), "something there can be neither read nor replaced");
}

TEST(Lease, AnyContentIsAHolder) {
  ScratchFolder scratch;
  std::string path = scratch.path("lease");
  for (const std::string &content : {std::string(), std::string("\0\xff beat", 7), std::string(10000, 'x')}) {
    test::writeFile(path, content);
    EXPECT_ERROR(Lease::acquire(path), "is in use by");
    ASSERT_STATUS_OK(Lease::acquire(path, quick));
  }
}

} // namespace
} // namespace tessera
