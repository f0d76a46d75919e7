// RUN: tessera-opt %s --verify-exec=values=true -split-input-file -verify-diagnostics

// Value numbering against the step that a program carries. PlanMutationTest.cpp breaks plans of whole models.

// Parts of a concatenation are written where they belong, the sum is made in the place of its operand, and the result is a
// view of it.
exec.program @sound {
  func.func @sound(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<2x2xf32> {
    %a = exec.fusion "elementwise" @neg(%x) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>):
      %1 = train.neg %0 : tensor<4xf32>
      exec.yield %1 : tensor<4xf32>
    }
    %c = train.concat %a, %y {dim = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
    %d = exec.fusion "elementwise" @exp(%c) {extent = 8 : i64, grain = 1 : i64, inplace = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%0: tensor<8xf32>):
      %1 = train.exp %0 : tensor<8xf32>
      exec.yield %1 : tensor<8xf32>
    }
    %e = train.slice %d {starts = array<i64: 4>, limits = array<i64: 8>, strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>
    %f = train.reshape %e : (tensor<4xf32>) -> tensor<2x2xf32>
    return %f : tensor<2x2xf32>
  }
  exec.arena @state state bytes 192
  exec.arena @activations activations bytes 64
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<16xi8>
  %c.slot = exec.slot "c" in @activations activations at 0 : memref<32xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %y = exec.buffer %y.slot + 0 : memref<16xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<2x2xf32>
  %c = exec.buffer %c.slot + 0 : memref<32xi8> to memref<8xf32>
  %c0 = exec.buffer %c.slot + 0 : memref<32xi8> to memref<4xf32>
  %c1 = exec.buffer %c.slot + 16 : memref<32xi8> to memref<4xf32>
  %d = exec.buffer %c.slot + 16 : memref<32xi8> to memref<2x2xf32>
  exec.argument %x : memref<4xf32>
  exec.argument %y : memref<4xf32>
  exec.launch @neg(%x) -> (%c0) extent 4 grain 1 : (memref<4xf32>) -> memref<4xf32>
  exec.copy %y -> %c1 : memref<4xf32> -> memref<4xf32>
  exec.launch @exp(%c) -> (%c) extent 8 grain 1 : (memref<8xf32>) -> memref<8xf32>
  exec.result %r : memref<2x2xf32>
  exec.copy %d -> %r : memref<2x2xf32> -> memref<2x2xf32>
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

// A product reads its operand as it is where it should read the transpose. Sizes do not tell.
exec.program @transposed {
  func.func @transposed(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %p = train.dot_general %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    return %p : tensor<2x2xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<2x2xf32>
  %y = exec.buffer %y.slot + 0 : memref<16xi8> to memref<2x2xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<2x2xf32>
  exec.argument %x : memref<2x2xf32>
  exec.argument %y : memref<2x2xf32>
  // expected-error @+1 {{'exec.gemm' expects in slot 'x' element 2 of argument 0 and finds element 1 of argument 0}}
  exec.gemm %x, %y -> %r : memref<2x2xf32>, memref<2x2xf32> -> memref<2x2xf32>
  exec.result %r : memref<2x2xf32>
}

// -----

// What the loop adds to is not what the last iteration left.
exec.program @stale {
  func.func @stale(%x: tensor<3x4xf32>) -> tensor<4xf32> {
    %zero = train.constant dense<0.0> : tensor<4xf32>
    %sum = exec.repeat count = 3 batch(%x) init(%zero) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%i: tensor<i64>, %micro: tensor<4xf32>, %acc: tensor<4xf32>):
      %next = exec.fusion "elementwise" @add(%acc, %micro) {extent = 4 : i64, grain = 1 : i64, inplace = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
      ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
        %2 = train.add %0, %1 : tensor<4xf32>
        exec.yield %2 : tensor<4xf32>
      }
      exec.yield %next : tensor<4xf32>
    }
    return %sum : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  exec.arena @activations activations bytes 64
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<48xi8>
  %sum.slot = exec.slot "sum" in @state workspace at 64 : memref<16xi8>
  %other.slot = exec.slot "other" in @activations workspace at 0 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<48xi8> to memref<3x4xf32>
  %micro = exec.buffer %x.slot + 0 {iteration_stride = 16 : i64} : memref<48xi8> to memref<4xf32>
  %sum = exec.buffer %sum.slot + 0 : memref<16xi8> to memref<4xf32>
  %other = exec.buffer %other.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<3x4xf32>
  exec.fill %sum with 0.0 : memref<4xf32>
  exec.loop 3 {
    // expected-error @+1 {{'exec.launch' expects in slot 'sum' element 0 of result 0 of 'exec.fusion' of iteration 0 and finds element 0 of the constant 0.000000e+00}}
    exec.launch @add(%sum, %micro) -> (%other) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
  }
  exec.result %sum : memref<4xf32>
}

// -----

// A kernel may overwrite the operand that its fusion names, and no other.
exec.program @in_place {
  func.func @in_place(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %a = exec.fusion "elementwise" @add(%x, %y) {extent = 4 : i64, grain = 1 : i64, inplace = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = train.add %0, %1 : tensor<4xf32>
      exec.yield %2 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %y = exec.buffer %y.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.argument %y : memref<4xf32>
  // expected-error @+1 {{'exec.launch' writes to slot 'y' where it still reads}}
  exec.launch @add(%x, %y) -> (%y) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
  exec.result %y : memref<4xf32>
}

// -----

exec.program @missing {
  func.func @missing(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{internal compiler error: no instruction carries out result 0 of 'exec.fusion'}}
    %a = exec.fusion "elementwise" @neg(%x) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>):
      %1 = train.neg %0 : tensor<4xf32>
      exec.yield %1 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 64
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.result %x : memref<4xf32>
}

// -----

// expected-error @+1 {{does not carry its step, so that values cannot be followed}}
exec.program @without_its_step {
  exec.arena @state state bytes 0
}

// -----

// The loop's number is read from a table, whose last entry is wrong.
exec.program @number {
  func.func @number() -> tensor<f32> {
    %zero = train.constant dense<0.0> : tensor<f32>
    %sum = exec.repeat count = 3 init(%zero) : (tensor<f32>) -> tensor<f32> {
    ^bb0(%i: tensor<i64>, %acc: tensor<f32>):
      %next = exec.fusion "elementwise" @add(%acc, %i) {extent = 1 : i64, grain = 1 : i64, inplace = array<i64: 0>} : (tensor<f32>, tensor<i64>) -> tensor<f32> {
      ^bb0(%0: tensor<f32>, %1: tensor<i64>):
        %2 = train.convert %1 : (tensor<i64>) -> tensor<f32>
        %3 = train.add %0, %2 : tensor<f32>
        exec.yield %3 : tensor<f32>
      }
      exec.yield %next : tensor<f32>
    }
    return %sum : tensor<f32>
  }
  exec.arena @state state bytes 64
  exec.arena @activations activations bytes 64
  %sum.slot = exec.slot "sum" in @state workspace at 0 : memref<4xi8>
  %i.slot = exec.slot "i" in @activations workspace at 0 : memref<24xi8>
  %sum = exec.buffer %sum.slot + 0 : memref<4xi8> to memref<f32>
  %i = exec.buffer %i.slot + 0 {iteration_stride = 8 : i64} : memref<24xi8> to memref<i64>
  %0 = exec.buffer %i.slot + 0 : memref<24xi8> to memref<i64>
  %1 = exec.buffer %i.slot + 8 : memref<24xi8> to memref<i64>
  %2 = exec.buffer %i.slot + 16 : memref<24xi8> to memref<i64>
  exec.fill %sum with 0.0 : memref<f32>
  exec.fill %0 with 0.0 : memref<i64>
  exec.fill %1 with 1.0 : memref<i64>
  exec.fill %2 with 1.0 : memref<i64>
  exec.loop 3 {
    // expected-error @+1 {{'exec.launch' expects in slot 'i' element 0 of the constant 2.000000e+00 and finds element 0 of the constant 1.000000e+00}}
    exec.launch @add(%sum, %i) -> (%sum) extent 1 grain 1 : (memref<f32>, memref<i64>) -> memref<f32>
  }
  exec.result %sum : memref<f32>
}
