//===- SessionTest.cpp - what a session checks and reports -----------------===//

#include "runtime/artifact/LearningRate.h"
#include "runtime/step/CollectiveHash.h"
#include "tests/runtime/step/StepTestSupport.h"

#include <filesystem>
#include <set>

namespace tessera {
namespace {

using test::ArtifactBuilder;
using test::TestRun;

TEST(Session, RefusesAnotherNumberOfRanks) {
  ArtifactBuilder builder({{"shard", 2}});
  auto artifact = builder.build();
  ASSERT_TRUE(artifact.isOk());
  auto world = createLocalWorld(1);
  Status status = Session::create(*artifact, *world[0]).status();
  EXPECT_EQ(status.message(), "artifact 'test' is for 2 ranks, this run has 1");
}

TEST(Session, RefusesAnotherTarget) {
  ArtifactBuilder builder;
  builder.package.target = "sm_90";
  auto artifact = builder.build();
  ASSERT_TRUE(artifact.isOk());
  auto world = createLocalWorld(1);
  ASSERT_EQ(::setenv("TESSERA_PLUGINS", "/nonexistent", 1), 0);
  EXPECT_EQ(Session::create(*artifact, *world[0]).status().message(),
            "artifact 'test' is for sm_90; this tessera-run has no CUDA backend: there is no libtessera-cuda.so beside "
            "tessera-run or in ../lib (it is built where CMake finds CUDA; TESSERA_PLUGINS names another folder)");
  ::unsetenv("TESSERA_PLUGINS");
}

TEST(Session, SaysWhyThereIsNoGpu) {
  if (!std::filesystem::exists(TESSERA_BIN_FOLDER "/libtessera-cuda.so"))
    GTEST_SKIP() << "built without CUDA";
  ArtifactBuilder builder;
  builder.package.target = "sm_90";
  auto artifact = builder.build();
  ASSERT_TRUE(artifact.isOk());
  auto world = createLocalWorld(1);
  ASSERT_EQ(::setenv("TESSERA_PLUGINS", TESSERA_BIN_FOLDER, 1), 0);
  Status status = Session::create(*artifact, *world[0]).status();
  ::unsetenv("TESSERA_PLUGINS");
  if (status.isOk())
    GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(status.code(), StatusCode::Unsupported) << status;
  EXPECT_EQ(status.message().find("artifact 'test' is for sm_90"), 0u) << status;
}

TEST(Session, AnErrorOfSetUpNamesItsRank) {
  ArtifactBuilder builder({{"shard", 2}});
  auto artifact = builder.build();
  ASSERT_TRUE(artifact.isOk());
  SessionOptions options;
  options.openDevice = [](const Artifact &, const DeviceOptions &) -> Result<std::unique_ptr<Device>> {
    return TESSERA_ERROR(Exhausted, "no memory");
  };
  auto world = createLocalWorld(2);
  EXPECT_EQ(Session::create(*artifact, *world[1], options).status().message(), "rank 1: no memory");
  EXPECT_EQ(world[0]->abortReason().message(), "rank 1: no memory");
}

TEST(Session, RanksMustRunTheSameArtifact) {
  ArtifactBuilder builder({{"shard", 2}});
  auto one = builder.build();
  builder.package.fingerprint = 1;
  auto two = builder.build();
  builder.package.fingerprint = 0;
  builder.program().collective_hash = 1;
  auto three = builder.build();
  for (auto &[other, message] :
       {std::pair{two, "run different artifacts (fingerprints differ: 0000000000000001 and 0000000000000000)"},
        std::pair{three, "sequences of collectives differ: 0000000000000001/d2a788ed36c97b95 and "
                         "0000000000000000/d2a788ed36c97b95"}}) {
    auto world = createLocalWorld(2);
    Status statuses[2];
    std::thread first([&] { statuses[0] = Session::create(*one, *world[0]).status(); });
    statuses[1] = Session::create(*other, *world[1]).status();
    first.join();
    for (const Status &status : statuses)
      EXPECT_NE(status.message().find(message), std::string::npos) << status;
  }
}

TEST(Session, TheSequenceOfCollectivesHasAHash) {
  auto hashOf = [](artifact::CollectiveKind kind, uint8_t stream, bool reversed) {
    ArtifactBuilder builder({{"shard", 2}});
    uint32_t group = builder.group({"shard"}), a = builder.buffer({4}), b = builder.buffer({4}),
             c = builder.buffer({2});
    if (reversed)
      builder.collective(artifact::CollectiveKind::AllReduce, group, a, b, 2);
    builder.collective(kind, group, kind == artifact::CollectiveKind::AllGather ? c : a, b, stream);
    if (!reversed)
      builder.collective(artifact::CollectiveKind::AllReduce, group, a, b, 2);
    auto built = builder.build();
    EXPECT_TRUE(built.isOk()) << built.status();
    return built.isOk() ? collectiveSequenceHash((*built)->package()) : 0;
  };
  using artifact::CollectiveKind;
  std::set<uint64_t> hashes = {hashOf(CollectiveKind::AllGather, 1, false), hashOf(CollectiveKind::AllGather, 1, true),
                               hashOf(CollectiveKind::AllGather, 2, false),
                               hashOf(CollectiveKind::AllReduce, 1, false)};
  EXPECT_EQ(hashes.size(), 4u);
  EXPECT_EQ(hashes.count(hashOf(CollectiveKind::AllGather, 1, false)), 1u);
}

TEST(Session, RanksMustHaveTheSameMemoryPlan) {
  auto make = [](uint32_t more, uint64_t shift) {
    ArtifactBuilder builder({{"shard", 2}});
    uint32_t group = builder.group({"shard"}), a = builder.buffer({4}), b = builder.buffer({4});
    builder.buffer({more});
    builder.package.buffers[b]->offset += shift;
    builder.collective(artifact::CollectiveKind::AllReduce, group, a, b);
    auto built = builder.build();
    EXPECT_TRUE(built.isOk()) << built.status();
    return *built;
  };
  // The collectives themselves are the same.
  auto one = make(64, 0), larger = make(128, 0), elsewhere = make(64, 64);
  for (const auto &other : {larger, elsewhere}) {
    EXPECT_EQ(collectiveSequenceHash(one->package()), collectiveSequenceHash(other->package()));
    auto world = createLocalWorld(2);
    Status statuses[2];
    std::thread first([&] { statuses[0] = Session::create(one, *world[0]).status(); });
    statuses[1] = Session::create(other, *world[1]).status();
    first.join();
    for (const Status &status : statuses)
      EXPECT_NE(status.message().find("memory plans differ"), std::string::npos) << status;
  }
}

TEST(Session, CollectivesWithOperandsElsewhereOnEachRankAreKnown) {
  using artifact::CollectiveKind;
  // One operand is the rank's part of another buffer.
  auto reasonOf = [](CollectiveKind kind, bool hasPart) {
    ArtifactBuilder builder({{"shard", 2}});
    uint32_t group = builder.group({"shard"}), whole = builder.buffer({8}), other = builder.buffer({8});
    uint32_t part = builder.view(other, {4}, {1});
    builder.package.buffers[part]->rank_group = hasPart ? static_cast<int>(group) : -1;
    builder.package.buffers[part]->rank_stride = hasPart ? 16 : 0;
    bool gathers = kind == CollectiveKind::AllGather;
    builder.collective(kind, group, gathers ? part : whole, gathers ? whole : part);
    auto built = builder.build();
    EXPECT_TRUE(built.isOk()) << built.status();
    EXPECT_EQ(numInstructions((*built)->package()), 1u);
    return asymmetricCollective((*built)->package());
  };
  EXPECT_EQ(reasonOf(CollectiveKind::AllGather, false), "");
  EXPECT_EQ(reasonOf(CollectiveKind::ReduceScatter, false), "");
  EXPECT_EQ(reasonOf(CollectiveKind::AllGather, true), "AllGather of node 'node' has its input elsewhere on each rank");
  EXPECT_EQ(reasonOf(CollectiveKind::ReduceScatter, true),
            "ReduceScatter of node 'node' has its output elsewhere on each rank");
}

TEST(Session, RefusesAPlanLargerThanTheMachine) {
  ArtifactBuilder builder;
  builder.package.arenas[0]->bytes = uint64_t{1} << 45;
  auto artifact = builder.build();
  ASSERT_TRUE(artifact.isOk());
  auto world = createLocalWorld(1);
  Status status = Session::create(*artifact, *world[0]).status();
  EXPECT_EQ(status.code(), StatusCode::Exhausted);
  EXPECT_EQ(status.message().rfind("the plan needs 33554432 MiB for each of 1 ranks, each may use", 0), 0u) << status;
}

TEST(Session, SymbolsThatAreMissingAndCodeThatIsNoneAreErrors) {
  ArtifactBuilder builder;
  test::addKernels(builder, {"no_such_kernel"});
  auto artifact = builder.build();
  auto world = createLocalWorld(1);
  EXPECT_EQ(Session::create(*artifact, *world[0]).status().message(), "the kernels have no symbol 'no_such_kernel'");
  builder.package.code_objects[0]->data.assign(100, 7);
  artifact = builder.build();
  Status status = Session::create(*artifact, *createLocalWorld(1)[0]).status();
  EXPECT_EQ(status.message().rfind("cannot load the kernels: ", 0), 0u) << status;
}

TEST(Session, ALaunchGivesAsManyBuffersAsItsKernelTakes) {
  auto told = [](const std::string &kernel, size_t numBuffers) {
    ArtifactBuilder builder;
    test::addKernels(builder, {kernel});
    test::launch(builder, 0, std::vector<uint32_t>(numBuffers, builder.buffer({4})), 4);
    auto artifact = builder.build();
    auto world = createLocalWorld(1);
    Status status = Session::create(*artifact, *world[0]).status();
    EXPECT_TRUE(status.isOk() || status.code() == StatusCode::DataLoss) << status;
    return status.message();
  };
  EXPECT_EQ(told("add_index", 2), "");
  EXPECT_EQ(told("add_index", 1), "node node: kernel 'add_index' takes 2 buffers, its launch gives 1");
  EXPECT_EQ(told("add_index", 0), "node node: kernel 'add_index' takes 2 buffers, its launch gives 0");
  EXPECT_EQ(told("increment", 2), "node node: kernel 'increment' takes 1 buffer, its launch gives 2");
  EXPECT_EQ(told("silent", 1), "the kernels do not say how many buffers 'silent' takes; compile the model again");
}

TEST(Session, HyperScalars) {
  ArtifactBuilder builder;
  uint32_t lr = builder.buffer({}), copy = builder.buffer({});
  auto hyper = std::make_unique<artifact::HyperScalarT>();
  hyper->name = "lr";
  hyper->buffer = lr;
  builder.program().hyper.push_back(std::move(hyper));
  builder.package.learning_rate = std::make_unique<artifact::LearningRateT>();
  ASSERT_EQ(makeLearningRate({}, *builder.package.learning_rate), "");
  builder.copy(lr, copy);
  builder.result("copy", copy, artifact::ResultRole::Metric);
  TestRun run(builder);
  run.onRanks([](Session &session) {
    session.setHyper(0, 0.25);
    ASSERT_TRUE(session.step(1).isOk());
    EXPECT_EQ(session.resultValue(0), 0.25);
  });
}

TEST(Session, AnIndexOutsideOfItsTableFailsTheStep) {
  struct Case {
    int64_t low, bound;
    double index;
    std::string message;
  };
  const Case cases[] = {{-3, 8, -3, ""},
                        {-3, 8, 7, ""},
                        {0, 8, 8, "computed the index 8 of 'table', outside [0, 8)"},
                        {-8, 8, -9, "computed the index -9 of 'table', outside [-8, 8)"}};
  for (const Case &each : cases) {
    ArtifactBuilder builder;
    uint32_t indices = builder.buffer({2, 3}, artifact::DataType::I64);
    builder.fill(indices, each.index);
    builder.result("lookup", indices, artifact::ResultRole::IndexCheck);
    artifact::ResultTensorT &check = *builder.program().results.back();
    check.of = "table";
    check.index_low = each.low;
    check.index_bound = each.bound;
    TestRun run(builder);
    run.onRanks([&](Session &session) {
      Status status = session.step(5);
      EXPECT_EQ(status.isOk(), each.message.empty()) << status;
      if (!status.isOk()) {
        EXPECT_NE(status.message().find("rank 0: step 5: node 'lookup' " + each.message), std::string::npos) << status;
      }
    });
  }
}

TEST(Session, MemoryIsWhatWasPlanned) {
  ArtifactBuilder builder;
  builder.buffer({1000});
  auto slot = [&](artifact::MemoryClass kind, uint64_t bytes, uint32_t first, uint32_t last) {
    auto made = std::make_unique<artifact::SlotT>();
    made->memory_class = kind;
    made->bytes = bytes;
    made->first_instruction = first;
    made->last_instruction = last;
    builder.program().slots.push_back(std::move(made));
  };
  slot(artifact::MemoryClass::Parameters, 100, 0, 9);
  slot(artifact::MemoryClass::Activations, 50, 0, 3);
  slot(artifact::MemoryClass::Activations, 60, 4, 6); // never live with the one above
  slot(artifact::MemoryClass::Gradients, 30, 6, 9);
  TestRun run(builder);
  run.onRanks([](Session &session) {
    MemoryStats stats = session.memory();
    EXPECT_EQ(stats.plannedBytes, 4000u);
    EXPECT_EQ(stats.allocatedBytes, 4096u);
    EXPECT_EQ(stats.slotBytesByClass[static_cast<size_t>(artifact::MemoryClass::Parameters)], 100u);
    EXPECT_EQ(stats.slotBytesByClass[static_cast<size_t>(artifact::MemoryClass::Activations)], 60u);
    EXPECT_EQ(stats.slotBytesByClass[static_cast<size_t>(artifact::MemoryClass::Gradients)], 30u);
  });
}

TEST(Session, AStalledRankEndsAllRanksWithOneMessage) {
  ArtifactBuilder builder({{"shard", 2}});
  uint32_t group = builder.group({"shard"}), x = builder.buffer({4});
  builder.collective(artifact::CollectiveKind::AllReduce, group, x, x, 2);
  builder.package.locations[0] = "/h.1/mlp";
  TestRun run(builder, {/*stallTimeoutSeconds=*/0.2});
  run.onRanks([](Session &session) {
    ASSERT_TRUE(session.step(1).isOk());
    if (session.rank() == 1) {
      while (session.communicator().abortReason().isOk())
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    Status status = session.step(2);
    EXPECT_EQ(status.code(), StatusCode::Aborted);
    EXPECT_EQ(status.message(),
              "stalled: rank 1 did not reach all_reduce 'unit' of step 2 (node /h.1/mlp) within 0.2 s, "
              "rank 0 waits there");
  });
}

TEST(Session, AbortFromOutsideEndsAStep) {
  ArtifactBuilder builder({{"shard", 2}});
  uint32_t group = builder.group({"shard"}), x = builder.buffer({4});
  uint32_t done = builder.newEvent();
  builder.collective(artifact::CollectiveKind::AllReduce, group, x, x, 2);
  builder.record(done, 2);
  builder.wait(done, 0);
  TestRun run(builder);
  run.onRanks([](Session &session) {
    if (session.rank() == 1) {
      session.communicator().abort(TESSERA_ERROR(IoError, "rank 1: no more data"));
      return;
    }
    EXPECT_EQ(session.step(1).message(), "rank 1: no more data");
  });
}

} // namespace
} // namespace tessera
