//===- TcpTransport.cpp - messages by sockets ------------------------------===//

#include "runtime/comm/tcp/TcpTransport.h"

#include "runtime/comm/tcp/Socket.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <random>

namespace tessera {
namespace {

using tcp::Deadline;
using tcp::Socket;

/// What a process says first on every connection. Numbers are in the byte order of the machine: all ranks run the same
/// native code.
struct Hello {
  char magic[8] = {'t', 'e', 's', 's', 'e', 'r', 'a', '1'};
  uint64_t token = 0; ///< of the run; 0 when a rank reports to rank 0
  int32_t rank = 0, numRanks = 0;
  int32_t link = 0; ///< number of the link, in the order of opening; of a report: the port where the rank listens
  int32_t reserved = 0;
};

/// What connects and then says nothing must not hold up the others.
Status receiveHello(const Socket &socket, Hello &hello, Deadline end) {
  return tcp::receiveAll(socket, &hello, sizeof(hello),
                         std::min(end, std::chrono::steady_clock::now() + std::chrono::seconds(5)));
}

/// Where a rank listens.
struct Place {
  char host[64] = "";
  int32_t port = 0;
};

bool isHello(const Hello &hello, int numRanks) {
  return std::memcmp(hello.magic, Hello().magic, sizeof(hello.magic)) == 0 && hello.numRanks == numRanks &&
         hello.rank >= 0 && hello.rank < numRanks;
}

class TcpExchange : public Exchange {
public:
  TcpExchange(const std::vector<Socket> &sockets, std::vector<Transfer> asked)
      : Exchange(std::move(asked)), sockets(sockets), moved(transfers.size(), 0) {}

  Status progress() override {
    // Of the messages to or from one peer only the first that is not done may move.
    std::vector<char> isTaken(2 * sockets.size(), 0);
    for (size_t index = 0; index < transfers.size(); ++index) {
      Transfer &transfer = transfers[index];
      char &taken = isTaken[2 * transfer.peer + (transfer.isSend ? 1 : 0)];
      if (transfer.isDone || taken)
        continue;
      while (moved[index] < transfer.bytes) {
        std::byte *place = transfer.data + moved[index];
        size_t left = transfer.bytes - moved[index];
        const Socket &socket = sockets[transfer.peer];
        TESSERA_ASSIGN_OR_RETURN(size_t step, transfer.isSend ? tcp::trySend(socket, place, left)
                                                              : tcp::tryReceive(socket, place, left));
        if (step == 0)
          break;
        moved[index] += step;
      }
      transfer.isDone = moved[index] == transfer.bytes;
      taken = transfer.isDone ? 0 : 1;
    }
    return Status::ok();
  }

private:
  const std::vector<Socket> &sockets;
  std::vector<size_t> moved;
};

class TcpLink : public Link {
public:
  explicit TcpLink(std::vector<Socket> sockets) : sockets(std::move(sockets)) {}
  Result<std::unique_ptr<Exchange>> start(std::vector<Transfer> transfers) override {
    return std::unique_ptr<Exchange>(std::make_unique<TcpExchange>(sockets, std::move(transfers)));
  }

private:
  std::vector<Socket> sockets; ///< by position; none for this rank
};

class TcpTransport : public Transport {
public:
  explicit TcpTransport(const TcpOptions &options) : options(options), places(options.numRanks) {}

  Status meet();
  std::string_view name() const override { return "tcp"; }
  int rank() const override { return options.rank; }
  int numRanks() const override { return options.numRanks; }
  Result<std::unique_ptr<Link>> open(const std::vector<int> &members) override;
  void finish() override {}

private:
  Deadline deadline() const {
    return std::chrono::steady_clock::now() +
           std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(options.connectTimeoutSeconds));
  }
  Status gatherPlaces();
  Status report();
  Result<Socket> acceptLink(int32_t link, int peer, Deadline deadline);

