//===- Report.h - what a rematerialisation keeps and recomputes -*- C++ -*-===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_REMAT_REPORT_H
#define TESSERA_PASSES_DIFFERENTIATE_REMAT_REPORT_H

#include "passes/differentiate/remat/Policy.h"

namespace tessera::remat {

/// A plan as people read it. Bytes are those of one rank: global bytes divided by `parts`.
struct Report {
  std::string policy;
  int64_t parts = 1;
  std::optional<int64_t> budget; ///< bytes of one rank
  Plan plan;

  /// One row per segment, and one for what lies outside of them.
  void printTable(const Boundary &boundary, llvm::raw_ostream &os) const;
  /// The same with the names of the kept values, and the front of all budgets.
  void printJson(const Boundary &boundary, const BudgetSolver &solver, llvm::raw_ostream &os) const;
};

} // namespace tessera::remat

#endif // TESSERA_PASSES_DIFFERENTIATE_REMAT_REPORT_H
