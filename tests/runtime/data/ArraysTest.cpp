//===- ArraysTest.cpp - .npz and safetensors as samples ---------------------------------===//

#include "runtime/data/Loader.h"
#include "runtime/state/Safetensors.h"
#include "tests/runtime/TestSupport.h"
#include "tests/runtime/data/DataFixture.h"

#include <limits>
#include <utility>
#include <zip.h>

namespace tessera {
namespace {

using test::makeSpec;
using test::rawBytes;
using test::ScratchFolder;
using test::valuesOf;

std::string npy(const std::string &descriptor, const std::string &shape, const std::string &data,
                const std::string &order = "False") {
  std::string header = "{'descr': '" + descriptor + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize((header.size() + 10 + 63) / 64 * 64 - 10, ' ');
  std::string prefix("\x93NUMPY\x01\x00", 8);
  prefix += static_cast<char>(header.size() & 255);
  prefix += static_cast<char>(header.size() >> 8);
  return prefix + header + data;
}

void writeNpz(const std::string &path, const std::vector<std::pair<std::string, std::string>> &members,
              bool compressed = false) {
  int code = 0;
  zip_t *archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  ASSERT_NE(archive, nullptr);
  for (const auto &[name, content] : members) {
    zip_source_t *source = zip_source_buffer(archive, content.data(), content.size(), 0);
    zip_int64_t index = zip_file_add(archive, name.c_str(), source, 0);
    zip_set_file_compression(archive, index, compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  ASSERT_EQ(zip_close(archive), 0);
}

const std::vector<BatchSpec> classifier = {makeSpec("x", artifact::BatchRole::Input, DataType::F32, {2, 3}),
                                           makeSpec("targets", artifact::BatchRole::Target, DataType::I32, {2})};
const std::vector<float> xValues = {1, 2, 3, 4, 5, 6, 7, 8, 9};
const std::vector<double> xDoubles(xValues.begin(), xValues.end());

void expectBatches(const std::string &path) {
  auto source = openSamples(path, classifier);
  ASSERT_STATUS_OK(source);
  auto loader = Loader::create(std::move(*source), classifier, {.shuffle = false});
  ASSERT_STATUS_OK(loader);
  EXPECT_EQ((*loader)->samples(), 3u);
  for (int step = 0; step < 2; ++step) {
    auto batch = (*loader)->next();
    ASSERT_STATUS_OK(batch);
    EXPECT_EQ(valuesOf<float>((*batch)->tensors[0]),
              step == 0 ? (std::vector<float>{1, 2, 3, 4, 5, 6}) : (std::vector<float>{7, 8, 9, 1, 2, 3}));
    EXPECT_EQ(valuesOf<int32_t>((*batch)->tensors[1]),
              step == 0 ? (std::vector<int32_t>{4, 0}) : (std::vector<int32_t>{2, 4}));
  }
}

TEST(Arrays, NpzOfAllStoragesAndTypes) {
  ScratchFolder scratch;
  std::string path = scratch.path("data.npz");
  const std::pair<const char *, std::string> labels[] = {
      {"<i8", rawBytes(std::vector<int64_t>{4, 0, 2})},  {"<i4", rawBytes(std::vector<int32_t>{4, 0, 2})},
      {"<u2", rawBytes(std::vector<uint16_t>{4, 0, 2})}, {"<i2", rawBytes(std::vector<int16_t>{4, 0, 2})},
      {"<u4", rawBytes(std::vector<uint32_t>{4, 0, 2})}, {"|u1", rawBytes(std::vector<uint8_t>{4, 0, 2})}};
  for (bool compressed : {false, true})
    for (const auto &[type, data] : labels) {
      SCOPED_TRACE(type);
      writeNpz(path, {{"x.npy", npy("<f8", "(3, 3)", rawBytes(xDoubles))}, {"targets.npy", npy(type, "(3,)", data)}},
               compressed);
      expectBatches(path);
    }
}

TEST(Arrays, Safetensors) {
  ScratchFolder scratch;
  std::string path = scratch.path("data.safetensors"), x = rawBytes(xValues),
              labels = rawBytes(std::vector<int64_t>{4, 0, 2});
  auto bytes = [](const std::string &text) {
    return ByteSpan(reinterpret_cast<const uint8_t *>(text.data()), text.size());
  };
  ASSERT_STATUS_OK(writeSafetensors(
      path, {{"x", DataType::F32, {3, 3}, {bytes(x)}}, {"targets", DataType::I64, {3}, {bytes(labels)}}}));
  expectBatches(path);
}

TEST(Arrays, AFileThatBecomesShorterIsAnErrorOfReading) {
  ScratchFolder scratch;
  std::string path = scratch.path("data.safetensors"), x = rawBytes(std::vector<float>(3 * 10000)),
              labels = rawBytes(std::vector<int64_t>(10000));
  auto bytes = [](const std::string &text) {
    return ByteSpan(reinterpret_cast<const uint8_t *>(text.data()), text.size());
  };
  ASSERT_STATUS_OK(writeSafetensors(
      path, {{"x", DataType::F32, {10000, 3}, {bytes(x)}}, {"targets", DataType::I64, {10000}, {bytes(labels)}}}));
  auto source = openSamples(path, classifier);
  ASSERT_STATUS_OK(source);
  auto loader = Loader::create(std::move(*source), classifier, {.shuffle = false, .prefetch = false});
  ASSERT_STATUS_OK((*loader)->next());
  std::filesystem::resize_file(path, 4096);
  EXPECT_ERROR((*loader)->next(), "'" + path + "' has become shorter while it was read");
}

TEST(Arrays, ArchivesAreInMemory) {
  ScratchFolder scratch;
  std::string path = scratch.path("data.npz");
  writeNpz(path, {{"x.npy", npy("<f4", "(3, 3)", rawBytes(xValues))}, {"targets.npy", npy("|u1", "(3,)", "\4\1\2")}});
  auto source = openSamples(path, classifier);
  ASSERT_STATUS_OK(source);
  std::filesystem::resize_file(path, 10);
  auto loader = Loader::create(std::move(*source), classifier, {.shuffle = false, .prefetch = false});
  auto batch = (*loader)->next();
  ASSERT_STATUS_OK(batch);
  EXPECT_EQ(valuesOf<int32_t>((*batch)->tensors[1]), (std::vector<int32_t>{4, 1}));
}

TEST(Arrays, AllMismatchesAtOnce) {
  ScratchFolder scratch;
  std::string path = scratch.path("data.npz");
  writeNpz(path, {{"x.npy", npy("<f4", "(3, 3, 1)", rawBytes(xValues))}, {"y.npy", npy("<f4", "(0,)", "")}});
  auto source = openSamples(path, classifier);
  EXPECT_ERROR(source, "array 'x' has shape [3,3,1], expected a leading axis of samples and then [3]");
  EXPECT_ERROR(source, "array 'targets' is missing; it has 'x', 'y'");
  writeNpz(path,
           {{"x.npy", npy("<f4", "(3, 3)", rawBytes(xValues))}, {"targets.npy", npy("<f4", "(3,)", "123412341234")}});
  EXPECT_ERROR(openSamples(path, classifier), "'targets' has type F32, expected I32");
  writeNpz(path, {{"x.npy", npy("<f4", "(3, 3)", rawBytes(xValues))}, {"targets.npy", npy("|u1", "(2,)", "12")}});
  EXPECT_ERROR(openSamples(path, classifier), "'targets' has 2 samples, but the others have 3");
}

TEST(Arrays, LabelsOutsideTheirBoundNameTheirPlace) {
  ScratchFolder scratch;
  std::string path = scratch.path("data.npz");
  auto specs = classifier;
  specs[1].indexBound = 3;
  specs[1].ignoreIndex = -100;
  writeNpz(path, {{"x.npy", npy("<f4", "(2, 3)", rawBytes(std::vector<float>(6)))},
                  {"targets.npy", npy("<i4", "(2,)", rawBytes(std::vector<int32_t>{-100, 3}))}});
  auto source = openSamples(path, specs);
  ASSERT_STATUS_OK(source);
  auto loader = Loader::create(std::move(*source), specs, {.shuffle = false});
  EXPECT_ERROR((*loader)->next(), "element 0 of sample 1 of array 'targets' in '" + path + "' is 3");
}

TEST(Arrays, PartsOfASampleHaveBoundsOfTheirOwn) {
  // A sample is [3, 4]: column 0 is below 5, columns 1 and 3 of the last two rows are below 9 or -100.
  BatchSpec spec;
  spec.name = "ids";
  spec.dtype = DataType::I32;
  spec.globalShape = {1, 3, 4};
  spec.dims = {artifact::DimRole::Sample, artifact::DimRole::None, artifact::DimRole::None};
  constexpr int64_t none = std::numeric_limits<int64_t>::min();
  spec.indexParts = {{5, none, {0, 0}, {3, 1}, {1, 1}}, {9, -100, {1, 1}, {3, 4}, {1, 2}}};
  std::vector<int32_t> sample(12, -7);
  for (int good : {0, 4, 8})
    sample[good] = 4;
  for (int good : {5, 7, 9, 11})
    sample[good] = good == 7 ? -100 : 8;
  auto find = [&] {
    return findBadIndex(spec, reinterpret_cast<const uint8_t *>(sample.data()), rankElements(spec, {}));
  };
  EXPECT_FALSE(find());
  for (int element : {0, 4, 8, 5, 7, 9, 11}) {
    int32_t before = std::exchange(sample[element], 9);
    auto bad = find();
    ASSERT_TRUE(bad) << element;
    EXPECT_EQ(bad->element, element);
    EXPECT_EQ(bad->value, 9);
    EXPECT_EQ(bad->bound, element % 4 == 0 ? 5 : 9);
    sample[element] = before;
  }
  sample[4] = -100; // what one part may ignore is no index in another
  ASSERT_TRUE(find());
  EXPECT_EQ(find()->element, 4);
  sample[4] = 4;
  // Strides that end the dimension at once, and a box without elements.
  spec.indexParts = {{5, none, {0, 0}, {3, 4}, {std::numeric_limits<int64_t>::max(), 4}},
                     {1, none, {1, 2}, {3, 2}, {1, 1}}};
  EXPECT_FALSE(find());
  sample[0] = 5;
  EXPECT_TRUE(find());
}

TEST(Npy, BadHeaders) {
  std::vector<std::shared_ptr<const void>> storage;
  auto parse = [&](const std::string &content) {
    ArrayEntry entry;
    return parseNpy("a", {reinterpret_cast<const uint8_t *>(content.data()), content.size()}, entry, storage);
  };
  const std::string good = npy("<f4", "(2,)", "12345678");
  ASSERT_STATUS_OK(parse(good));
  ASSERT_STATUS_OK(parse(npy("<f4", "()", "1234")));
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(parse(good.substr(0, length)).isOk()) << length;
  EXPECT_ERROR(parse("hello world"), "is not in NumPy's format");
  EXPECT_ERROR(parse(npy("<f4", "(2,)", "12345678", "True")), "Fortran order");
  EXPECT_ERROR(parse(npy("<c8", "(1,)", "12345678")), "type '<c8'");
  EXPECT_ERROR(parse(npy(">f4", "(2,)", "12345678")), "type '>f4'");
  EXPECT_ERROR(parse(npy("<f4", "(3,)", "12345678")), "has 8 bytes of data, which does not fit its shape [3]");
  EXPECT_ERROR(parse(npy("<f4", "(99999999999999999999,)", "12345678")), "header that cannot be read");
  EXPECT_ERROR(parse(npy("<f4", "(4611686018427387904, 8)", "12345678")), "which does not fit its shape");
  EXPECT_ERROR(parse(npy("<f4", "(-2,)", "12345678")), "header that cannot be read");
  EXPECT_ERROR(parse(npy("<f4", "(2", "12345678")), "header that cannot be read");
}

TEST(Npz, BadArchives) {
  ScratchFolder scratch;
  std::string path = scratch.path("data.npz");
  EXPECT_ERROR(openSamples(path, classifier), "no such file");
  for (const char *content : {"", "this is no zip archive"}) {
    test::writeFile(path, content);
    EXPECT_ERROR(openSamples(path, classifier), "is not a .npz archive");
  }
  for (bool compressed : {false, true}) {
    writeNpz(path,
             {{"x.npy", npy("<f4", "(3, 3)", rawBytes(xValues))},
              {"targets.npy", npy("|u1", "(3,)", std::string("\4\0\2", 3))}},
             compressed);
    std::string whole = test::readFile(path);
    for (size_t length = 0; length < whole.size(); length += 11) {
      test::writeFile(path, whole.substr(0, length));
      EXPECT_FALSE(openSamples(path, classifier).isOk()) << length;
    }
    std::string damaged = whole;
    damaged[60] ^= 0x20; // inside the first member
    test::writeFile(path, damaged);
    EXPECT_FALSE(openSamples(path, classifier).isOk());
  }
}

TEST(Npz, SurvivesDamage) {
  ScratchFolder scratch;
  std::string path = scratch.path("data.npz"), x = npy("<f4", "(3, 3)", rawBytes(xValues));
  std::string labels = npy("<u2", "(3,)", rawBytes(std::vector<uint16_t>{4, 0, 2}));
  for (bool compressed : {false, true}) {
    writeNpz(path, {{"x.npy", x}, {"targets.npy", labels}}, compressed);
    std::string whole = test::readFile(path);
    int accepted = 0;
    for (unsigned seed = 0; seed < 500; ++seed) {
      test::writeFile(path, test::damaged(whole, seed));
      accepted += openSamples(path, classifier).isOk();
    }
    EXPECT_LT(accepted, 400); // some fields of an archive mean nothing
  }
  std::vector<std::shared_ptr<const void>> storage;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::string content = test::damaged(labels, seed);
    ArrayEntry entry;
    Status status = parseNpy("a", {reinterpret_cast<const uint8_t *>(content.data()), content.size()}, entry, storage);
    if (status.isOk()) {
      EXPECT_EQ(entry.bytes.size(), *checkedElements(entry.shape) * elementBytes(entry.dtype));
    }
  }
}

} // namespace
} // namespace tessera
