//===- MpiTransport.h - messages by an MPI library -------------------------===//

#ifndef TESSERA_RUNTIME_COMM_MPI_MPITRANSPORT_H
#define TESSERA_RUNTIME_COMM_MPI_MPITRANSPORT_H

#include "runtime/comm/remote/Transport.h"

namespace tessera {

/// Loads the plugin and initialises MPI in this process. The plugin is `libtessera-mpi.so` in the folder that
/// TESSERA_PLUGINS names, in the folder of the executable, or in ../lib beside it.
Result<std::unique_ptr<Transport>> openMpiTransport();

} // namespace tessera

#endif // TESSERA_RUNTIME_COMM_MPI_MPITRANSPORT_H
