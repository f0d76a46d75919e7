//===- Plugin.cpp - parts of the runtime that other libraries are needed for -===//

#include "runtime/base/Plugin.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <vector>

namespace tessera {

namespace fs = std::filesystem;

static std::vector<fs::path> pluginFolders() {
  if (const char *chosen = std::getenv("TESSERA_PLUGINS"))
    return {chosen};
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {folder, folder / ".." / "lib"};
}

Result<void *> loadPlugin(const std::string &fileName, const std::string &symbol, bool isGlobal) {
  std::error_code error;
  for (const fs::path &folder : pluginFolders()) {
    fs::path path = folder / fileName;
    if (!fs::exists(path, error))
      continue;
    void *library = dlopen(path.c_str(), RTLD_NOW | (isGlobal ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!library)
      return TESSERA_ERROR(Unsupported, "cannot load " + fileName + ": " + dlerror());
    if (void *address = dlsym(library, symbol.c_str()))
      return address;
    return TESSERA_ERROR(InvalidArgument, fileName + " belongs to another version of Tessera");
  }
  return TESSERA_ERROR(NotFound, "there is no " + fileName + " beside tessera-run or in ../lib");
}

} // namespace tessera
