//===- Loader.cpp - batches in order, one ahead -------------------------------------===//

#include "runtime/data/Loader.h"

#include "runtime/base/Guard.h"

#include <chrono>

namespace tessera {

Loader::Loader(std::unique_ptr<SampleSource> source, std::vector<BatchSpec> specs, const LoaderOptions &options)
    : source(std::move(source)), batchSpecs(std::move(specs)), rowsPerBatch(rowsPerStep(batchSpecs)), options(options),
      wanted(options.part.elements), order(this->source->parts(), options.seed, options.shuffle),
      given(options.position) {
  if (wanted.empty())
    for (const BatchSpec &spec : batchSpecs)
      wanted.push_back(rankElements(spec, {}));
}

Result<std::unique_ptr<Loader>> Loader::create(std::unique_ptr<SampleSource> source, std::vector<BatchSpec> specs,
                                               const LoaderOptions &options) {
  if (specs.empty())
    return TESSERA_ERROR(InvalidArgument, "the model has no inputs that data could fill");
  auto rows = static_cast<uint64_t>(rowsPerStep(specs));
  if (source->samples() < (options.mayRepeat ? 1 : rows))
    return TESSERA_ERROR(InvalidArgument, "the data is too short: it has " + std::to_string(source->samples()) +
                                              " samples, but one step needs " + std::to_string(rows));
  std::unique_ptr<Loader> loader(new Loader(std::move(source), std::move(specs), options));
  if (options.prefetch)
    loader->thread = std::thread([raw = loader.get()] { raw->run(); });
  return loader;
}

Loader::~Loader() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

Result<std::shared_ptr<const HostBatch>> Loader::readAt(uint64_t position) {
  auto batch = std::make_shared<HostBatch>();
  batch->position = position;
  for (const BatchSpec &spec : batchSpecs)
    batch->tensors.emplace_back(spec.globalBytes());
  std::vector<uint8_t *> rows(batchSpecs.size());
  bool isFirst = true;
  for (int64_t row = 0; row < rowsPerBatch; ++row) {
    if (!options.part.rows.empty() && !options.part.rows[row])
      continue;
    uint64_t sample = order.sampleAt(position + row);
    for (size_t tensor = 0; tensor < rows.size(); ++tensor) {
      const BatchSpec &spec = batchSpecs[tensor];
      uint8_t *data = batch->tensors[tensor].data();
      rows[tensor] = !spec.isShared() ? data + row * spec.sampleBytes() : isFirst ? data : nullptr;
    }
    isFirst = false;
    TESSERA_RETURN_IF_ERROR(source->read(sample, rows, wanted));
    for (size_t tensor = 0; tensor < rows.size(); ++tensor) {
      if (!rows[tensor])
        continue;
      const BatchSpec &spec = batchSpecs[tensor];
      if (std::optional<BadIndex> bad = findBadIndex(spec, rows[tensor], wanted[tensor]))
        return TESSERA_ERROR(InvalidArgument,
                             source->describe(sample, tensor, bad->element) + " is " + std::to_string(bad->value) +
                                 ", but '" + spec.name + "' must be in [0, " + std::to_string(bad->bound) +
                                 "), the rows of the table that it is looked up in" +
                                 (bad->value < 0 ? "; only a target that does not count may be negative, where nothing "
                                                   "else is read with it"
                                                 : ""));
      if (std::optional<ApartElement> apart = findApart(spec, rows[tensor]))
        return TESSERA_ERROR(InvalidArgument,
                             source->describe(sample, tensor, apart->element) + " is " + std::to_string(apart->value) +
                                 ", which has come before, but not right before; equal ids of '" + spec.name +
                                 "' must lie side by side, or the model is compiled with --document-ids any");
    }
  }
  return std::shared_ptr<const HostBatch>(std::move(batch));
}

void Loader::run() {
  for (uint64_t position = options.position;; position += rowsPerBatch) {
    auto batch = std::make_unique<Result<std::shared_ptr<const HostBatch>>>(guarded([&] { return readAt(position); }));
    bool failed = !batch->isOk();
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stopping || !ready; });
    if (stopping)
      return;
    ready = std::move(batch);
    changed.notify_all();
    if (failed)
      return;
  }
}

Result<std::shared_ptr<const HostBatch>> Loader::next() {
  auto begin = std::chrono::steady_clock::now();
  auto finish = [&](Result<std::shared_ptr<const HostBatch>> batch) {
    lastWait = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (batch.isOk())
      given += rowsPerBatch;
    return batch;
  };
  if (!options.prefetch)
    return finish(readAt(given));
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return ready != nullptr; });
  if (!ready->isOk())
    return finish(ready->status()); // stays: the thread has ended
  auto batch = std::move(ready);
  lock.unlock();
  changed.notify_all();
  return finish(std::move(**batch));
}

} // namespace tessera
