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

// -----

// train.arg_c13
exec.program @step {
  %0 = exec.slot "x" in @state inputs : memref<64xi8>
  %1 = exec.buffer %0 + 0 : memref<64xi8> to memref<16xf32>
  // expected-error @+1 {{train.dims expected a #train.dims with a role for each of 1 dimensions, got #train.dims<[sample, none]>}}
  exec.argument %1 {train.dims = #train.dims<[sample, none]>, train.name = "x", train.role = "input"} : memref<16xf32>
}

// -----

// train.arg_c1
exec.program @step {
  %0 = exec.slot "x" in @state inputs : memref<64xi8>
  %1 = exec.buffer %0 + 0 : memref<64xi8> to memref<16xf32>
  // expected-error @+1 {{train.role expected one of "param"}}
  exec.argument %1 {train.name = "x", train.role = "batch"} : memref<16xf32>
}

// -----

// train.result_c1
exec.program @step {
  %0 = exec.slot "x" in @state workspace : memref<64xi8>
  %1 = exec.buffer %0 + 0 : memref<64xi8> to memref<16xf32>
  // expected-error @+1 {{train.role expected one of "loss"}}
  exec.result %1 {train.role = "input"} : memref<16xf32>
}

// -----

// dist.annotation_c1
exec.program @step {
  %0 = exec.slot "x" in @state inputs : memref<64xi8>
  %1 = exec.buffer %0 + 0 : memref<64xi8> to memref<16xf32>
  // expected-error @+1 {{dist.sharding expected a #dist.sharding of the rank of 'memref<16xf32>'}}
  exec.argument %1 {dist.sharding = #dist.sharding<[]>, train.name = "x", train.role = "input"} : memref<16xf32>
}

// -----

exec.program @step {
  // expected-error @+1 {{attribute 'stream' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 0 whose maximum value is 15}}
  exec.record 0 {stream = 16 : i64}
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  %1 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32>
  %2 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4xf32>
  %3 = exec.buffer %0 + 0 : memref<1024xi8> to memref<2x4x4xf32>
  %4 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32, strided<[8, 1]>>
  // expected-error @+1 {{with epilogue bias needs an input and no output of it}}
  exec.gemm %1, %1 -> %1 {epilogue = #exec<epilogue bias>} : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  %1 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32>
  %2 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4xf32>
  %3 = exec.buffer %0 + 0 : memref<1024xi8> to memref<2x4x4xf32>
  %4 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32, strided<[8, 1]>>
  // expected-error @+1 {{with an epilogue needs rank 2, got 3}}
  exec.gemm %3, %3 -> %3 {epilogue = #exec<epilogue gelu>} : memref<2x4x4xf32>, memref<2x4x4xf32> -> memref<2x4x4xf32>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  %1 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32>
  %2 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4xf32>
  %3 = exec.buffer %0 + 0 : memref<1024xi8> to memref<2x4x4xf32>
  %4 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32, strided<[8, 1]>>
  // expected-error @+1 {{with epilogue gelu needs a contiguous result and a beta of 0}}
  exec.gemm %1, %1 -> %4 {epilogue = #exec<epilogue gelu>} : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32, strided<[8, 1]>>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  %1 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32>
  %2 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4xf32>
  %3 = exec.buffer %0 + 0 : memref<1024xi8> to memref<2x4x4xf32>
  %4 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32, strided<[8, 1]>>
  // expected-error @+1 {{epilogue's input must be contiguous, of shape [4, 4] and type 'f32', got 'memref<4xf32>'}}
  exec.gemm %1, %1 -> %1 with(%2 : memref<4xf32>) {epilogue = #exec<epilogue gelu_grad>} : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<1024xi8>
  %1 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32>
  %2 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4xf32>
  %3 = exec.buffer %0 + 0 : memref<1024xi8> to memref<2x4x4xf32>
  %4 = exec.buffer %0 + 0 : memref<1024xi8> to memref<4x4xf32, strided<[8, 1]>>
  // expected-error @+1 {{epilogue's output must be contiguous, of shape [4] and type 'f32'}}
  exec.gemm %1, %1 -> %1 giving(%1 : memref<4x4xf32>) {epilogue = #exec<epilogue bias_grad_b>} : memref<4x4xf32>, memref<4x4xf32> -> memref<4x4xf32>
}
