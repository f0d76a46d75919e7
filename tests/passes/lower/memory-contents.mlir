// RUN: tessera-opt %s --verify-exec=values=true -split-input-file -verify-diagnostics

// What the memory of a program holds while its instructions run, in bytes of its slots.

// Slots that only touch share nothing, nor do the same offsets in two arenas: what was written first is still there.
exec.program @beside {
  func.func @beside(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = exec.fusion "elementwise" @neg(%x) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>):
      %1 = train.neg %0 : tensor<4xf32>
      exec.yield %1 : tensor<4xf32>
    }
    %b = exec.fusion "elementwise" @exp(%x) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>):
      %1 = train.exp %0 : tensor<4xf32>
      exec.yield %1 : tensor<4xf32>
    }
    %c = exec.fusion "elementwise" @add(%a, %b) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = train.add %0, %1 : tensor<4xf32>
      exec.yield %2 : tensor<4xf32>
    }
    return %c : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  exec.arena @activations activations bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %a.slot = exec.slot "a" in @activations activations at 0 : memref<64xi8>
  %b.slot = exec.slot "b" in @activations activations at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  %a = exec.buffer %a.slot + 48 : memref<64xi8> to memref<4xf32>
  %b = exec.buffer %b.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.launch @neg(%x) -> (%a) extent 4 grain 1 : (memref<4xf32>) -> memref<4xf32>
  exec.launch @exp(%x) -> (%b) extent 4 grain 1 : (memref<4xf32>) -> memref<4xf32>
  exec.launch @add(%a, %b) -> (%r) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
  exec.result %r : memref<4xf32>
}

// -----

// Half of what is read was written over: its first two elements are still there, the third is not.
exec.program @half {
  func.func @half(%x: tensor<4xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<8xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %y = exec.buffer %y.slot + 0 : memref<8xi8> to memref<2xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  %back = exec.buffer %r.slot + 8 : memref<16xi8> to memref<2xf32>
  exec.argument %x : memref<4xf32>
  exec.argument %y : memref<2xf32>
  exec.copy %x -> %r : memref<4xf32> -> memref<4xf32>
  exec.copy %y -> %back : memref<2xf32> -> memref<2xf32>
  // expected-error @+1 {{expects in slot 'r' element 2 of argument 0 and finds element 0 of argument 1}}
  exec.result %r : memref<4xf32>
}

// -----

// Elements of two bytes were written over one of four: the others are not followed any further, as no plan does that.
exec.program @other_size {
  func.func @other_size(%x: tensor<4xf32>, %y: tensor<2xbf16>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<4xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %y = exec.buffer %y.slot + 0 : memref<4xi8> to memref<2xbf16>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  %narrow = exec.buffer %r.slot + 12 : memref<16xi8> to memref<2xbf16>
  exec.argument %x : memref<4xf32>
  exec.argument %y : memref<2xbf16>
  exec.copy %x -> %r : memref<4xf32> -> memref<4xf32>
  exec.copy %y -> %narrow : memref<2xbf16> -> memref<2xbf16>
  // expected-error @+1 {{expects in slot 'r' element 0 of argument 0 and finds that not all of it was written}}
  exec.result %r : memref<4xf32>
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

// Beside what is moved in too many pieces to follow (strided-map.mlir) everything else is proved: here the second result is
// the first argument.
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
