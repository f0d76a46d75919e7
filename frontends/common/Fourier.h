//===- Fourier.h - discrete Fourier transforms ------------------*- C++ -*-===//
//
// A transform of a few elements, n, is a product with a matrix of n x n cosines and sines. A larger one is made of two,
// of a and of b elements with a * b = n, between which each element is turned (Cooley and Tukey, "An algorithm for the
// machine calculation of complex Fourier series", 1965), and so on. Complex numbers are pairs (Pairs.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_FOURIER_H
#define TESSERA_FRONTENDS_COMMON_FOURIER_H

#include "frontends/common/Call.h"

namespace tessera::frontend {

/// Along a dimension `axis`: results[k] = scale * sum over j of x[j] exp(-+2 pi i j k / n).
struct Fourier {
  int64_t axis;
  bool isForward; ///< the exponent is negative
  double scale = 1;
};

/// Whether a transform of `size` elements is made; if not, the call has failed.
bool checkFourier(Call &n, int64_t size);

/// Of pairs.
mlir::Value transform(train::Build &b, mlir::Value pairs, const Fourier &f);
/// Of real numbers: the first `count` results, as pairs.
mlir::Value transformReal(train::Build &b, mlir::Value x, const Fourier &f, int64_t count);
/// The `size` real results of pairs whose other half are the conjugates of these size / 2 + 1. The imaginary parts of
/// element 0 and, of an even size, of the last one do not count.
mlir::Value transformToReal(train::Build &b, mlir::Value pairs, const Fourier &f, int64_t size);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_FOURIER_H
