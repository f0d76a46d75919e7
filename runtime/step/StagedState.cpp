//===- StagedState.cpp - a rank's state where the host can reach it ---------===//

#include "runtime/step/StagedState.h"

namespace tessera {

Result<StagedState> StagedState::create(Session &session, const RankState &layout, bool reads) {
  StagedState made;
  made.session = &session;
  made.state = layout;
  made.copies.resize(layout.size());
  for (size_t index = 0; index < layout.size(); ++index) {
    StateView &view = made.state[index];
    if (view.data)
      continue;
    made.copies[index].reset(new uint8_t[std::max<size_t>(view.localBytes(), 1)]());
    view.data = made.copies[index].get();
    if (reads)
      TESSERA_RETURN_IF_ERROR(session.readState(index, view.data));
  }
  return made;
}

Status StagedState::write() const {
  for (size_t index = 0; index < copies.size(); ++index)
    if (copies[index])
      TESSERA_RETURN_IF_ERROR(session->writeState(index, copies[index].get()));
  return session->deriveState();
}

std::vector<RankState> viewsOf(const std::vector<StagedState> &staged) {
  std::vector<RankState> views;
  views.reserve(staged.size());
  for (const StagedState &state : staged)
    views.push_back(state.views());
  return views;
}

} // namespace tessera
