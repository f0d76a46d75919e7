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
