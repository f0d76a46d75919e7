// RUN: tessera-opt %s --verify-collective-order -split-input-file -verify-diagnostics

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
