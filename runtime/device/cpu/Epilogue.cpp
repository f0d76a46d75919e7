//===- Epilogue.cpp - bias, GELU and their gradients after a product -------===//

#include "runtime/device/cpu/Epilogue.h"

#include "runtime/base/BFloat16.h"

#include <cmath>

namespace tessera::cpu {

using artifact::DataType;
using artifact::Epilogue;

namespace {

/// Elements of f32 or bf16.
float read(const void *data, DataType dtype, int64_t index) {
  return dtype == DataType::BF16 ? widenBFloat16(static_cast<const uint16_t *>(data)[index])
                                 : static_cast<const float *>(data)[index];
}
void write(void *data, DataType dtype, int64_t index, float value) {
  if (dtype == DataType::BF16)
    static_cast<uint16_t *>(data)[index] = toBFloat16(value);
  else
    static_cast<float *>(data)[index] = value;
}

constexpr float scale = 0.7978845608028654f; // sqrt(2 / pi)
constexpr float cubic = 0.044715f;

float gelu(float x) { return 0.5f * x * (1 + std::tanh(scale * (x + cubic * x * x * x))); }

float geluDerivative(float x) {
  float t = std::tanh(scale * (x + cubic * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * scale * (1 + 3 * cubic * x * x);
}

} // namespace

Result<std::unique_ptr<EpiloguePlan>> EpiloguePlan::make(Epilogue epilogue, const TensorView &a, const TensorView &b,
                                                         const TensorView &c, float alpha, float beta,
                                                         GemmPlanner &planner) {
  auto plan = std::make_unique<EpiloguePlan>();
  plan->epilogue = epilogue;
  plan->a = a;
  plan->b = b;
  plan->c = c;
  TensorView target = c;
  if (!sumsOperand(epilogue)) {
    target.dtype = DataType::F32;
    plan->wide.resize(static_cast<size_t>(c.numElements()));
  }
  TESSERA_ASSIGN_OR_RETURN(plan->product, planner.plan(a, b, target, alpha, beta));
  return plan;
}

Status EpiloguePlan::run(const EpilogueBuffers &buffers) {
  if (sumsOperand(epilogue)) {
    TESSERA_RETURN_IF_ERROR(product->run(buffers.a, buffers.b, buffers.c));
    sumOperand(buffers);
    return Status::ok();
  }
  TESSERA_RETURN_IF_ERROR(product->run(buffers.a, buffers.b, wide.data()));
  finish(buffers);
  return Status::ok();
}

void EpiloguePlan::finish(const EpilogueBuffers &buffers) {
  const int64_t rows = c.shape[0], columns = c.shape[1];
  std::vector<float> sums(static_cast<size_t>(givesBiasGrad(epilogue) ? columns : 0));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t index = row * columns + column;
      float value = wide[static_cast<size_t>(index)];
      if (takesBias(epilogue))
        value += read(buffers.input, c.dtype, column);
      if (givesPreActivation(epilogue))
        write(buffers.output, c.dtype, index, value);
      if (appliesGelu(epilogue))
        value = gelu(value);
      else if (takesPreActivation(epilogue))
        value *= geluDerivative(read(buffers.input, c.dtype, index));
      write(buffers.c, c.dtype, index, value);
      if (!sums.empty())
        sums[static_cast<size_t>(column)] += value;
    }
  for (size_t column = 0; column < sums.size(); ++column)
    write(buffers.output, c.dtype, static_cast<int64_t>(column), sums[column]);
}

void EpiloguePlan::sumOperand(const EpilogueBuffers &buffers) const {
  const bool isA = epilogue == Epilogue::BiasGradA;
  const TensorView &view = isA ? a : b;
  const void *data = isA ? buffers.a : buffers.b;
  const size_t kept = isA ? 0 : 1, summed = 1 - kept;
  for (int64_t index = 0; index < view.shape[kept]; ++index) {
    float sum = 0;
    for (int64_t k = 0; k < view.shape[summed]; ++k)
      sum += read(data, view.dtype, index * view.strides[kept] + k * view.strides[summed]);
    write(buffers.output, c.dtype, index, sum);
  }
}

} // namespace tessera::cpu
