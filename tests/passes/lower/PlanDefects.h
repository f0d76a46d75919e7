//===- PlanDefects.h - ways to break a memory plan --------------*- C++ -*-===//
//
// What is changed is chosen such that the plan is wrong afterwards: that is decided from what instructions access, not
// by the proof that is tested.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TESTS_PASSES_LOWER_PLANDEFECTS_H
#define TESSERA_TESTS_PASSES_LOWER_PLANDEFECTS_H

#include "compiler/dialect/exec/Exec.h"

#include <functional>
#include <vector>

namespace tessera {

struct PlanDefect {
  const char *name;
  /// Changes a program in one place; false if there is no candidate of this number. At most 24 are given, spread over
  /// all that there are.
  std::function<bool(exec::ProgramOp, size_t)> apply;
};

std::vector<PlanDefect> planDefects();

} // namespace tessera

#endif // TESSERA_TESTS_PASSES_LOWER_PLANDEFECTS_H
