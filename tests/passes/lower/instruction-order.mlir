// RUN: tessera-opt %s --pass-pipeline='builtin.module(exec.program(plan-memory,verify-exec))' -split-input-file | FileCheck %s

// How long slots are in use, as memory planning shows it (`live`: first and last instruction of the flattened list).
// verify-exec proves each plan; verify-exec.mlir has what it rejects.

// On the compute stream a slot is in use from its first to its last instruction.
// CHECK-LABEL: exec.program @in_order
// CHECK: exec.slot "a" {{.*}}live = array<i64: 0, 1>
// CHECK: exec.slot "b" {{.*}}live = array<i64: 1, 2>
exec.program @in_order {
  exec.arena @activations activations bytes 0
  %a = exec.slot "a" in @activations activations : memref<64xi8>
  %b = exec.slot "b" in @activations activations : memref<64xi8>
  %0 = exec.buffer %a + 0 : memref<64xi8> to memref<16xf32>
  %1 = exec.buffer %b + 0 : memref<64xi8> to memref<16xf32>
  exec.fill %0 with 0.0 : memref<16xf32>
  exec.copy %0 -> %1 : memref<16xf32> -> memref<16xf32>
  exec.copy %1 -> %1 : memref<16xf32> -> memref<16xf32>
}

// -----

// What another stream reads is in use until the compute stream knows that it has been read: until the wait, instruction 6,
// not 3. A slot that is written in between cannot have its place; one that is written behind the wait can.
// CHECK-LABEL: exec.program @until_known
// CHECK: exec.slot "sent" in @activations activations at [[SENT:[0-9]+]] {{.*}}live = array<i64: 0, 6>
// CHECK-NOT: at [[SENT]] {
// CHECK: exec.slot "meanwhile" {{.*}}live = array<i64: 5, 5>
// CHECK: exec.slot "behind" in @activations activations at [[SENT]] {live = array<i64: 7, 7>}
exec.program @until_known {
  exec.arena @activations activations bytes 0
  %a = exec.slot "sent" in @activations activations : memref<64xi8>
  %b = exec.slot "meanwhile" in @activations activations : memref<64xi8>
  %c = exec.slot "behind" in @activations activations : memref<64xi8>
  %0 = exec.buffer %a + 0 : memref<64xi8> to memref<16xf32>
  %1 = exec.buffer %b + 0 : memref<64xi8> to memref<16xf32>
  %2 = exec.buffer %c + 0 : memref<64xi8> to memref<16xf32>
  exec.fill %0 with 0.0 : memref<16xf32>
  exec.record 0
  exec.wait 0 {stream = 2 : i64}
  exec.copy %0 -> %0 {stream = 2 : i64} : memref<16xf32> -> memref<16xf32>
  exec.record 1 {stream = 2 : i64}
  exec.fill %1 with 1.0 : memref<16xf32>
  exec.wait 1
  exec.fill %2 with 1.0 : memref<16xf32>
}

// -----

// What nothing waits for is in use to the end of the step.
// CHECK-LABEL: exec.program @never_known
// CHECK: exec.slot "sent" {{.*}}live = array<i64: 0, 5>
exec.program @never_known {
  exec.arena @activations activations bytes 0
  %a = exec.slot "sent" in @activations activations : memref<64xi8>
  %b = exec.slot "behind" in @activations activations : memref<64xi8>
  %0 = exec.buffer %a + 0 : memref<64xi8> to memref<16xf32>
  %1 = exec.buffer %b + 0 : memref<64xi8> to memref<16xf32>
  exec.fill %0 with 0.0 : memref<16xf32>
  exec.record 0
  exec.wait 0 {stream = 2 : i64}
  exec.copy %0 -> %0 {stream = 2 : i64} : memref<16xf32> -> memref<16xf32>
  exec.fill %1 with 1.0 : memref<16xf32>
}

// -----

// Around a loop: "sum" is carried from one iteration to the next and "before" is read inside, so both are in use during
// all of it. "inner" is written before it is read in every iteration: only there.
// CHECK-LABEL: exec.program @loops
// CHECK: exec.slot "sum" {{.*}}live = array<i64: 1, 4>
// CHECK: exec.slot "before" {{.*}}live = array<i64: 0, 4>
// CHECK: exec.slot "inner" {{.*}}live = array<i64: 2, 3>
exec.program @loops {
  exec.arena @activations activations bytes 0
  %s = exec.slot "sum" in @activations activations : memref<64xi8>
  %b = exec.slot "before" in @activations activations : memref<64xi8>
  %i = exec.slot "inner" in @activations activations : memref<64xi8>
  %0 = exec.buffer %s + 0 : memref<64xi8> to memref<16xf32>
  %1 = exec.buffer %b + 0 : memref<64xi8> to memref<16xf32>
  %2 = exec.buffer %i + 0 : memref<64xi8> to memref<16xf32>
  exec.fill %1 with 0.0 : memref<16xf32>
  exec.loop 3 {
    exec.copy %1 -> %2 : memref<16xf32> -> memref<16xf32>
    exec.copy %2 -> %2 : memref<16xf32> -> memref<16xf32>
    exec.copy %0 -> %0 : memref<16xf32> -> memref<16xf32>
  }
}
