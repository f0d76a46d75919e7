//===- Schedule.cpp - the schedule phase ---------------------------------------===//

#include "passes/schedule/Passes.h"
