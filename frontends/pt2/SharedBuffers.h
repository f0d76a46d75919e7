//===- SharedBuffers.h - buffers with two names -----------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_PT2_SHAREDBUFFERS_H
#define TESSERA_FRONTENDS_PT2_SHAREDBUFFERS_H

#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// Lets what reads or changes a buffer by another of its names use the first one in the signature, so that a change is
/// seen by all. Buffers that share only parts of their memory stay apart.
void mergeBuffers(Program &program);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_SHAREDBUFFERS_H
