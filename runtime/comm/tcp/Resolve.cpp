//===- Resolve.cpp - the addresses of a host's name ------------------------===//

#include "runtime/comm/tcp/Resolve.h"

#include "runtime/base/Guard.h"

#include <cerrno>
#include <cstring>
#include <future>
#include <thread>

namespace tessera::tcp {
namespace {

struct Answer {
  int error = 0, systemError = 0;
  Addresses addresses;
};

Answer ask(const std::string &host, int port, int flags) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  Answer answer;
  answer.error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  answer.systemError = errno;
  answer.addresses = Addresses(found, [](const addrinfo *each) {
    if (each)
      ::freeaddrinfo(const_cast<addrinfo *>(each));
  });
  return answer;
}

/// A name service may take long and cannot be interrupted, so that it is asked by a thread that may stay behind.
Result<Answer> askElsewhere(const std::string &host, int port, const WaitCheck &check) {
  auto promise = std::make_shared<std::promise<Answer>>();
  std::future<Answer> answer = promise->get_future();
  TESSERA_RETURN_IF_ERROR(guarded([&] {
    std::thread([promise, host, port] { promise->set_value(ask(host, port, 0)); }).detach();
    return Status::ok();
  }));
  while (answer.wait_for(checkInterval) != std::future_status::ready)
    TESSERA_RETURN_IF_ERROR(check());
  return answer.get();
}

} // namespace

Result<Addresses> resolve(const std::string &host, int port, const WaitCheck &check) {
  if (Answer numeric = ask(host, port, AI_NUMERICHOST); numeric.error == 0)
    return numeric.addresses;
  constexpr int maxTries = 5;
  for (int tries = 1;; ++tries) {
    TESSERA_ASSIGN_OR_RETURN(Answer answer, askElsewhere(host, port, check));
    if (answer.error == 0)
      return answer.addresses;
    if (answer.error != EAI_AGAIN || tries == maxTries)
      return TESSERA_ERROR(InvalidArgument, "cannot resolve '" + host + "': " +
                                                (answer.error == EAI_SYSTEM ? std::strerror(answer.systemError)
                                                                            : ::gai_strerror(answer.error)));
    for (int slice = 0; slice < 10; ++slice) {
      TESSERA_RETURN_IF_ERROR(check());
      std::this_thread::sleep_for(checkInterval);
    }
  }
}

} // namespace tessera::tcp
