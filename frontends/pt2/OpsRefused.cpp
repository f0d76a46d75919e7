//===- OpsRefused.cpp - operators that no step has, and why ----------------===//
//
// What is neither here nor in a table of Ops*.cpp is "not supported" without a reason.
//
//===----------------------------------------------------------------------===//

#include "frontends/pt2/OpTable.h"

namespace tessera::pt2 {

namespace {
constexpr llvm::StringLiteral kSizes = "the size of its result depends on data",
                              kBackward = "it is part of a backward pass, which training adds by itself",
                              kMemory = "it depends on how a tensor lies in memory",
                              kPlace = "it writes to memory that it is given",
                              kUnset = "the values of its result are not set",
                              kComplex = "complex numbers are not supported",
                              kRandom = "random numbers other than dropout are not supported",
                              kCtc = "CTC loss is not supported", kFractional = "its windows are random numbers",
                              kPacked = "packed sequences are not supported";

const RefusedOp kRefused[] = {
    {"aten.atan2.out", kPlace},
    {"aten.empty_strided.default", kUnset},
    {"aten.resize_.default", kPlace},
    {"aten.bucketize.Tensor", "searches of sorted numbers are not supported"},
    {"aten.cummax.default", "running maxima are not supported"},
    {"aten.cummin.default", "running minima are not supported"},
    {"aten.median.default", "medians are not supported; write a sort"},
    {"aten.median.dim", "medians are not supported; write a sort"},
    {"aten._adaptive_avg_pool2d_backward.default", kBackward},
    {"aten._ctc_loss.Tensor", kCtc},
    {"aten._ctc_loss.default", kCtc},
    {"aten._fft_c2r.default", kComplex},
    {"aten._fft_r2c.default", kComplex},
    {"aten._local_scalar_dense.default", "a number that depends on data is not supported"},
    {"aten.as_strided.default", kMemory},
    {"aten.avg_pool2d_backward.default", kBackward},
    {"aten.bernoulli.default", kRandom},
    {"aten.convolution_backward.default", kBackward},
    {"aten.ctc_loss.IntList", kCtc},
    {"aten.ctc_loss.Tensor", kCtc},
    {"aten.embedding_dense_backward.default", kBackward},
    {"aten.fractional_max_pool2d.default", kFractional},
    {"aten.fractional_max_pool3d.default", kFractional},
    {"aten.gru.data", kPacked},
    {"aten.item.default", "a number that depends on data is not supported"},
    {"aten.lstm.data", kPacked},
    {"aten.masked_select.default", kSizes},
    {"aten.max_pool2d_with_indices_backward.default", kBackward},
    {"aten.native_group_norm_backward.default", kBackward},
    {"aten.native_layer_norm_backward.default", kBackward},
    {"aten.nonzero.default", kSizes},
    {"aten.rand.default", kRandom},
    {"aten.rand_like.default", kRandom},
    {"aten.randint.default", kRandom},
    {"aten.randint.low", kRandom},
    {"aten.randn.default", kRandom},
    {"aten.randn_like.default", kRandom},
    {"aten.randperm.default", kRandom},
    {"aten.rnn_relu.data", kPacked},
    {"aten.rnn_tanh.data", kPacked},
    {"aten.sym_is_contiguous.default", kMemory},
    {"aten.sym_storage_offset.default", kMemory},
    {"aten.sym_stride.int", kMemory},
};
} // namespace

llvm::ArrayRef<RefusedOp> refusedOps() { return kRefused; }

} // namespace tessera::pt2
