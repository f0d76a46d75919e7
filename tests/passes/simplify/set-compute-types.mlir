// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(set-compute-types{f32={router|head}}))' -split-input-file | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(set-compute-types))' -split-input-file | FileCheck %s --check-prefix=NONE
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(set-compute-types{f32=no_such}))' 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(set-compute-types{f32={router[}}))' 2>&1 | FileCheck %s --check-prefix=BAD

// Trained parameters, frozen ones and buffers; not what has another type, and nothing that is no parameter.
// UNUSED: error: no f32 parameter matches --keep-f32='no_such'
// BAD: error: --keep-f32 is not a regular expression: {{.+}}
// NONE-NOT: train.compute_type
// CHECK-LABEL: func.func @names
// CHECK-SAME: %arg0: tensor<4xf32> {train.compute_type = f32, train.name = "h.0.router.weight", train.role = "param"}
// CHECK-SAME: %arg1: tensor<4xf32> {train.compute_type = f32, train.init = "given", train.name = "h.0.router.bias", train.role = "frozen"}
// CHECK-SAME: %arg2: tensor<4xbf16> {train.name = "head.bias", train.role = "param"}
// CHECK-SAME: %arg3: tensor<4xf32> {train.name = "fc", train.role = "param"}
// CHECK-SAME: %arg4: tensor<4xf32> {train.name = "router_input", train.role = "input"}
func.func @names(%a: tensor<4xf32> {train.role = "param", train.name = "h.0.router.weight"},
                 %b: tensor<4xf32> {train.role = "frozen", train.name = "h.0.router.bias", train.init = "given"},
                 %c: tensor<4xbf16> {train.role = "param", train.name = "head.bias"},
                 %d: tensor<4xf32> {train.role = "param", train.name = "fc"},
                 %x: tensor<4xf32> {train.role = "input", train.name = "router_input"}) -> tensor<4xf32> {
  %0 = train.add %a, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
