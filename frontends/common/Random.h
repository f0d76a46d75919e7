//===- Random.h - the random numbers of one call ----------------*- C++ -*-===//
//
// Distributions, made of uniform numbers that are a function of the step's seed, a stream and the place in the whole
// tensor (`train.rng_uniform`): so they are the same on any mesh and when they are computed a second time.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_RANDOM_H
#define TESSERA_FRONTENDS_COMMON_RANDOM_H

#include "frontends/common/Step.h"

namespace tessera::frontend {

/// Each function takes streams that nothing else of the step has. `type` is that in which numbers are computed, f32 or
/// f64; they are of a grid of 2^-24 in f32 and 2^-48 in f64, unless said otherwise.
class Random {
public:
  /// `call`: the number of the call among all of the program that draw, from 0. A call has kStreams streams.
  Random(train::Build &b, Step &step, int64_t call) : b(b), step(step), stream(kFirst + call * kStreams) {}

  /// From 0 to below 1.
  mlir::Value uniform(llvm::ArrayRef<int64_t> shape, mlir::Type type);
  /// Of mean 0 and variance 1, up to 5.8 in f32 and 8.2 in f64 on both sides: sqrt(-2 log(1 - u)) cos(2 pi v) (Box and
  /// Muller, A note on the generation of random normal deviates, 1958).
  mlir::Value normal(llvm::ArrayRef<int64_t> shape, mlir::Type type);
  /// Of mean 1, from 2^-49 to 17 in f32 and 34 in f64, never 0: -log(1 - u) of the grid of 2^-48.
  mlir::Value exponential(llvm::ArrayRef<int64_t> shape, mlir::Type type);
  /// The quotient of two normal numbers: 1 / tan(pi w), where w is from -1/2 to 1/2 and never 0.
  mlir::Value cauchy(llvm::ArrayRef<int64_t> shape, mlir::Type type);
  /// True with the probability that is given; nothing checks that it is from 0 to 1.
  mlir::Value isBelow(mlir::Value probability);
  mlir::Value isBelow(llvm::ArrayRef<int64_t> shape, mlir::Type type, double probability);
  /// Integers (i64) from 0 to `count` - 1, the remainders of one with so many bits that none is more probable than
  /// another by more than 2^-24 of its probability; of a power of two exactly equal. Null if 63 bits are too few.
  mlir::Value below(llvm::ArrayRef<int64_t> shape, uint64_t count);
  /// Integers (i64) of 48 bits.
  mlir::Value bits(llvm::ArrayRef<int64_t> shape);

  /// Calls beyond 2^28 have the streams of earlier ones; files have fewer nodes.
  static constexpr int64_t kStreams = 8, kFirst = int64_t{1} << 32; ///< those of dropouts begin at 0

private:
  mlir::Value next(llvm::ArrayRef<int64_t> shape);
  mlir::Value nextBits(llvm::ArrayRef<int64_t> shape);
  mlir::Value fine(llvm::ArrayRef<int64_t> shape, mlir::Type type);

  train::Build &b;
  Step &step;
  int64_t stream;
};

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_RANDOM_H
