//===- ArchiveFile.h - archives that tests take apart -----------*- C++ -*-===//
//
// Entries of a committed .pt2 file as strings, to be changed and packed again.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TESTS_PT2_ARCHIVEFILE_H
#define TESSERA_TESTS_PT2_ARCHIVEFILE_H

#include "frontends/pt2/Reader.h"

#include <string>
#include <utility>
#include <vector>

namespace tessera::pt2 {

/// The path of a committed program.
std::string programPath(const std::string &name);
std::string fileBytes(const std::string &path);

struct ArchiveFile {
  std::vector<std::pair<std::string, std::string>> entries; // names with their root folder

  static ArchiveFile of(const std::string &name);

  /// The entry whose name ends so; the test fails if there is none.
  std::string &operator[](const std::string &suffix);
  void remove(const std::string &suffix);
  /// Replaces the first occurrence of a text in an entry; the test fails if there is none.
  void replace(const std::string &suffix, const std::string &from, const std::string &to);
  /// A zip archive of the entries.
  std::string pack() const;
  /// Reads the program, and gives the error if that fails, else "".
  std::string readError(const std::string &model = "") const;
};

/// The same of any bytes, called 'test'.
std::string readError(const std::string &bytes, const std::string &model = "");

} // namespace tessera::pt2

#endif // TESSERA_TESTS_PT2_ARCHIVEFILE_H
