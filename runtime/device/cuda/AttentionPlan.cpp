//===- AttentionPlan.cpp - attention's operands for our own kernels ------===//

#include "runtime/device/cuda/AttentionPlan.h"

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

std::string cudnnRefusal(const AttentionViews &views, bool isBackward) {
  const TensorView &q = views.q, &v = views.v;
  if (q.dtype != DataType::BF16 && q.dtype != DataType::F16)
    return std::string("its fused kernels do not compute in ") + artifact::EnumNameDataType(q.dtype);
  for (const TensorView *view : resultsOf(views))
    if (view->dtype != q.dtype)
      return std::string("a result is ") + artifact::EnumNameDataType(view->dtype) + " where its operands are " +
             artifact::EnumNameDataType(q.dtype);
  if (views.begin)
    return "each query sees a range of keys of its own";
  if (views.window > 0 && views.window < v.shape[2])
    return "each query sees a window of " + std::to_string(views.window) + " keys";
  if (views.mask)
    return "a mask may hide all keys of a query, which its softmax does not allow for";
  // Where there are fewer keys than queries, the first queries have none.
  if (views.causal && q.shape[2] != v.shape[2])
    return "it is causal over " + std::to_string(q.shape[2]) + " queries and " + std::to_string(v.shape[2]) + " keys";
  const int64_t most = isBackward ? 128 : 256;
  for (int64_t depth : {q.shape[3], v.shape[3]})
    if (depth % 8 != 0 || depth > most)
      return "heads of size " + std::to_string(depth) + " (cuDNN takes multiples of 8 up to " + std::to_string(most) +
             ")";
  for (const TensorView *view : {&q, &views.k, &v, &views.out, &views.dout, &views.dq, &views.dk, &views.dv})
    if (!view->shape.empty()) {
      if (view->numElements() == 0)
        return "an operand is empty";
      if (view->strides[3] != 1)
        return "an operand's innermost stride is " + std::to_string(view->strides[3]);
      if (cudnnAlignment(*view, 0) < 16)
        return "an operand is not aligned to 16 bytes";
    }
  if (!views.lse.isContiguous())
    return "lse is not contiguous";
  return "";
}

} // namespace tessera::cuda
