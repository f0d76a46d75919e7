//===- Lower.cpp - the lower phase ---------------------------------------===//

#include "passes/lower/Passes.h"
