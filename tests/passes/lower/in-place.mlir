// RUN: tessera-opt %s -to-exec -split-input-file | FileCheck %s

// A fusion writes where it reads an operand that dies with it (to-exec.mlir has more of these); the next fusion reads that.
// CHECK-LABEL: exec.program @dies
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[Y:.+]] :
// CHECK: exec.launch @k0(%[[Y]]) -> (%[[Y]])
// CHECK: exec.gemm %[[Y]], %{{.*}} -> %{{.*}} :
// CHECK-NOT: exec.copy
func.func @dies(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %y = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = exec.fusion "elementwise" @k0(%y) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %r = train.dot_general %z, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// Not applied because the old value is read again behind the fusion.
// CHECK-LABEL: exec.program @read_later
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[Y:.+]] :
// CHECK-NOT: exec.launch @k0(%[[Y]]) -> (%[[Y]])
// CHECK: exec.gemm %{{.*}}, %[[Y]] -> %{{.*}} :
func.func @read_later(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %y = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = exec.fusion "elementwise" @k0(%y) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %r = train.dot_general %z, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// Not applied because the fusion reads the same memory through another operand, in another order.
// CHECK-LABEL: exec.program @read_twice
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[Y:.+]] :
// CHECK-NOT: exec.launch @k0(%[[Y]], %{{.*}}) -> (%[[Y]])
// CHECK: exec.gemm
func.func @read_twice(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %y = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %flat = train.reshape %y : (tensor<4x4xf32>) -> tensor<16xf32>
  %z = exec.fusion "elementwise" @k0(%y, %flat) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>, tensor<16xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<16xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %r = train.dot_general %z, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// A reduction overwrites what it adds up, but not what is read besides.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: exec.program @reductions
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[A:.+]] :
// CHECK: exec.collective all_reduce %[[A]] -> %[[A]] over
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[B:.+]] :
// CHECK-NOT: exec.collective all_reduce %[[B]] -> %[[B]] over
// CHECK: exec.gemm %{{.*}}, %[[B]] ->
func.func @reductions(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %a = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = dist.all_reduce %a {axes = ["shard"]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = train.dot_general %r, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = dist.all_reduce %b {axes = ["shard"]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = train.dot_general %s, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}
}

// -----

// The next value of an argument is made in its place where the old one has no reader behind it. Otherwise it is copied
// there when the step ends.
// CHECK-LABEL: exec.program @arguments
// CHECK-DAG: %[[U:.+]] = exec.buffer %u.slot + 0
// CHECK-DAG: %[[W:.+]] = exec.buffer %w.slot + 0
// CHECK: exec.launch @k0(%[[U]]) -> (%[[U]])
// CHECK: exec.launch @k0(%[[W]]) -> (%[[NEXT:.+]]) extent
// CHECK: exec.gemm %[[W]], %{{.*}} ->
// CHECK: exec.copy %[[NEXT]] -> %[[W]]
func.func @arguments(%u: tensor<4x4xf32> {train.role = "param", train.name = "u"}, %w: tensor<4x4xf32> {train.role = "param", train.name = "w"})
    -> (tensor<4x4xf32> {train.alias = 0 : i64}, tensor<4x4xf32> {train.alias = 1 : i64}, tensor<4x4xf32> {train.role = "output"}) {
  %nu = exec.fusion "elementwise" @k0(%u) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %nw = exec.fusion "elementwise" @k0(%w) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %r = train.dot_general %w, %nw {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %nu, %nw, %r : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// What a loop carries: its initial value and each next one are made in the accumulator's place.
// CHECK-LABEL: exec.program @carried
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[ACC:.+]] :
// CHECK: exec.loop 2
// CHECK:   exec.launch @k0(%[[ACC]], %{{.*}}) -> (%[[ACC]])
// CHECK-NOT: exec.copy
func.func @carried(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}, %batch: tensor<2x4x4xf32> {train.role = "input", train.name = "batch"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %init = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %sum = exec.repeat count = 2 batch(%batch) init(%init) : (tensor<2x4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4x4xf32>, %acc: tensor<4x4xf32>):
    %n = exec.fusion "elementwise" @k0(%acc, %m) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
      exec.yield %a : tensor<4x4xf32>
    }
    exec.yield %n : tensor<4x4xf32>
  }
  return %sum : tensor<4x4xf32>
}
