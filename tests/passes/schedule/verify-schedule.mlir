// RUN: tessera-opt %s --verify-schedule -split-input-file -verify-diagnostics

func.func @synchronous(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is not split into start and done}}
  %r = dist.all_reduce %x {axes = ["shard"]} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @never_done(%x: tensor<4xf32>) {
  // expected-error @below {{is waited for 0 times, expected once}}
  %f = dist.all_reduce_start %x {axes = ["shard"], schedule.reason = "test"} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  return
}

// -----

func.func @done_twice(%x: tensor<4xf32>) {
  // expected-error @below {{is waited for 2 times, expected once}}
  %f = dist.all_reduce_start %x {axes = ["shard"], schedule.reason = "test"} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %a = dist.done %f : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
  %b = dist.done %f : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
  return
}

// -----

func.func @other_block(%x: tensor<4xf32>, %m: tensor<2x4xf32>) -> tensor<4xf32> {
  %f = dist.all_reduce_start %x {axes = ["shard"], schedule.reason = "test"} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %s = train.accumulate %m {count = 2 : i64} : (tensor<2x4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %p: tensor<4xf32>):
    // expected-error @below {{waits in another block than its collective starts in}}
    %a = dist.done %f : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
    train.yield %a : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}

// -----

func.func @no_reason(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has no 'schedule.reason'}}
  %f = dist.all_reduce_start %x {axes = ["shard"]} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %a = dist.done %f : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @order(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = dist.all_reduce_start %x {axes = ["shard"], schedule.reason = "test"} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  %g = dist.all_reduce_start %x {axes = ["shard"], schedule.reason = "test"} : (tensor<4xf32>) -> !dist.future<tensor<4xf32>>
  // expected-error @below {{ends before a collective of its kind that started earlier}}
  %b = dist.done %g : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
  // expected-note @below {{that one ends here}}
  %a = dist.done %f : (!dist.future<tensor<4xf32>>) -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
