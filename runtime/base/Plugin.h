//===- Plugin.h - parts of the runtime that other libraries are needed for ---===//

#ifndef TESSERA_RUNTIME_BASE_PLUGIN_H
#define TESSERA_RUNTIME_BASE_PLUGIN_H

#include "runtime/base/Status.h"

#include <string>

namespace tessera {

/// Loads `fileName` from the folder that TESSERA_PLUGINS names, from that of the executable, or from ../lib beside it,
/// and gives the address of a symbol. NotFound: there is no such file; Unsupported: it cannot be loaded here, with the
/// reason. `isGlobal`: later libraries find its symbols.
Result<void *> loadPlugin(const std::string &fileName, const std::string &symbol, bool isGlobal);

} // namespace tessera

#endif // TESSERA_RUNTIME_BASE_PLUGIN_H
