// Products of bf16 whose contiguous sizes are no multiple of 16 bytes.
// RUN: tessera-opt %s --split-products=min-length=16 | FileCheck %s
// RUN: tessera-opt %s --split-products=min-length=16 -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: tessera-opt %s --split-products=min-length=16 -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --atol=1e-5 --rtol=1e-5 --quiet
// RUN: tessera-opt %s --pad-rows=min-length=16 --decompose=gpu=true --canonicalize --cse --split-products=min-length=16 --fuse=gpu=true --outline-kernels --to-exec | FileCheck %s --check-prefix=EXEC

// 133 classes: 128 and a rest of 5. The weight is no operand whose rows are odd.
// CHECK-LABEL: func.func @columns
// CHECK:         %[[A:.*]] = train.slice %arg1 {limits = array<i64: 128, 16>, starts = array<i64: 0, 0>
// CHECK:         %[[P:.*]] = train.dot_general %arg0, %[[A]] {{.*}} -> tensor<8x128xbf16>
// CHECK:         %[[B:.*]] = train.slice %arg1 {limits = array<i64: 133, 16>, starts = array<i64: 128, 0>
// CHECK:         %[[Q:.*]] = train.dot_general %arg0, %[[B]] {{.*}} -> tensor<8x5xbf16>
// CHECK:         %[[C:.*]] = train.concat %[[P]], %[[Q]] {dim = 1 : i64}
// CHECK:         return %[[C]]
// REMARK: remark: cut: the library is slow at sizes that are no multiple of 16 bytes
func.func @columns(%x: tensor<8x16xbf16>, %w: tensor<133x16xbf16>) -> tensor<8x133xbf16> {
  %l = train.dot_general %x, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<8x16xbf16>, tensor<133x16xbf16>) -> tensor<8x133xbf16>
  return %l : tensor<8x133xbf16>
}

// What is contracted is added in f32 and rounded once; rows of the other gradient are joined one after the other.
// CHECK-LABEL: func.func @gradients
// CHECK:         %[[P:.*]] = train.dot_general %{{.*}}, %{{.*}} : (tensor<8x128xbf16>, tensor<128x16xbf16>) -> tensor<8x16xf32>
// CHECK:         %[[S:.*]] = exec.add_product %[[P]], {{.*}} -> tensor<8x16xf32>
// CHECK:         train.convert %[[S]] : (tensor<8x16xf32>) -> tensor<8x16xbf16>
// CHECK:         %[[T:.*]] = train.transpose %arg0
// CHECK:         train.slice %[[T]] {limits = array<i64: 128, 8>
// CHECK:         %[[D:.*]] = train.dot_general {{.*}} -> tensor<128x16xf32>
// CHECK:         %[[E:.*]] = train.dot_general {{.*}} -> tensor<5x16xf32>
// CHECK:         train.concat %[[D]], %[[E]] {dim = 0 : i64}
func.func @gradients(%g: tensor<8x133xbf16>, %x: tensor<8x16xbf16>, %w: tensor<133x16xbf16>) -> (tensor<8x16xbf16>, tensor<133x16xf32>) {
  %dx = train.dot_general %g, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<8x133xbf16>, tensor<133x16xbf16>) -> tensor<8x16xbf16>
  %t = train.transpose %g {permutation = array<i64: 1, 0>} : (tensor<8x133xbf16>) -> tensor<133x8xbf16>
  %dw = train.dot_general %t, %x {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<133x8xbf16>, tensor<8x16xbf16>) -> tensor<133x16xf32>
  return %dx, %dw : tensor<8x16xbf16>, tensor<133x16xf32>
}

// Two odd sizes: columns first, and of each part what is contracted.
// CHECK-LABEL: func.func @both
// CHECK-COUNT-2: exec.add_product
// CHECK-NOT:     exec.add_product
// CHECK:         train.concat {{.*}} (tensor<8x128xbf16>, tensor<8x5xbf16>) -> tensor<8x133xbf16>
func.func @both(%x: tensor<8x131xbf16>, %w: tensor<131x133xbf16>) -> tensor<8x133xbf16> {
  %l = train.dot_general %x, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<8x131xbf16>, tensor<131x133xbf16>) -> tensor<8x133xbf16>
  return %l : tensor<8x133xbf16>
}

// Both parts and the tail of a padded table are written in its place.
// EXEC-LABEL: exec.program @table
// EXEC:         exec.gemm {{.*}} -> %[[A:.*]] : {{.*}} memref<8x128xbf16, strided<[192, 1]>>
// EXEC:         exec.gemm {{.*}} -> %[[B:.*]] : {{.*}} memref<8x5xbf16, strided<[192, 1]{{.*}}>>
// EXEC:         exec.fill
// EXEC-NOT:     exec.copy
// EXEC:         exec.launch {{.*}}memref<8x192xbf16>
func.func @table(%x: tensor<8x16xbf16>, %w: tensor<133x16xbf16>, %t: tensor<8xi32> {train.index_bound = 133 : i64}) -> tensor<8xf32> {
  %l = train.dot_general %x, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<8x16xbf16>, tensor<133x16xbf16>) -> tensor<8x133xbf16>
  %loss, %lse = train.cross_entropy %l, %t : (tensor<8x133xbf16>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %loss : tensor<8xf32>
}

// A size that is contiguous in no operand (133 tokens), whole multiples, and f32 stay as they are.
// CHECK-LABEL: func.func @others
// CHECK-NOT:     train.slice
// CHECK:         return
func.func @others(%x: tensor<133x16xbf16>, %g: tensor<133x24xbf16>, %a: tensor<8x133xf32>, %b: tensor<133x16xf32>) -> (tensor<16x24xf32>, tensor<8x16xf32>) {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<133x16xbf16>) -> tensor<16x133xbf16>
  %0 = train.dot_general %t, %g {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<16x133xbf16>, tensor<133x24xbf16>) -> tensor<16x24xf32>
  %1 = train.dot_general %a, %b {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<8x133xf32>, tensor<133x16xf32>) -> tensor<8x16xf32>
  return %0, %1 : tensor<16x24xf32>, tensor<8x16xf32>
}
