//===- OpLatency.cpp - seconds of train, dist and exec ops ----------------===//

#include "compiler/cost/Flops.h"
#include "compiler/cost/GpuAttentions.h"
#include "compiler/cost/KernelWork.h"
#include "compiler/cost/Latency.h"

#include "compiler/dialect/exec/Exec.h"
#include "compiler/dialect/train/Builders.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::cost {

namespace {
double elements(Value value) { return static_cast<double>(cast<ShapedType>(value.getType()).getNumElements()); }

Type elementOf(Value value) { return cast<ShapedType>(value.getType()).getElementType(); }

double product(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  double result = 1;
  for (int64_t dim : dims)
    result *= static_cast<double>(shape[dim]);
  return result;
}

bool isFree(Operation *op) {
  return isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::ConcatOp, train::ConstantOp, train::IotaOp,
             train::StopGradientOp, train::YieldOp, dist::DoneOp, dist::SliceLocalOp, dist::AxisIndexOp, exec::RecordOp,
             exec::WaitOp, exec::ArenaOp, exec::SlotOp, exec::BufferOp, exec::ArgumentOp, exec::ResultOp, exec::ProbeOp,
             exec::AxisIndexOp>(op);
}

/// Ops that end up in one generated kernel with their neighbours.
bool isFused(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() ||
         isa<train::BroadcastOp, train::ReduceOp, train::SoftmaxOp, train::LayerNormOp, train::CrossEntropyOp,
             train::CountValidOp, train::RngUniformOp, train::StochasticRoundOp, train::QuantizeOp,
             train::DequantizeOp>(op);
}

/// Bytes that an op moves when values with one use between two fused ops stay in registers.
double fusedBytes(Operation *op) {
  double bytes = 0;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    const bool inKernel = producer && operand.hasOneUse() && isFused(producer);
    if (!inKernel && !(producer && isa<train::ConstantOp, train::IotaOp>(producer)))
      bytes += bytesOf(operand);
  }
  for (Value result : op->getResults()) {
    const bool inKernel = result.hasOneUse() && isFused(*result.user_begin());
    if (!inKernel && !result.use_empty())
      bytes += bytesOf(result);
  }
  return bytes;
}

std::optional<Collective> collectiveKind(Operation *op) {
  if (auto instruction = dyn_cast<exec::CollectiveOp>(op))
    return exec::collectiveKind(instruction);
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op))
    return collective.getCollectiveKind();
  return std::nullopt;
}

double keysOf(Value key) { return static_cast<double>(cast<ShapedType>(key.getType()).getShape()[2]); }

/// Of one product of the size of QKᵀ; `query` is [B, H, Tq, D], `key` is [B, G, Tk, D].
template <typename Op> double scoreFlops(Op attention, Value query, Value key) {
  const double keys = keysOf(key);
  return 2 * elements(query) * keys *
         seenPart(attention.getCausal(), attention.getWindow(), attention.getDensity(), keys);
}

double convFlops(Value filter, Value output) {
  auto shape = cast<ShapedType>(filter.getType()).getShape();
  return 2 * elements(output) * static_cast<double>(shape[1] * shape[2] * shape[3]);
}
} // namespace

bool LatencyModel::isCollective(Operation *op) { return collectiveKind(op).has_value(); }

CollectiveUse collectiveUse(Operation *op, dist::MeshAttr mesh) {
  const Collective kind = *collectiveKind(op);
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  double bytes = bytesOf(op->getOperand(0));
  if (kind == Collective::AllGather)
    bytes *= static_cast<double>(mesh.getGroupSize(axes));
  return {kind, bytes, axes};
}

double LatencyModel::seconds(Operation *op) const {
  if (isFree(op))
    return 0;
  if (isCollective(op)) {
    const CollectiveUse use = collectiveUse(op, mesh);
    return collectiveSeconds(use.kind, use.wholeBytes, use.axes);
  }
  if (op->getNumRegions() > 0 && !isa<exec::FusionOp>(op)) {
    double body = 0;
    for (Region &region : op->getRegions())
      for (Operation &inner : region.getOps())
        body += seconds(&inner);
    return body * llvm::TypeSwitch<Operation *, double>(op)
                      .Case<train::AccumulateOp, exec::RepeatOp, exec::LoopOp>(
                          [](auto loop) { return static_cast<double>(loop.getCount()); })
                      .Default([](Operation *) { return 1.0; });
  }
  return isa<exec::ExecDialect>(op->getDialect()) ? execSeconds(op) : trainSeconds(op);
}

