// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters))' -split-input-file -verify-diagnostics
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters{wrap=size:0}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=WRAP
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters{no-decay=a(}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters{pad-multiple=0}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=PAD

// WRAP: error: unknown wrap policy 'size:0', expected module, size:<bytes> or none
// REGEX: error: no-decay is not a regular expression: parentheses not balanced
// PAD: error: pad-multiple must be at least 1, got 0

// expected-error@+1 {{two parameters are called 'w'}}
func.func @same(%a: tensor<4xf32> {train.role = "param", train.name = "w"}, %b: tensor<4xf32> {train.role = "param", train.name = "w"}) {
  return
}

// -----

// expected-error@+1 {{parameter argument 0 has no train.name}}
func.func @nameless(%a: tensor<4xf32> {train.role = "param"}) {
  return
}

// -----

// expected-error@+1 {{parameter 'u' is flat already}}
func.func @twice(%a: tensor<4xf32> {train.role = "param", train.name = "u", train.segments = []}) {
  return
}
