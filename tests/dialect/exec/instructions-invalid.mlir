// RUN: tessera-opt %s -split-input-file -verify-diagnostics

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<64xi8>
  // expected-error @+1 {{ends at byte 80 of a slot of 64 bytes}}
  %1 = exec.buffer %0 + 16 : memref<64xi8> to memref<16xf32>
}

// -----

exec.program @step {
  // expected-error @+1 {{offset must be a multiple of 64, got 8}}
  %0 = exec.slot "x" in @activations activations at 8 : memref<64xi8>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  // expected-error @+1 {{rank_stride and rank_axes go together}}
  %1 = exec.buffer %0 + 0 {rank_stride = 64 : i64} : memref<1024xi8> to memref<16xf32>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  %1 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32>
  %2 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x5xf32>
  // expected-error @+1 {{shapes do not match}}
  exec.gemm %1, %2 -> %1 : memref<4x4xf32>, memref<4x5xf32> -> memref<4x4xf32>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  %1 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32>
  %2 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32, strided<[16, 2]>>
  // expected-error @+1 {{operand needs stride 1 in one of its two innermost dimensions}}
  exec.gemm %2, %1 -> %1 : memref<4x4xf32, strided<[16, 2]>>, memref<4x4xf32> -> memref<4x4xf32>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  %1 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32>
  %2 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32, strided<[1, 4]>>
  // expected-error @+1 {{result needs stride 1 in its innermost dimension}}
  exec.gemm %1, %1 -> %2 : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32, strided<[1, 4]>>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  %1 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32, strided<[8, 1]>>
  // expected-error @+1 {{inputs must be contiguous}}
  exec.launch @k(%1) -> (%1) extent 1 grain 1 : (memref<4x4xf32, strided<[8, 1]>>) -> memref<4x4xf32, strided<[8, 1]>>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  %1 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4xf32>
  %2 = exec.buffer %0 + 64 : memref<1024xi8> to memref<6xf32>
  // expected-error @+1 {{4 elements in do not go with 6 elements out}}
  exec.collective all_gather %1 -> %2 over ["shard"] : memref<4xf32> -> memref<6xf32>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  %1 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4xf32>
  %2 = exec.buffer %0 + 64 : memref<1024xi8> to memref<6xf32>
  // expected-error @+1 {{differ in shape or element type}}
  exec.copy %1 -> %2 : memref<4xf32> -> memref<6xf32>
}

// -----

exec.program @step {
  // expected-error @+1 {{count must be at least 1, got 0}}
  exec.loop 0 {
  }
}
