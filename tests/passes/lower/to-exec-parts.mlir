// A rank's part of a rank's part: the first is a view of the value, and is copied for the second to be a view of the copy.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(to-exec{keep-step=true},exec.program(plan-memory,verify-exec{values=true},drop-step))' 2>/dev/null > %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-opt %s --pass-pipeline='builtin.module(to-exec)' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: tessera-interp %t --compare=%s --rtol=0 --atol=0
// REMARK: remark: {{.*}} is copied: the rank takes a part of a part
module attributes {dist.mesh = #dist.mesh<shard = 2, tp : model = 3>} {
  // CHECK-LABEL: exec.program @step
  // CHECK: %[[FIRST:.+]] = exec.buffer %{{.+}} + 0 {{.*}}["tp"]{{.*}} to memref<4x4xf32>
  // CHECK: exec.copy %[[FIRST]] -> %[[COPY:.+]] : memref<4x4xf32> -> memref<4x4xf32>
  // CHECK: exec.gemm
  func.func @step(%x: tensor<12x4xf32> {train.role = "input", train.name = "x", dist.sharding = #dist.sharding<[{}, {}]>, dist.global = tensor<12x4xf32>},
                  %w: tensor<4x4xf32> {train.role = "input", train.name = "w", dist.sharding = #dist.sharding<[{}, {}]>, dist.global = tensor<4x4xf32>})
      -> (tensor<2x4xf32> {train.role = "output", train.name = "y", dist.sharding = #dist.sharding<[{"tp", "shard"}, {}]>, dist.global = tensor<12x4xf32>}) {
    %a = dist.slice_local %x {axes = ["tp"], dim = 0 : i64} : (tensor<12x4xf32>) -> tensor<4x4xf32>
    %b = dist.slice_local %a {axes = ["shard"], dim = 0 : i64} : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %y = train.dot_general %b, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
}
