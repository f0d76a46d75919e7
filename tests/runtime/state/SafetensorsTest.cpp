//===- SafetensorsTest.cpp - round trips and files that lie ------------------===//

#include "runtime/state/Safetensors.h"
#include "tests/runtime/TestSupport.h"

#include <csignal>
#include <cstring>
#include <sys/resource.h>

namespace tessera {
namespace {

using test::ScratchFolder;
using test::writeFile;

template <typename T> ByteSpan bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const uint8_t *>(values.data()), values.size() * sizeof(T)};
}

std::string withHeader(const std::string &header, const std::string &data) {
  uint64_t length = header.size();
  std::string file(reinterpret_cast<const char *>(&length), 8);
  return file + header + data;
}

TEST(Safetensors, RoundTrip) {
  ScratchFolder scratch;
  std::string path = scratch.path("a.safetensors");
  std::vector<float> weights = {1, 2, 3, 4, 5, 6}, tail = {7};
  std::vector<int64_t> ids = {-1, 1ll << 40};
  auto written = writeSafetensors(path,
                                  {{"w", DataType::F32, {7}, {bytesOf(weights), bytesOf(tail)}},
                                   {"empty", DataType::F32, {0, 3}, {}},
                                   {"ids", DataType::I64, {2}, {bytesOf(ids)}},
                                   {"scalar", DataType::F32, {}, {bytesOf(tail)}}},
                                  {{"format", "pt"}});
  ASSERT_STATUS_OK(written);
  EXPECT_EQ(written->bytes, std::filesystem::file_size(path));

  auto file = SafetensorsFile::open(path);
  ASSERT_STATUS_OK(file);
  ASSERT_EQ(file->tensors().size(), 4u);
  EXPECT_EQ(file->metadata().at("format"), "pt");
  const SafetensorsEntry *w = file->find("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->shape, std::vector<int64_t>{7});
  float last;
  ASSERT_STATUS_OK(w->bytes.read(24, &last, 4));
  EXPECT_EQ(last, 7.0f);
  EXPECT_EQ(file->find("ids")->dtype, DataType::I64);
  auto stored = file->find("ids")->bytes.readAll();
  ASSERT_STATUS_OK(stored);
  EXPECT_EQ(std::memcmp(stored->data(), ids.data(), 16), 0);
  EXPECT_EQ(file->find("empty")->elements, 0);
  EXPECT_EQ(file->find("scalar")->elements, 1);
  EXPECT_EQ(file->find("nothing"), nullptr);
  EXPECT_EQ(scratch.numFiles(), 1u);
}

TEST(Safetensors, EqualContentGivesEqualBytes) {
  ScratchFolder scratch;
  std::vector<float> weights = {1, 2, 3};
  std::vector<SafetensorsTensor> tensors = {{"w", DataType::F32, {3}, {bytesOf(weights)}}};
  auto a = writeSafetensors(scratch.path("a"), tensors), b = writeSafetensors(scratch.path("b"), tensors);
  ASSERT_STATUS_OK(a);
  ASSERT_STATUS_OK(b);
  EXPECT_EQ(a->hash, b->hash);
  EXPECT_EQ(test::readFile(scratch.path("a")), test::readFile(scratch.path("b")));
}

struct BadFile {
  const char *name, *message;
  std::string content;
};

TEST(Safetensors, RejectsBadFiles) {
  const std::string eight(8, '\0');
  const BadFile files[] = {
      {"empty", "has only 0 bytes", ""},
      {"short header", "bytes long, but only", std::string("\xff\xff\0\0\0\0\0\0{}", 10)},
      {"huge header", "bytes long, but only", std::string(8, '\xff') + "{}"},
      {"no json", "not a JSON object", withHeader("hello", "")},
      {"array", "not a JSON object", withHeader("[1]", "")},
      {"twice", "appears twice",
       withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                  R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                  eight)},
      {"unknown type", "dtype 'Q4' is unknown",
       withHeader(R"({"a":{"dtype":"Q4","shape":[2],"data_offsets":[0,8]}})", eight)},
      {"wrong size", "has 8 bytes, expected 12",
       withHeader(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", eight)},
      {"outside", "not inside the file's 8 bytes",
       withHeader(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", eight)},
      {"backwards", "not inside the file's",
       withHeader(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[8,4]}})", eight)},
      {"negative size", "not a list of sizes",
       withHeader(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", eight)},
      {"overflow", "is too large",
       withHeader(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", eight)},
      {"overlap", "overlap",
       withHeader(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                  eight)},
      {"hole", "hole before tensor 'a'",
       withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight)},
      {"rest", "4 bytes belong to no tensor",
       withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", eight)},
      {"offsets", "no data_offsets", withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0.5,4]}})", eight)},
      {"metadata", "__metadata__ 'x' is not a string", withHeader(R"({"__metadata__":{"x":1}})", "")},
      {"deep", "not a JSON object", withHeader(std::string(100000, '['), "")},
  };
  ScratchFolder scratch;
  for (const BadFile &bad : files) {
    SCOPED_TRACE(bad.name);
    std::string path = scratch.path("bad.safetensors");
    writeFile(path, bad.content);
    auto file = SafetensorsFile::open(path);
    EXPECT_ERROR(file, bad.message);
    EXPECT_ERROR(file, path);
  }
  EXPECT_ERROR(SafetensorsFile::open(scratch.path("missing")), "no such file");
  EXPECT_ERROR(SafetensorsFile::open(scratch.root()), "not a regular file");
}

TEST(Safetensors, EveryTruncationIsAnError) {
  ScratchFolder scratch;
  std::vector<float> weights = {1, 2, 3};
  ASSERT_STATUS_OK(writeSafetensors(scratch.path("a"), {{"w", DataType::F32, {3}, {bytesOf(weights)}}}));
  std::string whole = test::readFile(scratch.path("a"));
  for (size_t length = 0; length < whole.size(); ++length) {
    writeFile(scratch.path("cut"), whole.substr(0, length));
    EXPECT_FALSE(SafetensorsFile::open(scratch.path("cut")).isOk()) << length;
  }
}

/// Reads all that the file says it has, so that a sanitizer sees every access.
uint64_t readAll(const SafetensorsFile &file) {
  uint64_t sum = 0;
  for (const auto &[name, entry] : file.tensors()) {
    auto bytes = entry.bytes.readAll();
    EXPECT_TRUE(bytes.isOk()) << bytes.status();
    for (uint8_t byte : *bytes)
      sum += byte;
  }
  return sum;
}

TEST(Safetensors, AFileThatBecomesShorterIsAnErrorOfReading) {
  ScratchFolder scratch;
  std::string path = scratch.path("a");
  std::vector<float> weights(20000, 1.5f);
  ASSERT_STATUS_OK(writeSafetensors(path, {{"w", DataType::F32, {20000}, {bytesOf(weights)}}}));
  auto file = SafetensorsFile::open(path);
  ASSERT_STATUS_OK(file);
  std::filesystem::resize_file(path, 4096);
  EXPECT_ERROR(file->find("w")->bytes.readAll(), "'" + path + "' has become shorter while it was read");
}

TEST(Safetensors, SurvivesDamage) {
  ScratchFolder scratch;
  std::vector<float> weights(20, 1.5f);
  ASSERT_STATUS_OK(writeSafetensors(scratch.path("a"), {{"w", DataType::F32, {4, 5}, {bytesOf(weights)}},
                                                        {"v", DataType::F16, {2, 20}, {bytesOf(weights)}}}));
  std::string whole = test::readFile(scratch.path("a"));
  int accepted = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    writeFile(scratch.path("b"), test::damaged(whole, seed));
    auto file = SafetensorsFile::open(scratch.path("b"));
    if (file.isOk()) {
      ++accepted; // only the values changed
      EXPECT_LE(readAll(*file), 160u * 255);
    }
  }
  EXPECT_LT(accepted, 1500);
}

TEST(Safetensors, NothingRemainsAfterAFailedWrite) {
  ScratchFolder scratch;
  std::vector<float> weights(1 << 16, 1.0f);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = {4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  auto written = writeSafetensors(scratch.path("a"), {{"w", DataType::F32, {1 << 16}, {bytesOf(weights)}}});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_ERROR(written, "cannot write '" + scratch.path("a") + "'");
  EXPECT_EQ(written.status().code(), StatusCode::Exhausted);
  EXPECT_EQ(scratch.numFiles(), 0u);
  EXPECT_ERROR(writeSafetensors(scratch.path("no/such/folder/a"), {}), "no such file or directory");
}

TEST(Safetensors, DevicesAreWrittenNotReplaced) {
  if (!std::filesystem::is_character_file("/dev/full"))
    GTEST_SKIP() << "no /dev/full";
  std::vector<float> weights = {1};
  auto written = writeSafetensors("/dev/full", {{"w", DataType::F32, {1}, {bytesOf(weights)}}});
  EXPECT_ERROR(written, "cannot write '/dev/full': no space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  ASSERT_STATUS_OK(writeSafetensors("/dev/null", {{"w", DataType::F32, {1}, {bytesOf(weights)}}}));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  ScratchFolder scratch;
  EXPECT_ERROR(writeSafetensors(scratch.root(), {}), "cannot write '" + scratch.root() + "'");
}

} // namespace
} // namespace tessera
