//===- Verify.h - checks a package's meaning -------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_VERIFY_H
#define TESSERA_RUNTIME_ARTIFACT_VERIFY_H

#include "runtime/artifact/Mesh.h"
#include "runtime/artifact/artifact_generated.h"
#include "runtime/base/Status.h"

namespace tessera {

/// Checks all that the FlatBuffers verifier cannot know: indices, spans of buffers inside their arenas (with iteration
/// and rank strides), shapes of library calls, counts; of every program.
Status verifyPackage(const artifact::Package &package, const Mesh &mesh);

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_VERIFY_H
