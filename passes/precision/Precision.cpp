//===- Precision.cpp - the precision phase ---------------------------------------===//

#include "passes/precision/Passes.h"
