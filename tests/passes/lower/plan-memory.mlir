// RUN: tessera-opt %s --pass-pipeline='builtin.module(exec.program(plan-memory,verify-exec))' | FileCheck %s
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(exec.program(plan-memory{alignment=0}))' 2>&1 | FileCheck %s --check-prefix=ALIGNMENT
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(exec.program(plan-memory{alignment=100}))' 2>&1 | FileCheck %s --check-prefix=ALIGNMENT
// ALIGNMENT: error: alignment must be a multiple of 64 and at most 1073741824, got {{0|100}}
// No other diagnostic: any program can be planned; verify-exec checks the plan.

// %c begins when %a is over: they share memory. %unused disappears, the state arena keeps its slots.
// CHECK-LABEL: exec.program @reuse
exec.program @reuse {
  // CHECK: exec.arena @state state bytes 128
  exec.arena @state state bytes 0
  // CHECK: exec.arena @activations activations bytes 128
  exec.arena @activations activations bytes 0
  // CHECK: exec.slot "w" in @state parameters at 0
  %w = exec.slot "w" in @state parameters : memref<64xi8>
  // CHECK: exec.slot "m" in @state optimizer at 64
  %m = exec.slot "m" in @state optimizer : memref<16xi8>
  // CHECK: exec.slot "a" in @activations activations at [[A:[0-9]+]]
  %a = exec.slot "a" in @activations activations : memref<64xi8>
  // CHECK-NOT: at [[A]]
  // CHECK: exec.slot "b"
  %b = exec.slot "b" in @activations activations : memref<64xi8>
  // CHECK: exec.slot "c" in @activations activations at [[A]]
  %c = exec.slot "c" in @activations activations : memref<64xi8>
  // CHECK-NOT: "unused"
  %unused = exec.slot "unused" in @activations activations : memref<64xi8>
  %bw = exec.buffer %w + 0 : memref<64xi8> to memref<16xf32>
  %bm = exec.buffer %m + 0 : memref<16xi8> to memref<4xf32>
  %ba = exec.buffer %a + 0 : memref<64xi8> to memref<16xf32>
  %bb = exec.buffer %b + 0 : memref<64xi8> to memref<16xf32>
  %bc = exec.buffer %c + 0 : memref<64xi8> to memref<16xf32>
  exec.argument %bw {train.name = "w", train.role = "param"} : memref<16xf32>
  exec.argument %bm {train.name = "m", train.role = "state"} : memref<4xf32>
  exec.copy %bw -> %ba : memref<16xf32> -> memref<16xf32>
  exec.copy %ba -> %bb : memref<16xf32> -> memref<16xf32>
  exec.copy %bb -> %bc : memref<16xf32> -> memref<16xf32>
  exec.copy %bc -> %bw : memref<16xf32> -> memref<16xf32>
  exec.fill %bm with 0.0 : memref<4xf32>
}
