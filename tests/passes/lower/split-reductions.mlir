// Long reductions in two steps: for the blocks of a GPU, and for the threads of a CPU.
// RUN: tessera-opt %s --decompose=gpu=true | FileCheck %s
// RUN: tessera-opt %s --decompose | FileCheck %s --check-prefix=CPU
// RUN: tessera-opt %s --decompose=gpu=true -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --atol=1e-4 --quiet
// RUN: tessera-opt %s --decompose -o %t.cpu.mlir
// RUN: tessera-interp %s --compare %t.cpu.mlir --atol=1e-4 --quiet

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

// A long sum becomes one over chunks and one over their results.
// CPU-LABEL: func.func @norm
// CPU:         train.reduce sum, %{{.*}} {dimensions = array<i64: 1>} : (tensor<4x16384x1xf32>) -> tensor<4x1xf32>
// CPU:         train.reduce sum, %{{.*}} {dimensions = array<i64: 0>} : (tensor<4x1xf32>) -> tensor<1xf32>
func.func @norm(%x: tensor<65536xf32>) -> tensor<f32> {
  %0 = train.mul %x, %x : tensor<65536xf32>
  %1 = train.reduce sum, %0 {dimensions = array<i64: 0>} : (tensor<65536xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// 65537 is prime: one element is left over.
// CPU-LABEL: func.func @norm_prime
// CPU:         train.slice %{{.*}} -> tensor<65536x1xf32>
// CPU:         train.slice %{{.*}} -> tensor<1x1xf32>
func.func @norm_prime(%x: tensor<65537xf32>) -> tensor<f32> {
  %1 = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<65537xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// Not split: short, or many columns.
// CPU-LABEL: func.func @not_split
// CPU-NOT:     train.reshape
func.func @not_split(%x: tensor<100xf32>, %y: tensor<512x512xf32>) -> (tensor<f32>, tensor<512xf32>) {
  %0 = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<100xf32>) -> tensor<f32>
  %1 = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<512x512xf32>) -> tensor<512xf32>
  return %0, %1 : tensor<f32>, tensor<512xf32>
}

// What is left over joins the result by its kind: 131101 is prime. A minimum is the opposite of the maximum of opposites.
// CPU-LABEL: func.func @kinds
// CPU:         train.reduce max, %{{.*}} -> tensor<8x1xf32>
// CPU:         train.max
// CPU:         train.reduce min, %{{.*}} -> tensor<8x1xf32>
// CPU:         train.neg
// CPU:         train.max
// CPU:         train.neg
// CPU:         train.reduce mul, %{{.*}} -> tensor<8x1xf32>
// CPU:         train.mul
func.func @kinds(%x: tensor<131101xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %0 = train.reduce max, %x {dimensions = array<i64: 0>} : (tensor<131101xf32>) -> tensor<f32>
  %1 = train.reduce min, %x {dimensions = array<i64: 0>} : (tensor<131101xf32>) -> tensor<f32>
  %2 = train.reduce mul, %x {dimensions = array<i64: 0>} : (tensor<131101xf32>) -> tensor<f32>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
}

// All that is made belongs to the backward pass, too.
// CPU-LABEL: func.func @marks
// CPU:         train.reduce sum, %{{.*}} {dimensions = array<i64: 1>, train.backward}
// CPU:         train.reduce sum, %{{.*}} {dimensions = array<i64: 0>, train.backward}
func.func @marks(%x: tensor<65536xf32>) -> tensor<f32> {
  %0 = train.reduce sum, %x {dimensions = array<i64: 0>, train.backward} : (tensor<65536xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Not cut: the reduced dimension stands between others, or has a dimension before it on a CPU.
// CPU-LABEL: func.func @not_leading
// CPU-NOT:     train.reshape
// CPU:         return
func.func @not_leading(%x: tensor<2x40000x3xf32>, %y: tensor<2x40000xf32>) -> (tensor<2x3xf32>, tensor<2xf32>) {
  %0 = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<2x40000x3xf32>) -> tensor<2x3xf32>
  %1 = train.reduce sum, %y {dimensions = array<i64: 1>} : (tensor<2x40000xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2xf32>
}

// What a sum of batch statistics is marked as is not what its parts are: a norm of [rows, few columns].
// CHECK-LABEL: func.func @statistics
// CHECK:         train.reduce sum, %{{.*}} {dimensions = array<i64: 1>, train.backward} : (tensor<16x256x16xf32>) -> tensor<16x16xf32>
// CHECK-NOT:     train.running
// CPU-LABEL: func.func @statistics
// CPU:         train.reduce sum, %{{.*}} {dimensions = array<i64: 1>, train.backward} : (tensor<4x1024x16xf32>) -> tensor<4x16xf32>
// CPU-NOT:     train.running
func.func @statistics(%x: tensor<4096x16xf32>) -> tensor<16xf32> {
  %0 = train.reduce sum, %x {dimensions = array<i64: 0>, train.backward, train.statistics, train.running = "norm.running_mean"} : (tensor<4096x16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
