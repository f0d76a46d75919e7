//===- StandardStreams.h - a run goes on where nobody reads its output -----===//

#ifndef TESSERA_TOOLS_TESSERA_RUN_STANDARDSTREAMS_H
#define TESSERA_TOOLS_TESSERA_RUN_STANDARDSTREAMS_H

namespace tessera {

/// Before anything is opened: a standard stream that is closed becomes /dev/null, so that no file of the run gets its
/// number. When stdout can no longer be written to (a pipe whose reader has ended, a full disk), a warning says so
/// once, and what follows is dropped.
void guardStandardStreams();

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_RUN_STANDARDSTREAMS_H
