// RUN: tessera-opt %s --verify-exec=values=true -split-input-file -verify-diagnostics

// What each tensor of a step consists of: which elements of which arguments, results and constants.

// Layout ops compute nothing: the result is a view of the argument, through each of them.
exec.program @views {
  func.func @views(%x: tensor<4x6xf32>) -> tensor<2x2xf32> {
    %b = train.barrier %x : tensor<4x6xf32>
    %s = train.slice %b {starts = array<i64: 0, 1>, limits = array<i64: 4, 6>, strides = array<i64: 2, 3>} : (tensor<4x6xf32>) -> tensor<2x2xf32>
    %g = train.stop_gradient %s : tensor<2x2xf32>
    %t = train.transpose %g {permutation = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %t : tensor<2x2xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<96xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<96xi8> to memref<4x6xf32>
  %t = exec.buffer %x.slot + 4 : memref<96xi8> to memref<2x2xf32, strided<[3, 12]>>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<2x2xf32>
  exec.argument %x : memref<4x6xf32>
  exec.copy %t -> %r : memref<2x2xf32, strided<[3, 12]>> -> memref<2x2xf32>
  exec.result %r : memref<2x2xf32>
}

// -----

// The same with steps of 2 columns where the slice has steps of 3.
exec.program @steps {
  func.func @steps(%x: tensor<4x6xf32>) -> tensor<2x2xf32> {
    %s = train.slice %x {starts = array<i64: 0, 1>, limits = array<i64: 4, 6>, strides = array<i64: 2, 3>} : (tensor<4x6xf32>) -> tensor<2x2xf32>
    return %s : tensor<2x2xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<96xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<96xi8> to memref<4x6xf32>
  %t = exec.buffer %x.slot + 4 : memref<96xi8> to memref<2x2xf32, strided<[12, 2]>>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<2x2xf32>
  exec.argument %x : memref<4x6xf32>
  exec.copy %t -> %r : memref<2x2xf32, strided<[12, 2]>> -> memref<2x2xf32>
  // expected-error @+1 {{expects in slot 'r' element 4 of argument 0 and finds element 3 of argument 0}}
  exec.result %r : memref<2x2xf32>
}

// -----

// The result is the wrong half.
exec.program @wrong_piece {
  func.func @wrong_piece(%x: tensor<4xf32>) -> tensor<2xf32> {
    %e = train.slice %x {starts = array<i64: 2>, limits = array<i64: 4>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
    return %e : tensor<2xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<8xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %e = exec.buffer %x.slot + 0 : memref<16xi8> to memref<2xf32>
  %r = exec.buffer %r.slot + 0 : memref<8xi8> to memref<2xf32>
  exec.argument %x : memref<4xf32>
  // expected-error @+1 {{internal compiler error: 'exec.result' expects in slot 'r' element 2 of argument 0 and finds element 0 of argument 0}}
  exec.result %r : memref<2xf32>
  exec.copy %e -> %r : memref<2xf32> -> memref<2xf32>
}

// -----

// A concatenation has the elements of its operands along its dimension, each behind those before.
exec.program @joined {
  func.func @joined(%x: tensor<2x2xf32>, %y: tensor<2x1xf32>) -> tensor<2x3xf32> {
    %c = train.concat %x, %y {dim = 1 : i64} : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
    return %c : tensor<2x3xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<8xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<24xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<2x2xf32>
  %y = exec.buffer %y.slot + 0 : memref<8xi8> to memref<2x1xf32>
  %r = exec.buffer %r.slot + 0 : memref<24xi8> to memref<2x3xf32>
  %r0 = exec.buffer %r.slot + 0 : memref<24xi8> to memref<2x2xf32, strided<[3, 1]>>
  %r1 = exec.buffer %r.slot + 8 : memref<24xi8> to memref<2x1xf32, strided<[3, 1]>>
  exec.argument %x : memref<2x2xf32>
  exec.argument %y : memref<2x1xf32>
  exec.copy %x -> %r0 : memref<2x2xf32> -> memref<2x2xf32, strided<[3, 1]>>
  exec.copy %y -> %r1 : memref<2x1xf32> -> memref<2x1xf32, strided<[3, 1]>>
  exec.result %r : memref<2x3xf32>
}

// -----

// The order of the operands counts.
exec.program @other_order {
  func.func @other_order(%x: tensor<2x2xf32>, %y: tensor<2x1xf32>) -> tensor<2x3xf32> {
    %c = train.concat %y, %x {dim = 1 : i64} : (tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x3xf32>
    return %c : tensor<2x3xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<8xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<24xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<2x2xf32>
  %y = exec.buffer %y.slot + 0 : memref<8xi8> to memref<2x1xf32>
  %r = exec.buffer %r.slot + 0 : memref<24xi8> to memref<2x3xf32>
  %r0 = exec.buffer %r.slot + 0 : memref<24xi8> to memref<2x2xf32, strided<[3, 1]>>
  %r1 = exec.buffer %r.slot + 8 : memref<24xi8> to memref<2x1xf32, strided<[3, 1]>>
  exec.argument %x : memref<2x2xf32>
  exec.argument %y : memref<2x1xf32>
  exec.copy %x -> %r0 : memref<2x2xf32> -> memref<2x2xf32, strided<[3, 1]>>
  exec.copy %y -> %r1 : memref<2x1xf32> -> memref<2x1xf32, strided<[3, 1]>>
  // expected-error @+1 {{expects in slot 'r' element 0 of argument 1 and finds element 0 of argument 0}}
  exec.result %r : memref<2x3xf32>
}

// -----

// A rank's own part is where its position over the axes says.
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 2>} {
exec.program @local {
  func.func @local(%x: tensor<2x4xf32>) -> tensor<2x2xf32> {
    %p = dist.slice_local %x {axes = ["tp"], dim = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x2xf32>
    return %p : tensor<2x2xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<32xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<32xi8> to memref<2x4xf32>
  %p = exec.buffer %x.slot + 0 {rank_axes = ["tp"], rank_stride = 8 : i64} : memref<32xi8> to memref<2x2xf32, strided<[4, 1]>>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<2x2xf32>
  exec.argument %x : memref<2x4xf32>
  exec.copy %p -> %r : memref<2x2xf32, strided<[4, 1]>> -> memref<2x2xf32>
  exec.result %r : memref<2x2xf32>
}
}

// -----

// Its position over other axes is another one, as rank 1 shows.
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 2>} {
exec.program @other_axes {
  func.func @other_axes(%x: tensor<2x4xf32>) -> tensor<2x2xf32> {
    %p = dist.slice_local %x {axes = ["tp"], dim = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x2xf32>
    return %p : tensor<2x2xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<32xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<32xi8> to memref<2x4xf32>
  %p = exec.buffer %x.slot + 0 {rank_axes = ["dp"], rank_stride = 8 : i64} : memref<32xi8> to memref<2x2xf32, strided<[4, 1]>>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<2x2xf32>
  exec.argument %x : memref<2x4xf32>
  exec.copy %p -> %r : memref<2x2xf32, strided<[4, 1]>> -> memref<2x2xf32>
  // expected-error @+1 {{expects in slot 'r' element 2 of argument 0 and finds element 0 of argument 0}}
  exec.result %r : memref<2x2xf32>
}
}

// -----

// What is moved to the host and back is the same.
exec.program @moved {
  func.func @moved(%x: tensor<4xf32>) -> tensor<4xf32> {
    %out = dist.copy_start %x to "host" : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
    %h = dist.done %out : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
    return %h : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.copy %x -> %r : memref<4xf32> -> memref<4xf32>
  exec.result %r : memref<4xf32>
}

// -----

// Constants are one value if their bits are: what was filled for one is the other, of another shape.
exec.program @constants {
  func.func @constants() -> (tensor<4xf32>, tensor<2xf32>) {
    %a = train.constant dense<2.0> : tensor<4xf32>
    %b = train.constant dense<2.0> : tensor<2xf32>
    return %a, %b : tensor<4xf32>, tensor<2xf32>
  }
  exec.arena @state state bytes 64
  %r.slot = exec.slot "r" in @state workspace at 0 : memref<16xi8>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  %s = exec.buffer %r.slot + 8 : memref<16xi8> to memref<2xf32>
  exec.fill %r with 2.0 : memref<4xf32>
  exec.result %r : memref<4xf32>
  exec.result %s : memref<2xf32>
}

// -----

// Zero and minus zero are two.
exec.program @signs {
  func.func @signs() -> tensor<4xf32> {
    %a = train.constant dense<0.0> : tensor<4xf32>
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 64
  %r.slot = exec.slot "r" in @state workspace at 0 : memref<16xi8>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.fill %r with -0.0 : memref<4xf32>
  // expected-error @+1 {{expects in slot 'r' element 0 of the constant 0.000000e+00 and finds element 0 of the constant -0.000000e+00}}
  exec.result %r : memref<4xf32>
}

// -----

// Not applied to a constant of several numbers, which no fill writes.
exec.program @numbers {
  func.func @numbers() -> tensor<2xf32> {
    %a = train.constant dense<[1.0, 2.0]> : tensor<2xf32>
    return %a : tensor<2xf32>
  }
  exec.arena @state state bytes 64
  %r.slot = exec.slot "r" in @state workspace at 0 : memref<8xi8>
  %r = exec.buffer %r.slot + 0 : memref<8xi8> to memref<2xf32>
  %r0 = exec.buffer %r.slot + 0 : memref<8xi8> to memref<1xf32>
  %r1 = exec.buffer %r.slot + 4 : memref<8xi8> to memref<1xf32>
  exec.fill %r0 with 1.0 : memref<1xf32>
  exec.fill %r1 with 2.0 : memref<1xf32>
  // expected-error @+1 {{expects in slot 'r' element 0 of result 0 of 'train.constant' and finds element 0 of the constant 1.000000e+00}}
  exec.result %r : memref<2xf32>
}

// -----

// Values are said by their names, if they have some.
exec.program @named {
  func.func @named(%x: tensor<4xf32> loc("tokens")) -> tensor<4xf32> {
    %a = exec.fusion "elementwise" @neg(%x) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>):
      %1 = train.neg %0 : tensor<4xf32>
      exec.yield %1 : tensor<4xf32>
    } loc("h.0.attn")
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.launch @neg(%x) -> (%r) extent 4 grain 1 : (memref<4xf32>) -> memref<4xf32>
  exec.copy %x -> %r : memref<4xf32> -> memref<4xf32>
  // expected-error @+1 {{expects in slot 'r' element 0 of 'h.0.attn' (result 0 of 'exec.fusion') and finds element 0 of 'tokens' (argument 0)}}
  exec.result %r : memref<4xf32>
}
