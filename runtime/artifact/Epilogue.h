//===- Epilogue.h - what a product does besides multiplying ----------------===//
//
// What each epilogue of artifact.fbs reads and writes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_EPILOGUE_H
#define TESSERA_RUNTIME_ARTIFACT_EPILOGUE_H

#include "runtime/artifact/artifact_generated.h"

namespace tessera {

inline bool takesBias(artifact::Epilogue epilogue) {
  using artifact::Epilogue;
  return epilogue == Epilogue::Bias || epilogue == Epilogue::GeluBias || epilogue == Epilogue::GeluAuxBias;
}
inline bool takesPreActivation(artifact::Epilogue epilogue) {
  using artifact::Epilogue;
  return epilogue == Epilogue::GeluGrad || epilogue == Epilogue::GeluGradBiasGrad;
}
inline bool givesPreActivation(artifact::Epilogue epilogue) {
  using artifact::Epilogue;
  return epilogue == Epilogue::GeluAux || epilogue == Epilogue::GeluAuxBias;
}
/// The bias gradient is a sum of an operand over what is contracted; the product is as without an epilogue.
inline bool sumsOperand(artifact::Epilogue epilogue) {
  using artifact::Epilogue;
  return epilogue == Epilogue::BiasGradA || epilogue == Epilogue::BiasGradB;
}
inline bool givesBiasGrad(artifact::Epilogue epilogue) {
  return epilogue == artifact::Epilogue::GeluGradBiasGrad || sumsOperand(epilogue);
}
inline bool appliesGelu(artifact::Epilogue epilogue) {
  using artifact::Epilogue;
  return epilogue >= Epilogue::Gelu && epilogue <= Epilogue::GeluAuxBias;
}

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_EPILOGUE_H
