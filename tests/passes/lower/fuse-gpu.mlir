// What only kernels of a GPU do: sums of rows and of columns in one, and the second steps of one kernel's sums in one.
// RUN: tessera-opt %s --decompose=gpu=true --fuse=gpu=true | FileCheck %s
// RUN: tessera-opt %s --decompose=gpu=true --fuse=gpu=true --outline-kernels | kernel-check --gpu --atol=1e-3
// RUN: tessera-opt %s --decompose=gpu=true --fuse | FileCheck %s --check-prefix=CPU

// The gradients of a layer norm: two launches, and nothing in f32 between them but the partial sums.
// CHECK-LABEL: func.func @gradients
// CHECK:         exec.fusion "rows_columns"({{.*}}) {{.*}} -> (tensor<128x512xf32>, tensor<128x512xf32>, tensor<2048x512xbf16>)
// CHECK:         exec.fusion "column"({{.*}}) {{.*}} : (tensor<128x512xf32>, tensor<128x512xf32>) -> (tensor<512xf32>, tensor<512xf32>)
// CHECK-NOT:     exec.fusion
// CHECK:         return
// CPU-LABEL: func.func @gradients
// CPU-NOT:     rows_columns
func.func @gradients(%x: tensor<2048x512xbf16>, %dy: tensor<2048x512xbf16>, %w: tensor<512xbf16>) -> (tensor<2048x512xbf16>, tensor<512xf32>, tensor<512xf32>) {
  %0 = train.convert %x : (tensor<2048x512xbf16>) -> tensor<2048x512xf32>
  %1 = train.convert %dy : (tensor<2048x512xbf16>) -> tensor<2048x512xf32>
  %p = train.mul %0, %1 : tensor<2048x512xf32>
  %dw = train.reduce sum, %p {dimensions = array<i64: 0>} : (tensor<2048x512xf32>) -> tensor<512xf32>
  %db = train.reduce sum, %1 {dimensions = array<i64: 0>} : (tensor<2048x512xf32>) -> tensor<512xf32>
  %2 = train.convert %w : (tensor<512xbf16>) -> tensor<512xf32>
  %3 = train.broadcast %2 {broadcast_dimensions = array<i64: 1>} : (tensor<512xf32>) -> tensor<2048x512xf32>
  %4 = train.mul %1, %3 : tensor<2048x512xf32>
  %5 = train.mul %4, %0 : tensor<2048x512xf32>
  %6 = train.reduce sum, %5 {dimensions = array<i64: 1>} : (tensor<2048x512xf32>) -> tensor<2048xf32>
  %7 = train.broadcast %6 {broadcast_dimensions = array<i64: 0>} : (tensor<2048xf32>) -> tensor<2048x512xf32>
  %8 = train.sub %4, %7 : tensor<2048x512xf32>
  %9 = train.convert %8 : (tensor<2048x512xf32>) -> tensor<2048x512xbf16>
  return %9, %dw, %db : tensor<2048x512xbf16>, tensor<512xf32>, tensor<512xf32>
}

// Sums of what is known read no partial sums, and are no second step of other sums.
// CHECK-LABEL: func.func @known
// CHECK:         exec.fusion "column"() {{.*}} -> tensor<512xf32>
func.func @known(%x: tensor<2048x512xf32>) -> (tensor<512xf32>, tensor<512xf32>) {
  %0 = train.iota {dim = 0 : i64} : tensor<64x512xf32>
  %k = train.reduce sum, %0 {dimensions = array<i64: 0>} : (tensor<64x512xf32>) -> tensor<512xf32>
  %s = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<2048x512xf32>) -> tensor<512xf32>
  return %k, %s : tensor<512xf32>, tensor<512xf32>
}

// One block would walk all rows: not fused.
// CHECK-LABEL: func.func @few_chunks
// CHECK-NOT:     rows_columns
// CHECK:         return
func.func @few_chunks(%x: tensor<256x512xf32>) -> (tensor<256xf32>, tensor<512xf32>) {
  %r = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<256x512xf32>) -> tensor<256xf32>
  %c = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<256x512xf32>) -> tensor<512xf32>
  return %r, %c : tensor<256xf32>, tensor<512xf32>
}
