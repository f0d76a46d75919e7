// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(set-compute-types{f32={router|head}}))' -split-input-file -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(set-compute-types))' -split-input-file | FileCheck %s --check-prefix=NONE
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(set-compute-types{f32=no_such}))' 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(set-compute-types{f32={*router}}))' 2>&1 | FileCheck %s --check-prefix=BAD

// Trained parameters, frozen ones and buffers; not what has another type, and nothing that is no parameter.
// UNUSED: error: --keep-f32: no parameter matches 'no_such'; nearest: '
// BAD: error: --keep-f32: '*router' is not a regular expression of RE2: {{.+}}
// NONE-NOT: train.compute_type
// CHECK-LABEL: func.func @names
// CHECK-SAME: %arg0: tensor<4xf32> {train.compute_type = f32, train.name = "h.0.router.weight", train.role = "param"}
// CHECK-SAME: %arg1: tensor<4xf32> {train.compute_type = f32, train.init = "given", train.name = "h.0.router.bias", train.role = "frozen"}
// CHECK-SAME: %arg2: tensor<4xbf16> {train.name = "head.bias", train.role = "param"}
// CHECK-SAME: %arg3: tensor<4xf32> {train.name = "fc", train.role = "param"}
// CHECK-SAME: %arg4: tensor<4xf32> {train.name = "router_input", train.role = "input"}
func.func @names(%a: tensor<4xf32> {train.role = "param", train.name = "h.0.router.weight"},
                 %b: tensor<4xf32> {train.role = "frozen", train.name = "h.0.router.bias", train.init = "given"},
                 // expected-remark @below {{--keep-f32: 'head.bias' is 'bf16' in the model, and is read so}}
                 %c: tensor<4xbf16> {train.role = "param", train.name = "head.bias"},
                 %d: tensor<4xf32> {train.role = "param", train.name = "fc"},
                 %x: tensor<4xf32> {train.role = "input", train.name = "router_input"}) -> tensor<4xf32> {
  %0 = train.add %a, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Products that read what matches, or what follows from it alone; not what reads their results, and not where it is
// joined with other values.
// CHECK-LABEL: func.func @products
func.func @products(%r: tensor<4x4xf32> {train.role = "param", train.name = "router"},
                    %w: tensor<4x4xf32> {train.role = "param", train.name = "fc"},
                    %x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32>, tensor<4x8xf32>) {
  %half = train.constant dense<0.5> : tensor<4x4xf32>
  %0 = train.mul %r, %half : tensor<4x4xf32>
  %1 = train.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: train.dot_general %{{.*}}, %{{.*}} {compute_type = f32, lhs_batch
  %2 = train.dot_general %x, %1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: train.dot_general %{{.*}}, %{{.*}} {lhs_batch
  %3 = train.dot_general %2, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-remark @below {{not computed in f32, although a parameter that --keep-f32 names is read here: other values are, too}}
  %4 = train.concat %r, %w {dim = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  // CHECK: train.dot_general %{{.*}}, %{{.*}} {lhs_batch
  %5 = train.dot_general %x, %4 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x4xf32>, tensor<8x4xf32>) -> tensor<4x8xf32>
  return %3, %5 : tensor<4x4xf32>, tensor<4x8xf32>
}

// -----

// What follows from such parameters alone: by masks that are computed, softmax, norms and products of two.
// CHECK-LABEL: func.func @follows
func.func @follows(%r: tensor<4x4xf32> {train.role = "param", train.name = "router"},
                   %p: tensor<4x4xf32> {train.role = "param", train.name = "head"},
                   %s: tensor<4xf32> {train.role = "param", train.name = "scale"},
                   %w: tensor<2x4xf32> {train.role = "param", train.name = "fc"},
                   %x: tensor<4x4xf32> {train.role = "input", train.name = "x"},
                   %ids: tensor<4xi64> {train.role = "input", train.name = "ids"}, %at: tensor<i64>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %count = train.iota {dim = 0 : i64} : tensor<4x4xi64>
  %float = train.convert %count : (tensor<4x4xi64>) -> tensor<4x4xf32>
  %masked = train.mul %r, %float : tensor<4x4xf32>
  %soft = train.softmax %masked {dim = 1 : i64} : tensor<4x4xf32>
  // CHECK: train.dot_general %arg4, %{{.*}} {compute_type = f32
  %0 = train.dot_general %x, %soft {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: train.dot_general %arg0, %arg1 {compute_type = f32
  %both = train.dot_general %r, %p {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %normed, %mean, %rstd = train.layer_norm rms, %both {epsilon = 1.0e-5 : f64} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: train.dot_general %arg4, %{{.*}} {compute_type = f32
  %1 = train.dot_general %x, %normed {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // Not where others have a say, which is told where it is rounded.
  // expected-remark @below {{not computed in f32, although a parameter that --keep-f32 names is read here: other values are, too}}
  %other, %mean2, %rstd2 = train.layer_norm rms, %r scale(%s) {epsilon = 1.0e-5 : f64} : (tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: train.dot_general %arg4, %{{.*}} {lhs_batch
  %2 = train.dot_general %x, %other {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-remark @below {{not computed in f32, although a parameter that --keep-f32 names is read here: other values are, too}}
  %updated = train.dynamic_update_slice %r, %w[%at, %at] : (tensor<4x4xf32>, tensor<2x4xf32>, tensor<i64>, tensor<i64>) -> tensor<4x4xf32>
  // CHECK: train.dot_general %arg4, %{{.*}} {lhs_batch
  %3 = train.dot_general %x, %updated {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  // Rows that data choose are activations; what the model itself rounds is rounded.
  %rows = train.gather_rows %r, %ids : (tensor<4x4xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  // CHECK: train.dot_general %{{.*}}, %arg4 {lhs_batch
  %4 = train.dot_general %rows, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %narrow = train.convert %r : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %wide = train.convert %narrow : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  // CHECK: train.dot_general %arg4, %{{.*}} {lhs_batch
  %5 = train.dot_general %x, %wide {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