double LatencyModel::trainSeconds(Operation *op) const {
  const double bytes = bytesOf(op->getOperands()) + bytesOf(op->getResults());
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case([&](train::DotGeneralOp dot) {
        auto lhs = train::shapeOf(dot.getLhs());
        const double batch = product(lhs, dot.getLhsBatch()), k = product(lhs, dot.getLhsContract());
        return gemmSeconds(elementOf(dot.getLhs()), batch, elements(dot.getLhs()) / (batch * k),
                           elements(dot.getRhs()) / (batch * k), k);
      })
      .Case([&](train::ScaledDotOp dot) {
        const double k = product(train::shapeOf(dot.getLhs()), dot.getLhsContract());
        return gemmSeconds(elementOf(dot.getLhs()), 1, elements(dot.getLhs()) / k, elements(dot.getRhs()) / k, k);
      })
      .Case([&](exec::ScaledProductOp dot) {
        const double k = static_cast<double>(train::shapeOf(dot.getLhs())[1]);
        return gemmSeconds(elementOf(dot.getLhs()), 1, elements(dot.getLhs()) / k, elements(dot.getRhs()) / k, k);
      })
      .Case<train::LinearCrossEntropyOp, train::LinearCrossEntropyGradOp>([&](auto loss) {
        // Products, and logits of f32 that are written, read and, with a gradient, written and read again.
        const double rows = static_cast<double>(train::shapeOf(loss.getHidden())[0]),
                     depth = static_cast<double>(train::shapeOf(loss.getHidden())[1]);
        const double classes = elements(loss.getWeight()) / depth;
        const int products = isa<train::LinearCrossEntropyGradOp>(op) ? 3 : 1;
        return products * gemmSeconds(elementOf(loss.getHidden()), 1, rows, classes, depth) +
               kernelSeconds((products == 3 ? 4 : 2) * 4 * rows * classes);
      })
      .Case<train::AttentionOp, train::AttentionGradOp>([&](auto a) {
        return attentionSeconds(op, scoreFlops(a, a.getQuery(), a.getKey()), bytes, elementOf(a.getQuery()));
      })
      .Case([&](train::Conv2dOp conv) {
        return flopSeconds(convFlops(conv.getFilter(), conv.getResult()), bytes, elementOf(conv.getFilter()),
                           target.convolution);
      })
      .Case([&](train::Conv2dInputGradOp conv) {
        return flopSeconds(convFlops(conv.getFilter(), conv.getOutputGrad()), bytes, elementOf(conv.getFilter()),
                           target.convolution);
      })
      .Case([&](train::Conv2dFilterGradOp conv) {
        return flopSeconds(convFlops(conv.getResult(), conv.getOutputGrad()), bytes, elementOf(conv.getInput()),
                           target.convolution);
      })
      .Case([&](train::GatherRowsOp gather) { return kernelSeconds(2 * bytesOf(gather->getResult(0))); })
      .Default([&](Operation *other) {
        if (!isFused(other))
          return kernelSeconds(bytes);
        const double moved = fusedBytes(other);
        return moved > 0 ? kernelSeconds(moved) : 0.0;
      });
}

double LatencyModel::attentionSeconds(Operation *op, double scoreFlops, double bytes, Type elementType) const {
  const GpuAttention attention = *gpuAttention(op);
  const AttentionUnits units =
      target.kind == "cuda" ? attentionUnits(attention, target.deterministicAttention) : AttentionUnits::Cudnn;
  // Our own two kernels of a gradient both compute scores and gradients of probabilities.
  const int products = !attention.isBackward ? 2 : units == AttentionUnits::Cudnn ? 5 : 7;
  const Curve &efficiency = units == AttentionUnits::Scalar ? target.scalarAttention
                            : units == AttentionUnits::Tensor
                                ? attention.isBackward ? target.tensorBackward : target.tensorForward
                            : attention.isBackward ? target.attentionBackward
                                                   : target.attentionForward;
  return flopSeconds(products * scoreFlops, bytes,
                     units == AttentionUnits::Scalar ? Float32Type::get(op->getContext()) : elementType,
                     efficiency.at(static_cast<double>(attention.keys)));
}

double LatencyModel::execSeconds(Operation *op) const {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case([&](exec::GemmOp gemm) {
        auto a = gemm.getA().getType().getShape(), b = gemm.getB().getType().getShape();
        const double m = static_cast<double>(a[a.size() - 2]), k = static_cast<double>(a.back());
        return gemmSeconds(elementOf(gemm.getA()), elements(gemm.getA()) / (m * k), m, static_cast<double>(b.back()),
                           k);
      })
      .Case<exec::AttentionOp, exec::AttentionGradOp>([&](auto a) {
        return attentionSeconds(op, scoreFlops(a, a.getQ(), a.getK()), bytesOf(op->getOperands()), elementOf(a.getQ()));
      })
      .Case([&](exec::ConvOp conv) {
        return flopSeconds(convFlops(conv.getW(), conv.getY()), bytesOf(op->getOperands()), elementOf(conv.getW()),
                           target.convolution);
      })
      .Case<exec::LaunchOp, exec::FusionOp>([&](auto kernel) {
        const KernelWork work = kernelWork(kernel);
        return kernelSeconds(work.bytes, work.operations);
      })
      .Default([&](Operation *) { return kernelSeconds(bytesOf(op->getOperands()) + bytesOf(op->getResults())); });
}

} // namespace tessera::cost
