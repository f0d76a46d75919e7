//===- StagedState.h - a rank's state where the host can reach it -----------===//

#ifndef TESSERA_RUNTIME_STEP_STAGEDSTATE_H
#define TESSERA_RUNTIME_STEP_STAGEDSTATE_H

#include "runtime/state/StateView.h"
#include "runtime/step/Session.h"

#include <memory>
#include <vector>

namespace tessera {

/// Views of the state of one rank: its memory itself where the host sees it, else host memory that is copied from and
/// to the device. Not while a step runs.
class StagedState {
public:
  /// `layout`: of the session's state, addresses where it has any. Without `reads` the copies are zero.
  static Result<StagedState> create(Session &session, const RankState &layout, bool reads);
  const RankState &views() const { return state; }
  /// Brings the copies back to the device, and what is derived from the state with them.
  Status write() const;

private:
  Session *session = nullptr;
  RankState state;
  std::vector<std::unique_ptr<uint8_t[]>> copies; ///< by index of the view; null: no copy
};

/// The views of several ranks.
std::vector<RankState> viewsOf(const std::vector<StagedState> &staged);

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_STAGEDSTATE_H
