//===- AttentionPlan.cpp - attention's operands for our own kernels ------===//

#include "runtime/device/cuda/AttentionPlan.h"

#include "runtime/artifact/GpuAttention.h"
#include "runtime/device/cuda/CudnnLayout.h"

#include <algorithm>

namespace tessera::cuda {

using artifact::DataType;

static StridedTensor strided(const TensorView &view) {
  StridedTensor made;
  made.data = view.data;
  made.isWide = view.dtype == DataType::F32;
  for (size_t dim = 0; dim < view.strides.size(); ++dim)
    made.strides[dim] = view.strides[dim];
  return made;
}

/// What may be F32 beside narrower operands.
static std::vector<const TensorView *> resultsOf(const AttentionViews &views) {
  std::vector<const TensorView *> results;
  for (const TensorView *view : {&views.out, &views.dq, &views.dk, &views.dv})
    if (!view->shape.empty())
      results.push_back(view);
  return results;
}

Result<AttentionLayout> attentionLayout(const AttentionViews &views) {
  DataType dtype = views.q.dtype;
  if (dtype != DataType::F32 && dtype != DataType::BF16 && dtype != DataType::F16)
    return TESSERA_ERROR(Unsupported, std::string("attention of type ") + artifact::EnumNameDataType(dtype));
  auto mixed = [&](const TensorView &view) {
    return TESSERA_ERROR(Unsupported, std::string("attention of types ") + artifact::EnumNameDataType(dtype) + " and " +
                                          artifact::EnumNameDataType(view.dtype));
  };
  for (const TensorView *view : {&views.k, &views.v, &views.dout})
    if (!view->shape.empty() && view->dtype != dtype)
      return mixed(*view);
  for (const TensorView *view : resultsOf(views))
    if (view->dtype != dtype && view->dtype != DataType::F32)
      return mixed(*view);
  AttentionLayout made;
  made.batch = views.q.shape[0];
  made.heads = views.q.shape[1];
  made.queries = views.q.shape[2];
  made.depth = views.q.shape[3];
  made.groups = views.v.shape[1];
  made.keys = views.v.shape[2];
  made.valueDepth = views.v.shape[3];
  made.scale = views.scale;
  made.causal = views.causal;
  made.isPartial = views.isPartial;
  made.window = std::min(views.window, made.keys);
  if (views.begin) {
    made.begin = static_cast<const int64_t *>(views.begin->data);
    made.end = static_cast<const int64_t *>(views.end->data);
    made.beginStride = views.begin->shape[0] == 1 ? 0 : made.queries;
    made.endStride = views.end->shape[0] == 1 ? 0 : made.queries;
  }
  made.q = strided(views.q);
  made.k = strided(views.k);
  made.v = strided(views.v);
  made.out = strided(views.out);
  made.lse = strided(views.lse);
  made.dout = strided(views.dout);
  made.dq = strided(views.dq);
  made.dk = strided(views.dk);
  made.dv = strided(views.dv);
  if (const std::optional<TensorView> &mask = views.mask) {
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

static GpuAttention describe(const AttentionViews &views, bool isBackward) {
  const TensorView &q = views.q, &v = views.v;
  GpuAttention made;
  made.batch = q.shape[0], made.heads = q.shape[1], made.queries = q.shape[2], made.depth = q.shape[3];
  made.groups = v.shape[1], made.keys = v.shape[2], made.valueDepth = v.shape[3];
  made.window = views.window;
  made.scale = views.scale;
  made.isBackward = isBackward;
  made.isCausal = views.causal;
  made.hasMask = views.mask.has_value();
  made.hasRanges = views.begin.has_value();
  made.isHalf = q.dtype == DataType::BF16 || q.dtype == DataType::F16;
  for (const TensorView *view : resultsOf(views))
    made.hasWideResults |= view->dtype != q.dtype;
  return made;
}

/// Why rows cannot be read 16 bytes at a time; empty if they can.
static std::string unalignedRows(const AttentionViews &views) {
  for (const TensorView *view :
       {&views.q, &views.k, &views.v, &views.out, &views.dout, &views.dq, &views.dk, &views.dv})
    if (!view->shape.empty()) {
      if (view->numElements() == 0)
        return "an operand is empty";
      if (view->strides[3] != 1)
        return "an operand's innermost stride is " + std::to_string(view->strides[3]);
      if (cudnnAlignment(*view, 0) < 16)
        return "an operand is not aligned to 16 bytes";
    }
  return "";
}

std::string cudnnRefusal(const AttentionViews &views, bool isBackward, bool isDeterministic) {
  std::string reason = cudnnAttentionRefusal(describe(views, isBackward), isDeterministic);
  if (reason.empty())
    reason = unalignedRows(views);
  if (reason.empty() && !views.lse.isContiguous())
    reason = "lse is not contiguous";
  return reason;
}

std::string tensorRefusal(const AttentionViews &views, bool isBackward) {
  std::string reason = tensorAttentionRefusal(describe(views, isBackward));
  return reason.empty() ? unalignedRows(views) : reason;
}

} // namespace tessera::cuda
