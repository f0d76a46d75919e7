//===- Evaluation.cpp - the loss over a data set ----------------------------===//

#include "runtime/step/Evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tessera {

Status Evaluation::findResults() {
  const artifact::Program &table = artifact.program(program);
  averages.resize(1);
  for (uint32_t index = 0; index < table.results()->size(); ++index) {
    const artifact::ResultRole role = table.results()->Get(index)->role();
    if (role == artifact::ResultRole::LossSum)
      averages.front().sum = index;
    else if (role == artifact::ResultRole::LossCount)
      averages.front().count = index;
    else if (role == artifact::ResultRole::MetricSum)
      averages.push_back({index, index + 1});
  }
  if (specs.empty())
    return TESSERA_ERROR(Unsupported, "the program that evaluates reads no data");
  return Status::ok();
}

/// A sample whose targets are all ignored adds nothing to the loss, nor to the count, nor to any metric.
void Evaluation::findFill() {
  const auto &results = *artifact.program(program).results();
  const auto *of = results.Get(averages.front().count)->of();
  for (const Average &average : averages) {
    const auto *other = results.Get(average.count)->of();
    if (!of || !other || other->string_view() != of->string_view())
      return;
  }
  for (size_t index = 0; index < specs.size(); ++index)
    if (specs[index].name == of->string_view() && specs[index].role == artifact::BatchRole::Target &&
        specs[index].ignoreIndex != std::numeric_limits<int64_t>::min() &&
        (specs[index].dtype == DataType::I32 || specs[index].dtype == DataType::I64))
      filled = static_cast<int>(index);
}

Result<std::unique_ptr<Evaluation>> Evaluation::create(const Artifact &artifact, const EvaluationOptions &options,
                                                       const std::vector<int> &ranksHere) {
  std::optional<size_t> program = artifact.findProgram(artifact::ProgramKind::Evaluate);
  if (!program)
    return TESSERA_ERROR(InvalidArgument, "artifact '" + artifact.path() +
                                              "' has no program that evaluates; compile it with --evaluate");
  std::unique_ptr<Evaluation> made(new Evaluation(artifact));
  made->program = *program;
  TESSERA_ASSIGN_OR_RETURN(made->specs, batchSpecs(artifact, *program));
  TESSERA_RETURN_IF_ERROR(made->findResults());
  made->findFill();
  made->hasPerplexity = artifact.program(*program).has_perplexity();

  DataOptions format = options.format;
  format.isEvaluation = true;
  Result<std::unique_ptr<SampleSource>> source = openSamples(options.data, made->specs, format);
  if (!source.isOk())
    return source.status().withContext("--eval-data");
  TESSERA_ASSIGN_OR_RETURN(made->fingerprint, (*source)->fingerprint());
  made->format = (*source)->format();
  made->numSamples = (*source)->samples();
  const auto rows = static_cast<uint64_t>(rowsPerStep(made->specs));
  const uint64_t all = made->filled >= 0 ? (made->numSamples + rows - 1) / rows : made->numSamples / rows;
  made->numBatches = options.batches > 0 ? std::min(all, options.batches) : all;
  if (made->numBatches == all)
    made->leftOut = made->numSamples - std::min(made->numSamples, all * rows);

  LoaderOptions loaderOptions;
  loaderOptions.shuffle = false;
  loaderOptions.prefetch = false;
  loaderOptions.mayRepeat = made->filled >= 0; // what repeats does not count
  loaderOptions.part = partOfRanks(artifact, made->specs, ranksHere, *program);
  Result<std::unique_ptr<Loader>> loader = Loader::create(*std::move(source), made->specs, loaderOptions);
  if (!loader.isOk())
    return loader.status().withContext("--eval-data");
  made->loader = *std::move(loader);
  return made;
}

void Evaluation::fillRows(HostBatch &batch, uint64_t from) const {
  const BatchSpec &spec = specs[filled];
  HostBytes &bytes = batch.tensors[filled];
  auto fill = [&]<typename T>(T value) {
    const size_t perRow = spec.sampleBytes() / sizeof(T);
    for (size_t element = from * perRow; element < bytes.size() / sizeof(T); ++element)
      std::memcpy(bytes.data() + element * sizeof(T), &value, sizeof(T));
  };
  if (spec.dtype == DataType::I32)
    fill(static_cast<int32_t>(spec.ignoreIndex));
  else
    fill(spec.ignoreIndex);
}

Status Evaluation::read(uint64_t number) {
  const auto rows = static_cast<uint64_t>(rowsPerStep(specs));
  // Rows behind the last sample are those of the first ones again.
  TESSERA_ASSIGN_OR_RETURN(std::shared_ptr<const HostBatch> batch, loader->readAt(number * rows));
  if ((number + 1) * rows > numSamples) {
    auto whole = std::make_shared<HostBatch>(*batch);
    fillRows(*whole, numSamples - number * rows);
    batch = std::move(whole);
  }
  held[number % 2] = std::move(batch);
  return Status::ok();
}

Status Evaluation::run(uint64_t number, Session &session, int64_t step, EvaluationSums &sums) {
  const HostBatch &batch = *held[number % 2];
  for (size_t tensor = 0; tensor < specs.size(); ++tensor)
    copyRankPart(specs[tensor], batch.tensors[tensor].data(), rankParts(artifact, tensor, session.rank(), program),
                 session.batchToWrite(tensor, program));
  TESSERA_RETURN_IF_ERROR(session.step(program, step, {}));
  sums.resize(averages.size());
  for (size_t index = 0; index < averages.size(); ++index) {
    sums[index][0] += session.resultValue(averages[index].sum, program);
    sums[index][1] += session.resultValue(averages[index].count, program);
  }
  return Status::ok();
}

/// Of nothing: not a number.
double Evaluation::valueOf(size_t average, const EvaluationSums &sums) const {
  const artifact::ResultTensor &count = *artifact.program(program).results()->Get(averages[average].count);
  return sums[average][0] / (std::max(sums[average][1], count.at_least()) + count.plus());
}

EvaluationMetrics Evaluation::metrics(int64_t step, const EvaluationSums &sums, double seconds) const {
  EvaluationMetrics metrics;
  metrics.step = step;
  const auto &results = *artifact.program(program).results();
  metrics.loss = valueOf(0, sums);
  for (size_t index = 1; index < averages.size(); ++index)
    metrics.others.emplace_back(results.Get(averages[index].sum)->name()->str(), valueOf(index, sums));
  metrics.batches = numBatches;
  metrics.samples = std::min(numSamples, numBatches * static_cast<uint64_t>(rowsPerStep(specs)));
  if (results.Get(averages.front().count)->of())
    metrics.counted = sums.front()[1];
  if (hasPerplexity)
    metrics.perplexity = std::exp(metrics.loss);
  metrics.seconds = seconds;
  return metrics;
}

} // namespace tessera
