//===- DataFixture.h - token files and batch tables for the data tests -----------===//

#ifndef TESSERA_TESTS_RUNTIME_DATA_DATAFIXTURE_H
#define TESSERA_TESTS_RUNTIME_DATA_DATAFIXTURE_H

#include "runtime/data/Batch.h"

#include <cstring>
#include <string>
#include <vector>

namespace tessera::test {

template <typename T> std::string rawBytes(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

/// 0, 1, …, count-1 as uint16.
inline std::string countingTokens(uint16_t count) {
  std::vector<uint16_t> tokens(count);
  for (uint16_t i = 0; i < count; ++i)
    tokens[i] = i;
  return rawBytes(tokens);
}

/// `batchDim`: 0, or 1 behind a dimension of micro-batches.
inline BatchSpec makeSpec(const std::string &name, artifact::BatchRole role, DataType dtype,
                          std::vector<int64_t> globalShape, int64_t batchDim = 0) {
  BatchSpec spec;
  spec.name = name;
  spec.role = role;
  spec.dtype = dtype;
  spec.globalShape = std::move(globalShape);
  spec.dims.assign(spec.globalShape.size(), artifact::DimRole::None);
  spec.dims[batchDim] = artifact::DimRole::Sample;
  if (batchDim == 1)
    spec.dims[0] = artifact::DimRole::MicroBatch;
  return spec;
}

/// Inputs (I64) and targets (I32) of a language model.
inline std::vector<BatchSpec> languageModel(std::vector<int64_t> globalShape, int64_t batchDim = 0,
                                            int64_t vocabulary = -1) {
  std::vector<BatchSpec> specs = {
      makeSpec("input_ids", artifact::BatchRole::Input, DataType::I64, globalShape, batchDim),
      makeSpec("targets", artifact::BatchRole::Target, DataType::I32, globalShape, batchDim)};
  for (BatchSpec &spec : specs)
    spec.indexBound = vocabulary;
  return specs;
}

template <typename T, typename Bytes> std::vector<T> valuesOf(const Bytes &bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_DATA_DATAFIXTURE_H
