// RUN: tessera-opt %s -split-input-file -verify-diagnostics

func.func @modes(%a: tensor<32x256xf8E4M3FN>, %b: tensor<256x256xf8E4M3FN>, %g: tensor<32x256xf8E5M2>, %s: tensor<f32>, %ra: tensor<32xf32>,
    %rb: tensor<256xf32>, %va: tensor<2x32xf32>, %vb: tensor<2x256xf32>, %bb: tensor<2x4xf32>, %ma: tensor<1x2x32x4x4xf8E8M0FNU>,
    %mb: tensor<2x2x32x4x4xf8E8M0FNU>, %c: tensor<32x256xf32>) {
  %0 = exec.scaled_product %g by %s tensor, %b by %s tensor : (tensor<32x256xf8E5M2>, tensor<f32>, tensor<256x256xf8E4M3FN>, tensor<f32>) -> tensor<32x256xbf16>
  %1 = exec.scaled_product %a by %ra row, %b by %rb row plus %c {fast_accumulation} : (tensor<32x256xf8E4M3FN>, tensor<32xf32>, tensor<256x256xf8E4M3FN>, tensor<256xf32>, tensor<32x256xf32>) -> tensor<32x256xf32>
  %2 = exec.scaled_product %a by %va block128, %b by %bb block128x128 : (tensor<32x256xf8E4M3FN>, tensor<2x32xf32>, tensor<256x256xf8E4M3FN>, tensor<2x4xf32>) -> tensor<32x256xbf16>
  %3 = exec.scaled_product %a by %va block128, %b by %vb block128 : (tensor<32x256xf8E4M3FN>, tensor<2x32xf32>, tensor<256x256xf8E4M3FN>, tensor<2x256xf32>) -> tensor<32x256xbf16>
  %4 = exec.scaled_product %a by %ma block32, %b by %mb block32 : (tensor<32x256xf8E4M3FN>, tensor<1x2x32x4x4xf8E8M0FNU>, tensor<256x256xf8E4M3FN>, tensor<2x2x32x4x4xf8E8M0FNU>) -> tensor<32x256xbf16>
  return
}

// -----

func.func @unpadded(%a: tensor<32x256xf8E4M3FN>, %b: tensor<256x256xf8E4M3FN>, %va: tensor<2x32xf32>, %bb: tensor<2x2xf32>) {
  // expected-error @+1 {{scales of rhs of mode block128x128 are 'tensor<2x4xf32>', got 'tensor<2x2xf32>'}}
  %0 = exec.scaled_product %a by %va block128, %b by %bb block128x128 : (tensor<32x256xf8E4M3FN>, tensor<2x32xf32>, tensor<256x256xf8E4M3FN>, tensor<2x2xf32>) -> tensor<32x256xbf16>
  return
}

// -----

func.func @order(%a: tensor<32x256xf8E4M3FN>, %b: tensor<256x256xf8E4M3FN>, %va: tensor<32x2xf32>, %bb: tensor<2x4xf32>) {
  // expected-error @+1 {{scales of lhs of mode block128 are 'tensor<2x32xf32>', got 'tensor<32x2xf32>'}}
  %0 = exec.scaled_product %a by %va block128, %b by %bb block128x128 : (tensor<32x256xf8E4M3FN>, tensor<32x2xf32>, tensor<256x256xf8E4M3FN>, tensor<2x4xf32>) -> tensor<32x256xbf16>
  return
}

// -----

func.func @pair(%a: tensor<128x256xf8E4M3FN>, %b: tensor<256x256xf8E4M3FN>, %va: tensor<1x4xf32>, %bb: tensor<2x4xf32>) {
  // expected-error @+1 {{has no product of modes block128x128 and block128x128}}
  %0 = exec.scaled_product %a by %va block128x128, %b by %bb block128x128 : (tensor<128x256xf8E4M3FN>, tensor<1x4xf32>, tensor<256x256xf8E4M3FN>, tensor<2x4xf32>) -> tensor<128x256xbf16>
  return
}

// -----

func.func @formats(%a: tensor<32x256xf8E5M2>, %b: tensor<256x256xf8E5M2>, %s: tensor<f32>) {
  // expected-error @+1 {{multiplies f8E4M3FN by itself or by f8E5M2, got 'f8E5M2' and 'f8E5M2'}}
  %0 = exec.scaled_product %a by %s tensor, %b by %s tensor : (tensor<32x256xf8E5M2>, tensor<f32>, tensor<256x256xf8E5M2>, tensor<f32>) -> tensor<32x256xbf16>
  return
}

