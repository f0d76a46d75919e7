//===- GemmCacheTest.cpp - the file of timed products ------------------------===//

#include "runtime/device/cuda/GemmCache.h"
#include "tests/runtime/TestSupport.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tessera::cuda {
namespace {

std::string digits(char digit) { return std::string(2 * GemmCache::algorithmBytes, digit); }

std::string contentOf(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(GemmCache, FindsWhatWasKept) {
  GemmCache cache;
  cache.put("GPU 1", "product \"x\"", digits('a'));
  cache.put("GPU 2", "product", digits('0'));
  cache.put("GPU 2", "epilogue of product", std::string(GemmCache::apart));
  auto read = GemmCache::parse(cache.serialise(), "file");
  ASSERT_TRUE(read.isOk()) << read.status();
  EXPECT_EQ(read->find("GPU 1", "product \"x\""), digits('a'));
  EXPECT_EQ(read->find("GPU 2", "product"), digits('0'));
  EXPECT_EQ(read->find("GPU 2", "epilogue of product"), GemmCache::apart);
  EXPECT_EQ(read->find("GPU 1", "product"), "");
  EXPECT_EQ(read->find("GPU 3", "product"), "");
  EXPECT_EQ(read->serialise(), cache.serialise());
}

TEST(GemmCache, RefusesDamagedFiles) {
  const std::string prefix = R"({"version": 1, "gpus": {"g": )";
  for (const auto &[text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "not JSON with 'version' and 'gpus'"},
           {"[1]", "not JSON with 'version' and 'gpus'"},
           {"{\"version\": 1, \"gpus\": {", "not JSON with 'version' and 'gpus'"},
           {R"({"version": 1, "gpus": []})", "not JSON with 'version' and 'gpus'"},
           {R"({"version": 2, "gpus": {}})", "its version is not 1"},
           {R"({"version": "1", "gpus": {}})", "its version is not 1"},
           {prefix + "3}}", "the products of 'g' are no object"},
           {prefix + R"({"p": 3}}})", "the choice for 'p' is no text"},
           {prefix + R"({"p": "00"}}})", "the choice for 'p' is not 128 hexadecimal digits, 'together' or 'apart'"},
           {prefix + "{\"p\": \"" + digits('g') + "\"}}}",
            "the choice for 'p' is not 128 hexadecimal digits, 'together' or 'apart'"},
           {std::string("{\"version\": 1, \xff"), "not JSON with 'version' and 'gpus'"}}) {
    auto read = GemmCache::parse(text, "file");
    ASSERT_FALSE(read.isOk()) << text;
    EXPECT_EQ(read.status().code(), StatusCode::DataLoss);
    EXPECT_EQ(read.status().message(), "'file' is not a cache of products: " + why);
  }
}

TEST(GemmCache, AddsToTheFileAndReplacesADamagedOne) {
  test::ScratchFolder folder;
  const std::string path = folder.path("new/folder/gemm.json");
  auto none = GemmCache::read(path);
  ASSERT_TRUE(none.isOk()) << none.status();
  GemmCache first, second;
  first.put("GPU", "one", digits('1'));
  second.put("GPU", "two", digits('2'));
  ASSERT_TRUE(first.write(path).isOk());
  ASSERT_TRUE(second.write(path).isOk());
  auto both = GemmCache::read(path);
  ASSERT_TRUE(both.isOk()) << both.status();
  EXPECT_EQ(both->find("GPU", "one"), digits('1'));
  EXPECT_EQ(both->find("GPU", "two"), digits('2'));
  std::ofstream(path) << "damaged";
  ASSERT_TRUE(first.write(path).isOk());
  EXPECT_EQ(contentOf(path), first.serialise());
  EXPECT_FALSE(first.write(path + "/below-a-file.json").isOk());
}

TEST(GemmCache, KeysTellProductsApart) {
  GemmLayout layout;
  layout.first = {6, 4, 6, false, 0};
  layout.second = {4, 3, 4, true, 0};
  layout.target = {6, 3, 6, false, 0};
  GemmProblem problem{layout,
                      artifact::DataType::BF16,
                      artifact::DataType::BF16,
                      artifact::DataType::F32,
                      artifact::Epilogue::BiasGradA,
                      {},
                      true,
                      {16, 256, 64},
                      1024,
                      0};
  EXPECT_EQ(keyOf(problem), "BF16-F32 BiasGradA adds a 6x4/6+0 b 4x3/4t+0 c 6x3/6+0 batch 1 aligned 16 256 64 "
                            "workspace 1024");
  GemmProblem other = problem;
  other.alignments[1] = 16;
  EXPECT_NE(keyOf(other), keyOf(problem));
  GemmProblem beside = problem;
  beside.multiprocessors = 116;
  EXPECT_EQ(keyOf(beside), keyOf(problem) + " multiprocessors 116");
  GemmProblem scaled = problem;
  scaled.a = artifact::DataType::F8E5M2;
  scaled.b = artifact::DataType::F8E4M3FN;
  scaled.epilogue = artifact::Epilogue::None;
  scaled.scaling = {artifact::ScaleMode::Block128, artifact::ScaleMode::Block128x128, true};
  EXPECT_EQ(keyOf(scaled).substr(0, 60), "F8E5M2 x F8E4M3FN Block128 x Block128x128 fast-F32 None adds");
}

TEST(GemmCache, LiesInTheUsersCache) {
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(*defaultGemmCache(), "/cache/tessera/gemm.json");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/user", 1);
  EXPECT_EQ(*defaultGemmCache(), "/home/user/.cache/tessera/gemm.json");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_EQ(defaultGemmCache().status().message(), "--autotune needs a file: neither XDG_CACHE_HOME nor HOME is set");
}

} // namespace
} // namespace tessera::cuda
