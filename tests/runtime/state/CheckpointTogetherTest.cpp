//===- CheckpointTogetherTest.cpp - several processes write one checkpoint -===//
//
// Threads stand for the processes; each has one rank's state and only talks by `gather`.
//
//===----------------------------------------------------------------------===//

#include "runtime/state/Checkpoint.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/state/StateFixture.h"

#include <barrier>
#include <thread>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::FakeState;
using test::ScratchFolder;

const FakeState::Parameter w{"h.0.w", {5, 7}, {}}, e{"wte", {11, 3}, {}};

class Processes {
public:
  explicit Processes(int count) : texts(count), meeting(count) {}

  Peers peers(int rank) {
    return {rank, [this, rank](const std::string &text) -> Result<std::vector<std::string>> {
              texts[rank] = text;
              meeting.arrive_and_wait();
              std::vector<std::string> all = texts;
              if (rank == 1 && onTexts)
                onTexts(all);
              meeting.arrive_and_wait();
              return all;
            }};
  }

  /// Every rank's status.
  std::vector<Status> save(const std::vector<std::string> &folders, const FakeState &state) {
    std::vector<Status> statuses(texts.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < texts.size(); ++rank)
      threads.emplace_back([&, rank] {
        CheckpointInfo info;
        info.step = 5;
        statuses[rank] = saveCheckpoint({folders[rank], 0, peers(static_cast<int>(rank))}, info, {state.ranks[rank]});
      });
    for (std::thread &thread : threads)
      thread.join();
    return statuses;
  }

  std::function<void(const std::vector<std::string> &)> onTexts; ///< what rank 1 does with what all have told

private:
  std::vector<std::string> texts;
  std::barrier<> meeting;
};

TEST(CheckpointTogether, EqualsTheOneOfOneProcess) {
  ScratchFolder together, alone;
  FakeState state({{e}, {w}}, 3), resumed({{e, w}}, 2);
  state.fillDistinct(0.1f);
  for (const Status &status : Processes(3).save(std::vector<std::string>(3, together.root()), state))
    ASSERT_STATUS_OK(status);
  CheckpointInfo info;
  info.step = 5;
  ASSERT_STATUS_OK(saveCheckpoint({alone.root()}, info, state.ranks));
  for (const char *name : {"manifest.json", "rank-0.safetensors", "rank-1.safetensors", "rank-2.safetensors"})
    EXPECT_EQ(test::readFile(together.path(std::string("ckpt-5/") + name)),
              test::readFile(alone.path(std::string("ckpt-5/") + name)))
        << name;
  ASSERT_STATUS_OK(loadCheckpoint(together.root(), resumed.ranks));
  EXPECT_EQ(resumed.gather("h.0.w", StateRole::Parameter), state.gather("h.0.w", StateRole::Parameter));
}

TEST(CheckpointTogether, OneFailureIsEveryonesAndLeavesNothing) {
  ScratchFolder shared, own;
  FakeState state({{e}, {w}}, 2);
  // Rank 1 does not see rank 0's folder.
  for (const Status &status : Processes(2).save({shared.root(), own.path("absent")}, state))
    EXPECT_NE(status.message().find("checkpoint of step 5 is not written"), std::string::npos) << status;
  EXPECT_TRUE(fs::is_empty(shared.root()));
  // Nor does rank 0 see what rank 1 wrote, if its folder is another one of the same name.
  Processes apart(2);
  apart.onTexts = [&](const std::vector<std::string> &texts) {
    if (texts[0].find(".ckpt-5.tmp-") == 1)
      fs::create_directories(own.path("other/" + texts[0].substr(1)));
  };
  for (const Status &status : apart.save({shared.root(), own.path("other")}, state))
    EXPECT_NE(status.message().find("all hosts must see the same folder"), std::string::npos) << status;
  EXPECT_TRUE(fs::is_empty(shared.root()));
}

} // namespace
} // namespace tessera
