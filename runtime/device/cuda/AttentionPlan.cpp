//===- AttentionPlan.cpp - attention's operands for our own kernels -----------===//

#include "runtime/device/cuda/AttentionPlan.h"

namespace tessera::cuda {

using artifact::DataType;

static StridedTensor strided(const TensorView &view) {
  StridedTensor made;
  made.data = view.data;
  for (size_t dim = 0; dim < view.strides.size(); ++dim)
    made.strides[dim] = view.strides[dim];
  return made;
}

Result<AttentionLayout> attentionLayout(const AttentionViews &views, float scale, bool causal) {
  DataType dtype = views.q.dtype;
  if (dtype != DataType::F32 && dtype != DataType::BF16 && dtype != DataType::F16)
    return TESSERA_ERROR(Unsupported, std::string("attention of type ") + artifact::EnumNameDataType(dtype));
  for (const TensorView *view : {&views.k, &views.v, &views.out, &views.dout, &views.dq, &views.dk, &views.dv})
    if (!view->shape.empty() && view->dtype != dtype)
      return TESSERA_ERROR(Unsupported, std::string("attention of types ") + artifact::EnumNameDataType(dtype) +
                                            " and " + artifact::EnumNameDataType(view->dtype));
  AttentionLayout made;
  made.batch = views.q.shape[0];
  made.heads = views.q.shape[1];
  made.queries = views.q.shape[2];
  made.depth = views.q.shape[3];
  made.groups = views.v.shape[1];
  made.keys = views.v.shape[2];
  made.valueDepth = views.v.shape[3];
  made.scale = scale;
  made.causal = causal;
  made.q = strided(views.q);
  made.k = strided(views.k);
  made.v = strided(views.v);
  made.out = strided(views.out);
  made.lse = strided(views.lse);
  made.dout = strided(views.dout);
  made.dq = strided(views.dq);
  made.dk = strided(views.dk);
  made.dv = strided(views.dv);
  if (const TensorView *mask = views.mask) {
    if (mask->dtype != DataType::Bool && mask->dtype != DataType::F32)
      return TESSERA_ERROR(Unsupported,
                           std::string("attention with a mask of type ") + artifact::EnumNameDataType(mask->dtype));
    made.maskKind = mask->dtype == DataType::Bool ? AttentionMask::Boolean : AttentionMask::Additive;
    made.mask = strided(*mask);
    for (size_t dim = 0; dim < 4; ++dim)
      if (mask->shape[dim] == 1)
        made.mask.strides[dim] = 0;
  }
  return made;
}

} // namespace tessera::cuda
