//===- Peers.cpp - processes that write something together ------------------===//

#include "runtime/state/Peers.h"

namespace tessera {

Result<std::vector<std::string>> agree(const Peers &peers, const Status &status, const std::string &text) {
  if (!peers.gather) {
    TESSERA_RETURN_IF_ERROR(status);
    return std::vector<std::string>{text};
  }
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> texts,
                           peers.gather(status.isOk() ? "+" + text : "-" + status.message()));
  TESSERA_RETURN_IF_ERROR(status);
  for (size_t process = 0; process < texts.size(); ++process) {
    if (!texts[process].starts_with("+"))
      return TESSERA_ERROR(Aborted, "rank " + std::to_string(process) + ": " +
                                        (texts[process].empty() ? "" : texts[process].substr(1)));
    texts[process].erase(0, 1);
  }
  return texts;
}

} // namespace tessera
