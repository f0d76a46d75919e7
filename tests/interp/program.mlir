// RUN: tessera-interp %s --function=step | FileCheck %s
// RUN: not tessera-interp %s --function=unplanned 2>&1 | FileCheck %s --check-prefix=UNPLANNED
// RUN: not tessera-interp %s --function=beyond 2>&1 | FileCheck %s --check-prefix=BEYOND
// RUN: not tessera-interp %s --function=unknown 2>&1 | FileCheck %s --check-prefix=KERNEL
// RUN: not tessera-interp %s --function=step --gradcheck 2>&1 | FileCheck %s --check-prefix=GRADCHECK

// A program runs on bytes, on two ranks: views of iterations and of ranks, kernels, copies, a sum over ranks, products that begin
// and that continue a sum. Memory that nothing wrote holds NaN.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
  // CHECK: @step
  // CHECK-NEXT: parts: tensor<4xf32> = [24, 25, 45, 46]
  // CHECK-NEXT: unwritten: tensor<2xf32> = [{{-?}}nan, {{-?}}nan]
  // CHECK-NEXT: product: tensor<2x2xf32> = [5, 5, 5, 5]
  // CHECK-NEXT: kept: tensor<2xf32> = [3, 3]
  // GRADCHECK: error: has no gradients to check: those are checked on functions
  exec.program @step {
    exec.arena @state state bytes 448
    %w.slot = exec.slot "kept" in @state parameters at 0 : memref<8xi8>
    %p.slot = exec.slot "parts" in @state workspace at 64 : memref<16xi8>
    %u.slot = exec.slot "unwritten" in @state workspace at 128 : memref<8xi8>
    %t.slot = exec.slot "t" in @state workspace at 192 : memref<16xi8>
    %i.slot = exec.slot "i" in @state workspace at 256 : memref<4xi8>
    %m.slot = exec.slot "m" in @state workspace at 320 : memref<16xi8>
    %r.slot = exec.slot "r" in @state workspace at 384 : memref<8xi8>
    %w = exec.buffer %w.slot + 0 : memref<8xi8> to memref<2xf32>
    %p = exec.buffer %p.slot + 0 : memref<16xi8> to memref<4xf32>
    %u = exec.buffer %u.slot + 0 : memref<8xi8> to memref<2xf32>
    %t = exec.buffer %t.slot + 0 : memref<16xi8> to memref<4xf32>
    %first = exec.buffer %t.slot + 0 : memref<16xi8> to memref<2xf32>
    %second = exec.buffer %t.slot + 8 : memref<16xi8> to memref<2xf32>
    %each = exec.buffer %t.slot + 0 {iteration_stride = 4 : i64} : memref<16xi8> to memref<f32>
    %mine = exec.buffer %t.slot + 0 {rank_stride = 8 : i64, rank_axes = ["shard"]} : memref<16xi8> to memref<2xf32>
    %r = exec.buffer %r.slot + 0 : memref<8xi8> to memref<2xf32>
    %i = exec.buffer %i.slot + 0 : memref<4xi8> to memref<i32>
    %m = exec.buffer %m.slot + 0 : memref<16xi8> to memref<2x2xf32>
    exec.argument %w {train.role = "param", train.name = "kept"} : memref<2xf32>
    exec.fill %w with 3.0 : memref<2xf32>
    exec.fill %m with 0.0 : memref<2x2xf32>
    exec.fill %first with 1.0 : memref<2xf32>
    exec.fill %second with 2.0 : memref<2xf32>
    // t = [1, 1, 2, 2]; in each iteration one element is multiplied by 10, and 2 is added to it.
    exec.loop 4 {
      exec.launch @scale(%each) -> (%each) extent 1 grain 1 : (memref<f32>) -> memref<f32>
    }
    // t = [12, 12, 22, 22]; each rank adds its number, and 0 or 1, to its own half.
    exec.axis_index %i over ["shard"] : memref<i32>
    exec.launch @add_index(%mine, %i) -> (%r) extent 2 grain 1 : (memref<2xf32>, memref<i32>) -> memref<2xf32>
    exec.copy %r -> %mine : memref<2xf32> -> memref<2xf32>
    // Rank 0: [12, 13, 22, 22], rank 1: [12, 12, 23, 24].
    exec.collective all_reduce %t -> %p over ["shard"] {stream = 2 : i64} : memref<4xf32> -> memref<4xf32>
    exec.fill %t with 1.0 : memref<4xf32>
    %ones = exec.buffer %t.slot + 0 : memref<16xi8> to memref<2x2xf32>
    %transposed = exec.buffer %t.slot + 0 : memref<16xi8> to memref<2x2xf32, strided<[1, 2]>>
    exec.gemm %ones, %ones -> %m : memref<2x2xf32>, memref<2x2xf32> -> memref<2x2xf32>
    exec.gemm %ones, %transposed -> %m {beta = 1.0 : f32} : memref<2x2xf32>, memref<2x2xf32, strided<[1, 2]>> -> memref<2x2xf32>
    exec.launch @increment(%m) -> (%m) extent 4 grain 1 : (memref<2x2xf32>) -> memref<2x2xf32>
    exec.result %p {train.role = "output", train.name = "parts"} : memref<4xf32>
    exec.result %u {train.role = "output", train.name = "unwritten"} : memref<2xf32>
    exec.result %m {train.role = "output", train.name = "product"} : memref<2x2xf32>
  }

  // UNPLANNED: error: has no place in its arena: plan-memory has not run
  exec.program @unplanned {
    exec.arena @state state bytes 64
    %a.slot = exec.slot "a" in @state workspace : memref<16xi8>
    %a = exec.buffer %a.slot + 0 : memref<16xi8> to memref<4xf32>
    exec.result %a : memref<4xf32>
  }

  // BEYOND: error: leaves its slot
  exec.program @beyond {
    exec.arena @state state bytes 64
    %a.slot = exec.slot "a" in @state workspace at 0 : memref<16xi8>
    %a = exec.buffer %a.slot + 0 {rank_stride = 16 : i64, rank_axes = ["shard"]} : memref<16xi8> to memref<4xf32>
    exec.result %a : memref<4xf32>
  }

  // KERNEL: error: there is no kernel 'nothing' in a module of train ops
  exec.program @unknown {
    exec.arena @state state bytes 64
    %a.slot = exec.slot "a" in @state workspace at 0 : memref<16xi8>
    %a = exec.buffer %a.slot + 0 : memref<16xi8> to memref<4xf32>
    exec.launch @nothing(%a) -> (%a) extent 4 grain 1 : (memref<4xf32>) -> memref<4xf32>
  }

  module @kernels {
    func.func @scale(%x: tensor<f32>) -> tensor<f32> {
      %ten = train.constant dense<10.0> : tensor<f32>
      %two = train.constant dense<2.0> : tensor<f32>
      %0 = train.mul %x, %ten : tensor<f32>
      %1 = train.add %0, %two : tensor<f32>
      return %1 : tensor<f32>
    }
    func.func @add_index(%x: tensor<2xf32>, %i: tensor<i32>) -> tensor<2xf32> {
      %0 = train.broadcast %i {broadcast_dimensions = array<i64>} : (tensor<i32>) -> tensor<2xi32>
      %1 = train.iota {dim = 0 : i64} : tensor<2xi32>
      %2 = train.add %0, %1 : tensor<2xi32>
      %3 = train.convert %2 : (tensor<2xi32>) -> tensor<2xf32>
      %4 = train.add %x, %3 : tensor<2xf32>
      return %4 : tensor<2xf32>
    }
    func.func @increment(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %one = train.constant dense<1.0> : tensor<2x2xf32>
      %0 = train.add %x, %one : tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    }
  }
}
