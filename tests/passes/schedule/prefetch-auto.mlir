// RUN: tessera-opt %s --split-async --prefetch-auto="target=%S/Inputs/round-numbers.json" --verify-schedule | FileCheck %s
// RUN: tessera-opt %s --split-async --prefetch-auto="target=%S/Inputs/round-numbers.json memory=4500000" --verify-schedule | FileCheck %s --check-prefix=LIMIT
// RUN: tessera-opt %s --split-async --prefetch-auto="target=%S/Inputs/round-numbers.json memory=100" --verify-schedule | FileCheck %s --check-prefix=NONE
// RUN: not tessera-opt %s --split-async --prefetch-auto="target=no-such-target" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not tessera-opt %s --split-async --prefetch-auto="memory=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: memory is -1 bytes, expected at least 0
// TARGET: error: {{.*}}no-such-target

// Each product takes 4 ms, each gather 8 ms. c is needed at 12 ms, so it starts at 4 ms; b must be over then, so it follows a
// at once. What does not fit is exposed.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @products
// CHECK: dist.all_gather_start %arg1 {{.*}}schedule.reason = "8.00 ms of gather before 0.0 us of computation, 8.00 ms of it exposed"
// CHECK-NEXT: dist.all_gather_start %arg2 {{.*}}schedule.reason = "8.00 ms of gather before 8.00 ms of computation, hidden"
// CHECK: dist.done {{.*}}schedule.reason = "at the first use of the unit"
// CHECK: train.dot_general
// CHECK: dist.all_gather_start %arg3 {{.*}}schedule.reason = "8.00 ms of gather before 8.00 ms of computation, 4.00 ms of it exposed"
// CHECK: train.dot_general
// CHECK: dist.done
// LIMIT: dist.all_gather_start %arg1
// LIMIT-NEXT: dist.done
// LIMIT-NEXT: dist.all_gather_start %arg2 {{.*}}held back by the memory limit until forward:a is in use
// LIMIT: train.dot_general
// LIMIT: train.dot_general
// LIMIT: dist.done
// LIMIT-NEXT: dist.all_gather_start %arg3 {{.*}}schedule.reason = "8.00 ms of gather before 4.00 ms of computation, 4.00 ms of it exposed, held back by the memory limit until forward:b is in use"
// NONE: dist.all_gather_start %arg2 {{.*}}schedule.reason = "at the first use of the unit: 4000000 bytes ahead of it do not fit in the memory limit of 100 bytes"
// NONE-NEXT: dist.done
func.func @products(%x: tensor<1000x1000xf32>, %a: tensor<500000xf32>, %b: tensor<500000xf32>, %c: tensor<500000xf32>) -> tensor<1000x1000xf32> {
  %ga = dist.all_gather %a {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["a"]>} : (tensor<500000xf32>) -> tensor<1000000xf32>
  %wa = train.reshape %ga : (tensor<1000000xf32>) -> tensor<1000x1000xf32>
  %0 = train.dot_general %x, %wa {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %1 = train.dot_general %0, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %gb = dist.all_gather %b {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["b"]>} : (tensor<500000xf32>) -> tensor<1000000xf32>
  %wb = train.reshape %gb : (tensor<1000000xf32>) -> tensor<1000x1000xf32>
  %2 = train.dot_general %1, %wb {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %gc = dist.all_gather %c {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["c"]>} : (tensor<500000xf32>) -> tensor<1000000xf32>
  %wc = train.reshape %gc : (tensor<1000000xf32>) -> tensor<1000x1000xf32>
  %3 = train.dot_general %2, %wc {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1000x1000xf32>, tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  return %3 : tensor<1000x1000xf32>
}
}
