//===- CudnnAttention.cpp - fused attention by cuDNN ---------------------===//
//
// cuDNN recognises attention in a graph of products, pointwise operations and reductions of one certain form, that of
// NVIDIA's own frontend, and runs it as one kernel. (Its single operations for attention have no causal mask before
// 9.21.) K and V are described transposed. The backward graph writes dq by one product, which makes it deterministic;
// the library keeps the gradient of the scores in its workspace for that.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaAttention.h"

#include <limits>

namespace tessera::cuda {
namespace {

using artifact::DataType;
using Tensor = CudnnGraph::Id;

class FusedPlan : public AttentionPlan {
public:
  FusedPlan(std::shared_ptr<CudnnPlan> plan, std::vector<Operand> operands, const Workspace &workspace)
      : plan(std::move(plan)), operands(std::move(operands)), workspace(workspace) {}

  Status start(const Iteration &iteration, CUstream stream) override {
    std::vector<void *> addresses;
    for (const Operand &operand : operands)
      addresses.push_back(operand.at(iteration));
    return plan->start(addresses, workspace.data(), stream);
  }

private:
  const std::shared_ptr<CudnnPlan> plan;
  std::vector<Operand> operands;
  const Workspace &workspace;
};

class AttentionGraph {
public:
  AttentionGraph(const AttentionOperands &given, bool hasFastGradient) : given(given) {
    graph.isDeterministic = !given.isBackward || !hasFastGradient;
    const auto &q = given.q.view.shape, &v = given.v.view.shape;
    batch = q[0], heads = q[1], queries = q[2], depth = q[3];
    groups = v[1], keys = v[2], valueDepth = v[3];
    type = given.q.view.dtype;
    scoreDims = {batch, heads, queries, keys};
    rowDims = {batch, heads, queries, 1};
    given.isBackward ? backward() : forward();
  }

  CudnnGraph graph;
  std::vector<Operand> operands; ///< in the order in which the graph got them

private:
  void forward() {
    Tensor q = operand(given.q), k = graph.operand(transposed(describe(given.k))), v = operand(given.v);
    operands = {given.q, given.k, given.v};
    Tensor scores = masked(scaledScores(q, k, graph.constant(given.scale, 4)));
    Tensor largest = rows(), shifted = matrix(), exponentials = matrix(), total = rows(), logarithm = rows(),
           probabilities = matrix(type);
    graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
    graph.pointwise({CUDNN_POINTWISE_SUB, scores, largest}, shifted);
    graph.pointwise({CUDNN_POINTWISE_EXP, shifted}, exponentials);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, total);
    graph.pointwise({CUDNN_POINTWISE_LOG, total}, logarithm);
    graph.pointwise({CUDNN_POINTWISE_ADD, largest, logarithm}, statistics());
    graph.pointwise({CUDNN_POINTWISE_DIV, exponentials, total}, probabilities);
    Tensor out = operand(given.out);
    operands.push_back(given.out);
    graph.multiply(probabilities, v, out);
  }

  void backward() {
    Tensor q = operand(given.q), k = graph.operand(transposed(describe(given.k))),
           v = graph.operand(transposed(describe(given.v))), out = operand(given.out), dout = operand(given.dout);
    operands = {given.q, given.k, given.v, given.out, given.dout};
    Tensor lse = statistics(), dq = operand(given.dq), dk = operand(given.dk), dv = operand(given.dv);
    for (const Operand &result : {given.dq, given.dk, given.dv})
      operands.push_back(result);

    // Row sums of dout * out; the factor stands where dropout would.
    CudnnTensor product = denseTensor({batch, heads, queries, valueDepth});
    product.strides[2] = heads * valueDepth;
    Tensor products = graph.temporary(product), sums = rows(), delta = graph.scratch(denseTensor(rowDims));
    graph.pointwise({CUDNN_POINTWISE_MUL, dout, out}, products);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
    graph.pointwise({CUDNN_POINTWISE_MUL, sums, graph.constant(1, 4)}, delta);

    // dv = pᵀ dout
    Tensor factor = graph.constant(given.scale, 4), scores = scaledScores(q, k, factor), shifted = matrix(),
           probabilities = matrix();
    graph.pointwise({CUDNN_POINTWISE_SUB, scores, lse}, shifted);
    graph.pointwise({CUDNN_POINTWISE_EXP, masked(shifted)}, probabilities);
    multiplyKeys(probabilities, dout, valueDepth, dv);

    // dk = dsᵀ q
    Tensor dprobabilities = matrix(), centred = matrix(), weighted = matrix(), dscores = matrix();
    graph.multiply(dout, v, dprobabilities);
    graph.pointwise({CUDNN_POINTWISE_SUB, dprobabilities, delta}, centred);
    graph.pointwise({CUDNN_POINTWISE_MUL, centred, probabilities}, weighted);
    graph.pointwise({CUDNN_POINTWISE_MUL, weighted, factor}, dscores);
    multiplyKeys(dscores, q, depth, dk);

    // dq = ds k
    CudnnTensor rowsOfKeys = describe(given.k);
    rowsOfKeys.dtype = DataType::F32;
    Tensor straight = graph.temporary(rowsOfKeys);
    graph.reshape(k, straight);
    if (graph.isDeterministic) {
      graph.multiply(dscores, straight, dq);
      return;
    }
    // What is written to memory in f32 may be added to by all blocks of keys, in any order; the library sets it to 0.
    Tensor parts = graph.scratch(denseTensor({batch, heads, queries, depth}));
    graph.multiply(dscores, straight, parts);
    graph.pointwise({CUDNN_POINTWISE_IDENTITY, parts}, dq);
  }

