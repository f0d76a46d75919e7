// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: exec.program @step
exec.program @step {
  // CHECK: exec.arena @state state bytes 4096
  exec.arena @state state bytes 4096
  exec.arena @activations activations bytes 8192
  // CHECK: %[[W:h.0.w.slot]] = exec.slot "h.0.w" in @state parameters at 64 : memref<128xi8>
  %0 = exec.slot "h.0.w" in @state parameters at 64 : memref<128xi8>
  %1 = exec.slot "x" in @activations activations : memref<256xi8>
  // CHECK: exec.buffer %{{.*}} + 0 : memref<128xi8> to memref<4x8xf32>
  %2 = exec.buffer %0 + 0 : memref<128xi8> to memref<4x8xf32>
  // CHECK: exec.buffer %{{.*}} + 32 {iteration_stride = 64 : i64, rank_axes = ["shard"], rank_stride = 16 : i64}
  %3 = exec.buffer %1 + 32 {iteration_stride = 64 : i64, rank_axes = ["shard"], rank_stride = 16 : i64} : memref<256xi8> to memref<4xf32>
  %4 = exec.buffer %1 + 0 : memref<256xi8> to memref<8x4xf32, strided<[1, 8]>>
  %5 = exec.buffer %1 + 128 : memref<256xi8> to memref<4x4xf32>
  exec.argument %2 {train.name = "h.0.w", train.role = "param"} : memref<4x8xf32>
  // CHECK: exec.gemm %{{.*}}, %{{.*}} -> %{{.*}} {beta = 1.000000e+00 : f32} : memref<4x8xf32>, memref<8x4xf32, strided<[1, 8]>> -> memref<4x4xf32>
  exec.gemm %2, %4 -> %5 {beta = 1.0 : f32} : memref<4x8xf32>, memref<8x4xf32, strided<[1, 8]>> -> memref<4x4xf32>
  // CHECK: exec.launch @k0(%{{.*}}) -> (%{{.*}}) extent 16 grain 4
  exec.launch @k0(%5) -> (%5) extent 16 grain 4 : (memref<4x4xf32>) -> memref<4x4xf32>
  // CHECK: exec.record 0
  exec.record 0
  // CHECK: exec.wait 0 {stream = 2 : i64}
  exec.wait 0 {stream = 2 : i64}
  // CHECK: exec.collective all_reduce %{{.*}} -> %{{.*}} over ["shard"] {origin = #dist.origin<result, ["loss"]>, stream = 2 : i64}
  exec.collective all_reduce %5 -> %5 over ["shard"] {origin = #dist.origin<result, ["loss"]>, stream = 2 : i64} : memref<4x4xf32> -> memref<4x4xf32>
  // CHECK: exec.loop 4
  exec.loop 4 {
    // CHECK: exec.copy
    exec.copy %3 -> %3 : memref<4xf32> -> memref<4xf32>
  }
  // CHECK: exec.fill %{{.*}} with 0.000000e+00
  exec.fill %5 with 0.0 : memref<4x4xf32>
  // CHECK: exec.probe %{{.*}} of "h.0"
  exec.probe %5 of "h.0" : memref<4x4xf32>
  exec.result %5 {train.role = "loss"} : memref<4x4xf32>
}
