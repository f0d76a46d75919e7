// RUN: tessera-opt %s --verify-exec=values=true -split-input-file -verify-diagnostics

// What boxes with strides have in common, and what is left of one without another, as the proof of plans needs it.
// StridedMapTest.cpp compares random ones with sets of numbers.

// Strides that are multiples of one another are followed whatever the sizes: a transpose of 32 million elements,
// whose halves are turned back one by one.
exec.program @large {
  func.func @large(%x: tensor<8192x4096xf32>) -> tensor<8192x4096xf32> {
    return %x : tensor<8192x4096xf32>
  }
  exec.arena @state state bytes 402653184
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<134217728xi8>
  %t.slot = exec.slot "t" in @state workspace at 134217728 : memref<134217728xi8>
  %r.slot = exec.slot "r" in @state workspace at 268435456 : memref<134217728xi8>
  %x = exec.buffer %x.slot + 0 : memref<134217728xi8> to memref<8192x4096xf32>
  %xt = exec.buffer %x.slot + 0 : memref<134217728xi8> to memref<4096x8192xf32, strided<[1, 4096]>>
  %t = exec.buffer %t.slot + 0 : memref<134217728xi8> to memref<4096x8192xf32>
  %lt = exec.buffer %t.slot + 0 : memref<134217728xi8> to memref<4096x4096xf32, strided<[1, 8192]>>
  %rt = exec.buffer %t.slot + 16384 : memref<134217728xi8> to memref<4096x4096xf32, strided<[1, 8192]>>
  %r = exec.buffer %r.slot + 0 : memref<134217728xi8> to memref<8192x4096xf32>
  %r0 = exec.buffer %r.slot + 0 : memref<134217728xi8> to memref<4096x4096xf32>
  %r1 = exec.buffer %r.slot + 67108864 : memref<134217728xi8> to memref<4096x4096xf32>
  exec.argument %x : memref<8192x4096xf32>
  exec.copy %xt -> %t : memref<4096x8192xf32, strided<[1, 4096]>> -> memref<4096x8192xf32>
  exec.copy %lt -> %r0 : memref<4096x4096xf32, strided<[1, 8192]>> -> memref<4096x4096xf32>
  exec.copy %rt -> %r1 : memref<4096x4096xf32, strided<[1, 8192]>> -> memref<4096x4096xf32>
  exec.result %r : memref<8192x4096xf32>
}

// -----

// The halves change places: their first elements differ.
exec.program @large_swapped {
  func.func @large_swapped(%x: tensor<8192x4096xf32>) -> tensor<8192x4096xf32> {
    return %x : tensor<8192x4096xf32>
  }
  exec.arena @state state bytes 268435456
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<134217728xi8>
  %r.slot = exec.slot "r" in @state workspace at 134217728 : memref<134217728xi8>
  %x = exec.buffer %x.slot + 0 : memref<134217728xi8> to memref<8192x4096xf32>
  %x0 = exec.buffer %x.slot + 0 : memref<134217728xi8> to memref<4096x4096xf32>
  %x1 = exec.buffer %x.slot + 67108864 : memref<134217728xi8> to memref<4096x4096xf32>
  %r = exec.buffer %r.slot + 0 : memref<134217728xi8> to memref<8192x4096xf32>
  %r0 = exec.buffer %r.slot + 0 : memref<134217728xi8> to memref<4096x4096xf32>
  %r1 = exec.buffer %r.slot + 67108864 : memref<134217728xi8> to memref<4096x4096xf32>
  exec.argument %x : memref<8192x4096xf32>
  exec.copy %x0 -> %r1 : memref<4096x4096xf32> -> memref<4096x4096xf32>
  exec.copy %x1 -> %r0 : memref<4096x4096xf32> -> memref<4096x4096xf32>
  // expected-error @+1 {{expects in slot 'r' element 16777216 of argument 0 and finds element 0 of argument 0}}
  exec.result %r : memref<8192x4096xf32>
}

// -----

