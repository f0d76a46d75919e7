// RUN: tessera-opt %s -to-exec -split-input-file | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(to-exec{keep-step=true},exec.program(plan-memory,verify-exec{values=true}))' -split-input-file -o /dev/null

// When a value is read for the last time, as what overwrites it shows.

// What a collective reads is in use until it is done, whatever reads it last: nothing is written there before.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: exec.program @under_way
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[Y:.+]] :
// CHECK: exec.collective all_gather %[[Y]] ->
// CHECK-NOT: exec.launch @k0(%[[Y]]) -> (%[[Y]])
// CHECK: exec.gemm
func.func @under_way(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %y = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %f = dist.all_gather_start %y {axes = ["shard"], dim = 0 : i64} : (tensor<4x4xf32>) -> !dist.future<tensor<8x4xf32>>
  %z = exec.fusion "elementwise" @k0(%y) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %g = dist.done %f : (!dist.future<tensor<8x4xf32>>) -> tensor<8x4xf32>
  %s = train.slice %g {starts = array<i64: 0, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %r = train.dot_general %z, %s {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
}

// -----

// Once it is done, the memory is free.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: exec.program @done
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[Y:.+]] :
// CHECK: exec.collective all_gather %[[Y]] ->
// CHECK: exec.launch @k0(%[[Y]]) -> (%[[Y]]) extent
func.func @done(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %y = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %f = dist.all_gather_start %y {axes = ["shard"], dim = 0 : i64} : (tensor<4x4xf32>) -> !dist.future<tensor<8x4xf32>>
  %g = dist.done %f : (!dist.future<tensor<8x4xf32>>) -> tensor<8x4xf32>
  %s = train.slice %g {starts = array<i64: 0, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %z = exec.fusion "elementwise" @k0(%y) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %r = train.dot_general %z, %s {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
}

// -----

// What comes from outside of a loop is read again in the next iteration: nothing in the loop overwrites it.
// CHECK-LABEL: exec.program @in_loop
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[Y:.+]] :
// CHECK: exec.loop 2
// CHECK-NOT: exec.launch @k0(%[[Y]]) -> (%[[Y]])
// CHECK: exec.gemm
func.func @in_loop(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}, %batch: tensor<2x4x4xf32> {train.role = "input", train.name = "batch"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %y = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %zero = train.constant dense<0.0> : tensor<4x4xf32>
  %sum = exec.repeat count = 2 batch(%batch) init(%zero) : (tensor<2x4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4x4xf32>, %acc: tensor<4x4xf32>):
    %z = exec.fusion "elementwise" @k0(%y) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>):
      exec.yield %a : tensor<4x4xf32>
    }
    %p = train.dot_general %z, %m {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %n = exec.fusion "elementwise" @k1(%acc, %p) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
      exec.yield %a : tensor<4x4xf32>
    }
    exec.yield %n : tensor<4x4xf32>
  }
  return %sum : tensor<4x4xf32>
}

// -----

// What the loop itself computes is not: the product is read for the last time, in every iteration.
// CHECK-LABEL: exec.program @of_loop
// CHECK: exec.loop 2
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[P:.+]] :
// CHECK: exec.launch @k0(%[[P]]) -> (%[[P]]) extent
func.func @of_loop(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}, %batch: tensor<2x4x4xf32> {train.role = "input", train.name = "batch"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %zero = train.constant dense<0.0> : tensor<4x4xf32>
  %sum = exec.repeat count = 2 batch(%batch) init(%zero) : (tensor<2x4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4x4xf32>, %acc: tensor<4x4xf32>):
    %p = train.dot_general %x, %m {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %z = exec.fusion "elementwise" @k0(%p) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>):
      exec.yield %a : tensor<4x4xf32>
    }
    %n = exec.fusion "elementwise" @k1(%acc, %z) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
      exec.yield %a : tensor<4x4xf32>
    }
    exec.yield %n : tensor<4x4xf32>
  }
  return %sum : tensor<4x4xf32>
}

// -----

// Not applied in front of a loop that reads the value, however early its body does.
// CHECK-LABEL: exec.program @before_loop
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[Y:.+]] :
// CHECK-NOT: exec.launch @k0(%[[Y]]) -> (%[[Y]])
// CHECK: exec.loop 2
func.func @before_loop(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}, %batch: tensor<2x4x4xf32> {train.role = "input", train.name = "batch"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %y = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = exec.fusion "elementwise" @k0(%y) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %zero = train.constant dense<0.0> : tensor<4x4xf32>
  %sum = exec.repeat count = 2 batch(%batch) init(%zero) : (tensor<2x4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4x4xf32>, %acc: tensor<4x4xf32>):
    %p = train.dot_general %y, %m {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %n = exec.fusion "elementwise" @k1(%acc, %p) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
      exec.yield %a : tensor<4x4xf32>
    }
    exec.yield %n : tensor<4x4xf32>
  }
  %r = train.dot_general %z, %sum {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// -----

// Behind the loop it is.
// CHECK-LABEL: exec.program @behind_loop
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[Y:.+]] :
// CHECK: exec.loop 2
// CHECK: exec.launch @k0(%[[Y]]) -> (%[[Y]]) extent
func.func @behind_loop(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}, %batch: tensor<2x4x4xf32> {train.role = "input", train.name = "batch"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %y = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %zero = train.constant dense<0.0> : tensor<4x4xf32>
  %sum = exec.repeat count = 2 batch(%batch) init(%zero) : (tensor<2x4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4x4xf32>, %acc: tensor<4x4xf32>):
    %p = train.dot_general %y, %m {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %n = exec.fusion "elementwise" @k1(%acc, %p) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
      exec.yield %a : tensor<4x4xf32>
    }
    exec.yield %n : tensor<4x4xf32>
  }
  %z = exec.fusion "elementwise" @k0(%y) {extent = 16 : i64, grain = 16 : i64, inplace = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    exec.yield %a : tensor<4x4xf32>
  }
  %r = train.dot_general %z, %sum {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
