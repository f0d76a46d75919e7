// What is made out of tensors without elements is known: no kernel and no memory is made for them.
// RUN: tessera-opt %s --decompose | FileCheck %s
// RUN: tessera-opt %s --decompose -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --quiet

// What is made out of a tensor without elements is known.
// CHECK-LABEL: func.func @empty
// CHECK-NOT:     x0xf32
// CHECK:         return
func.func @empty(%x: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3x2xf32>, tensor<3x4xf32>) {
  %none = train.slice %x {limits = array<i64: 3, 2>, starts = array<i64: 0, 2>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<3x0xf32>
  %e = train.exp %none : tensor<3x0xf32>
  %sum = train.reduce sum, %e {dimensions = array<i64: 1>} : (tensor<3x0xf32>) -> tensor<3xf32>
  %pad = train.pad %e {low = array<i64: 0, 1>, high = array<i64: 0, 1>, interior = array<i64: 0, 0>, value = 2.0 : f64} : (tensor<3x0xf32>) -> tensor<3x2xf32>
  %all = train.concat %e, %x {dim = 1 : i64} : (tensor<3x0xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %sum, %pad, %all : tensor<3xf32>, tensor<3x2xf32>, tensor<3x4xf32>
}

// Nothing's maximum, minimum and product are what does not change others; its rows add nothing to a table.
// CHECK-LABEL: func.func @neutral
// CHECK-SAME:    %[[TABLE:[a-z0-9]+]]: tensor<3x4xf32>
// CHECK-DAG:     train.constant dense<0xFF800000> : tensor<3xf32>
// CHECK-DAG:     train.constant dense<0x7F800000> : tensor<3xf32>
// CHECK-DAG:     train.constant dense<1.000000e+00> : tensor<3xf32>
// CHECK-NOT:     train.scatter_add_rows
// CHECK:         return {{.*}}, %[[TABLE]] :
func.func @neutral(%x: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3x4xf32>) {
  %none = train.slice %x {limits = array<i64: 3, 2>, starts = array<i64: 0, 2>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<3x0xf32>
  %most = train.reduce max, %none {dimensions = array<i64: 1>} : (tensor<3x0xf32>) -> tensor<3xf32>
  %least = train.reduce min, %none {dimensions = array<i64: 1>} : (tensor<3x0xf32>) -> tensor<3xf32>
  %product = train.reduce mul, %none {dimensions = array<i64: 1>} : (tensor<3x0xf32>) -> tensor<3xf32>
  %rows = train.slice %x {limits = array<i64: 1, 4>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<0x4xf32>
  %ids = train.constant dense<> : tensor<0xi32>
  %table = train.scatter_add_rows %x, %ids, %rows : (tensor<3x4xf32>, tensor<0xi32>, tensor<0x4xf32>) -> tensor<3x4xf32>
  return %most, %least, %product, %table : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3x4xf32>
}

// Not applied: the result has no elements either, or the operands have some.
// CHECK-LABEL: func.func @not_applied
// CHECK:         train.reduce sum, %{{.*}} -> tensor<0xf32>
// CHECK:         train.reduce sum, %{{.*}} -> tensor<3xf32>
// CHECK:         train.concat %{{.*}}, %{{.*}} {dim = 0 : i64}
func.func @not_applied(%x: tensor<3x4xf32>) -> (tensor<0xf32>, tensor<3xf32>, tensor<6x4xf32>) {
  %none = train.slice %x {limits = array<i64: 1, 4>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<0x4xf32>
  %still = train.reduce sum, %none {dimensions = array<i64: 1>} : (tensor<0x4xf32>) -> tensor<0xf32>
  %sum = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<3x4xf32>) -> tensor<3xf32>
  %both = train.concat %x, %x {dim = 0 : i64} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
  return %still, %sum, %both : tensor<0xf32>, tensor<3xf32>, tensor<6x4xf32>
}
