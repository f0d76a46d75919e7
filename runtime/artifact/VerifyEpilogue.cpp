//===- VerifyEpilogue.cpp - checks what a product does besides multiplying -===//

#include "runtime/artifact/Epilogue.h"
#include "runtime/artifact/VerifyContext.h"

namespace tessera {

using artifact::Epilogue;

Status verifyEpilogue(const VerifyContext &context, const artifact::Gemm &gemm, const std::string &what,
                      LoopCounts loops) {
  auto bad = [&](const std::string &why) { return TESSERA_ERROR(DataLoss, what + ": " + why); };
  const Epilogue epilogue = gemm.epilogue();
  if (epilogue < Epilogue::MIN || epilogue > Epilogue::MAX)
    return bad("unknown epilogue");
  const std::string name = artifact::EnumNameEpilogue(epilogue);
  const bool takes = takesBias(epilogue) || takesPreActivation(epilogue),
             gives = givesPreActivation(epilogue) || givesBiasGrad(epilogue);
  if (takes != (gemm.epilogue_input() >= 0) || gives != (gemm.epilogue_output() >= 0))
    return bad("epilogue " + name + " needs " + (takes ? "an" : "no") + " input and " + (gives ? "an" : "no") +
               " output");
  if (epilogue == Epilogue::None)
    return Status::ok();
  const TensorView c = context.view(gemm.c());
  if (c.shape.size() != 2)
    return bad("epilogue " + name + " of a product of " + std::to_string(c.shape.size()) + " dimensions");
  if (!sumsOperand(epilogue) && (!c.isContiguous() || gemm.beta() != 0))
    return bad("epilogue " + name + " needs a contiguous result and a beta of 0");
  auto check = [&](int32_t index, bool isMatrix, const char *operand) -> Status {
    TESSERA_RETURN_IF_ERROR(context.useBuffer(static_cast<uint32_t>(index), what + ", operand " + operand, loops));
    const TensorView view = context.view(static_cast<uint32_t>(index));
    const std::vector<int64_t> vector = {c.shape[epilogue == Epilogue::BiasGradA ? 0 : 1]};
    const std::vector<int64_t> &shape = isMatrix ? c.shape : vector;
    if (view.dtype != c.dtype || view.shape != shape || !view.isContiguous())
      return bad(std::string("operand ") + operand + " of type " + artifact::EnumNameDataType(view.dtype) +
                 " and shape " + toString(view.shape) + (view.isContiguous() ? "" : ", with gaps") + ", expected " +
                 artifact::EnumNameDataType(c.dtype) + " and " + toString(shape));
    return Status::ok();
  };
  if (takes)
    TESSERA_RETURN_IF_ERROR(check(gemm.epilogue_input(), takesPreActivation(epilogue), "epilogue_input"));
  if (gives)
    TESSERA_RETURN_IF_ERROR(check(gemm.epilogue_output(), givesPreActivation(epilogue), "epilogue_output"));
  return Status::ok();
}

} // namespace tessera
