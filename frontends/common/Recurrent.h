//===- Recurrent.h - recurrent networks, unrolled --------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_RECURRENT_H
#define TESSERA_FRONTENDS_COMMON_RECURRENT_H

#include "frontends/common/Call.h"

namespace tessera::frontend {

enum class Cell { Rnn, Gru, Lstm };
constexpr int64_t gateCount(Cell cell) { return cell == Cell::Rnn ? 1 : cell == Cell::Gru ? 3 : 4; }

/// The longest sequence that is unrolled.
inline constexpr int64_t kMaxSteps = 4096;

using Activation = mlir::Value (*)(train::Build &, mlir::Value);
/// Sigmoid, Tanh or Relu, whatever the case of the letters; null for others.
Activation findActivation(llvm::StringRef name);

/// The values one after the other along `dim`.
mlir::Value joined(train::Build &b, llvm::ArrayRef<mlir::Value> values, int64_t dim);
/// Input `i` of a call if it is there and not zeros, else null.
mlir::Value unlessZero(Call &n, int i);

/// One direction of a layer. Vectors and states are null where they are zero.
struct Direction {
  mlir::Value weight, recurrent;   ///< [gates*H, I], [gates*H, H]
  mlir::Value bias, recurrentBias; ///< [gates*H]
  mlir::Value peepholes;           ///< of an LSTM: [3*H], of input, output and forget gate
  mlir::Value projection;          ///< of an LSTM's hidden state: [P, H]; `recurrent` is [gates*H, P] then
  mlir::Value hidden, cell;        ///< the state: [B, H]
  bool reverse = false;            ///< from the last step to the first
  llvm::SmallVector<Activation> activations;
};

/// How a network is laid out.
struct CellForm {
  Cell cell;
  int64_t size;           ///< of the hidden state
  bool resetAfter;        ///< whether a GRU's reset gate multiplies the product of the state, not the state
  int64_t places[4] = {}; ///< of the gates: update, reset, new of a GRU; input, output, forget, cell of an LSTM
};

/// Runs a direction over `x`, [B, T, I] or [T, B, I], whose dimension `time` is that of the steps. The hidden states
/// after each, by time; the last ones are the direction's.
llvm::SmallVector<mlir::Value> unroll(train::Build &b, const CellForm &form, Direction &d, mlir::Value x, int64_t time);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_RECURRENT_H
