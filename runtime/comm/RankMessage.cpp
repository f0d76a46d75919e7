//===- RankMessage.cpp - errors say of which rank they are -----------------===//

#include "runtime/comm/RankMessage.h"

#include <charconv>
#include <optional>

namespace tessera {

/// The rank that a message begins with, if any.
static std::optional<int> leadingRank(std::string_view message) {
  constexpr std::string_view word = "rank ";
  int rank = 0;
  if (!message.starts_with(word) ||
      std::from_chars(message.data() + word.size(), message.data() + message.size(), rank).ec != std::errc())
    return std::nullopt;
  return rank;
}

Status toldByRank(const Status &error, int rank) {
  bool isNamed = leadingRank(error.message()) || error.message().starts_with("stalled: rank");
  return isNamed ? error : error.withContext("rank " + std::to_string(rank));
}

Status seenByRank(const Status &error, int rank) {
  return leadingRank(error.message()) == rank ? error : error.withContext("rank " + std::to_string(rank));
}

} // namespace tessera
