//===- VerifyScales.cpp - checks the scales of a product of 8-bit floats -----===//
//
// A library reads a scale that lies elsewhere without a word, so that nothing but the documented layout passes.
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Scales.h"
#include "runtime/artifact/VerifyContext.h"

namespace tessera {

using artifact::DataType;
using artifact::ScaleMode;

/// Whether a library multiplies operands of these modes.
static bool isModePair(ScaleMode a, ScaleMode b) {
  if (a == b)
    return a != ScaleMode::None && a != ScaleMode::Block128x128;
  return (a == ScaleMode::Block128 && b == ScaleMode::Block128x128) ||
         (a == ScaleMode::Block128x128 && b == ScaleMode::Block128);
}

/// Whether a buffer begins at a multiple of `scaledMultiple` bytes of its arena, on every rank and in every iteration.
static bool beginsAtMultiple(const artifact::Buffer &buffer) {
  if (buffer.offset() % scaledMultiple != 0 || buffer.rank_stride() % scaledMultiple != 0)
    return false;
  for (uint32_t depth = 0; depth < sizeOf(buffer.iteration_strides()); ++depth)
    if (buffer.iteration_strides()->Get(depth) % scaledMultiple != 0)
      return false;
  return true;
}

Status verifyScales(const VerifyContext &context, const artifact::Gemm &gemm, const std::string &what,
                    LoopCounts loops) {
  const TensorView a = context.view(gemm.a()), b = context.view(gemm.b()), c = context.view(gemm.c());
  const ScaleMode aMode = gemm.a_scale_mode(), bMode = gemm.b_scale_mode();
  if (!isKnown(aMode) || !isKnown(bMode))
    return bad(what, "unknown mode of scales");
  if (!isFloat8(a.dtype) && !isFloat8(b.dtype)) {
    if (gemm.a_scales() >= 0 || gemm.b_scales() >= 0 || aMode != ScaleMode::None || bMode != ScaleMode::None ||
        gemm.fast_accumulation())
      return bad(what, "scales or fast accumulation of a product that is not of 8-bit floats");
    return Status::ok();
  }
  if (!isFloat8(a.dtype) || !isFloat8(b.dtype) || (a.dtype == DataType::F8E5M2 && b.dtype == DataType::F8E5M2))
    return bad(what, std::string("product of ") + artifact::EnumNameDataType(a.dtype) + " and " +
                         artifact::EnumNameDataType(b.dtype));
  if (c.shape.size() != 2 || gemm.epilogue() != artifact::Epilogue::None)
    return bad(what, "product of 8-bit floats with a batch or an epilogue");
  const int64_t m = c.shape[0], n = c.shape[1], k = a.shape[1];
  for (int64_t size : {m, n, k})
    if (size % scaledMultiple != 0)
      return bad(what, "product of 8-bit floats of " + toString(a.shape) + " and " + toString(b.shape) +
                           ": sizes must be multiples of " + std::to_string(scaledMultiple));
  if (a.strides[1] != 1 || b.strides[0] != 1 || a.strides[0] % scaledMultiple != 0 ||
      b.strides[1] % scaledMultiple != 0)
    return bad(what, "operands of 8-bit floats need stride 1 along what is contracted, and rows at multiples of " +
                         std::to_string(scaledMultiple) + " bytes");
  for (uint32_t index : {gemm.a(), gemm.b()})
    if (!beginsAtMultiple(*context.package.buffers()->Get(index)))
      return bad(what,
                 "operands of 8-bit floats must begin at multiples of " + std::to_string(scaledMultiple) + " bytes");
  auto check = [&](int32_t index, ScaleMode mode, int64_t rows, const char *name) -> Status {
    const std::string operand = std::string("operand ") + name;
    if (index < 0 || mode == ScaleMode::None)
      return bad(what, operand + " is missing, or the mode of its scales");
    TESSERA_RETURN_IF_ERROR(context.useBuffer(static_cast<uint32_t>(index), what + ", " + operand, loops));
    const int64_t block = mode == ScaleMode::Block32                                       ? 32
                          : mode == ScaleMode::Block128 || mode == ScaleMode::Block128x128 ? 128
                                                                                           : 1;
    if (k % block != 0 || (mode == ScaleMode::Block128 && rows % 4 != 0))
      return bad(what, operand + ": no scales of mode " + artifact::EnumNameScaleMode(mode) + " for " +
                           std::to_string(rows) + " rows of " + std::to_string(k));
    const TensorView view = context.view(static_cast<uint32_t>(index));
    const ScalesShape expected = scalesShape(mode, rows, k);
    if (view.dtype != expected.dtype || view.shape != expected.shape || !view.isContiguous())
      return bad(what, operand + " of type " + artifact::EnumNameDataType(view.dtype) + " and shape " +
                           toString(view.shape) + (view.isContiguous() ? "" : ", with gaps") + ", expected " +
                           artifact::EnumNameDataType(expected.dtype) + " and " + toString(expected.shape));
    // A scale by itself is read as an f32; the library reads several by 16 bytes.
    if (mode != ScaleMode::Tensor && !beginsAtMultiple(*context.package.buffers()->Get(static_cast<uint32_t>(index))))
      return bad(what, operand + " must begin at a multiple of " + std::to_string(scaledMultiple) + " bytes");
    return Status::ok();
  };
  TESSERA_RETURN_IF_ERROR(check(gemm.a_scales(), aMode, m, "a_scales"));
  TESSERA_RETURN_IF_ERROR(check(gemm.b_scales(), bMode, n, "b_scales"));
  if (!isModePair(aMode, bMode))
    return bad(what, std::string("no product of scales of modes ") + artifact::EnumNameScaleMode(aMode) + " and " +
                         artifact::EnumNameScaleMode(bMode));
  return Status::ok();
}

} // namespace tessera
