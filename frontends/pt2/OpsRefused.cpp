//===- OpsRefused.cpp - operators that no step has, and why ----------------===//
//
// What is neither here nor in a table of Ops*.cpp is "not supported" without a reason.
//
//===----------------------------------------------------------------------===//

#include "frontends/pt2/OpTable.h"

namespace tessera::pt2 {

namespace {
constexpr llvm::StringLiteral
    kSizes = "the size of its result depends on data",
    kBackward = "it is part of a backward pass, which training adds by itself",
    kMemory = "it depends on how a tensor lies in memory", kPlace = "it writes to memory that it is given",
    kUnset = "the values of its result are not set", kRandom = "random numbers of this distribution are not supported",
    kCtc = "CTC loss is not supported", kFractional = "fractional pooling is not supported",
    kPacked = "packed sequences are not supported",
    kDecomposed = "only programs that were decomposed have it: save what torch.export.export gives",
    kData = "a number that depends on data is not supported",
    kDecompositions =
        "decompositions of matrices are not supported; torch.linalg.solve and torch.inverse of small ones are",
    kGroups = "the sizes of its groups depend on data; models of transformers have "
              "experts_implementation=\"tessera_dense\" for it, after import tessera.experts (docs/python.md)",
    kSearch = "searches for one number are not supported: give a tensor";

const RefusedOp kRefused[] = {
    {"higher_order.wrap_with_autocast", "autocast is not supported where it is enabled: leave it out, and compile with "
                                        "--precision bf16"},
    {"higher_order.wrap_with_set_grad_enabled", "not supported where it enables gradients again"},
    {"aten._native_batch_norm_legit.default", kDecomposed},
    {"aten._native_batch_norm_legit.no_stats", kDecomposed},
    {"aten._native_batch_norm_legit_no_training.default", kDecomposed},
    {"aten.native_batch_norm.default", kDecomposed},
    {"aten._adaptive_avg_pool2d_backward.default", kBackward},
    {"aten._ctc_loss.Tensor", kCtc},
    {"aten._ctc_loss.default", kCtc},
    {"aten._grouped_mm.default", kGroups},
    {"aten._local_scalar_dense.default", kData},
    {"aten._sample_dirichlet.default", kRandom},
    {"aten._standard_gamma.default", kRandom},
    {"aten._unique2.default", kSizes},
    {"aten.argwhere.default", kSizes},
    {"aten.avg_pool2d_backward.default", kBackward},
    {"aten.binomial.default", kRandom},
    {"aten.bucketize.Scalar", kSearch},
    {"aten.cholesky_inverse.default", kDecompositions},
    {"aten.cholesky_solve.default", kDecompositions},
    {"aten.convolution_backward.default", kBackward},
    {"aten.ctc_loss.IntList", kCtc},
    {"aten.ctc_loss.Tensor", kCtc},
    {"aten.embedding_dense_backward.default", kBackward},
    {"aten.empty_strided.default", kUnset},
    {"aten.equal.default", kData},
    {"aten.fractional_max_pool2d.default", kFractional},
    {"aten.fractional_max_pool3d.default", kFractional},
    {"aten.gru.data", kPacked},
    {"aten.is_nonzero.default", kData},
    {"aten.item.default", kData},
    {"aten.linalg_cholesky.default", kDecompositions},
    {"aten.linalg_cholesky_ex.default", kDecompositions},
    {"aten.linalg_eig.default", kDecompositions},
    {"aten.linalg_eigh.default", kDecompositions},
    {"aten.linalg_eigvalsh.default", kDecompositions},
    {"aten.linalg_lstsq.default", kDecompositions},
    {"aten.linalg_lu.default", kDecompositions},
    {"aten.linalg_pinv.default", kDecompositions},
    {"aten.linalg_qr.default", kDecompositions},
    {"aten.linalg_solve_triangular.default", kDecompositions},
    {"aten.linalg_svd.default", kDecompositions},
    {"aten.linalg_svdvals.default", kDecompositions},
    {"aten.lstm.data", kPacked},
    {"aten.max_pool2d_with_indices_backward.default", kBackward},
    {"aten.native_group_norm_backward.default", kBackward},
    {"aten.native_layer_norm_backward.default", kBackward},
    {"aten.nonzero.default", kSizes},
    {"aten.nonzero_numpy.default", kSizes},
    {"aten.nonzero_static.default", kSizes},
    {"aten.pinverse.default", kDecompositions},
    {"aten.poisson.default", kRandom},
    {"aten.repeat_interleave.Tensor", kSizes},
    {"aten.repeat_interleave.self_Tensor", kSizes},
    {"aten.resize_.default", kPlace},
    {"aten.rnn_relu.data", kPacked},
    {"aten.rnn_tanh.data", kPacked},
    {"aten.searchsorted.Scalar", kSearch},
    {"aten.svd.default", kDecompositions},
    {"aten.sym_is_contiguous.default", kMemory},
    {"aten.triangular_solve.default", kDecompositions},
    {"aten.unique_consecutive.default", kSizes},
    {"aten.unique_dim.default", kSizes},
    {"aten.where.default", kSizes},
    {"transformers.grouped_mm_fallback.default", kGroups},
};
} // namespace

llvm::ArrayRef<RefusedOp> refusedOps() { return kRefused; }

} // namespace tessera::pt2