// Steps of 3 through rows of 4 are followed row by row.
exec.program @steps_of_three {
  func.func @steps_of_three(%x: tensor<4x6xf32>) -> tensor<3x3xf32> {
    %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %f = train.reshape %t : (tensor<6x4xf32>) -> tensor<3x8xf32>
    %u = train.transpose %f {permutation = array<i64: 1, 0>} : (tensor<3x8xf32>) -> tensor<8x3xf32>
    %s = train.slice %u {starts = array<i64: 1, 0>, limits = array<i64: 8, 3>, strides = array<i64: 3, 1>} : (tensor<8x3xf32>) -> tensor<3x3xf32>
    return %s : tensor<3x3xf32>
  }
  exec.arena @state state bytes 320
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<96xi8>
  %t.slot = exec.slot "t" in @state workspace at 128 : memref<96xi8>
  %r.slot = exec.slot "r" in @state workspace at 256 : memref<36xi8>
  %x = exec.buffer %x.slot + 0 : memref<96xi8> to memref<4x6xf32>
  %xt = exec.buffer %x.slot + 0 : memref<96xi8> to memref<6x4xf32, strided<[1, 6]>>
  %t = exec.buffer %t.slot + 0 : memref<96xi8> to memref<6x4xf32>
  %s = exec.buffer %t.slot + 4 : memref<96xi8> to memref<3x3xf32, strided<[3, 8]>>
  %r = exec.buffer %r.slot + 0 : memref<36xi8> to memref<3x3xf32>
  exec.argument %x : memref<4x6xf32>
  exec.copy %xt -> %t : memref<6x4xf32, strided<[1, 6]>> -> memref<6x4xf32>
  exec.copy %s -> %r : memref<3x3xf32, strided<[3, 8]>> -> memref<3x3xf32>
  exec.result %r : memref<3x3xf32>
}

// -----

// From the element before they are other ones.
exec.program @steps_from_zero {
  func.func @steps_from_zero(%x: tensor<4x6xf32>) -> tensor<3x3xf32> {
    %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %f = train.reshape %t : (tensor<6x4xf32>) -> tensor<3x8xf32>
    %u = train.transpose %f {permutation = array<i64: 1, 0>} : (tensor<3x8xf32>) -> tensor<8x3xf32>
    %s = train.slice %u {starts = array<i64: 1, 0>, limits = array<i64: 8, 3>, strides = array<i64: 3, 1>} : (tensor<8x3xf32>) -> tensor<3x3xf32>
    return %s : tensor<3x3xf32>
  }
  exec.arena @state state bytes 320
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<96xi8>
  %t.slot = exec.slot "t" in @state workspace at 128 : memref<96xi8>
  %r.slot = exec.slot "r" in @state workspace at 256 : memref<36xi8>
  %x = exec.buffer %x.slot + 0 : memref<96xi8> to memref<4x6xf32>
  %xt = exec.buffer %x.slot + 0 : memref<96xi8> to memref<6x4xf32, strided<[1, 6]>>
  %t = exec.buffer %t.slot + 0 : memref<96xi8> to memref<6x4xf32>
  %s = exec.buffer %t.slot + 0 : memref<96xi8> to memref<3x3xf32, strided<[3, 8]>>
  %r = exec.buffer %r.slot + 0 : memref<36xi8> to memref<3x3xf32>
  exec.argument %x : memref<4x6xf32>
  exec.copy %xt -> %t : memref<6x4xf32, strided<[1, 6]>> -> memref<6x4xf32>
  exec.copy %s -> %r : memref<3x3xf32, strided<[3, 8]>> -> memref<3x3xf32>
  // expected-error @+1 {{expects in slot 'r' element 6 of argument 0 and finds element 0 of argument 0}}
  exec.result %r : memref<3x3xf32>
}

// -----

// Every second column is written over: those between are still there.
exec.program @columns {
  func.func @columns(%x: tensor<6x8xf32>) -> tensor<6x4xf32> {
    %s = train.slice %x {starts = array<i64: 0, 1>, limits = array<i64: 6, 8>, strides = array<i64: 1, 2>} : (tensor<6x8xf32>) -> tensor<6x4xf32>
    return %s : tensor<6x4xf32>
  }
  exec.arena @state state bytes 576
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<192xi8>
  %t.slot = exec.slot "t" in @state workspace at 192 : memref<192xi8>
  %r.slot = exec.slot "r" in @state workspace at 384 : memref<192xi8>
  %x = exec.buffer %x.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %t = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %over = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x4xf32, strided<[8, 2]>>
  %part = exec.buffer %t.slot + 4 : memref<192xi8> to memref<6x4xf32, strided<[8, 2]>>
  %r = exec.buffer %r.slot + 0 : memref<192xi8> to memref<6x4xf32>
  exec.argument %x : memref<6x8xf32>
  exec.copy %x -> %t : memref<6x8xf32> -> memref<6x8xf32>
  exec.fill %over with 0.0 : memref<6x4xf32, strided<[8, 2]>>
  exec.copy %part -> %r : memref<6x4xf32, strided<[8, 2]>> -> memref<6x4xf32>
  exec.result %r : memref<6x4xf32>
}

