//===- InitialValuesTest.cpp - what the parameters of a new run begin with ---------===//

#include "runtime/state/InitialValues.h"
#include "runtime/state/Safetensors.h"
#include "tests/runtime/ProgramFixture.h"
#include "tests/runtime/TestSupport.h"

#include <numeric>

namespace tessera {
namespace {

/// The values of h.0.w, of 24 elements, in the model file and in another one.
std::vector<float> countFrom(float first) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class InitialValuesTest : public ::testing::Test {
protected:
  /// A file of h.0.w with these values, and of h.0.b with the first of them.
  void write(const std::string &file, const std::vector<float> &values) {
    test::writeFile(scratch.path(file), ""); // makes its folder
    const ByteSpan bytes(reinterpret_cast<const uint8_t *>(values.data()), values.size() * sizeof(float));
    ASSERT_STATUS_OK(writeSafetensors(scratch.path(file), {{"h.0.w", DataType::F32, {4, 6}, {bytes}},
                                                           {"h.0.b", DataType::F32, {6}, {bytes.first(24)}}}));
  }

  /// An artifact in the folder `build` that was compiled from models/net.safetensors as it is now.
  void compile(bool isAsked = false) {
    artifact::PackageT package = test::makePackage();
    package.state[0]->segments[0]->init->asked = isAsked;
    auto source = WeightSource::open(scratch.path("models/net.safetensors"));
    ASSERT_STATUS_OK(source);
    package.model_file = std::make_unique<artifact::ModelFileT>();
    package.model_file->path = "models/net.safetensors"; // of a working folder that the test does not have
    package.model_file->from_artifact = "../models/net.safetensors";
    package.model_file->content = *(*source)->fingerprint();
    use(package);
  }

  void use(const artifact::PackageT &package) {
    auto opened = Artifact::fromBytes(test::packPackage(package), scratch.path("build/step.tessera"));
    ASSERT_STATUS_OK(opened);
    artifact = *opened;
    std::filesystem::create_directories(scratch.path("build"));
  }

  /// h.0.w as both ranks hold it.
  Result<std::vector<float>> begin(const std::string &weights, std::string *description = nullptr) {
    TESSERA_ASSIGN_OR_RETURN(InitialValues values, InitialValues::open(*artifact, weights));
    if (description)
      *description = values.describe(*artifact, 3);
    std::vector<float> all;
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<std::vector<float>> memory(artifact->package().state()->size(), std::vector<float>(64));
      TESSERA_ASSIGN_OR_RETURN(RankState views,
                               makeRankState(*artifact, rank, [&](size_t state) { return memory[state].data(); }));
      TESSERA_RETURN_IF_ERROR(values.set(views, 3));
      all.insert(all.end(), memory[0].begin(), memory[0].begin() + 16);
    }
    all.resize(24);
    return all;
  }

  void expectBegins(const std::string &weights, const std::vector<float> &expected) {
    auto values = begin(weights);
    ASSERT_STATUS_OK(values);
    EXPECT_EQ(*values, expected);
  }

  test::ScratchFolder scratch;
  std::shared_ptr<const Artifact> artifact;
};

TEST_F(InitialValuesTest, AreThoseOfTheModelFile) {
  write("models/net.safetensors", countFrom(0));
  compile();
  std::string description;
  ASSERT_STATUS_OK(begin("", &description));
  EXPECT_EQ(description, "2 tensors of '" + scratch.path("build/../models/net.safetensors") + "'");
  expectBegins("", countFrom(0));
  // Another file counts if it is named.
  write("other.safetensors", countFrom(100));
  expectBegins(scratch.path("other.safetensors"), countFrom(100));
  // A copy of the model file that lies beside the artifact is as good.
  std::filesystem::rename(scratch.path("models/net.safetensors"), scratch.path("build/net.safetensors"));
  expectBegins("", countFrom(0));
}

TEST_F(InitialValuesTest, AModelFileThatIsGoneOrHasChangedIsAnError) {
  write("models/net.safetensors", countFrom(0));
  compile();
  write("models/net.safetensors", countFrom(1));
  EXPECT_ERROR(begin(""), "but the values in '" + scratch.path("build/../models/net.safetensors") +
                              "' have changed since it was compiled: compile it again, or begin with the new ones by "
                              "--weights");
  expectBegins(scratch.path("models/net.safetensors"), countFrom(1));
  // One that is right is found behind one that is not.
  write("build/net.safetensors", countFrom(0));
  expectBegins("", countFrom(0));
  std::filesystem::remove(scratch.path("build/net.safetensors"));
  std::filesystem::remove(scratch.path("models/net.safetensors"));
  EXPECT_ERROR(begin(""), "begins with the values of 'models/net.safetensors', which is gone (looked for");
  EXPECT_ERROR(begin(""), "--weights fresh begins by rule");
  // Of a pipe nothing is left.
  artifact::PackageT package = test::makePackage();
  package.model_file = std::make_unique<artifact::ModelFileT>();
  package.model_file->path = "/dev/stdin";
  use(package);
  EXPECT_ERROR(begin(""), "which could not be read again when it was compiled");
}

TEST_F(InitialValuesTest, FreshOnesAreByRule) {
  write("models/net.safetensors", countFrom(0));
  compile();
  std::string description;
  auto fresh = begin("fresh", &description);
  ASSERT_STATUS_OK(fresh);
  EXPECT_EQ(description, "by rule (seed 3): normal(0, 0.02) for 1 (h.0.w), 0 for 1 (h.0.b)");
  EXPECT_NE(*fresh, countFrom(0));
  // Without a model file they need not be asked for.
  use(test::makePackage());
  expectBegins("", *fresh);
}

TEST_F(InitialValuesTest, ARuleThatWasAskedForCountsMoreThanTheModelFile) {
  write("models/net.safetensors", countFrom(0));
  compile();
  auto fresh = begin("fresh");
  ASSERT_STATUS_OK(fresh);
  compile(/*isAsked=*/true);
  std::string description;
  expectBegins("", *fresh);
  ASSERT_STATUS_OK(begin("", &description));
  EXPECT_EQ(description, "1 tensor of '" + scratch.path("build/../models/net.safetensors") +
                             "'; by rule (seed 3): normal(0, 0.02) for 1 (h.0.w)");
  // The same file under its name is still the model file, another one is not.
  expectBegins(scratch.path("models/net.safetensors"), *fresh);
  write("other.safetensors", countFrom(100));
  expectBegins(scratch.path("other.safetensors"), countFrom(100));
}

} // namespace
} // namespace tessera
