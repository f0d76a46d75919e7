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
  if (isFloat8(type)) {
    const auto byte = static_cast<uint8_t>(base[at]);
    return F16::widen(type == CUDA_R_8F_E4M3 ? E4M3::widen(byte) : E5M2::widen(byte));
  }
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

/// The scales of an operand as op(a) [m, k] or op(b) [k, n]: `rows` of its m or n, contracted over `k`.
class ReadScales {
public:
  ReadScales(const Scales &scales, int64_t rows, int64_t k, const Gpu &gpu) : mode(scales.mode), rows(rows), k(k) {
    if (scales.address)
      bytes = gpu.resolve(scales.address, static_cast<uint64_t>(size()), "the scales of cublasLtMatmul");
  }

  float at(int64_t row, int64_t inner) const {
    if (!bytes)
      return 1;
    switch (mode) {
    case CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F:
      return word(row);
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F: // rows first
      return word(inner / 128 * rows + row);
    case CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F: // k first, in groups of 4
      return word(row / 128 * grouped() + inner / 128);
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0: {
      // Tiles of 128 rows and 4 blocks, those of a row of tiles one after the other; the bytes in a tile as NVIDIA's
      // picture of it has them.
      int64_t block = inner / 32, tile = row / 128 * ((k + 127) / 128) + block / 4, own = row % 128;
      int64_t place = tile * 512 + own % 32 * 16 + own / 32 * 4 + block % 4;
      return static_cast<float>(std::ldexp(1.0, static_cast<int>(static_cast<uint8_t>(bytes[place])) - 127));
    }
    default:
      return word(0);
    }
  }

  bool isByBlock() const {
    return mode != CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F && mode != CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
  }

private:
  int64_t grouped() const { return (k + 511) / 512 * 4; }
  int64_t size() const {
    switch (mode) {
    case CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F:
      return 4 * rows;
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F:
      return 4 * rows * ((k + 127) / 128);
    case CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F:
      return 4 * grouped() * ((rows + 127) / 128);
    case CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0:
      return (rows + 127) / 128 * ((k + 127) / 128) * 512;
    default:
      return 4;
    }
  }
  float word(int64_t at) const { return reinterpret_cast<const float *>(bytes)[at]; }

  int32_t mode;
  int64_t rows, k;
  const std::byte *bytes = nullptr;
};

} // namespace

std::string problemOfFloat8(const Product &p, int capability) {
  // NVIDIA cuBLAS documentation, cublasLtMatmul: "To use tensor- or block-scaled FP8 kernels".
  if (capability < 89)
    return "8-bit floats on a GPU without";
  if (!isFloat8(p.a.type) || !isFloat8(p.b.type) || (p.a.type == CUDA_R_8F_E5M2 && p.b.type == CUDA_R_8F_E5M2))
    return "this combination of types";
  if (p.c.type != p.d.type || (p.d.type != CUDA_R_32F && p.d.type != CUDA_R_16BF && p.d.type != CUDA_R_16F))
    return "this type of the result";
  if (capability < 100 && (!p.isATransposed || p.isBTransposed))
    return "8-bit floats in another form than TN";
  for (int64_t size : {p.m, p.n, p.k})
    if (size % 16 != 0)
      return "a size of a product of 8-bit floats is no multiple of 16: " + std::to_string(size);
  for (const Matrix *one : {&p.a, &p.b, &p.c, &p.d})
    if (one->leading * static_cast<int64_t>(one->width()) % 16 != 0)
      return "a leading dimension of a product of 8-bit floats is no multiple of 16 bytes";
  constexpr int32_t tensor = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, row = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
                    vector = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
                    block = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
                    micro = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
  const int32_t a = p.aScales.mode, b = p.bScales.mode;
  const bool isBlock = (a == vector || a == block) && (b == vector || b == block);
  if (!((a == b && (a == tensor || a == row || a == micro)) || (isBlock && !(a == block && b == block))))
    return "scales of modes " + std::to_string(a) + " and " + std::to_string(b);
  if ((a == row || isBlock) && capability != 90)
    return "scales of rows or of blocks of 128 on another GPU than Hopper";
  if (a == micro && capability < 100)
    return "scales of blocks of 32 before Blackwell";
  if (isBlock && (p.m % 4 != 0 || p.n % 4 != 0))
    return "scales of blocks of 128 for sizes that are no multiples of 4";
  if (isBlock && p.accumulatesFast)
    return "fast accumulation with scales of blocks of 128";
  if (p.d.batch != 1 && a != tensor)
    return "a batch of products with scales of rows or blocks";
  if (p.epilogue != CUBLASLT_EPILOGUE_DEFAULT && p.epilogue != CUBLASLT_EPILOGUE_BIAS)
    return "an epilogue of a product of 8-bit floats that is not simulated";
  return "";
}

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
  const ReadScales aScales(p.aScales, p.m, p.k, gpu), bScales(p.bScales, p.n, p.k, gpu);
  // What all of a row shares is applied to its sums, as the hardware does.
  const bool isScaled = isFloat8(p.a.type), scalesBlocks = aScales.isByBlock();
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
    if (isScaled && scalesBlocks) {
      for (int64_t inner = 0; inner < p.k; ++inner)
        for (int64_t row = 0; row < p.m; ++row)
          left[inner * p.m + row] *= aScales.at(row, inner);
      for (int64_t column = 0; column < p.n; ++column)
        for (int64_t inner = 0; inner < p.k; ++inner)
          right[column * p.k + inner] *= bScales.at(column, inner);
    }
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
        if (isScaled && !scalesBlocks)
          value *= aScales.at(row, 0) * bScales.at(column, 0);
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
