// RUN: tessera-opt %s --decompose --fuse | FileCheck %s
// RUN: tessera-opt %s --decompose --fuse -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --rtol=1e-4 --atol=1e-5 --quiet
// RUN: tessera-opt %s --decompose --fuse --outline-kernels | kernel-check
// What is compared differs in the order of sums and in what is computed twice, hence up to rounding.

// The second addition needs the product, which needs the first: they are not one kernel.
// CHECK-LABEL: func.func @no_cycle
// CHECK:         exec.fusion
// CHECK:         train.dot_general
// CHECK:         exec.fusion
func.func @no_cycle(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = train.add %x, %x : tensor<4x4xf32>
  %p = train.dot_general %a, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = train.add %a, %p : tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}

// Kernels that read one large value are one, although neither reads the other.
// CHECK-LABEL: func.func @siblings
// CHECK:         exec.fusion "elementwise"(%arg0) {{.*}} : (tensor<16x64xf32>) -> (tensor<16x64xf32>, tensor<16x64xf32>)
// CHECK-NOT:     exec.fusion
// CHECK:         return
func.func @siblings(%x: tensor<16x64xf32>) -> (tensor<16x64xf32>, tensor<16x64xf32>) {
  %a = train.exp %x : tensor<16x64xf32>
  %b = train.tanh %x : tensor<16x64xf32>
  return %a, %b : tensor<16x64xf32>, tensor<16x64xf32>
}

// Not merged because nothing is saved: they share no value.
// CHECK-LABEL: func.func @unrelated
// CHECK:         exec.fusion "elementwise"(%arg0)
// CHECK:         exec.fusion "elementwise"(%arg1)
func.func @unrelated(%x: tensor<16x64xf32>, %y: tensor<16x64xf32>) -> (tensor<16x64xf32>, tensor<16x64xf32>) {
  %a = train.exp %x : tensor<16x64xf32>
  %b = train.tanh %y : tensor<16x64xf32>
  return %a, %b : tensor<16x64xf32>, tensor<16x64xf32>
}

// A kernel of column sums may write the whole tensor too if it has columns enough to be parallel; not with few.
// CHECK-LABEL: func.func @many_columns
// CHECK:         exec.fusion "column"(%arg0) {{.*}} -> ({{.*}}tensor<64x128xf32>{{.*}})
// CHECK-NOT:     exec.fusion
// CHECK:         return
func.func @many_columns(%x: tensor<64x128xf32>) -> (tensor<64x128xf32>, tensor<128xf32>) {
  %e = train.exp %x : tensor<64x128xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 0>} : (tensor<64x128xf32>) -> tensor<128xf32>
  return %e, %s : tensor<64x128xf32>, tensor<128xf32>
}

// CHECK-LABEL: func.func @few_columns
// CHECK:         exec.fusion "elementwise"({{.*}} -> tensor<64x16xf32>
// CHECK:         exec.fusion "column"({{.*}} -> tensor<16xf32>
func.func @few_columns(%x: tensor<64x16xf32>) -> (tensor<64x16xf32>, tensor<16xf32>) {
  %e = train.exp %x : tensor<64x16xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 0>} : (tensor<64x16xf32>) -> tensor<16xf32>
  return %e, %s : tensor<64x16xf32>, tensor<16xf32>
}
