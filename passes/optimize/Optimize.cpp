//===- Optimize.cpp - the optimize phase ---------------------------------------===//

#include "passes/optimize/Passes.h"