  const TcpOptions options;
  Socket listener;
  uint64_t token = 0;
  std::vector<Place> places; ///< by rank
  int32_t numLinks = 0;
  std::map<std::pair<int32_t, int>, Socket> early; ///< by link and rank: connections for links not yet opened here
};

Status TcpTransport::meet() {
  std::string where = options.host + ":" + std::to_string(options.port);
  if (options.rank == 0)
    return gatherPlaces().withContext("rank 0 at " + where);
  TESSERA_ASSIGN_OR_RETURN(listener, tcp::listenOn(0));
  return report().withContext("rank " + std::to_string(options.rank) + " cannot meet rank 0 at " + where);
}

/// Rank 0: takes everyone's report, then tells all where the others are.
Status TcpTransport::gatherPlaces() {
  TESSERA_ASSIGN_OR_RETURN(listener, tcp::listenOn(options.port));
  Deadline end = deadline();
  std::vector<Socket> reporters(options.numRanks);
  for (int missing = options.numRanks - 1; missing > 0;) {
    Result<Socket> accepted = tcp::acceptFrom(listener, end);
    if (!accepted.isOk()) {
      std::string ranks;
      for (int rank = 1; rank < options.numRanks; ++rank)
        if (reporters[rank].descriptor() < 0)
          ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
      return accepted.status().withContext("waits for rank " + ranks);
    }
    Hello hello;
    if (!receiveHello(*accepted, hello, end).isOk() || !isHello(hello, options.numRanks))
      continue; // something else knocked
    if (hello.rank == 0 || reporters[hello.rank].descriptor() >= 0)
      return TESSERA_ERROR(InvalidArgument, "two processes say that they are rank " + std::to_string(hello.rank));
    Place &place = places[hello.rank];
    std::strncpy(place.host, tcp::peerAddress(*accepted).c_str(), sizeof(place.host) - 1);
    place.port = hello.link;
    reporters[hello.rank] = std::move(*accepted);
    --missing;
  }
  std::strncpy(places[0].host, options.host.c_str(), sizeof(places[0].host) - 1);
  places[0].port = options.port;
  std::random_device random;
  token = (uint64_t{random()} << 32) | random() | 1;
  for (int rank = 1; rank < options.numRanks; ++rank) {
    TESSERA_RETURN_IF_ERROR(tcp::sendAll(reporters[rank], &token, sizeof(token), end));
    TESSERA_RETURN_IF_ERROR(tcp::sendAll(reporters[rank], places.data(), places.size() * sizeof(Place), end));
  }
  return Status::ok();
}

Status TcpTransport::report() {
  Deadline end = deadline();
  TESSERA_ASSIGN_OR_RETURN(Socket socket, tcp::connectTo(options.host, options.port, end));
  Hello hello;
  hello.rank = options.rank;
  hello.numRanks = options.numRanks;
  hello.link = tcp::portOf(listener);
  TESSERA_RETURN_IF_ERROR(tcp::sendAll(socket, &hello, sizeof(hello), end));
  TESSERA_RETURN_IF_ERROR(tcp::receiveAll(socket, &token, sizeof(token), end));
  return tcp::receiveAll(socket, places.data(), places.size() * sizeof(Place), end);
}

Result<Socket> TcpTransport::acceptLink(int32_t link, int peer, Deadline end) {
  while (true) {
    auto known = early.find({link, peer});
    if (known != early.end()) {
      Socket socket = std::move(known->second);
      early.erase(known);
      return socket;
    }
    Result<Socket> accepted = tcp::acceptFrom(listener, end);
    if (!accepted.isOk())
      return accepted.status().withContext("rank " + std::to_string(peer) + " does not connect to rank " +
                                           std::to_string(options.rank));
    Hello hello;
    if (receiveHello(*accepted, hello, end).isOk() && isHello(hello, options.numRanks) && hello.token == token)
      early[{hello.link, hello.rank}] = std::move(*accepted);
  }
}

Result<std::unique_ptr<Link>> TcpTransport::open(const std::vector<int> &members) {
  int32_t number = numLinks++;
  Deadline end = deadline();
  std::vector<Socket> sockets(members.size());
  // Of two members the one of higher rank connects: never both wait for each other.
  for (size_t position = 0; position < members.size(); ++position) {
    int peer = members[position];
    if (peer >= options.rank)
      continue;
    Result<Socket> connected = tcp::connectTo(places[peer].host, places[peer].port, end);
    if (!connected.isOk())
      return connected.status().withContext("rank " + std::to_string(options.rank) + " does not reach rank " +
                                            std::to_string(peer));
    Hello hello;
    hello.token = token;
    hello.rank = options.rank;
    hello.numRanks = options.numRanks;
    hello.link = number;
    TESSERA_RETURN_IF_ERROR(tcp::sendAll(*connected, &hello, sizeof(hello), end));
    sockets[position] = std::move(*connected);
  }
  for (size_t position = 0; position < members.size(); ++position)
    if (members[position] > options.rank) {
      TESSERA_ASSIGN_OR_RETURN(sockets[position], acceptLink(number, members[position], end));
    }
  return std::unique_ptr<Link>(std::make_unique<TcpLink>(std::move(sockets)));
}

} // namespace

Result<std::unique_ptr<Transport>> openTcpTransport(const TcpOptions &options) {
  if (options.rank < 0 || options.rank >= options.numRanks)
    return TESSERA_ERROR(InvalidArgument, "rank " + std::to_string(options.rank) + " of " +
                                              std::to_string(options.numRanks) + " ranks does not exist");
  auto transport = std::make_unique<TcpTransport>(options);
  TESSERA_RETURN_IF_ERROR(transport->meet());
  return std::unique_ptr<Transport>(std::move(transport));
}

} // namespace tessera
