// Offsets for slots of known lifetimes (AllocatorTest.cpp has random ones): no two that live at once overlap, and no more bytes are
// reserved than live at once where the sizes allow it.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(exec.program(plan-memory,verify-exec))' -split-input-file | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(exec.program(plan-memory{alignment=256},verify-exec))' -split-input-file | FileCheck %s --check-prefix=WIDE

// A chain of 64, 192, 128 and 192 bytes, two at a time: no more than the two largest neighbours. The third is too large for the
// first one's place; the fourth takes the place of the second.
// CHECK-LABEL: exec.program @chain
// CHECK: exec.arena @activations activations bytes 320
// WIDE-LABEL: exec.program @chain
// WIDE: exec.arena @activations activations bytes 512
exec.program @chain {
  exec.arena @state state bytes 0
  exec.arena @activations activations bytes 0
  %w = exec.slot "w" in @state parameters : memref<64xi8>
  %a = exec.slot "a" in @activations activations : memref<64xi8>
  // CHECK: exec.slot "b" in @activations activations at [[B:[0-9]+]]
  %b = exec.slot "b" in @activations activations : memref<192xi8>
  // CHECK: exec.slot "c"
  %c = exec.slot "c" in @activations activations : memref<128xi8>
  // CHECK: exec.slot "d" in @activations activations at [[B]] {
  %d = exec.slot "d" in @activations activations : memref<192xi8>
  %bw = exec.buffer %w + 0 : memref<64xi8> to memref<16xf32>
  %ba = exec.buffer %a + 0 : memref<64xi8> to memref<16xf32>
  %bb = exec.buffer %b + 0 : memref<192xi8> to memref<3x16xf32>
  %b0 = exec.buffer %b + 0 : memref<192xi8> to memref<16xf32>
  %b1 = exec.buffer %b + 64 : memref<192xi8> to memref<2x16xf32>
  %bc = exec.buffer %c + 0 : memref<128xi8> to memref<2x16xf32>
  %bd = exec.buffer %d + 0 : memref<192xi8> to memref<3x16xf32>
  %d1 = exec.buffer %d + 64 : memref<192xi8> to memref<2x16xf32>
  %d0 = exec.buffer %d + 0 : memref<192xi8> to memref<16xf32>
  exec.argument %bw {train.name = "w", train.role = "param"} : memref<16xf32>
  exec.copy %bw -> %ba : memref<16xf32> -> memref<16xf32>
  exec.fill %bb with 0.0 : memref<3x16xf32>
  exec.copy %ba -> %b0 : memref<16xf32> -> memref<16xf32>
  exec.copy %b1 -> %bc : memref<2x16xf32> -> memref<2x16xf32>
  exec.fill %bd with 0.0 : memref<3x16xf32>
  exec.copy %bc -> %d1 : memref<2x16xf32> -> memref<2x16xf32>
  exec.copy %d0 -> %bw : memref<16xf32> -> memref<16xf32>
}

// -----

// Not shared: all of them live until the end. Sizes are rounded up to the alignment.
// CHECK-LABEL: exec.program @together
// CHECK: exec.arena @activations activations bytes 192
// WIDE-LABEL: exec.program @together
// WIDE: exec.arena @activations activations bytes 768
exec.program @together {
  exec.arena @state state bytes 0
  exec.arena @activations activations bytes 0
  %w = exec.slot "w" in @state parameters : memref<4xi8>
  %a = exec.slot "a" in @activations activations : memref<4xi8>
  %b = exec.slot "b" in @activations activations : memref<4xi8>
  %c = exec.slot "c" in @activations activations : memref<4xi8>
  %bw = exec.buffer %w + 0 : memref<4xi8> to memref<1xf32>
  %ba = exec.buffer %a + 0 : memref<4xi8> to memref<1xf32>
  %bb = exec.buffer %b + 0 : memref<4xi8> to memref<1xf32>
  %bc = exec.buffer %c + 0 : memref<4xi8> to memref<1xf32>
  exec.argument %bw {train.name = "w", train.role = "param"} : memref<1xf32>
  exec.copy %bw -> %ba : memref<1xf32> -> memref<1xf32>
  exec.copy %ba -> %bb : memref<1xf32> -> memref<1xf32>
  exec.copy %bb -> %bc : memref<1xf32> -> memref<1xf32>
  exec.copy %bc -> %ba : memref<1xf32> -> memref<1xf32>
  exec.copy %ba -> %bb : memref<1xf32> -> memref<1xf32>
  exec.copy %bb -> %bc : memref<1xf32> -> memref<1xf32>
  exec.copy %bc -> %bw : memref<1xf32> -> memref<1xf32>
}
