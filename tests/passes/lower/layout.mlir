// Where the elements of a value lie inside an allocation: views of it where strides can say so (LayoutTest.cpp has the algebra).
// RUN: tessera-opt %s -to-exec -split-input-file | FileCheck %s
// RUN: tessera-opt %s -to-exec -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Every second row, transposed: the product reads it where it lies.
// CHECK-LABEL: exec.program @views
// CHECK: %[[V:.+]] = exec.buffer %x.slot + 24 : memref<192xi8> to memref<6x4xf32, strided<[1, 12]>>
// CHECK-NOT: exec.copy
// CHECK: exec.gemm %[[V]], %w ->
func.func @views(%x: tensor<8x6xf32> {train.role = "input", train.name = "x"}, %w: tensor<4x3xf32> {train.role = "param", train.name = "w"}) -> (tensor<6x3xf32> {train.role = "output"}) {
  %s = train.slice %x {starts = array<i64: 1, 0>, limits = array<i64: 8, 6>, strides = array<i64: 2, 1>} : (tensor<8x6xf32>) -> tensor<4x6xf32>
  %t = train.transpose %s {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %y = train.dot_general %t, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x4xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
  return %y : tensor<6x3xf32>
}

// -----

// A dimension of a strided view is split, and dimensions of size 1 come and go.
// CHECK-LABEL: exec.program @split
// CHECK: %[[V:.+]] = exec.buffer %x.slot + 24 : memref<192xi8> to memref<4x2x3xf32, strided<[12, 3, 1]>>
// CHECK-NOT: exec.copy
// CHECK: exec.gemm %[[V]], %w ->
func.func @split(%x: tensor<4x12xf32> {train.role = "input", train.name = "x"}, %w: tensor<4x3x5xf32> {train.role = "param", train.name = "w"}) -> (tensor<4x2x5xf32> {train.role = "output"}) {
  %s = train.slice %x {starts = array<i64: 0, 6>, limits = array<i64: 4, 12>, strides = array<i64: 1, 1>} : (tensor<4x12xf32>) -> tensor<4x6xf32>
  %r = train.reshape %s : (tensor<4x6xf32>) -> tensor<4x1x2x3xf32>
  %q = train.reshape %r : (tensor<4x1x2x3xf32>) -> tensor<4x2x3xf32>
  %y = train.dot_general %q, %w {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<4x2x3xf32>, tensor<4x3x5xf32>) -> tensor<4x2x5xf32>
  return %y : tensor<4x2x5xf32>
}

// -----

// Not applied: rows that a transposition took apart make no rows of another length.
// CHECK-LABEL: exec.program @no_view
// CHECK: exec.copy %{{.*}} -> %{{.*}} : memref<6x4xf32, strided<[1, 6]>> -> memref<6x4xf32>
// CHECK: exec.gemm
// REMARK: is copied: reshape is no strided view
func.func @no_view(%x: tensor<4x6xf32> {train.role = "input", train.name = "x"}, %w: tensor<8x5xf32> {train.role = "param", train.name = "w"}) -> (tensor<3x5xf32> {train.role = "output"}) {
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %f = train.reshape %t : (tensor<6x4xf32>) -> tensor<3x8xf32>
  %y = train.dot_general %f, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<3x8xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// -----

// In a loop, a micro-batch lies at an offset that grows with the iteration; so does a part of it.
// CHECK-LABEL: exec.program @micro_batches
// CHECK: %[[M:.+]] = exec.buffer %x.slot + 32 {iteration_stride = 64 : i64} : memref<192xi8> to memref<2x4xf32>
// CHECK: exec.loop 3
// CHECK-NOT: exec.copy
// CHECK: exec.gemm %[[M]], %w
func.func @micro_batches(%x: tensor<3x4x4xf32> {train.role = "input", train.name = "x"}, %w: tensor<4x4xf32> {train.role = "param", train.name = "w"}) -> (tensor<2x4xf32> {train.role = "output"}) {
  %zero = train.constant dense<0.0> : tensor<2x4xf32>
  %sum = exec.repeat count = 3 batch(%x) init(%zero) : (tensor<3x4x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4x4xf32>, %acc: tensor<2x4xf32>):
    %half = train.slice %m {starts = array<i64: 2, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %next = exec.add_product %acc, %half, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    exec.yield %next : tensor<2x4xf32>
  }
  return %sum : tensor<2x4xf32>
}

// -----

// The part of a rank lies at an offset that grows with the rank.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: exec.program @rank
// CHECK: exec.buffer %x.slot + 0 {rank_axes = ["shard"], rank_stride = 32 : i64} : memref<64xi8> to memref<2x4xf32>
// CHECK-NOT: exec.copy
// CHECK: exec.gemm
func.func @rank(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}, %w: tensor<4x4xf32> {train.role = "param", train.name = "w"}) -> (tensor<2x4xf32> {train.role = "output"}) {
  %part = dist.slice_local %x {axes = ["shard"], dim = 0 : i64} : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %y = train.dot_general %part, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
}