// -----

func.func @sizes(%a: tensor<32x24xf8E4M3FN>, %b: tensor<48x24xf8E4M3FN>, %s: tensor<f32>) {
  // expected-error @+1 {{k must be a multiple of 16, got 24}}
  %0 = exec.scaled_product %a by %s tensor, %b by %s tensor : (tensor<32x24xf8E4M3FN>, tensor<f32>, tensor<48x24xf8E4M3FN>, tensor<f32>) -> tensor<32x48xbf16>
  return
}

// -----

func.func @shapes(%a: tensor<32x64xf8E4M3FN>, %b: tensor<64x48xf8E4M3FN>, %s: tensor<f32>) {
  // expected-error @+1 {{multiplies [m, k] and [n, k] to [m, n]}}
  %0 = exec.scaled_product %a by %s tensor, %b by %s tensor : (tensor<32x64xf8E4M3FN>, tensor<f32>, tensor<64x48xf8E4M3FN>, tensor<f32>) -> tensor<32x48xbf16>
  return
}

// -----

func.func @result(%a: tensor<32x64xf8E4M3FN>, %b: tensor<48x64xf8E4M3FN>, %s: tensor<f32>) {
  // expected-error @+1 {{has results of f32, bf16 or f16, got 'f8E4M3FN'}}
  %0 = exec.scaled_product %a by %s tensor, %b by %s tensor : (tensor<32x64xf8E4M3FN>, tensor<f32>, tensor<48x64xf8E4M3FN>, tensor<f32>) -> tensor<32x48xf8E4M3FN>
  return
}

// -----

func.func @sum(%a: tensor<32x64xf8E4M3FN>, %b: tensor<48x64xf8E4M3FN>, %s: tensor<f32>, %c: tensor<32x48xf32>) {
  // expected-error @+1 {{adds to a sum of type 'tensor<32x48xbf16>', got 'tensor<32x48xf32>'}}
  %0 = exec.scaled_product %a by %s tensor, %b by %s tensor plus %c : (tensor<32x64xf8E4M3FN>, tensor<f32>, tensor<48x64xf8E4M3FN>, tensor<f32>, tensor<32x48xf32>) -> tensor<32x48xbf16>
  return
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<4096xi8>
  %a = exec.buffer %0 + 0 : memref<4096xi8> to memref<32x32xf8E4M3FN>
  %b = exec.buffer %0 + 1024 : memref<4096xi8> to memref<32x32xf8E4M3FN>
  %c = exec.buffer %0 + 2048 : memref<4096xi8> to memref<32x32xbf16>
  // expected-error @+1 {{needs scales of both operands with operands of 'f8E4M3FN' and 'f8E4M3FN'}}
  exec.gemm %a, %b -> %c : memref<32x32xf8E4M3FN>, memref<32x32xf8E4M3FN> -> memref<32x32xbf16>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<4096xi8>
  %a = exec.buffer %0 + 0 : memref<4096xi8> to memref<32x32xf8E4M3FN>
  %b = exec.buffer %0 + 1024 : memref<4096xi8> to memref<32x32xf8E4M3FN>
  %c = exec.buffer %0 + 2048 : memref<4096xi8> to memref<32x32xbf16>
  %s = exec.buffer %0 + 4092 : memref<4096xi8> to memref<f32>
  // expected-error @+1 {{of 8-bit floats needs stride 1 along what is contracted}}
  exec.gemm %a, %b -> %c scaled(%s : memref<f32>, %s : memref<f32>) {a_scale_mode = #exec<scale_mode tensor>, b_scale_mode = #exec<scale_mode tensor>} : memref<32x32xf8E4M3FN>, memref<32x32xf8E4M3FN> -> memref<32x32xbf16>
}

// -----

exec.program @step {
  %0 = exec.slot "x" in @activations activations : memref<4096xi8>
  %a = exec.buffer %0 + 0 : memref<4096xi8> to memref<16x16xf32>
  // expected-error @+1 {{has a mode of scales or fast accumulation, which only 8-bit floats have}}
  exec.gemm %a, %a -> %a {fast_accumulation} : memref<16x16xf32>, memref<16x16xf32> -> memref<16x16xf32>
}
