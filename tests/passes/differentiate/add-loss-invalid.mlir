// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=cross-entropy}))' -split-input-file -verify-diagnostics
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=hinge}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:score}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{label-smoothing=1.5 of=a}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=SMOOTH
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{ignore-index=4294967296 of=a}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=IGNORE

// IGNORE: error: ignore-index must be a 32-bit integer, as targets are, got 4294967296
// KIND: error: unknown loss 'hinge', expected cross-entropy, mse or output:<name>
// NAME: error: the model has no output 'score'; its outputs are 'a', 'b'
// SMOOTH: error: label-smoothing must lie in [0, 1], got 1.5

// expected-error@+1 {{the loss needs one output of the model, got several and none called 'logits'; its outputs are 'a', 'b'}}
func.func @several(%x: tensor<2x3xf32> {train.role = "input", train.name = "x"})
    -> (tensor<2x3xf32> {train.role = "output", train.name = "a"}, tensor<2x3xf32> {train.role = "output", train.name = "b"}) {
  return %x, %x : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// NAME: error: output 'score' cannot be the loss: expected one floating-point number, got 'tensor<3xf32>'
// expected-error@+1 {{cross-entropy needs floating-point logits of shape [batch…, classes], got 'tensor<3xf32>'}}
func.func @vector(%x: tensor<3xf32> {train.role = "input", train.name = "x"}) -> (tensor<3xf32> {train.role = "output", train.name = "score"}) {
  return %x : tensor<3xf32>
}

// -----

// expected-error@+1 {{already has a loss}}
func.func @twice(%x: tensor<f32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  return %x : tensor<f32>
}

// -----

// expected-error@+1 {{cross-entropy needs an output with a value for each sample, got 'tensor<6x5xf32>', whose dimension 0 is not the batch of the inputs; if the output is the loss itself, use --loss output:<name>}}
func.func @no_samples(%x: tensor<2x3xf32> {train.role = "input", train.name = "x"}, %w: tensor<6x5xf32> {train.role = "param", train.name = "w"})
    -> (tensor<6x5xf32> {train.role = "output", train.name = "score"}) {
  return %w : tensor<6x5xf32>
}

// -----

// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=mse of=pairs}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=PAIRS
// PAIRS: error: mse needs an output with a value for each sample, got 'tensor<4x4xf32>', of which 2 dimensions count samples
// expected-error@+1 {{the loss needs one output of the model}}
func.func @pairs(%x: tensor<4x2xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, none]>})
    -> (tensor<4x4xf32> {train.role = "output", train.name = "pairs"}, tensor<4x2xf32> {train.role = "output", train.name = "x"}) {
  %y = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  return %y, %x : tensor<4x4xf32>, tensor<4x2xf32>
}

// -----

// Targets of either dimension of classes have the same shape: the data cannot tell which is meant.
// expected-warning@+1 {{of logits 'tensor<2x8x8x8xf32>' the last dimension counts classes, and targets are 'tensor<2x8x8xi32>': where dimension 1 counts them, as for PyTorch's cross_entropy, let the model return logits.movedim(1, -1)}}
func.func @classes_of_images(%x: tensor<2x8x8x8xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, none, none, none]>})
    -> (tensor<2x8x8x8xf32> {train.role = "output", train.name = "y"}) {
  return %x : tensor<2x8x8x8xf32>
}

// -----

// Words are no classes, and targets of either dimension differ where the sizes do.
func.func @classes_of_words(%x: tensor<2x8x8xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, position, none]>})
    -> (tensor<2x8x8xf32> {train.role = "output", train.name = "y"}) {
  return %x : tensor<2x8x8xf32>
}

// -----

func.func @classes_of_others(%x: tensor<2x8x8x5xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, none, none, none]>})
    -> (tensor<2x8x8x5xf32> {train.role = "output", train.name = "y"}) {
  return %x : tensor<2x8x8x5xf32>
}

// -----

// expected-error@+1 {{the cross-entropy of one class is always 0, and the logits are 'tensor<4x1xf32>': --loss mse for numbers}}
func.func @one_class(%x: tensor<4x1xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x1xf32> {train.role = "output", train.name = "y"}) {
  return %x : tensor<4x1xf32>
}

// -----

// expected-error@+1 {{of shape [batch…, classes], got 'tensor<f32>', one number; if it is the loss, use --loss output:own}}
func.func @loss_of_its_own(%x: tensor<f32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "output", train.name = "own"}) {
  return %x : tensor<f32>
}
