// RUN: tessera-opt %s --verify-exec -split-input-file -verify-diagnostics

// The second slot takes the memory of the first when the first is read for the last time.
exec.program @sound {
  exec.arena @activations activations bytes 128
  %a = exec.slot "a" in @activations activations at 0 : memref<64xi8>
  %b = exec.slot "b" in @activations activations at 64 : memref<64xi8>
  %c = exec.slot "c" in @activations activations at 0 : memref<64xi8>
  %0 = exec.buffer %a + 0 : memref<64xi8> to memref<16xf32>
  %1 = exec.buffer %b + 0 : memref<64xi8> to memref<16xf32>
  %2 = exec.buffer %c + 0 : memref<64xi8> to memref<16xf32>
  exec.fill %0 with 0.0 : memref<16xf32>
  exec.copy %0 -> %1 : memref<16xf32> -> memref<16xf32>
  exec.copy %1 -> %2 : memref<16xf32> -> memref<16xf32>
}

// -----

exec.program @unplanned {
  exec.arena @activations activations bytes 64
  // expected-error @+1 {{has no offset: plan-memory has not run}}
  %a = exec.slot "a" in @activations activations : memref<64xi8>
}

// -----

exec.program @beyond_the_arena {
  exec.arena @activations activations bytes 64
  // expected-error @+1 {{ends at byte 128 of an arena of 64}}
  %a = exec.slot "a" in @activations activations at 64 : memref<64xi8>
}

// -----

// In iteration 1 the view begins 48 bytes further on.
exec.program @beyond_the_slot {
  exec.arena @activations activations bytes 64
  %a = exec.slot "a" in @activations activations at 0 : memref<64xi8>
  // expected-error @+1 {{reaches byte 80 of a slot of 64 bytes}}
  %0 = exec.buffer %a + 0 {iteration_stride = 48 : i64} : memref<64xi8> to memref<8xf32>
  exec.loop 2 {
    exec.fill %0 with 0.0 : memref<8xf32>
  }
}

// -----

exec.program @overwritten {
  exec.arena @activations activations bytes 64
  // expected-error @+1 {{shares memory with 'b', and their uses are not ordered}}
  %a = exec.slot "a" in @activations activations at 0 : memref<64xi8>
  %b = exec.slot "b" in @activations activations at 0 : memref<64xi8>
  %0 = exec.buffer %a + 0 : memref<64xi8> to memref<16xf32>
  %1 = exec.buffer %b + 0 : memref<64xi8> to memref<16xf32>
  // expected-note @+1 {{first use of 'a'}}
  exec.fill %0 with 0.0 : memref<16xf32>
  // expected-note @+1 {{first use of 'b'}}
  exec.fill %1 with 1.0 : memref<16xf32>
  exec.copy %0 -> %0 : memref<16xf32> -> memref<16xf32>
}

// -----

// Stream 2 must wait before it reads what stream 0 writes.
exec.program @race {
  exec.arena @activations activations bytes 128
  %a = exec.slot "a" in @activations activations at 0 : memref<64xi8>
  %b = exec.slot "b" in @activations activations at 64 : memref<64xi8>
  %0 = exec.buffer %a + 0 : memref<64xi8> to memref<16xf32>
  %1 = exec.buffer %b + 0 : memref<64xi8> to memref<16xf32>
  // expected-note @+1 {{the other use}}
  exec.fill %0 with 0.0 : memref<16xf32>
  // expected-error @+1 {{uses 'a' while another stream may still write it}}
  exec.copy %0 -> %1 {stream = 2 : i64} : memref<16xf32> -> memref<16xf32>
}

// -----

exec.program @ordered_by_an_event {
  exec.arena @activations activations bytes 128
  %a = exec.slot "a" in @activations activations at 0 : memref<64xi8>
  %b = exec.slot "b" in @activations activations at 64 : memref<64xi8>
  %0 = exec.buffer %a + 0 : memref<64xi8> to memref<16xf32>
  %1 = exec.buffer %b + 0 : memref<64xi8> to memref<16xf32>
  exec.fill %0 with 0.0 : memref<16xf32>
  exec.record 0
  exec.wait 0 {stream = 2 : i64}
  exec.copy %0 -> %1 {stream = 2 : i64} : memref<16xf32> -> memref<16xf32>
}

// -----

// Two streams may write parts of a slot at the same time: halves, then columns of 2 and 2 of a table of 4.
exec.program @parts {
  exec.arena @activations activations bytes 128
  %a = exec.slot "a" in @activations activations at 0 : memref<64xi8>
  %b = exec.slot "b" in @activations activations at 64 : memref<64xi8>
  %0 = exec.buffer %a + 0 : memref<64xi8> to memref<8xf32>
  %1 = exec.buffer %a + 32 : memref<64xi8> to memref<4x2xf32>
  %2 = exec.buffer %b + 0 : memref<64xi8> to memref<4x2xf32, strided<[4, 1]>>
  %3 = exec.buffer %b + 8 : memref<64xi8> to memref<4x2xf32, strided<[4, 1]>>
  exec.fill %0 with 0.0 : memref<8xf32>
  exec.copy %1 -> %1 {stream = 2 : i64} : memref<4x2xf32> -> memref<4x2xf32>
  exec.fill %2 with 0.0 : memref<4x2xf32, strided<[4, 1]>>
  exec.copy %3 -> %3 {stream = 2 : i64} : memref<4x2xf32, strided<[4, 1]>> -> memref<4x2xf32, strided<[4, 1]>>
}

