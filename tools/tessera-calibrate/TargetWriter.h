//===- TargetWriter.h - measurements as a target file ---------------------------------===//

#ifndef TESSERA_TOOLS_CALIBRATE_TARGETWRITER_H
#define TESSERA_TOOLS_CALIBRATE_TARGETWRITER_H

#include "tools/tessera-calibrate/Measure.h"

#include <string>

namespace tessera::calibrate {

/// "AMD EPYC 9B45", as the kernel names it.
std::string processorName();

/// The text of a target file (docs/cost-model.md).
std::string targetText(const std::string &name, const Options &options, const Measurements &measured);

} // namespace tessera::calibrate

#endif // TESSERA_TOOLS_CALIBRATE_TARGETWRITER_H
