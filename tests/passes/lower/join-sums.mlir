// Sums of long tensors that are added up, in one sum of partial sums.
// RUN: tessera-opt %s --decompose=gpu=true | FileCheck %s
// RUN: tessera-opt %s --decompose | FileCheck %s --check-prefix=CPU
// RUN: tessera-opt %s --decompose=gpu=true -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --atol=1e-4 --quiet

// Sums that are added up: partial sums side by side, a rest that no chunk covers among them, and one sum of all. What is
// short is added at the end.
// CHECK-LABEL: func.func @norm
// CHECK:         %[[A:.*]] = train.reduce sum, %{{.*}} {dimensions = array<i64: 1>} : (tensor<4x16384xf32>) -> tensor<4xf32>
// CHECK:         %[[MOST:.*]] = train.slice
// CHECK:         train.mul %[[MOST]], %[[MOST]] : tensor<32768xf32>
// CHECK:         %[[B:.*]] = train.reduce sum, %{{.*}} {dimensions = array<i64: 1>} : (tensor<2x16384xf32>) -> tensor<2xf32>
// CHECK:         %[[REST:.*]] = train.reduce sum, %{{.*}} {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
// CHECK:         %[[LAST:.*]] = train.reshape %[[REST]]
// CHECK:         %[[ALL:.*]] = train.concat %[[A]], %[[B]], %[[LAST]] {{.*}} -> tensor<7xf32>
// CHECK:         %[[SUM:.*]] = train.reduce sum, %[[ALL]]
// CHECK:         train.add
// CHECK-NOT:     train.add
// CPU-LABEL: func.func @norm
// CPU-NOT:     train.concat
func.func @norm(%x: tensor<65536xf32>, %g: tensor<32771xf32>, %z: tensor<10xf32>) -> tensor<f32> {
  %y = train.mul %g, %g : tensor<32771xf32>
  %0 = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<65536xf32>) -> tensor<f32>
  %1 = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<10xf32>) -> tensor<f32>
  %2 = train.add %0, %1 : tensor<f32>
  %3 = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<32771xf32>) -> tensor<f32>
  %4 = train.add %2, %3 : tensor<f32>
  return %4 : tensor<f32>
}

// One long sum alone, and one that something else reads: as they were.
// CHECK-LABEL: func.func @no_norm
// CHECK-NOT:     train.concat
func.func @no_norm(%x: tensor<65536xf32>, %y: tensor<65536xf32>) -> (tensor<f32>, tensor<f32>) {
  %0 = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<65536xf32>) -> tensor<f32>
  %1 = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<65536xf32>) -> tensor<f32>
  %2 = train.add %0, %1 : tensor<f32>
  return %0, %2 : tensor<f32>, tensor<f32>
}

// Not joined: short tensors, integers, a sum over one dimension of two, and a quotient of sums.
// CHECK-LABEL: func.func @others
// CHECK-NOT:     train.concat
// CHECK:         return
func.func @others(%x: tensor<100xf32>, %y: tensor<200xf32>, %i: tensor<65536xi32>, %j: tensor<65536xi32>, %t: tensor<2x65536xf32>, %a: tensor<65536xf32>, %b: tensor<65536xf32>) -> (tensor<f32>, tensor<i32>, tensor<2xf32>, tensor<f32>) {
  %0 = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<100xf32>) -> tensor<f32>
  %1 = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<200xf32>) -> tensor<f32>
  %2 = train.add %0, %1 : tensor<f32>
  %3 = train.reduce sum, %i {dimensions = array<i64: 0>} : (tensor<65536xi32>) -> tensor<i32>
  %4 = train.reduce sum, %j {dimensions = array<i64: 0>} : (tensor<65536xi32>) -> tensor<i32>
  %5 = train.add %3, %4 : tensor<i32>
  %6 = train.reduce sum, %t {dimensions = array<i64: 1>} : (tensor<2x65536xf32>) -> tensor<2xf32>
  %7 = train.add %6, %6 : tensor<2xf32>
  %8 = train.reduce sum, %a {dimensions = array<i64: 0>} : (tensor<65536xf32>) -> tensor<f32>
  %9 = train.reduce sum, %b {dimensions = array<i64: 0>} : (tensor<65536xf32>) -> tensor<f32>
  %10 = train.div %8, %9 : tensor<f32>
  return %2, %5, %7, %10 : tensor<f32>, tensor<i32>, tensor<2xf32>, tensor<f32>
}
