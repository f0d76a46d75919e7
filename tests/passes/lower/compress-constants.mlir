// RUN: tessera-opt %s --decompose --fuse | FileCheck %s
// RUN: tessera-opt %s --decompose --fuse -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --rtol=1e-4 --atol=1e-5 --quiet
// RUN: tessera-opt %s --decompose --fuse --outline-kernels | kernel-check
// What is compared differs in the order of sums and in what is computed twice, hence up to rounding.

// A table that repeats itself is broadcast from the part that does not.
// CHECK-LABEL: func.func @repeated_table
// CHECK:         exec.fusion "elementwise"(%{{.*}})
// CHECK:           %[[C:.*]] = train.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK:           train.broadcast %[[C]] {broadcast_dimensions = array<i64: 1>} : (tensor<2xf32>) -> tensor<3x2xf32>
func.func @repeated_table(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %c = train.constant dense<[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]> : tensor<3x2xf32>
  %0 = train.mul %x, %c : tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// Repeated along an inner dimension, and in another element type: the shape that is left is that of the other dimensions.
// CHECK-LABEL: func.func @inner_dimension
// CHECK:           %[[C:.*]] = train.constant dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi32>
// CHECK:           train.broadcast %[[C]] {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x2xi32>) -> tensor<2x3x2xi32>
func.func @inner_dimension(%x: tensor<2x3x2xi32>) -> tensor<2x3x2xi32> {
  %c = train.constant dense<[[[1, 2], [1, 2], [1, 2]], [[3, 4], [3, 4], [3, 4]]]> : tensor<2x3x2xi32>
  %0 = train.mul %x, %c : tensor<2x3x2xi32>
  return %0 : tensor<2x3x2xi32>
}

// Not applied where every row differs, even if only in the last element.
// CHECK-LABEL: func.func @no_repetition
// CHECK:           train.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00], [1.000000e+00, 3.000000e+00]]> : tensor<2x2xf32>
// CHECK-NOT:       train.broadcast
// CHECK:           return
func.func @no_repetition(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %c = train.constant dense<[[1.0, 2.0], [1.0, 3.0]]> : tensor<2x2xf32>
  %0 = train.mul %x, %c : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// Not applied to splats, which kernels hold as one number, and to booleans, whose bits are packed.
// CHECK-LABEL: func.func @left_alone
// CHECK-DAG:       train.constant dense<{{\[\[}}true, false], [true, false]]> : tensor<2x2xi1>
// CHECK-DAG:       train.constant dense<5.000000e-01> : tensor<2x2xf32>
// CHECK-NOT:       train.broadcast
// CHECK:           return
func.func @left_alone(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %m = train.constant dense<[[true, false], [true, false]]> : tensor<2x2xi1>
  %h = train.constant dense<0.5> : tensor<2x2xf32>
  %0 = train.select %m, %x, %h : tensor<2x2xi1>, tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
