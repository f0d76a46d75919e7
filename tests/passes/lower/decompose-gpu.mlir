// Reductions cut for the blocks of a GPU.
// RUN: tessera-opt %s --decompose=gpu=true | FileCheck %s
// RUN: tessera-opt %s --decompose | FileCheck %s --check-prefix=CPU
// RUN: tessera-opt %s --decompose=gpu=true -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --atol=1e-4 --quiet

// The gradient of a bias: blocks of 256 columns would be two, chunks of 64 rows make 128 of them.
// CHECK-LABEL: func.func @columns
// CHECK:         train.reduce sum, %{{.*}} {dimensions = array<i64: 1>} : (tensor<64x64x512xf32>) -> tensor<64x512xf32>
// CHECK:         train.reduce sum, %{{.*}} {dimensions = array<i64: 0>} : (tensor<64x512xf32>) -> tensor<512xf32>
// CPU-LABEL: func.func @columns
// CPU-NOT:     train.reshape
func.func @columns(%x: tensor<8x512x512xf32>) -> tensor<512xf32> {
  %0 = train.reduce sum, %x {dimensions = array<i64: 0, 1>} : (tensor<8x512x512xf32>) -> tensor<512xf32>
  return %0 : tensor<512xf32>
}

// Smaller chunks than a thread of a CPU takes: more blocks.
// CHECK-LABEL: func.func @whole
// CHECK:         train.reduce sum, %{{.*}} {dimensions = array<i64: 1>} : (tensor<16x4096x1xf32>) -> tensor<16x1xf32>
// CPU-LABEL: func.func @whole
// CPU:         train.reduce sum, %{{.*}} {dimensions = array<i64: 1>} : (tensor<4x16384x1xf32>) -> tensor<4x1xf32>
func.func @whole(%x: tensor<65536xf32>) -> tensor<f32> {
  %0 = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<65536xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Few long rows, which few blocks would sum.
// CHECK-LABEL: func.func @rows
// CHECK:         train.reduce sum, %{{.*}} {dimensions = array<i64: 2>} : (tensor<4x32x4096xf32>) -> tensor<4x32xf32>
// CHECK:         train.reduce sum, %{{.*}} {dimensions = array<i64: 1>} : (tensor<4x32xf32>) -> tensor<4xf32>
// CPU-LABEL: func.func @rows
// CPU-NOT:     train.reshape
func.func @rows(%x: tensor<4x131072xf32>) -> tensor<4xf32> {
  %0 = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<4x131072xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Not cut: few elements, or few rows.
// CHECK-LABEL: func.func @small
// CHECK-NOT:     train.reshape
func.func @small(%x: tensor<1024x512xf32>, %y: tensor<128x16384xf32>) -> (tensor<512xf32>, tensor<16384xf32>) {
  %0 = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<1024x512xf32>) -> tensor<512xf32>
  %1 = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<128x16384xf32>) -> tensor<16384xf32>
  return %0, %1 : tensor<512xf32>, tensor<16384xf32>
}

// Beside a reduction of the same rows: chunks of 16 rows, for the kernel that reduces rows; the second step is not cut.
// CHECK-LABEL: func.func @beside_rows
// CHECK:         train.reduce sum, %{{.*}} {dimensions = array<i64: 1>} : (tensor<512x16x2048xf32>) -> tensor<512x2048xf32>
// CHECK-NEXT:    train.reduce sum, %{{.*}} {dimensions = array<i64: 0>} : (tensor<512x2048xf32>) -> tensor<2048xf32>
// CPU-LABEL: func.func @beside_rows
func.func @beside_rows(%x: tensor<8192x2048xf32>, %y: tensor<8192x2048xf32>) -> (tensor<2048xf32>, tensor<8192xf32>) {
  %p = train.mul %x, %y : tensor<8192x2048xf32>
  %n = train.neg %x : tensor<8192x2048xf32>
  %0 = train.reduce sum, %p {dimensions = array<i64: 0>} : (tensor<8192x2048xf32>) -> tensor<2048xf32>
  %1 = train.reduce sum, %n {dimensions = array<i64: 1>} : (tensor<8192x2048xf32>) -> tensor<8192xf32>
  return %0, %1 : tensor<2048xf32>, tensor<8192xf32>
}

// Not beside a reduction of rows: another value's.
// CHECK-LABEL: func.func @apart
// CHECK:         train.reduce sum, %{{.*}} {dimensions = array<i64: 1>} : (tensor<128x64x2048xf32>) -> tensor<128x2048xf32>
func.func @apart(%x: tensor<8192x2048xf32>, %y: tensor<8192x2048xf32>) -> (tensor<2048xf32>, tensor<8192xf32>) {
  %0 = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8192x2048xf32>) -> tensor<2048xf32>
  %1 = train.reduce sum, %y {dimensions = array<i64: 1>} : (tensor<8192x2048xf32>) -> tensor<8192xf32>
  return %0, %1 : tensor<2048xf32>, tensor<8192xf32>
}

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
