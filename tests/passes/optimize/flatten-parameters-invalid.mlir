// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters))' -split-input-file -verify-diagnostics
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters{wrap=size:0}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=WRAP
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters{no-decay=a(}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters{pad-multiple=0}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=PAD

// WRAP: error: unknown wrap policy 'size:0', expected module, size:<bytes> or none
// REGEX: error: --no-decay: 'a(' is not a regular expression of RE2: missing ): a(
// PAD: error: pad-multiple must be at least 1, got 0

// expected-error@+1 {{parameter 'v' has no gradient, but others have one}}
func.func @half(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %v: tensor<4xf32> {train.role = "param", train.name = "v"}) -> (tensor<4xf32> {train.role = "grad", train.of = "w"}) {
  return %w : tensor<4xf32>
}

// -----

// expected-error@+1 {{result 0 is the next value of an argument; run insert-optimizer later}}
func.func @updated(%w: tensor<4xf32> {train.role = "param", train.name = "w"}) -> (tensor<4xf32> {train.alias = 0 : i64}) {
  return %w : tensor<4xf32>
}

// -----

// expected-error@+1 {{parameter 'u' is already flat}}
func.func @twice(%a: tensor<4xf32> {train.role = "param", train.name = "u", train.segments = []}) {
  return
}

// -----

// expected-error@+1 {{parameters up to 'b' have more than 2^56 elements together}}
func.func @endless(%a: tensor<36028797018963968xf32> {train.role = "param", train.name = "a"}, %b: tensor<36028797018963969xf32> {train.role = "param", train.name = "b"})
    -> (tensor<36028797018963968xf32> {train.role = "output", train.name = "y"}) {
  return %a : tensor<36028797018963968xf32>
}
