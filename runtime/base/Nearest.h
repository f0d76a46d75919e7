//===- Nearest.h - names like what somebody wrote -------------------*- C++ -*-===//
//
// For messages about names that do not exist: those that were probably meant.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BASE_NEAREST_H
#define TESSERA_RUNTIME_BASE_NEAREST_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera {

/// Letters that must be changed, added or dropped until `wanted` is a part of `name`.
size_t distanceToPart(std::string_view wanted, std::string_view name);

/// At most `count` of the names, those of the smallest distances first, none of which is above `within`.
std::vector<std::string_view> nearestTo(std::string_view wanted, std::vector<std::string_view> names, size_t count,
                                        size_t within = SIZE_MAX);

} // namespace tessera

#endif // TESSERA_RUNTIME_BASE_NEAREST_H
