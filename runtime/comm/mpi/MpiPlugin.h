/*===- MpiPlugin.h - the border between the runtime and an MPI library ------===//
//
// The runtime must start where no MPI is installed, so that only the plugin (libtessera-mpi.so) links it. The border is
// plain C: a table of functions, found by `tesseraMpiApi`.
//
//===----------------------------------------------------------------------===*/

#ifndef TESSERA_RUNTIME_COMM_MPI_MPIPLUGIN_H
#define TESSERA_RUNTIME_COMM_MPI_MPIPLUGIN_H

#include <stdint.h>

#define TESSERA_MPI_API_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

struct TesseraMpiTransfer {
  int32_t peer; /* rank in the link */
  int32_t isSend;
  void *data;
  int64_t bytes;
  int32_t isDone;
};

struct TesseraMpiLink;
struct TesseraMpiExchange;

/* Functions return 0, or an MPI error code. */
struct TesseraMpiApi {
  int32_t version;
  /* MPI_Init_thread; `text` gets what is wrong, for a message. */
  int (*initialise)(int *rank, int *size, char *text, int textBytes);
  const char *(*libraryVersion)(void);
  /* MPI_Comm_split of all ranks. */
  int (*open)(int color, int key, struct TesseraMpiLink **link);
  /* `transfers` stay where they are until the exchange is dropped. */
  int (*start)(struct TesseraMpiLink *link, struct TesseraMpiTransfer *transfers, int count,
               struct TesseraMpiExchange **exchange);
  int (*progress)(struct TesseraMpiExchange *exchange);
  void (*drop)(struct TesseraMpiExchange *exchange);
  void (*describe)(int error, char *text, int textBytes);
  void (*finish)(void);
};

const struct TesseraMpiApi *tesseraMpiApi(void);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_RUNTIME_COMM_MPI_MPIPLUGIN_H */
