//===- StepTestSupport.h - runs hand-made programs on ranks of threads -----===//

#ifndef TESSERA_TESTS_RUNTIME_STEP_STEPTESTSUPPORT_H
#define TESSERA_TESTS_RUNTIME_STEP_STEPTESTSUPPORT_H

#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/step/Session.h"
#include "tests/runtime/ArtifactBuilder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

namespace tessera::test {

/// Sessions on all ranks of an artifact. They are destroyed together, after all threads have ended.
class TestRun {
public:
  explicit TestRun(const ArtifactBuilder &builder, LocalWorldOptions options = {}, int threads = 1) : threads(threads) {
    auto built = builder.build();
    EXPECT_TRUE(built.isOk()) << built.status();
    if (!built.isOk())
      return;
    artifact = *built;
    world = createLocalWorld(static_cast<int>(artifact->numRanks()), options);
    sessions.resize(world.size());
  }

  /// Calls `body(session)` on a thread per rank, each with a new session.
  void onRanks(const std::function<void(Session &)> &body) {
    std::vector<std::thread> team;
    for (size_t rank = 0; rank < world.size(); ++rank)
      team.emplace_back([&, rank] {
        SessionOptions options;
        options.threads = threads;
        options.ranksInProcess = static_cast<int>(world.size());
        auto made = Session::create(artifact, *world[rank], options);
        ASSERT_TRUE(made.isOk()) << made.status();
        sessions[rank] = std::move(*made);
        body(*sessions[rank]);
      });
    for (std::thread &thread : team)
      thread.join();
  }

  std::shared_ptr<const Artifact> artifact;
  std::vector<std::unique_ptr<Communicator>> world;
  std::vector<std::unique_ptr<Session>> sessions;
  int threads;
};

inline std::vector<float> floats(const TensorView &view) {
  return {view.as<float>(), view.as<float>() + view.numElements()};
}

/// Adds Kernels.c as code object and `symbols` as kernels 0, 1, …
inline void addKernels(ArtifactBuilder &builder, const std::vector<std::string> &symbols) {
  std::ifstream file(TESSERA_TEST_KERNELS, std::ios::binary);
  auto object = std::make_unique<artifact::CodeObjectT>();
  object->target = "cpu";
  object->data.assign(std::istreambuf_iterator<char>(file), {});
  builder.package.code_objects.push_back(std::move(object));
  for (const std::string &symbol : symbols) {
    auto kernel = std::make_unique<artifact::KernelT>();
    kernel->symbol = symbol;
    builder.package.kernels.push_back(std::move(kernel));
  }
}

inline void launch(ArtifactBuilder &builder, uint32_t kernel, std::vector<uint32_t> buffers, int64_t extent,
                   int64_t grain = 1) {
  artifact::LaunchT launch;
  launch.kernel = kernel;
  launch.buffers = std::move(buffers);
  launch.extent = extent;
  launch.grain = grain;
  builder.add(std::move(launch));
}

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_STEP_STEPTESTSUPPORT_H
