// RUN: tessera-opt %s --pass-pipeline='builtin.module(any(verify-collective-order))' -split-input-file -verify-diagnostics

// A loop of constant length is run equally often by all ranks.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
func.func @loop(%x: tensor<2x4xf32>) -> tensor<8xf32> {
  %s = train.accumulate %x {count = 2 : i64} : (tensor<2x4xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4xf32>):
    %f = dist.all_gather_start %m {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> !dist.future<tensor<8xf32>>
    %g = dist.done %f : (!dist.future<tensor<8xf32>>) -> tensor<8xf32>
    train.yield %g : tensor<8xf32>
  }
  return %s : tensor<8xf32>
}
}

// -----

// A condition could be a rank's.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
func.func @condition(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  // expected-note @below {{the control flow is here}}
  %r = scf.if %c -> tensor<4xf32> {
    // expected-error @below {{is inside of 'scf.if', so how often it runs could depend on the rank}}
    %s = dist.all_reduce %x {axes = ["shard"]} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
}

// -----

// Control flow without a collective does no harm.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
func.func @harmless(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %r = scf.if %c -> tensor<4xf32> {
    %s = train.exp %x : tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  %s = dist.all_reduce %r {axes = ["shard"]} : (tensor<4xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
func.func private @other(tensor<4xf32>) -> tensor<4xf32>
func.func @call(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{calls another function, whose collectives this pass does not see}}
  %r = func.call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
func.func @no_done(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is not waited for by exactly one dist.done}}
  %f = dist.all_reduce_start %x {axes = ["shard"]} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  return %x : tensor<4xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
func.func @other_block(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is waited for in another block, so ranks could start it and not end it}}
  %f = dist.all_reduce_start %x {axes = ["shard"]} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %s = train.accumulate {count = 1 : i64} : () -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>):
    %d = dist.done %f : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
    train.yield %d : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}
}

// -----

// In a program the compute stream waits for an event that the collective's stream records behind it.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
exec.program @waited_for {
  exec.arena @activations activations bytes 64
  %s = exec.slot "s" in @activations activations at 0 : memref<64xi8>
  %b = exec.buffer %s + 0 : memref<64xi8> to memref<16xf32>
  exec.collective all_reduce %b -> %b over ["shard"] {stream = 2 : i64} : memref<16xf32> -> memref<16xf32>
  exec.record 0 {stream = 2 : i64}
  exec.wait 0
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
exec.program @another_stream_waits {
  exec.arena @activations activations bytes 64
  %s = exec.slot "s" in @activations activations at 0 : memref<64xi8>
  %b = exec.buffer %s + 0 : memref<64xi8> to memref<16xf32>
  // expected-error @below {{is not waited for in its block}}
  exec.collective all_reduce %b -> %b over ["shard"] {stream = 2 : i64} : memref<16xf32> -> memref<16xf32>
  exec.record 0 {stream = 2 : i64}
  exec.wait 0 {stream = 1 : i64}
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
exec.program @recorded_too_early {
  exec.arena @activations activations bytes 64
  %s = exec.slot "s" in @activations activations at 0 : memref<64xi8>
  %b = exec.buffer %s + 0 : memref<64xi8> to memref<16xf32>
  exec.collective all_reduce %b -> %b over ["shard"] {stream = 2 : i64} : memref<16xf32> -> memref<16xf32>
  exec.record 0 {stream = 2 : i64}
  // expected-error @below {{is not waited for in its block}}
  exec.collective all_reduce %b -> %b over ["shard"] {stream = 2 : i64} : memref<16xf32> -> memref<16xf32>
  exec.wait 0
}
}
