//===- MpiPlugin.cpp - the only file that includes mpi.h -------------------===//

#include "runtime/comm/mpi/MpiPlugin.h"

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

struct TesseraMpiLink {
  MPI_Comm communicator;
};

struct TesseraMpiExchange {
  TesseraMpiTransfer *transfers;
  std::vector<MPI_Request> requests;
  std::vector<int> finished;
  std::vector<MPI_Status> statuses;
};

namespace {

constexpr int messageTag = 1;

/// Below MPI_THREAD_MULTIPLE the library wants one call at a time.
bool isSerialised = false;
std::mutex serial;

class Turn {
public:
  Turn() {
    if (isSerialised)
      serial.lock();
  }
  ~Turn() {
    if (isSerialised)
      serial.unlock();
  }
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;
};

int initialise(int *rank, int *size, char *text, int textBytes) {
  int level = MPI_THREAD_SINGLE;
  if (int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level)) {
    std::snprintf(text, textBytes, "MPI_Init_thread failed with %d", error);
    return error;
  }
  if (level < MPI_THREAD_SERIALIZED) {
    std::snprintf(text, textBytes,
                  "the MPI library offers thread level %d, expected MPI_THREAD_MULTIPLE or MPI_THREAD_SERIALIZED",
                  level);
    return MPI_ERR_OTHER;
  }
  isSerialised = level < MPI_THREAD_MULTIPLE;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  return MPI_Comm_size(MPI_COMM_WORLD, size);
}

const char *libraryVersion() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  if (text[0] == '\0')
    MPI_Get_library_version(text, &length);
  return text;
}

int openLink(int color, int key, TesseraMpiLink **link) {
  Turn turn;
  MPI_Comm communicator = MPI_COMM_NULL;
  if (int error = MPI_Comm_split(MPI_COMM_WORLD, color, key, &communicator))
    return error;
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  *link = new TesseraMpiLink{communicator}; // as long as the process: MPI_Comm_free would be collective
  return MPI_SUCCESS;
}

int start(TesseraMpiLink *link, TesseraMpiTransfer *transfers, int count, TesseraMpiExchange **exchange) {
  Turn turn;
  auto made = new TesseraMpiExchange{transfers, std::vector<MPI_Request>(count, MPI_REQUEST_NULL),
                                     std::vector<int>(count), std::vector<MPI_Status>(count)};
  *exchange = made;
  // Receives first, so that what arrives finds its place.
  for (int isSend = 0; isSend < 2; ++isSend)
    for (int index = 0; index < count; ++index) {
      TesseraMpiTransfer &transfer = transfers[index];
      transfer.isDone = 0;
      if (transfer.isSend != isSend)
        continue;
      int bytes = static_cast<int>(transfer.bytes);
      int error = isSend ? MPI_Isend(transfer.data, bytes, MPI_BYTE, transfer.peer, messageTag, link->communicator,
                                     &made->requests[index])
                         : MPI_Irecv(transfer.data, bytes, MPI_BYTE, transfer.peer, messageTag, link->communicator,
                                     &made->requests[index]);
      if (error)
        return error;
    }
  return MPI_SUCCESS;
}

int progress(TesseraMpiExchange *exchange) {
  Turn turn;
  int finished = 0, count = static_cast<int>(exchange->requests.size());
  int error =
      MPI_Testsome(count, exchange->requests.data(), &finished, exchange->finished.data(), exchange->statuses.data());
  if (error == MPI_ERR_IN_STATUS)
    for (int index = 0; index < finished; ++index)
      if (exchange->statuses[index].MPI_ERROR != MPI_SUCCESS)
        return exchange->statuses[index].MPI_ERROR;
  if (error)
    return error;
  for (int index = 0; index < finished && finished != MPI_UNDEFINED; ++index) {
    TesseraMpiTransfer &transfer = exchange->transfers[exchange->finished[index]];
    int received = 0;
    if (!transfer.isSend && MPI_Get_count(&exchange->statuses[index], MPI_BYTE, &received) == MPI_SUCCESS &&
        received != transfer.bytes)
      return MPI_ERR_TRUNCATE;
    transfer.isDone = 1;
  }
  return MPI_SUCCESS;
}

void drop(TesseraMpiExchange *exchange) {
  if (!exchange)
    return;
  {
    Turn turn;
    for (size_t index = 0; index < exchange->requests.size(); ++index) {
      MPI_Request &request = exchange->requests[index];
      if (request == MPI_REQUEST_NULL)
        continue;
      if (!exchange->transfers[index].isSend)
        MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }
  delete exchange;
}

void describe(int error, char *text, int textBytes) {
  char buffer[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, buffer, &length);
  std::snprintf(text, textBytes, "%s", buffer);
}

void finish() {
  Turn turn;
  MPI_Finalize();
}

} // namespace

extern "C" __attribute__((visibility("default"))) const TesseraMpiApi *tesseraMpiApi(void) {
  static const TesseraMpiApi api = {
      TESSERA_MPI_API_VERSION, initialise, libraryVersion, openLink, start, progress, drop, describe, finish};
  return &api;
}
