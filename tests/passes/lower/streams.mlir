// RUN: tessera-opt %s -split-input-file --pass-pipeline='builtin.module(to-exec,exec.program(plan-memory,verify-exec))' | FileCheck %s

// A gather runs beside compute; its `done` is a wait of the compute stream. A reduction overwrites what it reads.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
  // CHECK-LABEL: exec.program @step
  func.func @step(%u: tensor<8xf32> {train.role = "param", train.name = "u", dist.sharding = #dist.sharding<[{"shard"}]>, dist.global = tensor<16xf32>},
                  %x: tensor<4x4xf32> {train.role = "input", train.name = "x"})
      -> (tensor<4x4xf32> {train.role = "output", train.name = "z"}, tensor<8xf32> {train.role = "output", train.name = "part"}) {
    // CHECK-NOT: exec.record
    // CHECK: exec.collective all_gather %u -> %[[W:.+]] over ["shard"] {origin = #dist.origin<forward, ["u"]>, stream = 1 : i64}
    // CHECK-NEXT: exec.record 0 {stream = 1 : i64}
    %f = dist.all_gather_start %u {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["u"]>} : (tensor<8xf32>) -> !dist.future<tensor<16xf32>>
    // CHECK-NEXT: exec.gemm
    %a = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK-NEXT: exec.wait 0
    %g = dist.done %f : (!dist.future<tensor<16xf32>>) -> tensor<16xf32>
    %w = train.reshape %g : (tensor<16xf32>) -> tensor<4x4xf32>
    // CHECK-NEXT: exec.gemm %{{.*}}, %{{.*}} -> %[[B:.+]] :
    %b = train.dot_general %a, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK-NEXT: exec.record 1
    // CHECK-NEXT: exec.wait 1 {stream = 2 : i64}
    // CHECK-NEXT: exec.collective all_reduce %[[B]] -> %[[B]] over ["shard"] {stream = 2 : i64}
    // CHECK-NEXT: exec.record 2 {stream = 2 : i64}
    // CHECK-NEXT: exec.wait 2
    %y = dist.all_reduce %b {axes = ["shard"]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %flat = train.reshape %y : (tensor<4x4xf32>) -> tensor<16xf32>
    // The rank's part is a view, copied only because it is a result of its own.
    // CHECK: exec.copy %{{.*}} -> %{{.*}} : memref<8xf32> -> memref<8xf32>
    %part = dist.slice_local %flat {axes = ["shard"], dim = 0 : i64} : (tensor<16xf32>) -> tensor<8xf32>
    %z = train.dot_general %y, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %z, %part : tensor<4x4xf32>, tensor<8xf32>
  }
}

// -----

// The compute stream learns that the gather is over; a copy that starts then has to learn it too, although nothing was
// computed since the last copy started: what the gather read or wrote may be what the second copy overwrites.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
  // CHECK-LABEL: exec.program @step
  func.func @step(%u: tensor<8xf32> {train.role = "param", train.name = "u", dist.sharding = #dist.sharding<[{"shard"}]>, dist.global = tensor<16xf32>},
                  %x: tensor<4x4xf32> {train.role = "input", train.name = "x"})
      -> (tensor<4x4xf32> {train.role = "output", train.name = "z"}, tensor<4x4xf32> {train.role = "output", train.name = "y"}) {
    // CHECK: exec.collective all_gather
    // CHECK: exec.record [[GATHERED:[0-9]+]] {stream = 1 : i64}
    %f = dist.all_gather_start %u {axes = ["shard"], dim = 0 : i64} : (tensor<8xf32>) -> !dist.future<tensor<16xf32>>
    // CHECK: exec.gemm
    %a = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK: exec.copy {{.*}}stream = 3
    %out = dist.copy_start %a to "host" : (tensor<4x4xf32>) -> !dist.future<tensor<4x4xf32>>
    // CHECK: exec.wait [[GATHERED]]
    %g = dist.done %f : (!dist.future<tensor<16xf32>>) -> tensor<16xf32>
    // CHECK: exec.record [[KNOWN:[0-9]+]]{{$}}
    // CHECK: exec.wait [[KNOWN]] {stream = 3 : i64}
    // CHECK-NEXT: exec.copy {{.*}}stream = 3
    %in = dist.copy_start %x to "device" : (tensor<4x4xf32>) -> !dist.future<tensor<4x4xf32>>
    %w = train.reshape %g : (tensor<16xf32>) -> tensor<4x4xf32>
    %b = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %host = dist.done %out : (!dist.future<tensor<4x4xf32>>) -> tensor<4x4xf32>
    %d = dist.done %in : (!dist.future<tensor<4x4xf32>>) -> tensor<4x4xf32>
    %z = train.dot_general %b, %d {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %z, %host : tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----

// A loop: micro-batches are addressed by iteration, the accumulator is one buffer, its start a fill.
// CHECK-LABEL: exec.program @step
// CHECK-DAG: %[[MICRO:.+]] = exec.buffer %x.slot + 0 {iteration_stride = 32 : i64} : memref<128xi8> to memref<8xf32>
// CHECK: exec.fill %[[ACC:.+]] with 0.000000e+00
// CHECK-NEXT: exec.loop 4
// CHECK-NEXT: exec.launch @k0(%[[ACC]], %[[MICRO]]) -> (%[[ACC]])
// CHECK-NEXT: }
// CHECK-NEXT: exec.result %[[ACC]]
func.func @step(%x: tensor<4x8xf32> {train.role = "input", train.name = "x"}) -> (tensor<8xf32> {train.role = "output", train.name = "sum"}) {
  %zero = train.constant dense<0.0> : tensor<8xf32>
  %sum = exec.repeat count = 4 batch(%x) init(%zero) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i64>, %micro: tensor<8xf32>, %acc: tensor<8xf32>):
    %next = exec.fusion "elementwise" @k0(%acc, %micro) {extent = 8 : i64, grain = 1 : i64, inplace = array<i64: 0>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
      %s = train.add %a, %b : tensor<8xf32>
      exec.yield %s : tensor<8xf32>
    }
    exec.yield %next : tensor<8xf32>
  }
  return %sum : tensor<8xf32>
}

// -----

// Attention reads its operands where the projection wrote them and writes its output where the next one reads it.
// CHECK-LABEL: exec.program @step
// CHECK-NOT: exec.copy
// CHECK: exec.attention %{{.*}}, %{{.*}}, %{{.*}} -> %{{.*}} : memref<2x2x4x8xf32, strided<[192, 8, 48, 1]>>, memref<2x2x4x8xf32, strided<[192, 8, 48, 1]>>, memref<2x2x4x8xf32, strided<[192, 8, 48, 1]>> -> memref<2x2x4x8xf32, strided<[64, 8, 16, 1]>>, memref<2x2x4xf32>
// CHECK: exec.gemm %{{.*}} : memref<8x16xf32>, memref<16x16xf32> -> memref<8x16xf32>
func.func @step(%x: tensor<8x16xf32> {train.role = "input", train.name = "x"}, %w: tensor<16x48xf32> {train.role = "frozen", train.name = "w"},
                %p: tensor<16x16xf32> {train.role = "frozen", train.name = "p"}) -> (tensor<8x16xf32> {train.role = "output", train.name = "y"}) {
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x16xf32>, tensor<16x48xf32>) -> tensor<8x48xf32>
  %1 = train.reshape %0 : (tensor<8x48xf32>) -> tensor<2x4x3x2x8xf32>
  %2 = train.transpose %1 {permutation = array<i64: 2, 0, 3, 1, 4>} : (tensor<2x4x3x2x8xf32>) -> tensor<3x2x2x4x8xf32>
  %q0 = train.slice %2 {starts = array<i64: 0, 0, 0, 0, 0>, limits = array<i64: 1, 2, 2, 4, 8>, strides = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x2x2x4x8xf32>) -> tensor<1x2x2x4x8xf32>
  %q = train.reshape %q0 : (tensor<1x2x2x4x8xf32>) -> tensor<2x2x4x8xf32>
  %k0 = train.slice %2 {starts = array<i64: 1, 0, 0, 0, 0>, limits = array<i64: 2, 2, 2, 4, 8>, strides = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x2x2x4x8xf32>) -> tensor<1x2x2x4x8xf32>
  %k = train.reshape %k0 : (tensor<1x2x2x4x8xf32>) -> tensor<2x2x4x8xf32>
  %v0 = train.slice %2 {starts = array<i64: 2, 0, 0, 0, 0>, limits = array<i64: 3, 2, 2, 4, 8>, strides = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x2x2x4x8xf32>) -> tensor<1x2x2x4x8xf32>
  %v = train.reshape %v0 : (tensor<1x2x2x4x8xf32>) -> tensor<2x2x4x8xf32>
  %o, %lse = train.attention %q, %k, %v {scale = 0.5 : f64} : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4xf32>)
  %ot = train.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x2x4x8xf32>) -> tensor<2x4x2x8xf32>
  %of = train.reshape %ot : (tensor<2x4x2x8xf32>) -> tensor<8x16xf32>
  %y = train.dot_general %of, %p {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// Each axis beside the one that state is split over has two streams of its own: what is summed over replicas does not stand
// behind what is scattered, and an activation behind neither. A collective over several axes is on the stream of the first.
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2, tp : model = 2>} {
  // CHECK-LABEL: exec.program @step
  func.func @step(%u: tensor<8xf32> {train.role = "param", train.name = "u", dist.sharding = #dist.sharding<[{"shard"}]>, dist.global = tensor<16xf32>},
                  %x: tensor<8xf32> {train.role = "input", train.name = "x"})
      -> (tensor<8xf32> {train.role = "output", train.name = "a"}, tensor<8xf32> {train.role = "output", train.name = "b"}, tensor<16xf32> {train.role = "output", train.name = "c"},
          tensor<8xf32> {train.role = "output", train.name = "d"}, tensor<16xf32> {train.role = "output", train.name = "e"}) {
    // CHECK: exec.collective all_reduce {{.*}} over ["replicate"] {stream = 5 : i64}
    %a = dist.all_reduce %u {axes = ["replicate"]} : (tensor<8xf32>) -> tensor<8xf32>
    // CHECK: exec.collective all_reduce {{.*}} over ["tp"] {stream = 7 : i64}
    %b = dist.all_reduce %x {axes = ["tp"]} : (tensor<8xf32>) -> tensor<8xf32>
    // CHECK: exec.collective all_gather {{.*}} over ["tp"] {stream = 6 : i64}
    %c = dist.all_gather %u {axes = ["tp"], dim = 0 : i64} : (tensor<8xf32>) -> tensor<16xf32>
    // CHECK: exec.collective all_reduce {{.*}} over ["replicate", "shard"] {stream = 2 : i64}
    %d = dist.all_reduce %x {axes = ["replicate", "shard"]} : (tensor<8xf32>) -> tensor<8xf32>
    // CHECK: exec.collective all_gather {{.*}} over ["shard"] {stream = 1 : i64}
    %e = dist.all_gather %x {axes = ["shard"], dim = 0 : i64} : (tensor<8xf32>) -> tensor<16xf32>
    return %a, %b, %c, %d, %e : tensor<8xf32>, tensor<8xf32>, tensor<16xf32>, tensor<8xf32>, tensor<16xf32>
  }
}
