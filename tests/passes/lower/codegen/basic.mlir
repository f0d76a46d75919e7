// RUN: kernel-check %s | FileCheck %s
// RUN: kernel-check --gpu %s | FileCheck %s

// CHECK: add: ok, elementwise, extent 1000, grain 8192, passes 1, in place 1
func.func @add(%a: tensor<1000xf32>, %b: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = train.add %a, %b : tensor<1000xf32>
  return %0 : tensor<1000xf32>
}

// CHECK: row_sum: ok, row, extent 17
func.func @row_sum(%a: tensor<17x1000xf32>) -> tensor<17xf32> {
  %0 = train.reduce sum, %a {dimensions = array<i64: 1>} : (tensor<17x1000xf32>) -> tensor<17xf32>
  return %0 : tensor<17xf32>
}
