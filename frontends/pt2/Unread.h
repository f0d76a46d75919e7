//===- Unread.h - nodes that nothing depends on -----------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_PT2_UNREAD_H
#define TESSERA_FRONTENDS_PT2_UNREAD_H

#include "frontends/pt2/Program.h"

#include "llvm/ADT/StringMap.h"

namespace tessera::pt2 {

/// Drops nodes whose results lead to no output, so that parameters that only they read are not trained, as in PyTorch.
/// Nodes without results stay (checks), and those of which a result is a key of `kept`: they change something.
void dropUnread(Program &program, const llvm::StringMap<std::string> &kept);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_UNREAD_H