// -----

// Those themselves are not.
exec.program @written_columns {
  func.func @written_columns(%x: tensor<6x8xf32>) -> tensor<6x4xf32> {
    %s = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 2>} : (tensor<6x8xf32>) -> tensor<6x4xf32>
    return %s : tensor<6x4xf32>
  }
  exec.arena @state state bytes 576
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<192xi8>
  %t.slot = exec.slot "t" in @state workspace at 192 : memref<192xi8>
  %r.slot = exec.slot "r" in @state workspace at 384 : memref<192xi8>
  %x = exec.buffer %x.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %t = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %over = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x4xf32, strided<[8, 2]>>
  %part = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x4xf32, strided<[8, 2]>>
  %r = exec.buffer %r.slot + 0 : memref<192xi8> to memref<6x4xf32>
  exec.argument %x : memref<6x8xf32>
  exec.copy %x -> %t : memref<6x8xf32> -> memref<6x8xf32>
  exec.fill %over with 0.0 : memref<6x4xf32, strided<[8, 2]>>
  exec.copy %part -> %r : memref<6x4xf32, strided<[8, 2]>> -> memref<6x4xf32>
  // expected-error @+1 {{expects in slot 'r' element 0 of argument 0 and finds element 0 of the constant 0.000000e+00}}
  exec.result %r : memref<6x4xf32>
}

// -----

// Around a box in the middle all is there, such as the two columns at its left.
exec.program @box {
  func.func @box(%x: tensor<6x8xf32>) -> tensor<6x2xf32> {
    %s = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 6, 2>, strides = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<6x2xf32>
    return %s : tensor<6x2xf32>
  }
  exec.arena @state state bytes 576
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<192xi8>
  %t.slot = exec.slot "t" in @state workspace at 192 : memref<192xi8>
  %r.slot = exec.slot "r" in @state workspace at 384 : memref<192xi8>
  %x = exec.buffer %x.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %t = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %over = exec.buffer %t.slot + 72 : memref<192xi8> to memref<2x4xf32, strided<[8, 1]>>
  %part = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x2xf32, strided<[8, 1]>>
  %r = exec.buffer %r.slot + 0 : memref<192xi8> to memref<6x2xf32>
  exec.argument %x : memref<6x8xf32>
  exec.copy %x -> %t : memref<6x8xf32> -> memref<6x8xf32>
  exec.fill %over with 0.0 : memref<2x4xf32, strided<[8, 1]>>
  exec.copy %part -> %r : memref<6x2xf32, strided<[8, 1]>> -> memref<6x2xf32>
  exec.result %r : memref<6x2xf32>
}

// -----

// With one column more a row of the box is met.
exec.program @in_box {
  func.func @in_box(%x: tensor<6x8xf32>) -> tensor<6x3xf32> {
    %s = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 6, 3>, strides = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<6x3xf32>
    return %s : tensor<6x3xf32>
  }
  exec.arena @state state bytes 576
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<192xi8>
  %t.slot = exec.slot "t" in @state workspace at 192 : memref<192xi8>
  %r.slot = exec.slot "r" in @state workspace at 384 : memref<192xi8>
  %x = exec.buffer %x.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %t = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %over = exec.buffer %t.slot + 72 : memref<192xi8> to memref<2x4xf32, strided<[8, 1]>>
  %part = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x3xf32, strided<[8, 1]>>
  %r = exec.buffer %r.slot + 0 : memref<192xi8> to memref<6x3xf32>
  exec.argument %x : memref<6x8xf32>
  exec.copy %x -> %t : memref<6x8xf32> -> memref<6x8xf32>
  exec.fill %over with 0.0 : memref<2x4xf32, strided<[8, 1]>>
  exec.copy %part -> %r : memref<6x3xf32, strided<[8, 1]>> -> memref<6x3xf32>
  // expected-error @+1 {{expects in slot 'r' element 18 of argument 0 and finds element 0 of the constant 0.000000e+00}}
  exec.result %r : memref<6x3xf32>
}

// -----

