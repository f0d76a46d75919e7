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

// Two streams may use one slot at a time, in different bytes: the rows of one and those of the other.
exec.program @apart {
  func.func @apart() {
    return
  }
  exec.arena @activations activations bytes 64
  %a = exec.slot "a" in @activations activations at 0 : memref<64xi8>
  %left = exec.buffer %a + 0 : memref<64xi8> to memref<4x2xf32, strided<[4, 1]>>
  %right = exec.buffer %a + 8 : memref<64xi8> to memref<4x2xf32, strided<[4, 1]>>
  exec.fill %left with 0.0 : memref<4x2xf32, strided<[4, 1]>>
  exec.fill %right with 0.0 {stream = 3 : i64} : memref<4x2xf32, strided<[4, 1]>>
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

// -----

// The bytes are there, in another type.
exec.program @type {
  func.func @type(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = exec.fusion "elementwise" @neg(%x) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>):
      %1 = train.neg %0 : tensor<4xf32>
      exec.yield %1 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %n = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xi32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  // expected-error @+1 {{'exec.launch' reads argument 0 of 'f32' as 'memref<4xi32>'}}
  exec.launch @neg(%n) -> (%r) extent 4 grain 1 : (memref<4xi32>) -> memref<4xf32>
  exec.result %r : memref<4xf32>
}

// -----

// Rows of 61 become rows of 53, three times: a piece for nearly every element. That is not followed, and said.
exec.program @too_many_pieces {
  func.func @too_many_pieces(%w: tensor<53x61xf32>) -> tensor<53x61xf32> {
    %0 = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<53x61xf32>) -> tensor<61x53xf32>
    %1 = train.reshape %0 : (tensor<61x53xf32>) -> tensor<53x61xf32>
    %2 = train.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<53x61xf32>) -> tensor<61x53xf32>
    %3 = train.reshape %2 : (tensor<61x53xf32>) -> tensor<53x61xf32>
    %4 = train.transpose %3 {permutation = array<i64: 1, 0>} : (tensor<53x61xf32>) -> tensor<61x53xf32>
    %5 = train.reshape %4 : (tensor<61x53xf32>) -> tensor<53x61xf32>
    return %5 : tensor<53x61xf32>
  }
  exec.arena @state state bytes 65536
  %w.slot = exec.slot "w" in @state inputs at 0 : memref<12932xi8>
  %a.slot = exec.slot "a" in @state workspace at 16384 : memref<12932xi8>
  %b.slot = exec.slot "b" in @state workspace at 32768 : memref<12932xi8>
  %r.slot = exec.slot "r" in @state workspace at 49152 : memref<12932xi8>
  %w = exec.buffer %w.slot + 0 : memref<12932xi8> to memref<53x61xf32>
  %wt = exec.buffer %w.slot + 0 : memref<12932xi8> to memref<61x53xf32, strided<[1, 61]>>
  %a = exec.buffer %a.slot + 0 : memref<12932xi8> to memref<61x53xf32>
  %at = exec.buffer %a.slot + 0 : memref<12932xi8> to memref<61x53xf32, strided<[1, 61]>>
  %b = exec.buffer %b.slot + 0 : memref<12932xi8> to memref<61x53xf32>
  %bt = exec.buffer %b.slot + 0 : memref<12932xi8> to memref<61x53xf32, strided<[1, 61]>>
  %r = exec.buffer %r.slot + 0 : memref<12932xi8> to memref<61x53xf32>
  %result = exec.buffer %r.slot + 0 : memref<12932xi8> to memref<53x61xf32>
  exec.argument %w : memref<53x61xf32>
  exec.copy %wt -> %a : memref<61x53xf32, strided<[1, 61]>> -> memref<61x53xf32>
  exec.copy %at -> %b : memref<61x53xf32, strided<[1, 61]>> -> memref<61x53xf32>
  exec.copy %bt -> %r : memref<61x53xf32, strided<[1, 61]>> -> memref<61x53xf32>
  // expected-remark @+1 {{not proved: what 'exec.result' reads in slot 'r' was moved in too many pieces to follow}}
  exec.result %result : memref<53x61xf32>
}

// -----

// Beside it everything else is proved: here the second result is the first argument.
exec.program @too_many_pieces_and_a_defect {
  func.func @too_many_pieces_and_a_defect(%w: tensor<53x61xf32>, %x: tensor<53x61xf32>) -> (tensor<53x61xf32>, tensor<53x61xf32>) {
    %0 = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<53x61xf32>) -> tensor<61x53xf32>
    %1 = train.reshape %0 : (tensor<61x53xf32>) -> tensor<53x61xf32>
    %2 = train.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<53x61xf32>) -> tensor<61x53xf32>
    %3 = train.reshape %2 : (tensor<61x53xf32>) -> tensor<53x61xf32>
    %4 = train.transpose %3 {permutation = array<i64: 1, 0>} : (tensor<53x61xf32>) -> tensor<61x53xf32>
    %5 = train.reshape %4 : (tensor<61x53xf32>) -> tensor<53x61xf32>
    return %5, %x : tensor<53x61xf32>, tensor<53x61xf32>
  }
  exec.arena @state state bytes 81920
  %w.slot = exec.slot "w" in @state inputs at 0 : memref<12932xi8>
  %x.slot = exec.slot "x" in @state inputs at 16384 : memref<12932xi8>
  %a.slot = exec.slot "a" in @state workspace at 32768 : memref<12932xi8>
  %b.slot = exec.slot "b" in @state workspace at 49152 : memref<12932xi8>
  %r.slot = exec.slot "r" in @state workspace at 65536 : memref<12932xi8>
  %w = exec.buffer %w.slot + 0 : memref<12932xi8> to memref<53x61xf32>
  %x = exec.buffer %x.slot + 0 : memref<12932xi8> to memref<53x61xf32>
  %wt = exec.buffer %w.slot + 0 : memref<12932xi8> to memref<61x53xf32, strided<[1, 61]>>
  %a = exec.buffer %a.slot + 0 : memref<12932xi8> to memref<61x53xf32>
  %at = exec.buffer %a.slot + 0 : memref<12932xi8> to memref<61x53xf32, strided<[1, 61]>>
  %b = exec.buffer %b.slot + 0 : memref<12932xi8> to memref<61x53xf32>
  %bt = exec.buffer %b.slot + 0 : memref<12932xi8> to memref<61x53xf32, strided<[1, 61]>>
  %r = exec.buffer %r.slot + 0 : memref<12932xi8> to memref<61x53xf32>
  %result = exec.buffer %r.slot + 0 : memref<12932xi8> to memref<53x61xf32>
  exec.argument %w : memref<53x61xf32>
  exec.argument %x : memref<53x61xf32>
  exec.copy %wt -> %a : memref<61x53xf32, strided<[1, 61]>> -> memref<61x53xf32>
  exec.copy %at -> %b : memref<61x53xf32, strided<[1, 61]>> -> memref<61x53xf32>
  exec.copy %bt -> %r : memref<61x53xf32, strided<[1, 61]>> -> memref<61x53xf32>
  exec.result %result : memref<53x61xf32>
  // expected-error @+1 {{expects in slot 'w' element 0 of argument 1 and finds element 0 of argument 0}}
  exec.result %w : memref<53x61xf32>
}
