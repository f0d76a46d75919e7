// RUN: tessera-opt %s --verify-exec=values=true -split-input-file -verify-diagnostics

// Which call carries out an op, and which operand of the op each of its buffers stands for.

// A convolution has the window and the direction of its op.
exec.program @convolution {
  func.func @convolution(%x: tensor<1x1x3x3xf32>, %w: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
    %y = train.conv2d %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
    return %y : tensor<1x1x2x2xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<36xi8>
  %w.slot = exec.slot "w" in @state inputs at 64 : memref<16xi8>
  %y.slot = exec.slot "y" in @state workspace at 128 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<36xi8> to memref<1x1x3x3xf32>
  %w = exec.buffer %w.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  %y = exec.buffer %y.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  exec.argument %x : memref<1x1x3x3xf32>
  exec.argument %w : memref<1x1x2x2xf32>
  exec.conv forward %x, %w, %y {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : memref<1x1x3x3xf32>, memref<1x1x2x2xf32>, memref<1x1x2x2xf32>
  exec.result %y : memref<1x1x2x2xf32>
}

// -----

// The gradient of the filter is another convolution, also where shapes do not tell.
exec.program @other_direction {
  func.func @other_direction(%x: tensor<1x1x3x3xf32>, %w: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
    %y = train.conv2d %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
    return %y : tensor<1x1x2x2xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<36xi8>
  %w.slot = exec.slot "w" in @state inputs at 64 : memref<16xi8>
  %y.slot = exec.slot "y" in @state workspace at 128 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<36xi8> to memref<1x1x3x3xf32>
  %w = exec.buffer %w.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  %y = exec.buffer %y.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  exec.argument %x : memref<1x1x3x3xf32>
  exec.argument %w : memref<1x1x2x2xf32>
  // expected-error @+1 {{is not the convolution of result 0 of 'train.conv2d'}}
  exec.conv filter_grad %x, %w, %y {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : memref<1x1x3x3xf32>, memref<1x1x2x2xf32>, memref<1x1x2x2xf32>
  exec.result %y : memref<1x1x2x2xf32>
}

// -----

// Attention is causal or not, as its op, and reads the queries where those are.
exec.program @attention {
  func.func @attention(%q: tensor<1x1x2x2xf32>, %k: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
    %o, %l = train.attention %q, %k, %k {causal, scale = 0.5 : f64} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2xf32>)
    return %o : tensor<1x1x2x2xf32>
  }
  exec.arena @state state bytes 256
  %q.slot = exec.slot "q" in @state inputs at 0 : memref<16xi8>
  %k.slot = exec.slot "k" in @state inputs at 64 : memref<16xi8>
  %o.slot = exec.slot "o" in @state workspace at 128 : memref<16xi8>
  %l.slot = exec.slot "l" in @state workspace at 192 : memref<8xi8>
  %q = exec.buffer %q.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  %k = exec.buffer %k.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  %o = exec.buffer %o.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  %l = exec.buffer %l.slot + 0 : memref<8xi8> to memref<1x1x2xf32>
  exec.argument %q : memref<1x1x2x2xf32>
  exec.argument %k : memref<1x1x2x2xf32>
  exec.attention %q, %k, %k -> %o, %l {causal, scale = 0.5} : memref<1x1x2x2xf32>, memref<1x1x2x2xf32>, memref<1x1x2x2xf32> -> memref<1x1x2x2xf32>, memref<1x1x2xf32>
  exec.result %o : memref<1x1x2x2xf32>
}

// -----

// Sizes do not tell whether it is causal.
exec.program @not_causal {
  func.func @not_causal(%q: tensor<1x1x2x2xf32>, %k: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
    %o, %l = train.attention %q, %k, %k {causal, scale = 0.5 : f64} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2xf32>)
    return %o : tensor<1x1x2x2xf32>
  }
  exec.arena @state state bytes 256
  %q.slot = exec.slot "q" in @state inputs at 0 : memref<16xi8>
  %k.slot = exec.slot "k" in @state inputs at 64 : memref<16xi8>
  %o.slot = exec.slot "o" in @state workspace at 128 : memref<16xi8>
  %l.slot = exec.slot "l" in @state workspace at 192 : memref<8xi8>
  %q = exec.buffer %q.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  %k = exec.buffer %k.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  %o = exec.buffer %o.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  %l = exec.buffer %l.slot + 0 : memref<8xi8> to memref<1x1x2xf32>
  exec.argument %q : memref<1x1x2x2xf32>
  exec.argument %k : memref<1x1x2x2xf32>
  // expected-error @+1 {{is not the attention of result 0 of 'train.attention'}}
  exec.attention %q, %k, %k -> %o, %l {scale = 0.5} : memref<1x1x2x2xf32>, memref<1x1x2x2xf32>, memref<1x1x2x2xf32> -> memref<1x1x2x2xf32>, memref<1x1x2xf32>
  exec.result %o : memref<1x1x2x2xf32>
}

// -----

// Nor what are the queries.
exec.program @keys_for_queries {
  func.func @keys_for_queries(%q: tensor<1x1x2x2xf32>, %k: tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32> {
    %o, %l = train.attention %q, %k, %k {causal, scale = 0.5 : f64} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2xf32>)
    return %o : tensor<1x1x2x2xf32>
  }
  exec.arena @state state bytes 256
  %q.slot = exec.slot "q" in @state inputs at 0 : memref<16xi8>
  %k.slot = exec.slot "k" in @state inputs at 64 : memref<16xi8>
  %o.slot = exec.slot "o" in @state workspace at 128 : memref<16xi8>
  %l.slot = exec.slot "l" in @state workspace at 192 : memref<8xi8>
  %q = exec.buffer %q.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  %k = exec.buffer %k.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  %o = exec.buffer %o.slot + 0 : memref<16xi8> to memref<1x1x2x2xf32>
  %l = exec.buffer %l.slot + 0 : memref<8xi8> to memref<1x1x2xf32>
  exec.argument %q : memref<1x1x2x2xf32>
  exec.argument %k : memref<1x1x2x2xf32>
  // expected-error @+1 {{'exec.attention' expects in slot 'k' element 0 of argument 0 and finds element 0 of argument 1}}
  exec.attention %k, %q, %k -> %o, %l {causal, scale = 0.5} : memref<1x1x2x2xf32>, memref<1x1x2x2xf32>, memref<1x1x2x2xf32> -> memref<1x1x2x2xf32>, memref<1x1x2xf32>
  exec.result %o : memref<1x1x2x2xf32>
}

// -----

// A sum over ranks goes over the axes of its op, and may be made in place.
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 2>} {
exec.program @reduced {
  func.func @reduced(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = dist.all_reduce %x {axes = ["dp"]} : (tensor<4xf32>) -> tensor<4xf32>
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.copy %x -> %r : memref<4xf32> -> memref<4xf32>
  exec.collective all_reduce %r -> %r over ["dp"] : memref<4xf32> -> memref<4xf32>
  exec.result %r : memref<4xf32>
}
}

// -----

// Sizes do not tell over which ranks.
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 2>} {
exec.program @reduced_over_others {
  func.func @reduced_over_others(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = dist.all_reduce %x {axes = ["dp"]} : (tensor<4xf32>) -> tensor<4xf32>
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  // expected-error @+1 {{is not the collective of result 0 of 'dist.all_reduce'}}
  exec.collective all_reduce %x -> %r over ["tp"] : memref<4xf32> -> memref<4xf32>
  exec.result %r : memref<4xf32>
}
}

// -----

// Not applied to what is gathered: the parts of others are written while its own is read.
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 2>} {
exec.program @gathered {
  func.func @gathered(%x: tensor<4xf32>) -> tensor<8xf32> {
    %a = dist.all_gather %x {axes = ["dp"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
    return %a : tensor<8xf32>
  }
  exec.arena @state state bytes 64
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<32xi8>
  %x = exec.buffer %x.slot + 0 : memref<32xi8> to memref<4xf32>
  %g = exec.buffer %x.slot + 0 : memref<32xi8> to memref<8xf32>
  exec.argument %x : memref<4xf32>
  // expected-error @+1 {{'exec.collective' writes to slot 'x' where it still reads}}
  exec.collective all_gather %x -> %g over ["dp"] : memref<4xf32> -> memref<8xf32>
  exec.result %g : memref<8xf32>
}
}

// -----

// A rank asks for its position over the axes that the step names.
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 2>} {
exec.program @position {
  func.func @position() -> tensor<i64> {
    %i = dist.axis_index {axes = ["tp"]} : tensor<i64>
    return %i : tensor<i64>
  }
  exec.arena @state state bytes 64
  %i.slot = exec.slot "i" in @state workspace at 0 : memref<8xi8>
  %i = exec.buffer %i.slot + 0 : memref<8xi8> to memref<i64>
  exec.axis_index %i over ["tp"] : memref<i64>
  exec.result %i : memref<i64>
}
}

// -----

// The position over another axis is not due.
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 2>} {
exec.program @other_position {
  func.func @other_position() -> tensor<i64> {
    %i = dist.axis_index {axes = ["tp"]} : tensor<i64>
    return %i : tensor<i64>
  }
  exec.arena @state state bytes 64
  %i.slot = exec.slot "i" in @state workspace at 0 : memref<8xi8>
  %i = exec.buffer %i.slot + 0 : memref<8xi8> to memref<i64>
  // expected-error @+1 {{'exec.axis_index' stands where result 0 of 'dist.axis_index' is due}}
  exec.axis_index %i over ["dp"] : memref<i64>
  exec.result %i : memref<i64>
}
}
