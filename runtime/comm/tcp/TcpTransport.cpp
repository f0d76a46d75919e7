//===- TcpTransport.cpp - messages by sockets ------------------------------===//

#include "runtime/comm/tcp/TcpTransport.h"

#include "runtime/base/Log.h"
#include "runtime/comm/tcp/Meeting.h"
#include "runtime/comm/tcp/Reception.h"
#include "runtime/comm/tcp/Socket.h"
#include "runtime/comm/tcp/Waiting.h"

#include <cstdint>
#include <map>
#include <optional>
#include <thread>

namespace tessera {
namespace {

using tcp::Socket;

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
  explicit TcpTransport(const TcpOptions &options) : options(options) {}

  Status meet();
  std::string_view name() const override { return "tcp"; }
  int rank() const override { return options.rank; }
  int numRanks() const override { return options.numRanks; }
  Result<std::unique_ptr<Link>> open(const std::vector<int> &members, const MissingCheck &check) override;
  Status begin() override;
  void finish() override {}

private:
  Status connect(const std::vector<int> &members, std::vector<Socket> &sockets, const tcp::WaitCheck &check);
  Status accept(const std::vector<int> &members, std::vector<Socket> &sockets, const tcp::WaitCheck &check);
  void admit(tcp::Guest guest);

  const TcpOptions options;
  std::optional<tcp::Reception> reception;
  std::optional<tcp::Meeting> meeting; ///< until all ranks have begun
  uint64_t token = 0;                  ///< of the run
  std::vector<tcp::Place> places;      ///< by rank
  int32_t numLinks = 0;
  std::map<std::pair<int32_t, int>, Socket> early; ///< by link and rank: connections that have come
};

Status TcpTransport::meet() {
  TESSERA_ASSIGN_OR_RETURN(Socket listener, tcp::listenOn(options.rank == 0 ? options.port : 0));
  reception.emplace(std::move(listener));
  meeting.emplace(options, *reception);
  TESSERA_RETURN_IF_ERROR(meeting->meet());
  token = meeting->token();
  places = meeting->places();
  return Status::ok();
}

Status TcpTransport::begin() {
  TESSERA_RETURN_IF_ERROR(meeting->begin());
  meeting.reset();
  return Status::ok();
}

/// Of two members the one of higher rank connects: never both wait for each other.
Status TcpTransport::connect(const std::vector<int> &members, std::vector<Socket> &sockets,
                             const tcp::WaitCheck &check) {
  for (size_t position = 0; position < members.size(); ++position) {
    int peer = members[position];
    if (peer >= options.rank)
      continue;
    Socket socket;
    for (std::string reason; !socket.isOpen();) {
      TESSERA_ASSIGN_OR_RETURN(socket, tcp::connectOnce(places[peer].host, places[peer].port, check, reason));
      if (socket.isOpen())
        break;
      TESSERA_RETURN_IF_ERROR(check().withContext(reason));
      std::this_thread::sleep_for(tcp::checkInterval);
    }
    tcp::Hello hello;
    hello.token = token;
    hello.rank = options.rank;
    hello.numRanks = options.numRanks;
    hello.link = numLinks;
    TESSERA_RETURN_IF_ERROR(tcp::sendAll(socket, &hello, sizeof(hello), check));
    sockets[position] = std::move(socket);
  }
  return Status::ok();
}

void TcpTransport::admit(tcp::Guest guest) {
  const tcp::Hello &hello = guest.hello;
  if (hello.token == token && hello.rank >= 0 && hello.rank < options.numRanks) {
    early[{hello.link, hello.rank}] = std::move(guest.socket);
  } else if (hello.token == 0) {
    tcp::Note note = tcp::Note::make(tcp::Note::End, "all ranks of the run at " + options.host + ":" +
                                                         std::to_string(options.port) + " have already come");
    static_cast<void>(tcp::trySend(guest.socket, &note, sizeof(note)));
  } else {
    log::debug("drops a connection of {}: it is of another run", tcp::peerAddress(guest.socket));
  }
}

Status TcpTransport::accept(const std::vector<int> &members, std::vector<Socket> &sockets,
                            const tcp::WaitCheck &check) {
  for (size_t position = 0; position < members.size(); ++position) {
    if (members[position] <= options.rank)
      continue;
    while (true) {
      if (auto come = early.find({numLinks, members[position]}); come != early.end()) {
        sockets[position] = std::move(come->second);
        early.erase(come);
        break;
      }
      TESSERA_RETURN_IF_ERROR(check());
      TESSERA_ASSIGN_OR_RETURN(std::vector<tcp::Guest> guests, reception->receive());
      for (tcp::Guest &guest : guests)
        admit(std::move(guest));
    }
  }
  return Status::ok();
}

Result<std::unique_ptr<Link>> TcpTransport::open(const std::vector<int> &members, const MissingCheck &checkMissing) {
  std::vector<Socket> sockets(members.size());
  tcp::Waiting waiting(options.startTimeoutSeconds);
  auto check = [&]() -> Status {
    std::vector<int> missing;
    for (size_t position = 0; position < members.size(); ++position)
      if (members[position] != options.rank && !sockets[position].isOpen())
        missing.push_back(members[position]);
    if (!meeting)
      return checkMissing(missing);
    TESSERA_RETURN_IF_ERROR(meeting->check());
    std::string ranks = "rank " + tcp::listRanks(missing);
    if (waiting.isOver())
      return TESSERA_ERROR(Aborted, "rank " + std::to_string(options.rank) + " has no connection with " + ranks +
                                        " after " + waiting.limit());
    waiting.tell([&] { return "waits for a connection with " + ranks; });
    return Status::ok();
  };
  Status opened = connect(members, sockets, check);
  if (opened.isOk())
    opened = accept(members, sockets, check);
  ++numLinks;
  if (!opened.isOk())
    return meeting ? meeting->end(opened) : opened;
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
