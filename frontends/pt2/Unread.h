//===- Unread.h - nodes that nothing depends on -----------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_PT2_UNREAD_H
#define TESSERA_FRONTENDS_PT2_UNREAD_H

#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// Drops nodes whose results lead to no output, so that parameters that only they read are not trained, as in PyTorch.
/// Nodes without results stay (checks), and those that do more than give results.
void dropUnread(Program &program);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_UNREAD_H
