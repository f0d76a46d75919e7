// RUN: tessera-opt %s -to-exec -split-input-file | FileCheck %s
// RUN: tessera-opt %s -to-exec -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Slots, buffers, loops and results around the instructions; emit-instructions.mlir has those.

// Arguments and results keep their attributes; an input says what its dimensions count, also where
// that was assumed. What is on the host has an arena of its own.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: exec.program @boundary
// CHECK: exec.arena @state state
// CHECK: exec.arena @activations activations
// CHECK: exec.arena @host host
// CHECK: exec.slot "m" in @host optimizer
// CHECK: exec.argument %x {dist.sharding = {{.*}}, train.dims = #train.dims<[micro_batch, sample]>, train.name = "x", train.role = "input"}
// CHECK: exec.argument %y {train.dims = #train.dims<[sample, none]>, train.name = "y", train.role = "input"}
// CHECK: exec.argument %m {dist.memory = "host", train.name = "m"
// CHECK-NOT: train.dims
// CHECK: exec.result %{{.*}} {train.name = "z", train.role = "output"}
func.func @boundary(%x: tensor<2x4xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[micro_batch, sample]>, dist.sharding = #dist.sharding<[{}, {"shard"}]>},
                    %y: tensor<4x4xf32> {train.role = "input", train.name = "y"},
                    %w: tensor<4xf32> {train.role = "param", train.name = "w"},
                    %m: tensor<4xf32> {train.role = "state", train.of = "w", train.state = "m", train.name = "m", dist.memory = "host"})
    -> (tensor<4x4xf32> {train.role = "output", train.name = "z"}, tensor<4xf32> {train.alias = 3 : i64}) {
  %z = train.dot_general %y, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %z, %m : tensor<4x4xf32>, tensor<4xf32>
}
}

// -----

// A loop reads its micro-batch at a stride, and its iteration's number from a table that is filled in front of it. Values
// that change places from one iteration to the next go through a copy.
// CHECK-LABEL: exec.program @loop
// CHECK-DAG: exec.buffer %x.slot + 0 {iteration_stride = 16 : i64} : memref<32xi8> to memref<4xf32>
// CHECK-DAG: %[[I:.+]] = exec.buffer %[[TABLE:.+]] + 0 {iteration_stride = 8 : i64} : memref<16xi8> to memref<i64>
// CHECK-DAG: %[[I0:.+]] = exec.buffer %[[TABLE]] + 0 : memref<16xi8> to memref<i64>
// CHECK-DAG: %[[I1:.+]] = exec.buffer %[[TABLE]] + 8 : memref<16xi8> to memref<i64>
// CHECK-DAG: exec.fill %[[I0]] with 0.000000e+00
// CHECK-DAG: exec.fill %[[I1]] with 1.000000e+00
// CHECK: exec.loop 2
// CHECK:   exec.launch @k0(%[[I]],
// CHECK-COUNT-2: exec.copy
// REMARK: is copied: two values change places
func.func @loop(%x: tensor<2x4xf32> {train.role = "input", train.name = "x"}, %a: tensor<4xf32> {train.role = "input", train.name = "a"}, %b: tensor<4xf32> {train.role = "input", train.name = "b"})
    -> (tensor<4xf32> {train.role = "output", train.name = "p"}, tensor<4xf32> {train.role = "output", train.name = "q"}, tensor<4xf32> {train.role = "output", train.name = "s"}) {
  %z = train.constant dense<0.0> : tensor<4xf32>
  %p, %q, %s = exec.repeat count = 2 batch(%x) init(%a, %b, %z) : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %m: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>, %e: tensor<4xf32>):
    %n = exec.fusion "elementwise" @k0(%i, %m, %e) {extent = 4 : i64, grain = 4 : i64, inplace = array<i64: 2>} : (tensor<i64>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%k: tensor<i64>, %l: tensor<4xf32>, %o: tensor<4xf32>):
      exec.yield %o : tensor<4xf32>
    }
    exec.yield %d, %c, %n : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %p, %q, %s : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A result that is a view of something else gets memory of its own.
// CHECK-LABEL: exec.program @view
// CHECK: exec.copy %[[FROM:.+]] -> %[[TO:.+]] : memref<2x4xf32> -> memref<2x4xf32>
// CHECK: exec.result %[[TO]]
// REMARK: is copied: result is a view of something else
func.func @view(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<2x4xf32> {train.role = "output", train.name = "top"}) {
  %s = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
  return %s : tensor<2x4xf32>
}
