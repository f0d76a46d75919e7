#include "compiler/interfaces/Interfaces.h"

#include "compiler/interfaces/OptimizerUpdate.h"

#include "compiler/interfaces/Differentiable.cpp.inc"
#include "compiler/interfaces/IndexMapping.cpp.inc"
#include "compiler/interfaces/OptimizerUpdate.cpp.inc"
#include "compiler/interfaces/ShardingRule.cpp.inc"
