//===- list-operators.cpp - pt2-operators: the importer's table, for the page of operators -----===//
//
// A line for each operator: its name, "supported" or "refused", and why, separated by tabs.
//
//===----------------------------------------------------------------------===//

#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Out.h"

#include "llvm/Support/raw_ostream.h"

using namespace tessera::pt2;

int main() {
  for (const OpRow *row : allOps())
    llvm::outs() << row->target << "\tsupported\t\n";
  for (const std::string &name : outOperators())
    llvm::outs() << name << "\tsupported\t\n";
  for (const RefusedOp &op : refusedOps())
    llvm::outs() << op.target << "\trefused\t" << op.reason << "\n";
  return 0;
}
