//===- InPlace.h - programs without operators in place ----------*- C++ -*-===//
//
// A program may change a tensor in place, and with it every view of the same memory. Here such operators become those
// that make a new tensor; what is read afterwards is renamed, and views are made again.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_INPLACE_H
#define TESSERA_FRONTENDS_PT2_INPLACE_H

#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// Rewrites a program that was checked. Operators in place that cannot be replaced stay as they are, with the reason in
/// Node::refusal.
void replaceInPlace(Program &program);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_INPLACE_H
