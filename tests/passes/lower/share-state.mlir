// RUN: tessera-opt %s --share-state --split-input-file --verify-diagnostics | FileCheck %s

// The parameter lies where the training has it. The batch comes behind the training's state, with its optimizer state
// between; activations lie over those of the training.
// CHECK-LABEL: exec.program @step
// CHECK: exec.slot "w" in @state parameters at 64
// CHECK-LABEL: exec.program @evaluate
// CHECK: exec.arena @state state bytes 192
// CHECK: exec.arena @activations activations bytes 64
// CHECK: exec.slot "x" in @state inputs at 128
// CHECK: exec.slot "w" in @state parameters at 64
// CHECK: exec.slot "h" in @activations activations at 0
exec.program @step {
  exec.arena @state state bytes 128
  exec.arena @activations activations bytes 256
  %m = exec.slot "m" in @state optimizer at 0 {live = array<i64: 0, 0>} : memref<64xi8>
  %w = exec.slot "w" in @state parameters at 64 {live = array<i64: 0, 0>} : memref<64xi8>
  %mb = exec.buffer %m + 0 : memref<64xi8> to memref<16xf32>
  %wb = exec.buffer %w + 0 : memref<64xi8> to memref<16xf32>
  exec.argument %wb {train.name = "w", train.role = "param"} : memref<16xf32>
  exec.argument %mb {train.name = "w.m", train.of = "w", train.role = "state", train.state = "m"} : memref<16xf32>
}
exec.program @evaluate attributes {train.program = "evaluate"} {
  exec.arena @state state bytes 128
  exec.arena @activations activations bytes 64
  %x = exec.slot "x" in @state inputs at 64 {live = array<i64: 0, 0>} : memref<64xi8>
  %w = exec.slot "w" in @state parameters at 0 {live = array<i64: 0, 0>} : memref<64xi8>
  %h = exec.slot "h" in @activations activations at 0 {live = array<i64: 0, 0>} : memref<64xi8>
  %wb = exec.buffer %w + 0 : memref<64xi8> to memref<16xf32>
  %xb = exec.buffer %x + 0 : memref<64xi8> to memref<16xf32>
  %hb = exec.buffer %h + 0 : memref<64xi8> to memref<16xf32>
  exec.argument %wb {train.name = "w", train.role = "param"} : memref<16xf32>
  exec.argument %xb {train.name = "x", train.role = "input"} : memref<16xf32>
}

// -----

// One program alone is as it was planned.
// CHECK-LABEL: exec.program @step
// CHECK: exec.slot "w" in @state parameters at 64
exec.program @step {
  exec.arena @state state bytes 128
  %w = exec.slot "w" in @state parameters at 64 {live = array<i64: 0, 0>} : memref<64xi8>
  %wb = exec.buffer %w + 0 : memref<64xi8> to memref<16xf32>
  exec.argument %wb {train.name = "w", train.role = "param"} : memref<16xf32>
}

// -----

exec.program @step {
  exec.arena @state state bytes 64
  %w = exec.slot "w" in @state parameters at 0 {live = array<i64: 0, 0>} : memref<64xi8>
  %wb = exec.buffer %w + 0 : memref<64xi8> to memref<16xf32>
  exec.argument %wb {train.name = "w", train.role = "param"} : memref<16xf32>
}
exec.program @evaluate attributes {train.program = "evaluate"} {
  exec.arena @state state bytes 64
  %w = exec.slot "v" in @state parameters at 0 {live = array<i64: 0, 0>} : memref<64xi8>
  %wb = exec.buffer %w + 0 : memref<64xi8> to memref<16xf32>
  // expected-error@+1 {{"v" is no state of the training}}
  exec.argument %wb {train.name = "v", train.role = "param"} : memref<16xf32>
}

// -----

exec.program @step {
  exec.arena @state state bytes 64
  %w = exec.slot "w" in @state parameters at 0 {live = array<i64: 0, 0>} : memref<64xi8>
  %wb = exec.buffer %w + 0 : memref<64xi8> to memref<16xf32>
  exec.argument %wb {train.name = "w", train.role = "param"} : memref<16xf32>
}
exec.program @evaluate attributes {train.program = "evaluate"} {
  exec.arena @state state bytes 64
  %w = exec.slot "w" in @state parameters at 0 {live = array<i64: 0, 0>} : memref<32xi8>
  %wb = exec.buffer %w + 0 : memref<32xi8> to memref<8xf32>
  // expected-error@+1 {{"w" has 32 bytes in arena 'state', the training has it with 64 in 'state'}}
  exec.argument %wb {train.name = "w", train.role = "param"} : memref<8xf32>
}
