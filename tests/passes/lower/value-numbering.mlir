// RUN: tessera-opt %s --verify-exec=values=true -split-input-file -verify-diagnostics

// Value numbering of a program against the step that it carries, side by side. Loops are in value-numbering-loops.mlir;
// PlanMutationTest.cpp breaks plans of whole models.

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

// A kernel of the step does not run.
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

// A kernel runs that the step does not have.
exec.program @too_many {
  func.func @too_many(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = exec.fusion "elementwise" @neg(%x) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>):
      %1 = train.neg %0 : tensor<4xf32>
      exec.yield %1 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %s.slot = exec.slot "s" in @state workspace at 128 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  %s = exec.buffer %s.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.launch @neg(%x) -> (%r) extent 4 grain 1 : (memref<4xf32>) -> memref<4xf32>
  // expected-error @+1 {{internal compiler error: 'exec.launch' carries out nothing of the step}}
  exec.launch @neg(%x) -> (%s) extent 4 grain 1 : (memref<4xf32>) -> memref<4xf32>
  exec.result %r : memref<4xf32>
}

// -----

// Copies and fills need no counterpart, whatever they write, as long as nothing of the step is written over.
exec.program @copies {
  func.func @copies(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = exec.fusion "elementwise" @neg(%x) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>):
      %1 = train.neg %0 : tensor<4xf32>
      exec.yield %1 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %s.slot = exec.slot "s" in @state workspace at 128 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  %s = exec.buffer %s.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.fill %r with 1.0 : memref<4xf32>
  exec.launch @neg(%x) -> (%r) extent 4 grain 1 : (memref<4xf32>) -> memref<4xf32>
  exec.copy %r -> %s : memref<4xf32> -> memref<4xf32>
  exec.result %r : memref<4xf32>
}

// -----

// Arguments are those of the step, in order.
// expected-error @+1 {{has 1 arguments, the step 2}}
exec.program @fewer_arguments {
  func.func @fewer_arguments(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  exec.arena @state state bytes 64
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.result %x : memref<4xf32>
}

// -----

// The step has fewer arguments.
exec.program @more_arguments {
  func.func @more_arguments(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %y = exec.buffer %y.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  // expected-error @+1 {{the step has no argument 1}}
  exec.argument %y : memref<4xf32>
  exec.result %x : memref<4xf32>
}

// -----

// An argument has the shape that the step says.
exec.program @other_shape {
  func.func @other_shape(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
    return %x : tensor<2x2xf32>
  }
  exec.arena @state state bytes 64
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  // expected-error @+1 {{the step's argument 0 is 'tensor<2x2xf32>', got 'memref<4xf32>'}}
  exec.argument %x : memref<4xf32>
  exec.result %x : memref<4xf32>
}

// -----

// So are results.
// expected-error @+1 {{has no result for argument 0}}
exec.program @fewer_results {
  func.func @fewer_results(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
  exec.arena @state state bytes 64
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.result %x : memref<4xf32>
}

// -----

// The step has fewer results.
exec.program @more_results {
  func.func @more_results(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  exec.arena @state state bytes 64
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.result %x : memref<4xf32>
  // expected-error @+1 {{is a result that the step does not have}}
  exec.result %x : memref<4xf32>
}

// -----

// The next value of an argument is no result: it is left in the memory of the argument.
exec.program @alias {
  func.func @alias(%x: tensor<4xf32> {train.role = "param", train.name = "x"}) -> (tensor<4xf32> {train.alias = 0 : i64}) {
    %a = exec.fusion "elementwise" @neg(%x) {extent = 4 : i64, grain = 1 : i64, inplace = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32> {
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
  exec.launch @neg(%x) -> (%x) extent 4 grain 1 : (memref<4xf32>) -> memref<4xf32>
}

// -----

// Not applied because the next value is left elsewhere.
exec.program @not_left {
  func.func @not_left(%x: tensor<4xf32> {train.role = "param", train.name = "x"}) -> (tensor<4xf32> {train.alias = 0 : i64}) {
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
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  // expected-error @+1 {{'exec.argument' expects in slot 'x' element 0 of result 0 of 'exec.fusion' and finds element 0 of argument 0}}
  exec.argument %x : memref<4xf32>
  exec.launch @neg(%x) -> (%r) extent 4 grain 1 : (memref<4xf32>) -> memref<4xf32>
}

// -----

// Memory that depends on the rank is followed for the first two and the last.
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 2>} {
exec.program @ranks {
  func.func @ranks(%x: tensor<4x4xf32>) -> tensor<2x4xf32> {
    %p = dist.slice_local %x {axes = ["dp"], dim = 0 : i64} : (tensor<4x4xf32>) -> tensor<2x4xf32>
    return %p : tensor<2x4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<64xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<32xi8>
  %x = exec.buffer %x.slot + 0 : memref<64xi8> to memref<4x4xf32>
  %p = exec.buffer %x.slot + 0 {rank_axes = ["dp"], rank_stride = 32 : i64} : memref<64xi8> to memref<2x4xf32>
  %r = exec.buffer %r.slot + 0 : memref<32xi8> to memref<2x4xf32>
  exec.argument %x : memref<4x4xf32>
  exec.copy %p -> %r : memref<2x4xf32> -> memref<2x4xf32>
  exec.result %r : memref<2x4xf32>
}
}

// -----

// Ranks 0 and 1 are one along dp: it is rank 3 where the part of rank 0 is wrong.
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 2>} {
exec.program @last_rank {
  func.func @last_rank(%x: tensor<4x4xf32>) -> tensor<2x4xf32> {
    %p = dist.slice_local %x {axes = ["dp"], dim = 0 : i64} : (tensor<4x4xf32>) -> tensor<2x4xf32>
    return %p : tensor<2x4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<64xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<32xi8>
  %x = exec.buffer %x.slot + 0 : memref<64xi8> to memref<4x4xf32>
  %p = exec.buffer %x.slot + 0 : memref<64xi8> to memref<2x4xf32>
  %r = exec.buffer %r.slot + 0 : memref<32xi8> to memref<2x4xf32>
  exec.argument %x : memref<4x4xf32>
  exec.copy %p -> %r : memref<2x4xf32> -> memref<2x4xf32>
  // expected-error @+1 {{expects in slot 'r' element 8 of argument 0 and finds element 0 of argument 0}}
  exec.result %r : memref<2x4xf32>
}
}

// -----

// Not applied to strides of which no order follows, which the planner does not make.
exec.program @interleaved {
  func.func @interleaved(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
    return %x : tensor<2x4xf32>
  }
  exec.arena @state state bytes 64
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<64xi8>
  // expected-error @+1 {{the strides of 'memref<2x4xf32, strided<[3, 2]>>' interleave, so that what it holds cannot be followed}}
  %x = exec.buffer %x.slot + 0 : memref<64xi8> to memref<2x4xf32, strided<[3, 2]>>
  exec.argument %x : memref<2x4xf32, strided<[3, 2]>>
  exec.result %x : memref<2x4xf32, strided<[3, 2]>>
}

// -----

// Not applied to a program without its step, which is said.
// expected-error @+1 {{does not carry its step, so that values cannot be followed}}
exec.program @without_its_step {
  exec.arena @state state bytes 0
}
