//===- PluginTest.cpp - programs made by hand, on the simulated GPU ------------===//

#include "tests/runtime/step/StepTestSupport.h"

#include <cstdlib>

namespace tessera {
namespace {

using test::ArtifactBuilder;

/// A kernel `k` with these parameters, which writes 7 to where the last one points.
ArtifactBuilder withKernel(const std::vector<std::string> &types) {
  std::string parameters;
  for (size_t number = 0; number < types.size(); ++number)
    parameters += (number > 0 ? ", .param ." : ".param .") + types[number] + " k_param_" + std::to_string(number);
  const std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(" + parameters +
                           ")\n{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\nld.param.b64 %rd1, [k_param_" +
                           std::to_string(types.size() - 1) +
                           "];\nmov.b32 %r1, 0f40E00000;\nst.global.b32 [%rd1], %r1;\nret;\n}\n";
  ArtifactBuilder builder;
  builder.package.target = "sm_90";
  auto object = std::make_unique<artifact::CodeObjectT>();
  object->format = artifact::CodeFormat::Ptx;
  object->target = "sm_90";
  object->data.assign(text.c_str(), text.c_str() + text.size() + 1);
  builder.package.code_objects.push_back(std::move(object));
  auto kernel = std::make_unique<artifact::KernelT>();
  kernel->symbol = "k";
  kernel->blocks = kernel->threads_x = kernel->threads_y = 1;
  builder.package.kernels.push_back(std::move(kernel));
  return builder;
}

class Plugin : public testing::Test {
protected:
  void SetUp() override { ASSERT_EQ(::setenv("TESSERA_PLUGINS", TESSERA_BIN_FOLDER, 1), 0); }
};

TEST_F(Plugin, LaunchesAKernel) {
  ArtifactBuilder builder = withKernel({"u64", "u64"});
  const uint32_t x = builder.buffer({}), y = builder.buffer({});
  test::launch(builder, 0, {x, y}, 1);
  builder.result("y", y, artifact::ResultRole::Metric);
  test::TestRun run(builder);
  run.onRanks([](Session &session) {
    Status done = session.step(1);
    ASSERT_TRUE(done.isOk()) << done;
    EXPECT_EQ(session.resultValue(0), 7);
  });
}

TEST_F(Plugin, ALaunchGivesAsManyBuffersAsItsKernelTakes) {
  auto told = [](const std::vector<std::string> &types, size_t numBuffers) {
    ArtifactBuilder builder = withKernel(types);
    test::launch(builder, 0, std::vector<uint32_t>(numBuffers, builder.buffer({4})), 1);
    auto artifact = builder.build();
    auto world = createLocalWorld(1);
    return Session::create(*artifact, *world[0]).status().message();
  };
  EXPECT_EQ(told({"u64", "u64"}, 2), "");
  EXPECT_EQ(told({"u64", "u64"}, 1), "node node: kernel 'k' takes 2 buffers, its launch gives 1");
  EXPECT_EQ(told({"u64", "u64"}, 0), "node node: kernel 'k' takes 2 buffers, its launch gives 0");
  EXPECT_EQ(told({"u64"}, 2), "node node: kernel 'k' takes 1 buffer, its launch gives 2");
  EXPECT_EQ(told({"u32", "u64"}, 2), "kernel 'k': parameter 0 has 4 bytes, so it is no buffer");
}

} // namespace
} // namespace tessera
