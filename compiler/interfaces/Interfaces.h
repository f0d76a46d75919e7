//===- Interfaces.h - op interfaces of the compiler -------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_INTERFACES_INTERFACES_H
#define TESSERA_COMPILER_INTERFACES_INTERFACES_H

#include "compiler/interfaces/IndexMapping.h"
#include "compiler/interfaces/ShardingRule.h"

#include "compiler/interfaces/Differentiable.h.inc"
#include "compiler/interfaces/ShardingRule.h.inc"

#endif // TESSERA_COMPILER_INTERFACES_INTERFACES_H
