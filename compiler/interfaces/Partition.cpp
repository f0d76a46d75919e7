#include "compiler/interfaces/Partition.h"

#include "compiler/interfaces/Partition.cpp.inc"
