//===- Command.h - an instruction, ready to run ----------------------------===//
//
// Before the first step a device makes a command of each instruction: addresses are resolved, library plans and copy
// loops made, kernels looked up. A step then only runs commands.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_COMMAND_H
#define TESSERA_RUNTIME_DEVICE_COMMAND_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace tessera {

/// By the name of a command.
inline bool isCollective(std::string_view kind) {
  return kind == "all_gather" || kind == "reduce_scatter" || kind == "all_reduce" || kind == "all_to_all" ||
         kind == "permute";
}

class Command {
public:
  virtual ~Command() = default;
  /// Does the work, or gives it to the device's queue of the command's stream.
  virtual Status run(int64_t iteration) = 0;
  /// The same, for somebody who times it: calls `mark` right before the work and right after it.
  virtual Status runTimed(int64_t iteration, const std::function<void()> &mark) {
    mark();
    Status status = run(iteration);
    mark();
    return status;
  }

  uint32_t number = 0; ///< in the flattened list
  int stream = 0;
  std::string_view kind, detail, location;
  int64_t bytes = 0;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_DEVICE_COMMAND_H
