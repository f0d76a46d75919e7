// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers))' -split-input-file -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={wte=normal:0.5},{.*=zeros}}))' -split-input-file | FileCheck %s --check-prefix=RULES
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={wte=gauss:1}}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=BAD

// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={.*=uniform:1:0}}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={.*=zeros},{nothing=zeros}}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={wte}}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(assign-initializers{rules={*wte=zeros}}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=REGEX

// EMPTY: error: --init: expected <regex>=<initialiser>, an initialiser being zeros, constant:<a>, normal:<deviation>, uniform:<a>:<b> or given, got '.*=uniform:1:0'
// UNUSED: --init: no parameter matches 'nothing'; nearest: '
// FORM: error: --init: expected <regex>=<initialiser>, got 'wte'
// REGEX: error: --init: '*wte' is not a regular expression
// BAD: error: --init: expected <regex>=<initialiser>, an initialiser being zeros, constant:<a>, normal:<deviation>, uniform:<a>:<b> or given, got 'wte=gauss:1'

// Parameters get the default of their kind; an input gets none.
// CHECK-LABEL: func @step
// CHECK-SAME: train.init = "normal:0.02", train.name = "wte.weight"
// CHECK-SAME: train.init = "constant:1", train.name = "ln.weight"
// CHECK-SAME: train.init = "zeros", train.name = "ln.bias"
// CHECK-SAME: train.init = "uniform:-0.192450090:0.192450090", train.name = "conv.weight"
// CHECK-SAME: {train.name = "x", train.role = "input"}
// RULES-LABEL: func @step
// RULES-SAME: train.init = "normal:0.5", train.name = "wte.weight"
// RULES-SAME: train.init = "zeros", train.name = "ln.weight"
func.func @step(%a: tensor<8x4xf32> {train.role = "param", train.name = "wte.weight"},
                %b: tensor<4xf32> {train.role = "param", train.name = "ln.weight"},
                %c: tensor<4xf32> {train.role = "frozen", train.name = "ln.bias"},
                %d: tensor<8x3x3x3xf32> {train.role = "param", train.name = "conv.weight"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"}) {
  return
}

// -----

// A tensor whose value must be given gets no default, nor does a number, but a rule may give them one.
// CHECK-LABEL: func @step
// CHECK-SAME: train.init = "given", train.name = "positions"
// CHECK-SAME: train.init = "given", train.name = "temperature"
// RULES-LABEL: func @step
// RULES-SAME: train.init = "zeros", train.name = "positions"
func.func @step(%wte: tensor<8x4xf32> {train.role = "param", train.name = "wte.weight"},
                %p: tensor<8x4xf32> {train.init = "given", train.role = "frozen", train.name = "positions"},
                %t: tensor<f32> {train.role = "param", train.name = "temperature"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"}) {
  return
}
