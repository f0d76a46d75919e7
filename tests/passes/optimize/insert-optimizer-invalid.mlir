// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{no-decay=norm}))' -split-input-file -verify-diagnostics
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{kind=lamb}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{settings=beta1=1.0}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=BETA
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{kind=sgd settings=nesterov=1}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=NESTEROV
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{settings=epsilon=0}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=EPSILON
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{kind=lion settings=momentum=0.5}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{kind=lion moments=bf16}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{moments=bf16}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: error: moments cannot be bf16: parameters of 'wide' are 'f64', whose moments are too
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{moments=fp8}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=MOMENTS
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{clip-value=-1}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=VALUE

// KIND: error: unknown optimizer 'lamb', expected adamw, lion or sgd
// BETA: error: beta1 must lie in [0, 1), got 1
// NESTEROV: error: nesterov needs a momentum
// EPSILON: error: epsilon must be positive and finite, got 0
// OTHER: error: lion has no momentum
// NARROW: error: moments cannot be bf16: lion has no random rounding of its states
// MOMENTS: error: unknown moments 'fp8', expected fp32 or bf16
// VALUE: error: clip-value must not be negative, got -1

// expected-error@+1 {{parameter 'w' is not a flat unit; run flatten-parameters first}}
func.func @tensors(%w: tensor<4x4xf32> {train.role = "param", train.name = "w"}) {
  return
}

// -----

// expected-error@+1 {{parameter 'u' has no gradient; run differentiate first}}
func.func @forward(%u: tensor<8xf32> {train.role = "param", train.name = "u", train.decay_elements = 8 : i64, train.segments = [#train.segment<"a", offset = 0, shape = [8]>]}) {
  return
}

// -----

// expected-error@+1 {{no-decay matches parameter 'norm.a', but flatten-parameters laid it out with weight decay; give both the same no-decay}}
func.func @layout(%u: tensor<8xf32> {train.role = "param", train.name = "u", train.decay_elements = 8 : i64, train.segments = [#train.segment<"norm.a", offset = 0, shape = [8]>]}) {
  return
}

// -----

// expected-error@+1 {{has no trainable parameter}}
func.func @nothing(%x: tensor<8xf32> {train.role = "input", train.name = "x"}) {
  return
}

// -----

// expected-error@+1 {{parameter 'wide' has no gradient}}
func.func @wide(%u: tensor<8xf64> {train.role = "param", train.name = "wide", train.decay_elements = 8 : i64, train.segments = [#train.segment<"a", offset = 0, shape = [8]>]}) -> (tensor<f64> {train.role = "loss"}) {
  %loss = train.constant dense<0.0> : tensor<f64>
  return %loss : tensor<f64>
}
