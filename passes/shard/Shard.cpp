//===- Shard.cpp - the shard phase ---------------------------------------===//

#include "passes/shard/Passes.h"
