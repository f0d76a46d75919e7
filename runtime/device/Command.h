//===- Command.h - an instruction, ready to run ----------------------------===//
//
// Before the first step a device makes a command of each instruction: addresses are resolved, library plans and copy
// loops made, kernels looked up. A step then only runs commands.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_COMMAND_H
#define TESSERA_RUNTIME_DEVICE_COMMAND_H

#include "runtime/artifact/Format.h"
#include "runtime/base/Status.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace tessera {

/// By the name of a command.
inline bool isCollective(std::string_view kind) {
  return kind == "all_gather" || kind == "reduce_scatter" || kind == "all_reduce" || kind == "all_to_all" ||
         kind == "permute";
}

/// Where an instruction stands in the loops around it.
struct Iteration {
  std::array<int64_t, artifact::maxRepeatDepth> of{}; ///< by loop, outermost first; 0 where there is none
  size_t depth = 0;                                   ///< loops around it, which the verifier bounds

  Iteration inside(int64_t index) const {
    Iteration inner = *this;
    inner.of[inner.depth++] = index;
    return inner;
  }
  /// Of the innermost loop; 0 outside of one.
  int64_t innermost() const { return depth > 0 ? of[depth - 1] : 0; }
};

class Command {
public:
  virtual ~Command() = default;
  /// Does the work, or gives it to the device's queue of the command's stream.
  virtual Status run(const Iteration &iteration) = 0;
  /// The same, for somebody who times it: calls `mark` right before the work and right after it.
  virtual Status runTimed(const Iteration &iteration, const std::function<void()> &mark) {
    mark();
    Status status = run(iteration);
    mark();
    return status;
  }

  uint32_t number = 0; ///< in the flattened lists of all programs
  int stream = 0;
  std::string_view kind, detail, location;
  int64_t bytes = 0;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_DEVICE_COMMAND_H
