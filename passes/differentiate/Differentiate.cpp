//===- Differentiate.cpp - the differentiate phase ---------------------------------------===//

#include "passes/differentiate/Passes.h"
