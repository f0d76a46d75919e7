//===- TestSupport.h - scratch folders and file helpers for runtime tests ----===//

#ifndef TESSERA_TESTS_RUNTIME_TESTSUPPORT_H
#define TESSERA_TESTS_RUNTIME_TESTSUPPORT_H

#include "runtime/base/Status.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace tessera::test {

/// A fresh folder that is removed at the end of the test.
class ScratchFolder {
public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tessera-test-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;

  std::string path(const std::string &name) const { return folder + "/" + name; }
  const std::string &root() const { return folder; }
  size_t numFiles() const {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  }

private:
  std::string folder;
};

inline void writeFile(const std::string &path, const std::string &content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

inline std::string readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// `content` with a few bytes changed, removed or added; the same for the same seed.
inline std::string damaged(std::string content, unsigned seed) {
  std::mt19937 random(seed);
  for (unsigned edits = 1 + random() % 4; edits > 0 && !content.empty(); --edits) {
    size_t at = random() % content.size();
    switch (random() % 4) {
    case 0:
      content[at] = static_cast<char>(random());
      break;
    case 1:
      content[at] = static_cast<char>(content[at] ^ 1 << random() % 8);
      break;
    case 2:
      content.erase(at, 1 + random() % 8);
      break;
    default:
      content.insert(at, content.substr(random() % content.size(), 1 + random() % 8));
    }
  }
  return content;
}

} // namespace tessera::test

/// The expression is a Status or Result without error.
#define ASSERT_STATUS_OK(expression)                                                                                   \
  do {                                                                                                                 \
    const auto &statusOf_ = (expression);                                                                              \
    ASSERT_TRUE(statusOf_.isOk()) << ::tessera::test::messageOf(statusOf_);                                            \
  } while (false)

/// The expression is an error whose message contains `text`.
#define EXPECT_ERROR(expression, text)                                                                                 \
  do {                                                                                                                 \
    const auto &statusOf_ = (expression);                                                                              \
    EXPECT_FALSE(statusOf_.isOk());                                                                                    \
    EXPECT_NE(::tessera::test::messageOf(statusOf_).find(text), std::string::npos)                                     \
        << "message: " << ::tessera::test::messageOf(statusOf_);                                                       \
  } while (false)

namespace tessera::test {
inline std::string messageOf(const Status &status) { return status.message(); }
template <typename T> std::string messageOf(const Result<T> &result) { return result.status().message(); }
} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_TESTSUPPORT_H
