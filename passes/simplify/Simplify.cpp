//===- Simplify.cpp - the simplify phase ---------------------------------------===//

#include "passes/simplify/Passes.h"