  static CudnnTensor describe(const Operand &operand) { return cudnnTensor(operand.view, operand.strideBits()); }
  Tensor operand(const Operand &operand) { return graph.operand(describe(operand)); }
  Tensor matrix(DataType dtype = DataType::F32) { return graph.temporary(denseTensor(scoreDims, dtype)); }
  Tensor rows() { return graph.temporary(denseTensor(rowDims)); }

  /// lse as [B, H, Tq, 1].
  Tensor statistics() {
    operands.push_back(given.lse);
    CudnnTensor lse = denseTensor(rowDims);
    lse.alignment = cudnnAlignment(given.lse.view, given.lse.strideBits()) < 16 ? 4 : 16;
    return graph.operand(lse);
  }

  Tensor scaledScores(Tensor q, Tensor k, Tensor factor) {
    Tensor products = matrix(), scores = matrix();
    graph.multiply(q, k, products);
    graph.pointwise({CUDNN_POINTWISE_MUL, products, factor}, scores);
    return scores;
  }

  /// A query attends to no later keys; there are as many of both.
  Tensor masked(Tensor scores) {
    if (!given.causal)
      return scores;
    Tensor row = matrix(DataType::I32), column = matrix(DataType::I32), isSeen = matrix(DataType::Bool),
           result = matrix();
    graph.pointwise({CUDNN_POINTWISE_GEN_INDEX, scores, {}, {}, 2}, row);
    graph.pointwise({CUDNN_POINTWISE_GEN_INDEX, scores, {}, {}, 3}, column);
    graph.pointwise({CUDNN_POINTWISE_CMP_GE, row, column, {}, {}, CUDNN_DATA_BOOLEAN}, isSeen);
    graph.pointwise(
        {CUDNN_POINTWISE_BINARY_SELECT, scores, graph.constant(-std::numeric_limits<float>::infinity(), 4), isSeen},
        result);
    return result;
  }

  /// result = transposed matrix of scores @ `right`, added up over the heads of each group.
  void multiplyKeys(Tensor scores, Tensor right, int64_t width, Tensor result) {
    Tensor turned = graph.temporary(transposed(denseTensor(scoreDims, type)));
    graph.reshape(scores, turned);
    if (heads == groups) {
      graph.multiply(turned, right, result);
      return;
    }
    Tensor ofHeads = graph.temporary(denseTensor({batch, heads, keys, width}, type));
    graph.multiply(turned, right, ofHeads);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, ofHeads, result);
  }

  const AttentionOperands &given;
  int64_t batch, heads, groups, queries, keys, depth, valueDepth;
  DataType type;
  std::vector<int64_t> scoreDims, rowDims;
};

} // namespace

std::string cudnnRefusal(const AttentionOperands &operands, bool hasFastGradient) {
  std::string reason = cudnnRefusal(operands.viewsAt({}), operands.isBackward, !hasFastGradient);
  if (!reason.empty())
    return reason;
  if (!operands.isAligned())
    return "an operand is not aligned to 16 bytes in each micro-batch";
  // Earlier ones read keys beyond the end in some backward passes.
  return cudnnGetVersion() < 91600 ? "cuDNN is older than 9.16" : "";
}

CudnnGraph attentionGraph(const AttentionOperands &operands, bool hasFastGradient) {
  return AttentionGraph(operands, hasFastGradient).graph;
}

Result<std::unique_ptr<AttentionPlan>> planByCudnn(const AttentionOperands &operands, bool hasFastGradient,
                                                   CudnnPlans &plans, Workspace &workspace) {
  AttentionGraph built(operands, hasFastGradient);
  CudnnPlans::Plan found = plans.find(built.graph);
  if (!built.graph.isDeterministic && found.status().code() == StatusCode::Unsupported) {
    if (std::string reason = cudnnRefusal(operands, false); !reason.empty())
      return TESSERA_ERROR(Unsupported, reason);
    return planByCudnn(operands, false, plans, workspace);
  }
  TESSERA_ASSIGN_OR_RETURN(std::shared_ptr<CudnnPlan> plan, std::move(found));
  TESSERA_RETURN_IF_ERROR(workspace.require(plan->workspaceBytes()));
  return std::unique_ptr<AttentionPlan>(
      std::make_unique<FusedPlan>(std::move(plan), std::move(built.operands), workspace));
}

} // namespace tessera::cuda
