// RUN: tessera-opt %s --fuse-epilogues -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --fuse-epilogues -o %t.mlir
// RUN: tessera-interp %t.mlir --compare=%s --function=adds --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=library --rtol=1e-6 --atol=1e-6 --quiet
// In bf16 the sum is rounded once instead of twice.
// RUN: tessera-interp %t.mlir --compare=%s --function=wide_bias --rtol=8e-3 --atol=2e-2 --quiet

// Biases that readers of a product add, and GELU of the sum.

// A library call would wait for a kernel that adds the bias, also where it reads the sum through views.
// CHECK-LABEL: func.func @library
// CHECK:         %[[Y:.*]] = exec.epilogue_product bias %arg0, %arg1 with %arg2
// CHECK:         %[[T:.*]] = train.transpose %[[Y]]
// CHECK:         train.dot_general %[[T]], %arg0
func.func @library(%x: tensor<4x8xf32>, %w: tensor<8x12xf32>, %b: tensor<12xf32>) -> tensor<12x8xf32> {
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x12xf32>) -> tensor<4x12xf32>
  %bb = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<12xf32>) -> tensor<4x12xf32>
  %s = train.add %bb, %p : tensor<4x12xf32>
  %t = train.transpose %s {permutation = array<i64: 1, 0>} : (tensor<4x12xf32>) -> tensor<12x4xf32>
  %y = train.dot_general %t, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<12x4xf32>, tensor<4x8xf32>) -> tensor<12x8xf32>
  return %y : tensor<12x8xf32>
}

// A kernel adds a bias for nothing; GELU without a bias whose pre-activation nobody else reads needs no second result.
// CHECK-LABEL: func.func @adds
// CHECK:         train.dot_general
// CHECK:         train.add
// CHECK:         train.sin
// CHECK:         exec.epilogue_product gelu %arg0, %arg1
// CHECK-NOT:     train.gelu
func.func @adds(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %bb = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<16xf32>) -> tensor<4x16xf32>
  %s = train.add %p, %bb : tensor<4x16xf32>
  %y = train.sin %s : tensor<4x16xf32>
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %g = train.gelu tanh, %z : tensor<4x16xf32>
  return %y, %g : tensor<4x16xf32>, tensor<4x16xf32>
}

// The bias is taken as it was before it was made as wide as the sum.
// CHECK-LABEL: func.func @wide_bias
// CHECK:         exec.epilogue_product bias %arg0, %arg0 with %arg1
// CHECK-SAME:      (tensor<8x8xbf16>, tensor<8x8xbf16>, tensor<8xbf16>) -> tensor<8x8xbf16>
// CHECK-NOT:     train.add
func.func @wide_bias(%x: tensor<8x8xbf16>, %b: tensor<8xbf16>) -> tensor<8x8xbf16> {
  %p = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %wide = train.convert %p : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %bw = train.convert %b : (tensor<8xbf16>) -> tensor<8xf32>
  %bb = train.broadcast %bw {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<8x8xf32>
  %s = train.add %wide, %bb : tensor<8x8xf32>
  %n = train.convert %s : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  return %n : tensor<8x8xbf16>
}

// Not applied because a kernel reads the sum in f32, and the product would give it rounded.
// CHECK-LABEL: func.func @read_wide
// CHECK-NOT:     exec.epilogue_product
// CHECK:         return
func.func @read_wide(%x: tensor<8x8xbf16>, %b: tensor<8xbf16>) -> (tensor<8x8xbf16>, tensor<8x8xf32>) {
  %p = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %wide = train.convert %p : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %bw = train.convert %b : (tensor<8xbf16>) -> tensor<8xf32>
  %bb = train.broadcast %bw {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<8x8xf32>
  %s = train.add %wide, %bb : tensor<8x8xf32>
  %n = train.convert %s : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  %y = train.dot_general %n, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %k = train.sin %s : tensor<8x8xf32>
  return %y, %k : tensor<8x8xbf16>, tensor<8x8xf32>
}

// Not applied because the product adds to a sum already.
// CHECK-LABEL: func.func @accumulated
// CHECK:         exec.add_product
// CHECK:         train.add
// CHECK-NOT:     exec.epilogue_product
// CHECK:         return
func.func @accumulated(%acc: tensor<8x8xf32>, %x: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<8x8xf32> {
  %p = exec.add_product %acc, %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %bb = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<8x8xf32>
  %s = train.add %p, %bb : tensor<8x8xf32>
  %y = train.dot_general %s, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// A bias per row, one of a wider type, one that is computed later, and a product with other readers.
// CHECK-LABEL: func.func @biases
// CHECK-NOT:     exec.epilogue_product
func.func @biases(%x: tensor<8x8xf32>, %b: tensor<8xf32>, %nx: tensor<8x8xbf16>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xbf16>) {
  %p = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %row = train.broadcast %b {broadcast_dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<8x8xf32>
  // expected-remark @below {{bias not fused into the product: it does not go along the product's columns}}
  %s = train.add %p, %row : tensor<8x8xf32>
  %column = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<8x8xf32>
  %p2 = train.dot_general %s, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  // expected-remark @below {{bias not fused into the product: the product has other readers}}
  %s2 = train.add %p2, %column : tensor<8x8xf32>
  %p3 = train.dot_general %s2, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %late = train.sin %b : tensor<8xf32>
  %lates = train.broadcast %late {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<8x8xf32>
  // expected-remark @below {{bias not fused into the product: it is computed later, by 'train.sin'}}
  %s3 = train.add %p3, %lates : tensor<8x8xf32>
  %np = train.dot_general %nx, %nx {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %wide = train.convert %np : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  // expected-remark @below {{bias not fused into the product: it is 'f32', the product 'bf16'}}
  %ns = train.add %wide, %column : tensor<8x8xf32>
  %narrow = train.convert %ns : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  return %s, %p2, %s2, %s3, %narrow : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xbf16>
}

// CHECK-LABEL: func.func @erf
// CHECK-NOT:     exec.epilogue_product
func.func @erf(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  // expected-remark @below {{GELU not fused into the product: it is the exact one, the library has the tanh approximation}}
  %g = train.gelu exact, %z : tensor<4x16xf32>
  return %g : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @odd_columns
// CHECK-NOT:     exec.epilogue_product
func.func @odd_columns(%x: tensor<4x8xf32>, %w: tensor<8x12xf32>) -> tensor<4x12xf32> {
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x12xf32>) -> tensor<4x12xf32>
  // expected-remark @below {{GELU not fused into the product: its 12 columns are no multiple of 8}}
  %g = train.gelu tanh, %z : tensor<4x12xf32>
  return %g : tensor<4x12xf32>
}
