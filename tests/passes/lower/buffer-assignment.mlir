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
// REMARK: is copied: part of a concatenation could not be made in its place
func.func @joined_twice(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<8x4xf32> {train.role = "output", train.name = "c"}, tensor<8x4xf32> {train.role = "output", train.name = "d"}) {
  %a = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = train.concat %a, %b {dim = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %d = train.concat %e, %a {dim = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %c, %d : tensor<8x4xf32>, tensor<8x4xf32>
}
