//===- CublasLtProduct.cpp - evaluates a product of cuBLASLt -------------------===//

#include "CublasLtProduct.h"

#include "Numbers.h"

#include <algorithm>
#include <cstring>

namespace tessera::sim {
namespace {

float read(cudaDataType type, const std::byte *base, int64_t at) {
  if (type == CUDA_R_32F)
    return reinterpret_cast<const float *>(base)[at];
  uint16_t bits = reinterpret_cast<const uint16_t *>(base)[at];
  return type == CUDA_R_16BF ? Bf16::widen(bits) : F16::widen(bits);
}
void write(cudaDataType type, std::byte *base, int64_t at, float value) {
  if (type == CUDA_R_32F)
    reinterpret_cast<float *>(base)[at] = value;
  else
    reinterpret_cast<uint16_t *>(base)[at] = type == CUDA_R_16BF ? Bf16::narrow(value) : F16::narrow(value);
}

constexpr float geluScale = 0.7978845608F, geluCube = 0.044715F;
float gelu(float x) { return 0.5F * x * (1 + std::tanh(geluScale * (x + geluCube * x * x * x))); }
float geluGrad(float x) {
  float t = std::tanh(geluScale * (x + geluCube * x * x * x));
  return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * geluScale * (1 + 3 * geluCube * x * x);
}

} // namespace

void evaluate(const Product &p, const Addresses &at, float alpha, float beta, const Gpu &gpu) {
  auto bytesOf = [&](const Matrix &one, uint64_t address) {
    return gpu.resolve(address, static_cast<uint64_t>(one.elements()) * one.width(), "cublasLtMatmul");
  };
  const std::byte *a = bytesOf(p.a, at.a), *b = bytesOf(p.b, at.b), *c = beta != 0 ? bytesOf(p.c, at.c) : nullptr;
  std::byte *d = bytesOf(p.d, at.d);
  bool isSum = p.epilogue == CUBLASLT_EPILOGUE_BGRADA || p.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  bool writesBias = isSum || (p.epilogue & givesBiasGrad), usesAux = !isSum && (p.epilogue & hasAux);
  int64_t biasSize = p.epilogue == CUBLASLT_EPILOGUE_BGRADB ? p.n : p.m;
  std::byte *bias =
      writesBias || (!isSum && (p.epilogue & hasBias))
          ? gpu.resolve(p.bias, static_cast<uint64_t>(biasSize + (p.d.batch - 1) * p.biasStride) * widthOf(p.biasType),
                        "the bias of cublasLtMatmul")
          : nullptr;
  std::byte *aux =
      usesAux ? gpu.resolve(p.aux,
                            static_cast<uint64_t>((p.n - 1) * p.auxLeading + p.m + (p.d.batch - 1) * p.auxStride) *
                                widthOf(p.auxType),
                            "the matrix of an epilogue of cublasLtMatmul")
              : nullptr;
  std::vector<float> left(static_cast<size_t>(p.m * p.k)), right(static_cast<size_t>(p.k * p.n)),
      sums(static_cast<size_t>(p.m)), biasSums;
  for (int64_t batch = 0; batch < p.d.batch; ++batch) {
    for (int64_t row = 0; row < p.m; ++row) // by columns of op(a)
      for (int64_t inner = 0; inner < p.k; ++inner)
        left[inner * p.m + row] = read(
            p.a.type, a, batch * p.a.batchStride + (p.isATransposed ? p.a.place(inner, row) : p.a.place(row, inner)));
    for (int64_t inner = 0; inner < p.k; ++inner)
      for (int64_t column = 0; column < p.n; ++column)
        right[column * p.k + inner] =
            read(p.b.type, b,
                 batch * p.b.batchStride + (p.isBTransposed ? p.b.place(column, inner) : p.b.place(inner, column)));
    biasSums.assign(static_cast<size_t>(biasSize), 0);
    for (int64_t inner = 0; inner < p.k && isSum; ++inner)
      for (int64_t index = 0; index < biasSize; ++index)
        biasSums[index] +=
            p.epilogue == CUBLASLT_EPILOGUE_BGRADA ? left[inner * p.m + index] : right[index * p.k + inner];
    for (int64_t column = 0; column < p.n; ++column) {
      std::fill(sums.begin(), sums.end(), 0.0F);
      for (int64_t inner = 0; inner < p.k; ++inner) {
        float factor = right[column * p.k + inner];
        const float *from = left.data() + inner * p.m;
        float *to = sums.data();
#pragma GCC ivdep
        for (int64_t row = 0; row < p.m; ++row)
          to[row] += from[row] * factor;
      }
      for (int64_t row = 0; row < p.m; ++row) {
        float value = alpha * sums[row];
        if (c)
          value += beta * read(p.c.type, c, batch * p.c.batchStride + p.c.place(row, column));
        if (!isSum) {
          if (p.epilogue & hasBias)
            value += read(p.biasType, bias, batch * p.biasStride + row);
          int64_t auxAt = batch * p.auxStride + column * p.auxLeading + row;
          if (p.epilogue & isGelu) {
            if (aux)
              write(p.auxType, aux, auxAt, value);
            value = gelu(value);
          } else if (p.epilogue & isGeluGrad) {
            value *= geluGrad(read(p.auxType, aux, auxAt));
          } else if (p.epilogue & isRelu) {
            value = std::max(value, 0.0F);
          }
          if (p.epilogue & givesBiasGrad)
            biasSums[row] += value;
        }
        write(p.d.type, d, batch * p.d.batchStride + p.d.place(row, column), value);
      }
    }
    for (int64_t index = 0; index < biasSize && writesBias; ++index)
      write(p.biasType, bias, batch * p.biasStride + index, biasSums[index]);
  }
}

} // namespace tessera::sim