// Rows of 3 at steps of 9 are written over, in rows of 8: two of them meet the first column.
exec.program @across {
  func.func @across(%x: tensor<6x8xf32>) -> tensor<6x1xf32> {
    %s = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 6, 1>, strides = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<6x1xf32>
    return %s : tensor<6x1xf32>
  }
  exec.arena @state state bytes 576
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<192xi8>
  %t.slot = exec.slot "t" in @state workspace at 192 : memref<192xi8>
  %r.slot = exec.slot "r" in @state workspace at 384 : memref<192xi8>
  %x = exec.buffer %x.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %t = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %over = exec.buffer %t.slot + 28 : memref<192xi8> to memref<4x3xf32, strided<[9, 1]>>
  %part = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x1xf32, strided<[8, 1]>>
  %r = exec.buffer %r.slot + 0 : memref<192xi8> to memref<6x1xf32>
  exec.argument %x : memref<6x8xf32>
  exec.copy %x -> %t : memref<6x8xf32> -> memref<6x8xf32>
  exec.fill %over with 0.0 : memref<4x3xf32, strided<[9, 1]>>
  exec.copy %part -> %r : memref<6x1xf32, strided<[8, 1]>> -> memref<6x1xf32>
  // expected-error @+1 {{expects in slot 'r' element 8 of argument 0 and finds element 0 of the constant 0.000000e+00}}
  exec.result %r : memref<6x1xf32>
}

// -----

// None of them meets the columns 5 and 6.
exec.program @beside {
  func.func @beside(%x: tensor<6x8xf32>) -> tensor<6x2xf32> {
    %s = train.slice %x {starts = array<i64: 0, 5>, limits = array<i64: 6, 7>, strides = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<6x2xf32>
    return %s : tensor<6x2xf32>
  }
  exec.arena @state state bytes 576
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<192xi8>
  %t.slot = exec.slot "t" in @state workspace at 192 : memref<192xi8>
  %r.slot = exec.slot "r" in @state workspace at 384 : memref<192xi8>
  %x = exec.buffer %x.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %t = exec.buffer %t.slot + 0 : memref<192xi8> to memref<6x8xf32>
  %over = exec.buffer %t.slot + 28 : memref<192xi8> to memref<4x3xf32, strided<[9, 1]>>
  %part = exec.buffer %t.slot + 20 : memref<192xi8> to memref<6x2xf32, strided<[8, 1]>>
  %r = exec.buffer %r.slot + 0 : memref<192xi8> to memref<6x2xf32>
  exec.argument %x : memref<6x8xf32>
  exec.copy %x -> %t : memref<6x8xf32> -> memref<6x8xf32>
  exec.fill %over with 0.0 : memref<4x3xf32, strided<[9, 1]>>
  exec.copy %part -> %r : memref<6x2xf32, strided<[8, 1]>> -> memref<6x2xf32>
  exec.result %r : memref<6x2xf32>
}

// -----

// Two columns and the next two share no element, though one lies within the reach of the other.
exec.program @apart {
  func.func @apart(%x: tensor<4x4xf32>) -> tensor<4x2xf32> {
    %s = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 4, 2>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<4x2xf32>
    return %s : tensor<4x2xf32>
  }
  exec.arena @state state bytes 64
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<64xi8>
  %x = exec.buffer %x.slot + 0 : memref<64xi8> to memref<4x4xf32>
  %from = exec.buffer %x.slot + 0 : memref<64xi8> to memref<4x2xf32, strided<[4, 1]>>
  %to = exec.buffer %x.slot + 8 : memref<64xi8> to memref<4x2xf32, strided<[4, 1]>>
  exec.argument %x : memref<4x4xf32>
  exec.copy %from -> %to : memref<4x2xf32, strided<[4, 1]>> -> memref<4x2xf32, strided<[4, 1]>>
  exec.result %to : memref<4x2xf32, strided<[4, 1]>>
}

// -----

// With the second column they share one.
exec.program @not_apart {
  func.func @not_apart(%x: tensor<4x4xf32>) -> tensor<4x2xf32> {
    %s = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 4, 2>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<4x2xf32>
    return %s : tensor<4x2xf32>
  }
  exec.arena @state state bytes 64
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<64xi8>
  %x = exec.buffer %x.slot + 0 : memref<64xi8> to memref<4x4xf32>
  %from = exec.buffer %x.slot + 0 : memref<64xi8> to memref<4x2xf32, strided<[4, 1]>>
  %to = exec.buffer %x.slot + 4 : memref<64xi8> to memref<4x2xf32, strided<[4, 1]>>
  exec.argument %x : memref<4x4xf32>
  // expected-error @+1 {{'exec.copy' writes to slot 'x' where it still reads}}
  exec.copy %from -> %to : memref<4x2xf32, strided<[4, 1]>> -> memref<4x2xf32, strided<[4, 1]>>
  exec.result %to : memref<4x2xf32, strided<[4, 1]>>
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
