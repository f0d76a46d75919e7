//===- Train.h - the train dialect ------------------------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_TRAIN_H
#define TESSERA_COMPILER_DIALECT_TRAIN_TRAIN_H

#include "compiler/interfaces/IndexMapping.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "compiler/interfaces/OptimizerUpdate.h"

#include "compiler/dialect/train/TrainDialect.h.inc"
#include "compiler/dialect/train/TrainEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/train/TrainAttrs.h.inc"
#define GET_OP_CLASSES
#include "compiler/dialect/train/TrainOps.h.inc"

namespace tessera::train {

// Names of the attributes of a step function's arguments and results; see the dialect's description.
inline constexpr llvm::StringLiteral kRole = "train.role";
inline constexpr llvm::StringLiteral kName = "train.name";
inline constexpr llvm::StringLiteral kOf = "train.of";
inline constexpr llvm::StringLiteral kAlias = "train.alias";
/// On a flat unit argument: how many of its first elements take weight decay (i64).
inline constexpr llvm::StringLiteral kDecayElements = "train.decay_elements";
/// On a state argument: what it is to the optimizer ("m"), or kAverage.
inline constexpr llvm::StringLiteral kState = "train.state";
/// The state that is the moving average of its parameter.
inline constexpr llvm::StringLiteral kAverage = "average";
/// On a scalar `bias_correction…`: the number b of 1 - b^update (f64).
inline constexpr llvm::StringLiteral kBeta = "train.beta";
/// On an optimizer update: the name of the unit that it updates.
inline constexpr llvm::StringLiteral kUnit = "train.unit";
/// On a fusion with optimizer updates: the names of their units, and which operands hold the gradients.
inline constexpr llvm::StringLiteral kUnits = "train.units";
inline constexpr llvm::StringLiteral kGradOperands = "train.grad_operands";
/// Argument attribute (unit): along the last dimension of each sample, equal values lie side by side.
inline constexpr llvm::StringLiteral kHasRuns = "train.has_runs";
/// On a batch argument: its values are below this (i64), but for the ignored index (i64).
inline constexpr llvm::StringLiteral kIndexBound = "train.index_bound";
inline constexpr llvm::StringLiteral kIgnoreIndex = "train.ignore_index";
/// On the module: array of #train.tensor, what the tensors of the model file are in the step.
inline constexpr llvm::StringLiteral kTensors = "train.tensors";
/// On the module: array of #train.adapter.
inline constexpr llvm::StringLiteral kAdapters = "train.adapters";
/// On the module: #train.weight_map, which tensors of Hugging Face's files its parameters are.
inline constexpr llvm::StringLiteral kWeightMap = "train.weight_map";
/// On a parameter argument: its initialiser, see Initializer.h.
inline constexpr llvm::StringLiteral kInit = "train.init";
/// On an op made by autodiff: it belongs to the backward pass (unit attribute).
inline constexpr llvm::StringLiteral kBackward = "train.backward";

/// On an op of the backward pass that repeats one of the forward pass (unit attribute).
inline constexpr llvm::StringLiteral kRecompute = "train.recompute";

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_TRAIN_H
