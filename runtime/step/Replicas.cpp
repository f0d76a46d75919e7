//===- Replicas.cpp - ranks that hold equal copies, compared ---------------===//

#include "runtime/step/Replicas.h"

#include <cstring>
#include <map>
#include <tuple>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

Result<Replicas> Replicas::create(const Artifact &artifact) {
  Replicas made;
  int numRanks = static_cast<int>(artifact.numRanks());
  using Key = std::tuple<StateKind, std::string, int64_t, int64_t>; // role, parameter, range of its unit
  std::map<Key, std::vector<int>> holders;
  auto forRanges = [&](int rank, auto body) {
    const RankState &state = made.layouts[rank];
    for (size_t view = 0; view < state.size(); ++view)
      for (size_t segment = 0; segment < state[view].segments.size(); ++segment)
        if (auto [begin, end] = overlap(state[view], state[view].segments[segment]); begin < end)
          body(Key(state[view].kind, state[view].segments[segment].name, begin, end), view, segment);
  };
  for (int rank = 0; rank < numRanks; ++rank) {
    TESSERA_ASSIGN_OR_RETURN(RankState layout, makeRankState(artifact, rank, [](size_t) { return nullptr; }));
    made.layouts.push_back(std::move(layout));
    forRanges(rank, [&](const Key &key, size_t, size_t) { holders[key].push_back(rank); });
  }
  made.copies.resize(numRanks);
  std::map<Key, size_t> indices; // of the original
  for (int rank = 0; rank < numRanks; ++rank)
    forRanges(rank, [&](const Key &key, size_t view, size_t segment) {
      const std::vector<int> &ranks = holders[key];
      if (ranks.size() < 2)
        return;
      size_t own = made.copies[rank].size();
      size_t index = indices.emplace(key, own).first->second; // the lowest rank comes first
      made.copies[rank].push_back({view, segment, std::get<2>(key), std::get<3>(key), ranks.front(), index});
      ++made.numCopies;
    });
  return made;
}

Status Replicas::compare(int64_t step, const std::vector<RankState> &states, int firstRank,
                         Communicator &communicator) const {
  std::string mine;
  for (size_t index = 0; index < states.size(); ++index)
    for (const Copy &copy : copies[firstRank + index]) {
      const StateView &view = states[index][copy.view];
      size_t width = elementBytes(view.dtype);
      XXH64_hash_t hash = XXH3_64bits(view.data + (copy.begin - view.begin) * width, (copy.end - copy.begin) * width);
      mine.append(reinterpret_cast<const char *>(&hash), sizeof(hash));
    }
  // A process has one rank or all of them.
  std::string all = mine;
  if (states.size() != copies.size()) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> parts, communicator.gatherBlobs(mine, "comparison of replicas"));
    all.clear();
    for (const std::string &part : parts)
      all += part;
  }
  if (all.size() != numCopies * sizeof(XXH64_hash_t))
    return TESSERA_ERROR(Internal, "the ranks' hashes of replicas do not fit the artifact");
  std::vector<size_t> first(copies.size() + 1, 0);
  for (size_t rank = 0; rank < copies.size(); ++rank)
    first[rank + 1] = first[rank] + copies[rank].size();
  auto hashAt = [&](size_t index) {
    XXH64_hash_t hash = 0;
    std::memcpy(&hash, all.data() + index * sizeof(hash), sizeof(hash));
    return hash;
  };
  for (size_t rank = 0; rank < copies.size(); ++rank)
    for (size_t index = 0; index < copies[rank].size(); ++index) {
      const Copy &copy = copies[rank][index];
      if (hashAt(first[rank] + index) == hashAt(first[copy.original] + copy.index))
        continue;
      const StateView &view = layouts[rank][copy.view];
      return TESSERA_ERROR(DataLoss, "rank " + std::to_string(rank) + " and rank " + std::to_string(copy.original) +
                                         " hold different values of '" + view.segments[copy.segment].name + "' (" +
                                         toString(view.kind) + ") after step " + std::to_string(step) +
                                         ", but must hold the same: one of them has damaged memory, computes wrongly, "
                                         "or in another order than the other; "
                                         "resume from an earlier checkpoint");
    }
  return Status::ok();
}

} // namespace tessera
