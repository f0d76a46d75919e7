//===- VerifyInterface.cpp - checks what a program reads and gives ---------===//

#include "runtime/artifact/LearningRate.h"
#include "runtime/artifact/VerifyContext.h"

#include <cmath>
#include <limits>
#include <memory>

namespace tessera {

using artifact::DataType;

/// One role for each dimension; samples once at most, micro-batches of samples only and in front.
static Status verifyDims(const artifact::BatchTensor &entry, const std::string &what) {
  if (sizeOf(entry.dims()) != sizeOf(entry.global_shape()))
    return bad(what, std::to_string(sizeOf(entry.dims())) + " roles for " +
                         std::to_string(sizeOf(entry.global_shape())) + " dimensions");
  int64_t samples = 0, microBatches = 0;
  for (uint32_t dim = 0; dim < sizeOf(entry.dims()); ++dim) {
    const auto role = entry.dims()->GetEnum<artifact::DimRole>(dim);
    if (!isKnown(role) || (role == artifact::DimRole::MicroBatch && dim > 0))
      return bad(what, "dimension " + std::to_string(dim) + " has no role that it can have");
    samples += role == artifact::DimRole::Sample;
    microBatches += role == artifact::DimRole::MicroBatch;
  }
  if (samples > 1 || microBatches > samples)
    return bad(what, std::to_string(samples) + " dimensions count samples and " + std::to_string(microBatches) +
                         " micro-batches");
  return Status::ok();
}

/// Returns into how many parts the tensor is split.
static Result<int64_t> verifySplits(const VerifyContext &context, const artifact::BatchTensor &entry,
                                    const std::string &what) {
  WideInt parts = 1;
  std::vector<bool> isSplit(sizeOf(entry.dims()));
  for (uint32_t index = 0; index < sizeOf(entry.splits()); ++index) {
    const artifact::DimSplit &split = *entry.splits()->Get(index);
    if (split.dim() >= isSplit.size() || isSplit[split.dim()] ||
        entry.dims()->GetEnum<artifact::DimRole>(split.dim()) == artifact::DimRole::MicroBatch)
      return bad(what, "dimension " + std::to_string(split.dim()) + " cannot be split, or is already");
    isSplit[split.dim()] = true;
    TESSERA_RETURN_IF_ERROR(context.checkGroup(split.group(), what));
    const int64_t ranks = context.groupSize(split.group());
    if (!isKnown(split.order()) || split.order() == artifact::SplitOrder::Dealt)
      return bad(what, "unknown order of a split");
    const int64_t ranges = split.order() == artifact::SplitOrder::Zigzag ? 2 * ranks : ranks;
    if (entry.global_shape()->Get(split.dim()) % ranges != 0)
      return bad(what,
                 "its dimension " + std::to_string(split.dim()) + " does not divide by " + std::to_string(ranges));
    if (ranges != ranks && entry.dims()->GetEnum<artifact::DimRole>(split.dim()) == artifact::DimRole::Sample)
      return bad(what, "its samples are dealt in a zigzag, expected ranges");
    parts *= ranks;
  }
  return static_cast<int64_t>(parts);
}

Status verifyBatch(const VerifyContext &context, const artifact::Program &program) {
  for (uint32_t index = 0; index < sizeOf(program.batch()); ++index) {
    const artifact::BatchTensor &entry = *program.batch()->Get(index);
    std::string what = "batch entry '" + entry.name()->str() + "'";
    if (!isKnown(entry.dtype()) || !isKnown(entry.role()))
      return bad(what, "unknown type or role");
    if (!isAligned(entry.global_shape()))
      return bad(what, "misaligned shape");
    int64_t rank = sizeOf(entry.global_shape());
    if (rank > maxDimensions)
      return bad(what, std::to_string(rank) + " dimensions");
    TESSERA_RETURN_IF_ERROR(verifyDims(entry, what));
    const bool isInteger = entry.dtype() == DataType::I64 || entry.dtype() == DataType::I32 ||
                           entry.dtype() == DataType::U8 || entry.dtype() == DataType::I8;
    if (entry.has_runs() &&
        (!isInteger || rank == 0 || entry.dims()->GetEnum<artifact::DimRole>(rank - 1) != artifact::DimRole::Position))
      return bad(what, "only integers along positions can be promised to lie side by side");
    WideInt elements = 1;
    for (uint32_t dim = 0; dim < rank; ++dim) // a scalar has no shape
      if (const int64_t size = entry.global_shape()->Get(dim);
          size < 1 || size > maxElements || (elements *= size) > maxElements)
        return bad(what, "a dimension of size " + std::to_string(size));
    TESSERA_ASSIGN_OR_RETURN(int64_t parts, verifySplits(context, entry, what));
    TESSERA_RETURN_IF_ERROR(expectDense(context, entry.buffer(), entry.dtype(), elements / parts, what));
  }
  return Status::ok();
}

Status verifyScalars(const VerifyContext &context, const artifact::Program &program, uint32_t numInstructions) {
  const artifact::Package &package = context.package;
  for (uint32_t index = 0; index < sizeOf(program.hyper()); ++index) {
    const artifact::HyperScalar &hyper = *program.hyper()->Get(index);
    std::string what = "scalar '" + hyper.name()->str() + "'";
    if (!isKnown(hyper.kind()))
      return bad(what, "unknown kind " + std::to_string(static_cast<int>(hyper.kind())));
    if (hyper.kind() == artifact::HyperKind::BiasCorrection && !(hyper.beta() >= 0 && hyper.beta() < 1))
      return bad(what, "its beta is " + std::to_string(hyper.beta()));
    if (hyper.kind() == artifact::HyperKind::LearningRate && !package.learning_rate())
      return bad(what, "there is no schedule of the learning rate");
    DataType type = hyper.kind() == artifact::HyperKind::Seed ? DataType::I64 : DataType::F32;
    TESSERA_RETURN_IF_ERROR(expectDense(context, hyper.buffer(), type, 1, what));
  }
  if (const artifact::LearningRate *rate = package.learning_rate())
    if (std::string problem = checkLearningRate(*std::unique_ptr<artifact::LearningRateT>(rate->UnPack()));
        !problem.empty())
      return bad("schedule of the learning rate", problem);
  for (uint32_t index = 0; index < sizeOf(program.results()); ++index) {
    const artifact::ResultTensor &result = *program.results()->Get(index);
    std::string what = "result '" + result.name()->str() + "'";
    if (!isKnown(result.role()))
      return bad(what, "unknown role");
    TESSERA_RETURN_IF_ERROR(context.useBuffer(result.buffer(), what));
    TensorView view = context.view(result.buffer());
    bool isNumber = view.dtype == DataType::F32 || view.dtype == DataType::F64 || view.dtype == DataType::I32 ||
                    view.dtype == DataType::I64;
    if (result.role() == artifact::ResultRole::IndexCheck) {
      if (view.dtype != DataType::I64 || !view.isContiguous() || !result.of())
        return bad(what, "is no list of indices of a table");
      continue;
    }
    if (result.role() != artifact::ResultRole::Output && (view.numElements() != 1 || !isNumber))
      return bad(what, "is not one number");
  }
  for (uint32_t index = 0; index < sizeOf(program.probes()); ++index) {
    const artifact::GradientProbe &probe = *program.probes()->Get(index);
    std::string what = "gradient probe " + std::to_string(index);
    if (probe.state() >= sizeOf(package.state()))
      return bad(what, "state " + std::to_string(probe.state()) + " does not exist");
    if (probe.instruction() >= numInstructions)
      return bad(what, "instruction " + std::to_string(probe.instruction()) + " of " + std::to_string(numInstructions));
    if (!std::isfinite(probe.scale()))
      return bad(what, "its scale is no number");
    TESSERA_RETURN_IF_ERROR(context.checkGroup(probe.shard_group(), what));
    const artifact::StateTensor &state = *package.state()->Get(probe.state());
    int64_t parts = context.groupSize(probe.shard_group());
    if (state.elements() % parts != 0)
      return bad(what, "the gradient does not divide by " + std::to_string(parts));
    TESSERA_RETURN_IF_ERROR(context.useBuffer(probe.buffer(), what));
    const DataType dtype = context.view(probe.buffer()).dtype;
    if (dtype != DataType::F32 && dtype != DataType::F64 && dtype != DataType::F16 && dtype != DataType::BF16)
      return bad(what, std::string("its buffer is of type ") + artifact::EnumNameDataType(dtype) +
                           ", expected a floating-point type");
    TESSERA_RETURN_IF_ERROR(expectDense(context, probe.buffer(), dtype, state.elements() / parts, what));
  }
  return Status::ok();
}

/// A program of evaluation must say what its loss and its metrics are made of.
Status verifyRoles(const artifact::Program &program) {
  int sums = 0, counts = 0;
  std::string metric; // whose count comes next
  for (uint32_t index = 0; index < sizeOf(program.results()); ++index) {
    const artifact::ResultTensor &result = *program.results()->Get(index);
    sums += result.role() == artifact::ResultRole::LossSum;
    counts += result.role() == artifact::ResultRole::LossCount;
    const bool isSum = result.role() == artifact::ResultRole::MetricSum;
    const bool isCount = result.role() == artifact::ResultRole::MetricCount;
    if (isCount != !metric.empty() || (isCount && result.name()->str() != metric) || (isSum && !result.name()->size()))
      return bad("results", "the sum and the count of a metric are not side by side at '" + result.name()->str() + "'");
    metric = isSum ? result.name()->str() : "";
    if ((isSum || isCount) && program.kind() != artifact::ProgramKind::Evaluate)
      return bad("results", "metric '" + result.name()->str() + "' is not of an evaluation");
    if (!(result.at_least() < std::numeric_limits<double>::infinity()) || !std::isfinite(result.plus()))
      return bad("results", "the bound of '" + result.name()->str() + "' is not finite");
  }
  if (!metric.empty())
    return bad("results", "metric '" + metric + "' has no count");
  if (program.kind() != artifact::ProgramKind::Train && (sizeOf(program.hyper()) > 0 || sizeOf(program.probes()) > 0))
    return bad("scalars and probes", "are of the training alone");
  const int expected = program.kind() == artifact::ProgramKind::Evaluate ? 1 : 0;
  if (sums != expected || counts != expected)
    return bad("results", std::to_string(sums) + " sums and " + std::to_string(counts) +
                              " counts of a loss, expected " + std::to_string(expected) + " of each");
  return Status::ok();
}

} // namespace tessera