// -----

// Columns 0 to 2 and 2 to 3 share one.
exec.program @parts_overlap {
  exec.arena @activations activations bytes 64
  %a = exec.slot "a" in @activations activations at 0 : memref<64xi8>
  %0 = exec.buffer %a + 0 : memref<64xi8> to memref<4x3xf32, strided<[4, 1]>>
  %1 = exec.buffer %a + 8 : memref<64xi8> to memref<4x2xf32, strided<[4, 1]>>
  // expected-note @+1 {{the other use}}
  exec.fill %0 with 0.0 : memref<4x3xf32, strided<[4, 1]>>
  // expected-error @+1 {{uses 'a' while another stream may still write it}}
  exec.copy %1 -> %1 {stream = 2 : i64} : memref<4x2xf32, strided<[4, 1]>> -> memref<4x2xf32, strided<[4, 1]>>
}

// -----

// The digits of the second part carry: its last column is the first of the next row.
exec.program @parts_wrap {
  exec.arena @activations activations bytes 80
  %a = exec.slot "a" in @activations activations at 0 : memref<80xi8>
  %0 = exec.buffer %a + 0 : memref<80xi8> to memref<4x1xf32, strided<[4, 1]>>
  %1 = exec.buffer %a + 12 : memref<80xi8> to memref<4x2xf32, strided<[4, 1]>>
  // expected-note @+1 {{the other use}}
  exec.fill %0 with 0.0 : memref<4x1xf32, strided<[4, 1]>>
  // expected-error @+1 {{uses 'a' while another stream may still write it}}
  exec.copy %1 -> %1 {stream = 2 : i64} : memref<4x2xf32, strided<[4, 1]>> -> memref<4x2xf32, strided<[4, 1]>>
}

// -----

// Each iteration has a place for itself.
exec.program @iterations {
  exec.arena @activations activations bytes 128
  %a = exec.slot "a" in @activations activations at 0 : memref<128xi8>
  %0 = exec.buffer %a + 0 {iteration_stride = 32 : i64} : memref<128xi8> to memref<8xf32>
  %1 = exec.buffer %a + 64 {iteration_stride = 32 : i64} : memref<128xi8> to memref<8xf32>
  exec.loop 2 {
    exec.fill %0 with 0.0 : memref<8xf32>
    exec.copy %1 -> %1 {stream = 2 : i64} : memref<8xf32> -> memref<8xf32>
  }
}

// -----

// Iteration 1 writes what iteration 0 may still read on stream 2.
exec.program @iterations_overlap {
  exec.arena @activations activations bytes 128
  %a = exec.slot "a" in @activations activations at 0 : memref<128xi8>
  %0 = exec.buffer %a + 0 {iteration_stride = 32 : i64} : memref<128xi8> to memref<8xf32>
  %2 = exec.buffer %a + 32 {iteration_stride = 32 : i64} : memref<128xi8> to memref<8xf32>
  exec.loop 2 {
    // expected-note @+1 {{the other use}}
    exec.copy %2 -> %2 {stream = 2 : i64} : memref<8xf32> -> memref<8xf32>
    // expected-error @+1 {{uses 'a' while another stream may still read it}}
    exec.fill %0 with 0.0 : memref<8xf32>
  }
}

// -----

exec.program @never_recorded {
  exec.arena @activations activations bytes 0
  // expected-error @+1 {{event 3 has not been recorded before}}
  exec.wait 3
}

// -----

// The parts of all ranks of a group begin behind what the other stream writes, whether that is a part itself or not.
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 3>} {
exec.program @ranks {
  exec.arena @activations activations bytes 256
  %a = exec.slot "a" in @activations activations at 0 : memref<256xi8>
  %0 = exec.buffer %a + 64 {rank_axes = ["tp"], rank_stride = 32 : i64} : memref<256xi8> to memref<8xf32>
  %1 = exec.buffer %a + 0 : memref<256xi8> to memref<16xf32>
  %2 = exec.buffer %a + 160 {rank_axes = ["dp"], rank_stride = 32 : i64} : memref<256xi8> to memref<8xf32>
  exec.copy %0 -> %0 {stream = 2 : i64} : memref<8xf32> -> memref<8xf32>
  exec.fill %1 with 0.0 : memref<16xf32>
  exec.fill %2 with 0.0 : memref<8xf32>
}
}

// -----

// On ranks with tp = 2 and dp = 0 both are at 128.
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 3>} {
exec.program @ranks_overlap {
  exec.arena @activations activations bytes 256
  %a = exec.slot "a" in @activations activations at 0 : memref<256xi8>
  %0 = exec.buffer %a + 64 {rank_axes = ["tp"], rank_stride = 32 : i64} : memref<256xi8> to memref<8xf32>
  %2 = exec.buffer %a + 128 {rank_axes = ["dp"], rank_stride = 64 : i64} : memref<256xi8> to memref<8xf32>
  // expected-note @+1 {{the other use}}
  exec.copy %0 -> %0 {stream = 2 : i64} : memref<8xf32> -> memref<8xf32>
  // expected-error @+1 {{uses 'a' while another stream may still read it}}
  exec.fill %2 with 0.0 : memref<8xf32>
}
}
