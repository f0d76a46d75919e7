// RUN: tessera-opt %s --verify-exec=values=true -split-input-file -verify-diagnostics

// Two iterations of a loop show what holds for all, if they differ by offsets.

// Iterations add to one sum, each its own micro-batch.
exec.program @loop {
  func.func @loop(%x: tensor<3x4xf32>) -> tensor<4xf32> {
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
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<48xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<48xi8> to memref<3x4xf32>
  %micro = exec.buffer %x.slot + 0 {iteration_stride = 16 : i64} : memref<48xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<3x4xf32>
  exec.fill %r with 0.0 : memref<4xf32>
  exec.loop 3 {
    exec.launch @add(%r, %micro) -> (%r) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
  }
  exec.result %r : memref<4xf32>
}

// -----

// Each iteration would add the first micro-batch.
exec.program @micro_batch {
  func.func @micro_batch(%x: tensor<3x4xf32>) -> tensor<4xf32> {
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
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<48xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<48xi8> to memref<3x4xf32>
  %micro = exec.buffer %x.slot + 0 {iteration_stride = 0 : i64} : memref<48xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<3x4xf32>
  exec.fill %r with 0.0 : memref<4xf32>
  exec.loop 3 {
    // expected-error @+1 {{expects in slot 'x' element 4 of argument 0 and finds element 0 of argument 0}}
    exec.launch @add(%r, %micro) -> (%r) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
  }
  exec.result %r : memref<4xf32>
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

// Micro-batches of two arguments differ by more than offsets: all iterations are followed.
exec.program @irregular {
  func.func @irregular(%x: tensor<2x4xf32>, %y: tensor<1x4xf32>) -> tensor<4xf32> {
    %all = train.concat %x, %y {dim = 0 : i64} : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
    %zero = train.constant dense<0.0> : tensor<4xf32>
    %sum = exec.repeat count = 3 batch(%all) init(%zero) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
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
  exec.arena @state state bytes 256
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<32xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<16xi8>
  %all.slot = exec.slot "all" in @state workspace at 128 : memref<48xi8>
  %r.slot = exec.slot "r" in @state workspace at 192 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<32xi8> to memref<2x4xf32>
  %y = exec.buffer %y.slot + 0 : memref<16xi8> to memref<1x4xf32>
  %front = exec.buffer %all.slot + 0 : memref<48xi8> to memref<2x4xf32>
  %back = exec.buffer %all.slot + 32 : memref<48xi8> to memref<1x4xf32>
  %micro = exec.buffer %all.slot + 0 {iteration_stride = 16 : i64} : memref<48xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<2x4xf32>
  exec.argument %y : memref<1x4xf32>
  exec.copy %x -> %front : memref<2x4xf32> -> memref<2x4xf32>
  exec.copy %y -> %back : memref<1x4xf32> -> memref<1x4xf32>
  exec.fill %r with 0.0 : memref<4xf32>
  exec.loop 3 {
    exec.launch @add(%r, %micro) -> (%r) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
  }
  exec.result %r : memref<4xf32>
}

// -----

// So it shows that the last of three is wrong.
exec.program @irregular_last {
  func.func @irregular_last(%x: tensor<2x4xf32>, %y: tensor<1x4xf32>) -> tensor<4xf32> {
    %all = train.concat %x, %y {dim = 0 : i64} : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
    %zero = train.constant dense<0.0> : tensor<4xf32>
    %sum = exec.repeat count = 3 batch(%all) init(%zero) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
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
  exec.arena @state state bytes 256
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<32xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<16xi8>
  %all.slot = exec.slot "all" in @state workspace at 128 : memref<48xi8>
  %r.slot = exec.slot "r" in @state workspace at 192 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<32xi8> to memref<2x4xf32>
  %x0 = exec.buffer %x.slot + 0 : memref<32xi8> to memref<1x4xf32>
  %y = exec.buffer %y.slot + 0 : memref<16xi8> to memref<1x4xf32>
  %front = exec.buffer %all.slot + 0 : memref<48xi8> to memref<2x4xf32>
  %back = exec.buffer %all.slot + 32 : memref<48xi8> to memref<1x4xf32>
  %micro = exec.buffer %all.slot + 0 {iteration_stride = 16 : i64} : memref<48xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<2x4xf32>
  exec.argument %y : memref<1x4xf32>
  exec.copy %x -> %front : memref<2x4xf32> -> memref<2x4xf32>
  exec.copy %x0 -> %back : memref<1x4xf32> -> memref<1x4xf32>
  exec.fill %r with 0.0 : memref<4xf32>
  exec.loop 3 {
    // expected-error @+1 {{expects in slot 'all' element 0 of argument 1 and finds element 0 of argument 0}}
    exec.launch @add(%r, %micro) -> (%r) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
  }
  exec.result %r : memref<4xf32>
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

// A loop goes round as often as that of the step.
exec.program @fewer_iterations {
  func.func @fewer_iterations(%x: tensor<3x4xf32>) -> tensor<4xf32> {
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
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<48xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<48xi8> to memref<3x4xf32>
  %micro = exec.buffer %x.slot + 0 {iteration_stride = 16 : i64} : memref<48xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<3x4xf32>
  exec.fill %r with 0.0 : memref<4xf32>
  // expected-error @+1 {{'exec.loop' stands where 3 iterations are due}}
  exec.loop 2 {
    exec.launch @add(%r, %micro) -> (%r) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
  }
  exec.result %r : memref<4xf32>
}
