// RUN: tessera-opt %s --split-async --prefetch --verify-schedule | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: tessera-opt %s --split-async --prefetch="forward=2 backward=none" --verify-schedule | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: tessera-opt %s --split-async --prefetch="forward=0 backward=none" --verify-schedule | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: not tessera-opt %s --split-async --prefetch="forward=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: forward is -1 units, expected at least 0

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @gathers
// ONE: dist.all_gather_start %arg0 {{.*}}schedule.reason = "at the beginning: fewer than 1 units come before"
// ONE: dist.done
// ONE: dist.all_gather_start %arg1 {{.*}}schedule.reason = "1 unit ahead: at the first use of forward:a"
// ONE: train.exp
// ONE: dist.done {{.*}}schedule.reason = "at the first use of the unit"
// ONE: dist.all_gather_start %arg2 {{.*}}schedule.reason = "1 unit ahead: at the first use of forward:b"
// ONE: train.tanh
// ONE: dist.done
// ONE: dist.all_gather_start %arg1 {{.*}}schedule.reason = "1 unit ahead: at the first use of forward:c", train.backward
// ONE: train.mul
// ONE: dist.done
// ONE: train.sub
// TWO: dist.all_gather_start %arg0 {{.*}}schedule.reason = "at the beginning: fewer than 2 units come before"
// TWO: dist.all_gather_start %arg1 {{.*}}schedule.reason = "at the beginning: fewer than 2 units come before"
// TWO: dist.done
// TWO: dist.all_gather_start %arg2 {{.*}}schedule.reason = "2 units ahead: at the first use of forward:a"
// TWO: train.exp
// TWO: dist.done
// TWO: train.tanh
// TWO: dist.done
// TWO: train.mul
// TWO: dist.all_gather_start %arg1 {{.*}}schedule.reason = "at the first use of the unit: no prefetch", train.backward
// TWO-NEXT: dist.done
// TWO: train.sub
// NONE: dist.all_gather_start %arg0
// NONE-NEXT: dist.done
// NONE: train.exp
// NONE: dist.all_gather_start %arg1
// NONE-NEXT: dist.done
// NONE: train.tanh
// NONE: dist.all_gather_start %arg2
func.func @gathers(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
  %ga = dist.all_gather %a {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["a"]>} : (tensor<4xf32>) -> tensor<8xf32>
  %gb = dist.all_gather %b {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["b"]>} : (tensor<4xf32>) -> tensor<8xf32>
  %gc = dist.all_gather %c {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["c"]>} : (tensor<4xf32>) -> tensor<8xf32>
  %wa = train.slice %ga {starts = array<i64: 1>, limits = array<i64: 5>, strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>
  %wb = train.slice %gb {starts = array<i64: 1>, limits = array<i64: 5>, strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>
  %wc = train.slice %gc {starts = array<i64: 1>, limits = array<i64: 5>, strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>
  %0 = train.exp %wa : tensor<4xf32>
  %1 = train.add %0, %wb : tensor<4xf32>
  %2 = train.tanh %1 : tensor<4xf32>
  %3 = train.mul %2, %wc : tensor<4xf32>
  %hb = dist.all_gather %b {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<backward, ["b"]>, train.backward} : (tensor<4xf32>) -> tensor<8xf32>
  %vb = train.slice %hb {starts = array<i64: 1>, limits = array<i64: 5>, strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>
  %4 = train.sub %3, %vb {train.backward} : tensor<4xf32>
  return %4 : tensor<4xf32>
}

// A reduction starts as soon as its operand is complete, with what only assembles it, and ends before the next one starts.
// CHECK-LABEL: func @reductions
// CHECK: %[[X:.*]] = train.exp
// CHECK: train.concat %[[X]], %[[X]]
// CHECK: dist.reduce_scatter_start {{.*}}schedule.reason = "as soon as its operand is complete"
// CHECK: %[[Y:.*]] = train.tanh
// CHECK: train.concat %[[Y]], %[[Y]]
// CHECK: dist.done {{.*}}schedule.reason = "before the next collective of its kind and axes starts"
// CHECK: dist.reduce_scatter_start
// CHECK: train.sqrt
// CHECK: dist.done {{.*}}schedule.reason = "at its first use"
// CHECK: train.add
func.func @reductions(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = train.exp %x : tensor<4xf32>
  %1 = train.tanh %0 : tensor<4xf32>
  %2 = train.sqrt %1 : tensor<4xf32>
  %3 = train.concat %0, %0 {dim = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %a = dist.reduce_scatter %3 {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["a"]>} : (tensor<8xf32>) -> tensor<4xf32>
  %4 = train.concat %1, %1 {dim = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %b = dist.reduce_scatter %4 {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["b"]>} : (tensor<8xf32>) -> tensor<4xf32>
  %5 = train.add %a, %b : tensor<4xf32>
  return %5, %2 : tensor<4xf32>, tensor<4xf32>
}

// A gather of a value made in the block is not a unit's: it stays where it is, and says so.
// CHECK-LABEL: func @not_applied
// CHECK: train.exp
// CHECK: dist.all_gather_start {{.*}}schedule.reason = "where the collective was"
// CHECK-NEXT: dist.done {{.*}}schedule.reason = "right after its start"
func.func @not_applied(%x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = train.exp %x : tensor<4xf32>
  %1 = dist.all_gather %0 {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Each micro-batch prefetches for itself.
// CHECK-LABEL: func @micro
// CHECK-NOT: dist.all_gather_start
// CHECK: train.accumulate
// CHECK: dist.all_gather_start %arg1
// ONE: train.exp
// CHECK: dist.done
func.func @micro(%x: tensor<2x8xf32>, %u: tensor<4xf32>) -> tensor<8xf32> {
  %s = train.accumulate %x {count = 2 : i64} : (tensor<2x8xf32>) -> tensor<8xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<8xf32>):
    %e = train.exp %m : tensor<8xf32>
    %g = dist.all_gather %u {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["u"]>} : (tensor<4xf32>) -> tensor<8xf32>
    %p = train.mul %e, %g : tensor<8xf32>
    train.yield %p : tensor<8xf32>
  }
  return %s : tensor<8xf32>
}
}
