//===- ArchiveFile.cpp - archives that tests take apart -------------------===//

#include "ArchiveFile.h"

#include "llvm/ADT/StringRef.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <zip.h>

namespace tessera::pt2 {

std::string programPath(const std::string &name) { return std::string(TESSERA_PT2_PROGRAMS) + "/" + name + ".pt2"; }

std::string fileBytes(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  EXPECT_TRUE(in) << path;
  return bytes.str();
}

ArchiveFile ArchiveFile::of(const std::string &name) {
  ArchiveFile file;
  zip_t *archive = zip_open(programPath(name).c_str(), ZIP_RDONLY, nullptr);
  EXPECT_NE(archive, nullptr) << name;
  for (zip_int64_t i = 0; archive && i < zip_get_num_entries(archive, 0); ++i) {
    zip_stat_t stat;
    zip_stat_index(archive, i, 0, &stat);
    std::string bytes(stat.size, '\0');
    zip_file_t *entry = zip_fopen_index(archive, i, 0);
    EXPECT_EQ(zip_fread(entry, bytes.data(), bytes.size()), static_cast<zip_int64_t>(bytes.size()));
    zip_fclose(entry);
    file.entries.emplace_back(stat.name, std::move(bytes));
  }
  zip_discard(archive);
  return file;
}

std::string &ArchiveFile::operator[](const std::string &suffix) {
  for (auto &[name, bytes] : entries)
    if (llvm::StringRef(name).ends_with(suffix))
      return bytes;
  ADD_FAILURE() << "no entry ends in " << suffix;
  static std::string nothing;
  return nothing;
}

void ArchiveFile::remove(const std::string &suffix) {
  const size_t removed =
      std::erase_if(entries, [&](const auto &entry) { return llvm::StringRef(entry.first).ends_with(suffix); });
  EXPECT_EQ(removed, 1u) << suffix;
}

void ArchiveFile::replace(const std::string &suffix, const std::string &from, const std::string &to) {
  std::string &text = (*this)[suffix];
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " in " << text.substr(0, 2000);
  text.replace(at, from.size(), to);
}

std::string ArchiveFile::pack() const {
  zip_source_t *target = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_source_keep(target);
  zip_t *archive = zip_open_from_source(target, ZIP_TRUNCATE, nullptr);
  for (const auto &[name, bytes] : entries)
    zip_file_add(archive, name.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0), ZIP_FL_OVERWRITE);
  EXPECT_EQ(zip_close(archive), 0) << zip_strerror(archive);
  zip_source_open(target);
  zip_stat_t stat;
  zip_source_stat(target, &stat);
  std::string packed(stat.size, '\0');
  EXPECT_EQ(zip_source_read(target, packed.data(), packed.size()), static_cast<zip_int64_t>(packed.size()));
  zip_source_close(target);
  zip_source_free(target);
  return packed;
}

std::string ArchiveFile::readError(const std::string &model) const { return pt2::readError(pack(), model); }

std::string readError(const std::string &bytes, const std::string &model) {
  auto archive = Archive::openBytes(bytes, "test");
  if (!archive)
    return toString(archive.takeError());
  auto program = readProgram(*archive, model);
  return program ? "" : toString(program.takeError());
}

} // namespace tessera::pt2
