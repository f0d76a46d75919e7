// RUN: tessera-opt %s -to-exec -split-input-file | FileCheck %s
// RUN: tessera-opt %s -to-exec -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Both parts of a concatenation are computed into their places, one of them transposed.
// CHECK-LABEL: exec.program @parts
// CHECK-DAG: %[[UPPER:.+]] = exec.buffer %[[C:.+]] + 0 : memref<128xi8> to memref<4x4xf32>
// CHECK-DAG: %[[LOWER:.+]] = exec.buffer %[[C]] + 64 : memref<128xi8> to memref<4x4xf32
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[UPPER]] :
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[LOWER]] :
// CHECK-NOT: exec.copy
func.func @parts(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<8x4xf32> {train.role = "output"}) {
  %a = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = train.transpose %b {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = train.concat %a, %t {dim = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %c : tensor<8x4xf32>
}

// -----

// Not applied twice: a value that is joined into two concatenations is computed into one of them and copied to the other.
// CHECK-LABEL: exec.program @joined_twice
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[A:.+]] :
// CHECK: exec.copy %[[A]] ->
// REMARK: is copied: part of a concatenation is needed elsewhere too
func.func @joined_twice(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<8x4xf32> {train.role = "output", train.name = "c"}, tensor<8x4xf32> {train.role = "output", train.name = "d"}) {
  %a = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = train.concat %a, %b {dim = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %d = train.concat %e, %a {dim = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %c, %d : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Heads that attention reads are strided views of one product, and what it writes is the next product's rows.
// CHECK-LABEL: exec.program @heads
// CHECK-DAG: %[[HEADS:.+]] = exec.buffer %[[P:.+]] + 0 : memref<256xi8> to memref<1x2x4x8xf32, strided<[16, 8, 16, 1]>>
// CHECK: exec.attention %[[HEADS]], %[[HEADS]], %[[HEADS]] -> %[[OUT:[^ ,]+]], %{{.*}} memref<1x2x4x8xf32, strided<[16, 8, 16, 1]>>
// CHECK: exec.gemm
// CHECK-NOT: exec.copy
func.func @heads(%x: tensor<4x16xf32> {train.role = "input", train.name = "x"}, %w: tensor<16x16xf32> {train.role = "param", train.name = "w"}) -> (tensor<4x16xf32> {train.role = "output"}) {
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %r = train.reshape %p : (tensor<4x16xf32>) -> tensor<1x4x2x8xf32>
  %h = train.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x4x2x8xf32>) -> tensor<1x2x4x8xf32>
  %o, %lse = train.attention %h, %h, %h {causal, scale = 0.5 : f64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  %t = train.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x2x4x8xf32>) -> tensor<1x4x2x8xf32>
  %m = train.reshape %t : (tensor<1x4x2x8xf32>) -> tensor<4x16xf32>
  %y = train.dot_general %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

// Not applied because a kernel reads its operands row by row: it gets a copy of a transposed value.
// CHECK-LABEL: exec.program @kernel_reads_transposed
// CHECK: exec.copy %[[FROM:.+]] -> %[[TO:.+]] : memref<4x2xf32, strided<[1, 4]>> -> memref<4x2xf32>
// CHECK: exec.launch @k0(%[[TO]])
// REMARK: is copied: operand is a strided view that its reader cannot use
func.func @kernel_reads_transposed(%x: tensor<2x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x2xf32> {train.role = "output"}) {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %z = exec.fusion "elementwise" @k0(%t) {extent = 8 : i64, grain = 8 : i64, inplace = array<i64: -1>} : (tensor<4x2xf32>) -> tensor<4x2xf32> {
  ^bb0(%a: tensor<4x2xf32>):
    exec.yield %a : tensor<4x2xf32>
  }
  return %z : tensor<4x2xf32>
}
