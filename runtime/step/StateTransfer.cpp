//===- StateTransfer.cpp - brings the state of all ranks to rank 0 ---------===//

#include "runtime/step/StateTransfer.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace tessera {

using Json = nlohmann::json;

/// A length, a JSON list of views, and their bytes.
static std::string pack(const RankState &state) {
  Json list = Json::array();
  for (const StateView &view : state)
    if (view.saves)
      list.push_back({{"unit", view.unit}, {"role", toString(view.kind)}, {"begin", view.begin}, {"end", view.end}});
  std::string head = list.dump(), text = std::to_string(head.size()) + "\n" + head;
  for (const StateView &view : state)
    if (view.saves)
      text.append(reinterpret_cast<const char *>(view.data), view.localBytes());
  return text;
}

static Result<RankState> unpack(std::string &text, const RankState &units) {
  size_t newline = text.find('\n'), size = std::strtoull(text.c_str(), nullptr, 10);
  if (newline == std::string::npos || size > text.size() - newline - 1)
    return TESSERA_ERROR(Internal, "a rank sent no state");
  Json list = Json::parse(text.begin() + newline + 1, text.begin() + newline + 1 + size, nullptr, false);
  size_t position = newline + 1 + size;
  RankState state;
  for (const Json &item : list) {
    const StateView *unit = nullptr;
    for (const StateView &known : units)
      if (known.unit == item["unit"] && toString(known.kind) == item["role"])
        unit = &known;
    if (!unit)
      return TESSERA_ERROR(Internal, "a rank sent an unknown unit");
    StateView view = *unit;
    view.begin = item["begin"];
    view.end = item["end"];
    view.saves = true;
    if (view.localBytes() > text.size() - position)
      return TESSERA_ERROR(Internal, "a rank sent too little of unit '" + view.unit + "'");
    view.data = reinterpret_cast<uint8_t *>(text.data()) + position;
    position += view.localBytes();
    state.push_back(std::move(view));
  }
  return state;
}

Result<std::vector<RankState>> collectRankStates(Communicator &communicator, const RankState &mine,
                                                 const RankState &units, std::vector<std::string> &storage) {
  bool isRoot = communicator.rank() == 0;
  TESSERA_ASSIGN_OR_RETURN(storage, communicator.collectBlobs(isRoot ? "" : pack(mine), 0, "state of all ranks"));
  std::vector<RankState> all;
  if (!isRoot)
    return all;
  all.push_back(mine);
  for (size_t rank = 1; rank < storage.size(); ++rank) {
    TESSERA_ASSIGN_OR_RETURN(RankState state, unpack(storage[rank], units));
    all.push_back(std::move(state));
  }
  return all;
}

} // namespace tessera
