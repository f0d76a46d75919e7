// Where a value is made so that nothing has to move it.
// RUN: tessera-opt %s -to-exec -split-input-file | FileCheck %s
// RUN: tessera-opt %s -to-exec -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Columns of a concatenation: products write rows with gaps between them.
// CHECK-LABEL: exec.program @columns
// CHECK-DAG: %[[LEFT:.+]] = exec.buffer %[[C:.+]] + 0 : memref<112xi8> to memref<4x4xf32, strided<[7, 1]>>
// CHECK-DAG: %[[RIGHT:.+]] = exec.buffer %[[C]] + 16 : memref<112xi8> to memref<4x3xf32, strided<[7, 1]>>
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[LEFT]] :
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[RIGHT]] :
// CHECK-NOT: exec.copy
func.func @columns(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}, %w: tensor<4x3xf32> {train.role = "param", train.name = "w"}) -> (tensor<4x7xf32> {train.role = "output"}) {
  %a = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %c = train.concat %a, %b {dim = 1 : i64} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x7xf32>
  return %c : tensor<4x7xf32>
}

// -----

// Not applied: a kernel writes row by row, without gaps; its part is copied.
// CHECK-LABEL: exec.program @kernel_part
// CHECK: exec.launch @k0(%x) -> (%[[Z:.+]]) extent
// CHECK: exec.copy %[[Z]] -> %{{.*}} : memref<4x4xf32> -> memref<4x4xf32, strided<[8, 1]>>
// REMARK: is copied: part of a concatenation could not be made in its place
func.func @kernel_part(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x8xf32> {train.role = "output"}) {
  %z = exec.fusion "elementwise" @k0(%x) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: -1>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %b = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = train.concat %z, %b {dim = 1 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// -----

// What a product adds to is made where the sum lies.
// CHECK-LABEL: exec.program @added_to
// CHECK: exec.launch @k0(%x) -> (%[[S:.+]]) extent
// CHECK: exec.gemm %x, %x -> %[[S]] {beta = 1.0
// CHECK-NOT: exec.copy
func.func @added_to(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %z = exec.fusion "elementwise" @k0(%x) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: -1>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %s = exec.add_product %z, %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}

// -----

// Not applied: something reads the value behind the sum.
// CHECK-LABEL: exec.program @read_later
// CHECK: exec.launch @k0(%x) -> (%[[Z:.+]]) extent
// CHECK: exec.copy %[[Z]] -> %[[S:.+]] :
// CHECK: exec.gemm %x, %x -> %[[S]] {beta = 1.0
// CHECK: exec.gemm %[[S]], %[[Z]] ->
// REMARK: is copied: sum that a product adds to does not lie in the result's place
func.func @read_later(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %z = exec.fusion "elementwise" @k0(%x) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: -1>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %s = exec.add_product %z, %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = train.dot_general %s, %z {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// The sum that a loop carries on, in two parts: each product adds to its part of the old sum.
// CHECK-LABEL: exec.program @parts_of_sum
// CHECK: exec.loop 2
// CHECK: exec.gemm %{{.*}}, %w -> %[[UPPER:.+]] {beta = 1.0
// CHECK: exec.gemm %{{.*}}, %w -> %[[LOWER:.+]] {beta = 1.0
// CHECK-NOT: exec.copy
func.func @parts_of_sum(%x: tensor<2x4x4xf32> {train.role = "input", train.name = "x"}, %w: tensor<4x4xf32> {train.role = "param", train.name = "w"}) -> (tensor<8x4xf32> {train.role = "output"}) {
  %zero = train.constant dense<0.0> : tensor<8x4xf32>
  %sum = exec.repeat count = 2 batch(%x) init(%zero) : (tensor<2x4x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4x4xf32>, %acc: tensor<8x4xf32>):
    %u = train.slice %acc {starts = array<i64: 0, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %l = train.slice %acc {starts = array<i64: 4, 0>, limits = array<i64: 8, 4>, strides = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %nu = exec.add_product %u, %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %nl = exec.add_product %l, %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %next = train.concat %nu, %nl {dim = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    exec.yield %next : tensor<8x4xf32>
  }
  return %sum : tensor<8x4xf32>
}

// -----

// Not applied: the parts change places, so that the new sum would overwrite what the second product still reads.
// CHECK-LABEL: exec.program @parts_change_places
// CHECK: exec.loop 2
// CHECK: exec.copy
func.func @parts_change_places(%x: tensor<2x4x4xf32> {train.role = "input", train.name = "x"}, %w: tensor<4x4xf32> {train.role = "param", train.name = "w"}) -> (tensor<8x4xf32> {train.role = "output"}) {
  %zero = train.constant dense<0.0> : tensor<8x4xf32>
  %sum = exec.repeat count = 2 batch(%x) init(%zero) : (tensor<2x4x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4x4xf32>, %acc: tensor<8x4xf32>):
    %u = train.slice %acc {starts = array<i64: 0, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %l = train.slice %acc {starts = array<i64: 4, 0>, limits = array<i64: 8, 4>, strides = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<4x4xf32>
    %nu = exec.add_product %u, %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %nl = exec.add_product %l, %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %next = train.concat %nl, %nu {dim = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    exec.yield %next : tensor<8x4xf32>
  }
  return %sum : tensor<8x4xf32>
}
