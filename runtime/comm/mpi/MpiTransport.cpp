//===- MpiTransport.cpp - messages by an MPI library -----------------------===//

#include "runtime/comm/mpi/MpiTransport.h"

#include "runtime/base/Plugin.h"
#include "runtime/comm/mpi/MpiPlugin.h"

#include <algorithm>
#include <string>

namespace tessera {
namespace {

/// MPI counts bytes in an int; a multiple of a page.
constexpr size_t largestMessage = size_t{1} << 30;

Status mpiError(const TesseraMpiApi &api, const char *what, int error) {
  char text[512] = "";
  api.describe(error, text, sizeof(text));
  return TESSERA_ERROR(Aborted, std::string("MPI: ") + what + ": " + text);
}

class MpiExchange : public Exchange {
public:
  MpiExchange(const TesseraMpiApi &api, std::vector<Transfer> asked) : Exchange(std::move(asked)), api(api) {
    for (size_t index = 0; index < transfers.size(); ++index) {
      const Transfer &transfer = transfers[index];
      size_t first = 0;
      do {
        size_t bytes = std::min(transfer.bytes - first, largestMessage);
        messages.push_back({transfer.peer, transfer.isSend, transfer.data + first, static_cast<int64_t>(bytes), 0});
        owner.push_back(index);
        first += bytes;
      } while (first < transfer.bytes);
    }
  }
  ~MpiExchange() override { api.drop(exchange); }

  Status start(TesseraMpiLink *link) {
    int error = api.start(link, messages.data(), static_cast<int>(messages.size()), &exchange);
    return error ? mpiError(api, "cannot start a message", error) : Status::ok();
  }

  Status progress() override {
    if (int error = api.progress(exchange))
      return mpiError(api, "a message failed", error);
    for (Transfer &transfer : transfers)
      transfer.isDone = true;
    for (size_t index = 0; index < messages.size(); ++index)
      if (!messages[index].isDone)
        transfers[owner[index]].isDone = false;
    return Status::ok();
  }

private:
  const TesseraMpiApi &api;
  TesseraMpiExchange *exchange = nullptr;
  std::vector<TesseraMpiTransfer> messages;
  std::vector<size_t> owner; ///< by message: the transfer that it is a part of
};

class MpiLink : public Link {
public:
  MpiLink(const TesseraMpiApi &api, TesseraMpiLink *link) : api(api), link(link) {}
  Result<std::unique_ptr<Exchange>> start(std::vector<Transfer> transfers) override {
    auto made = std::make_unique<MpiExchange>(api, std::move(transfers));
    TESSERA_RETURN_IF_ERROR(made->start(link));
    return std::unique_ptr<Exchange>(std::move(made));
  }

private:
  const TesseraMpiApi &api;
  TesseraMpiLink *link;
};

class MpiTransport : public Transport {
public:
  MpiTransport(const TesseraMpiApi &api, int rank, int size) : api(api), self(rank), size(size) {}
  std::string_view name() const override { return "mpi"; }
  int rank() const override { return self; }
  int numRanks() const override { return size; }
  Result<std::unique_ptr<Link>> open(const std::vector<int> &members, const MissingCheck &) override {
    auto position = std::find(members.begin(), members.end(), self);
    TesseraMpiLink *link = nullptr;
    int error = api.open(members.front(), static_cast<int>(position - members.begin()), &link);
    if (error)
      return mpiError(api, "cannot split the communicator", error);
    return std::unique_ptr<Link>(std::make_unique<MpiLink>(api, link));
  }
  Status begin() override { return Status::ok(); } // MPI ends all ranks if one fails
  void finish() override { api.finish(); }

private:
  const TesseraMpiApi &api;
  int self, size;
};

} // namespace

Result<std::unique_ptr<Transport>> openMpiTransport() {
  static constexpr const char *fileName = "libtessera-mpi.so";
  // The symbols are global because MPI libraries load components that look for them.
  Result<void *> found = loadPlugin(fileName, "tesseraMpiApi", /*isGlobal=*/true);
  if (!found.isOk()) {
    bool isMissing = found.status().code() == StatusCode::NotFound;
    const char *advice =
        isMissing ? ". In a clone: install MPI (Debian: apt-get install libopenmpi-dev openmpi-bin), then run "
                    "tools/build-tools.sh, or cmake --preset release and the target tessera-mpi. TESSERA_PLUGINS names "
                    "another folder."
                  : ". It needs the MPI library that it was built with (Debian: apt-get install libopenmpi3), that of "
                    "mpirun.";
    return TESSERA_ERROR(NotFound, "this run was started by MPI, but " + found.status().message() + advice +
                                       " Without MPI: start the processes by torchrun, or by a script that sets RANK, "
                                       "WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or run all ranks as threads of one "
                                       "process, without mpirun");
  }
  auto getApi = reinterpret_cast<decltype(&tesseraMpiApi)>(*found);
  const TesseraMpiApi *api = getApi();
  if (!api || api->version != TESSERA_MPI_API_VERSION)
    return TESSERA_ERROR(InvalidArgument, std::string(fileName) + " belongs to another version of Tessera");
  int rank = 0, size = 1;
  char text[512] = "";
  if (api->initialise(&rank, &size, text, sizeof(text)) != 0)
    return TESSERA_ERROR(Unsupported, std::string("MPI: ") + text);
  return std::unique_ptr<Transport>(std::make_unique<MpiTransport>(*api, rank, size));
}

} // namespace tessera
