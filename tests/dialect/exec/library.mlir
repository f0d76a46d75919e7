// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: exec.program @step
exec.program @step {
  exec.arena @activations activations bytes 0
  %0 = exec.slot "all" in @activations activations : memref<4096xi8>
  %q = exec.buffer %0 + 0 : memref<4096xi8> to memref<1x2x3x4xf32>
  %k = exec.buffer %0 + 128 : memref<4096xi8> to memref<1x2x3x4xf32>
  %lse = exec.buffer %0 + 256 : memref<4096xi8> to memref<1x2x3xf32>
  %mask = exec.buffer %0 + 512 : memref<4096xi8> to memref<1x1x3x3xi1>
  // CHECK: exec.attention %{{.*}}, %{{.*}}, %{{.*}} -> %{{.*}}, %{{.*}} {causal, scale = 5.000000e-01 : f64}
  exec.attention %q, %k, %k -> %q, %lse {causal, scale = 0.5} : memref<1x2x3x4xf32>, memref<1x2x3x4xf32>, memref<1x2x3x4xf32> -> memref<1x2x3x4xf32>, memref<1x2x3xf32>
  // CHECK: exec.attention_grad %{{.*}} mask(%{{.*}} : memref<1x1x3x3xi1>)
  exec.attention_grad %q, %k, %k mask(%mask : memref<1x1x3x3xi1>), %q, %lse, %q -> %q, %k, %k {scale = 0.5} : memref<1x2x3x4xf32>, memref<1x2x3x4xf32>, memref<1x2x3x4xf32>, memref<1x2x3x4xf32>, memref<1x2x3xf32>, memref<1x2x3x4xf32> -> memref<1x2x3x4xf32>, memref<1x2x3x4xf32>, memref<1x2x3x4xf32>
  %x = exec.buffer %0 + 1024 : memref<4096xi8> to memref<1x2x5x5xf32>
  %w = exec.buffer %0 + 2048 : memref<4096xi8> to memref<4x2x3x3xf32>
  %y = exec.buffer %0 + 3072 : memref<4096xi8> to memref<1x4x3x3xf32>
  // CHECK: exec.conv forward
  exec.conv forward %x, %w, %y {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : memref<1x2x5x5xf32>, memref<4x2x3x3xf32>, memref<1x4x3x3xf32>
  // CHECK: exec.conv filter_grad
  exec.conv filter_grad %x, %w, %y {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : memref<1x2x5x5xf32>, memref<4x2x3x3xf32>, memref<1x4x3x3xf32>
  %i = exec.buffer %0 + 4032 : memref<4096xi8> to memref<i64>
  // CHECK: exec.axis_index %{{.*}} over ["shard"] : memref<i64>
  exec.axis_index %i over ["shard"] : memref<i64>
}
