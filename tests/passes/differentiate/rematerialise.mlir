// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=full},canonicalize,cse))' 2>%t.err | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: FileCheck %s --check-prefix=REMARK <%t.err
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=selective},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,SELECTIVE
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=budget budget=64}))' | FileCheck %s --check-prefixes=CHECK,BUDGET
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=budget budget=32 parts=2}))' | FileCheck %s --check-prefixes=CHECK,BUDGET
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=budget budget=31}))' 2>&1 | FileCheck %s --check-prefix=TIGHT
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=budget budget=32 precision=bf16}))' 2>%t.bf16 | FileCheck %s --check-prefixes=CHECK,BUDGET
// RUN: FileCheck %s --check-prefix=NARROW <%t.bf16
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=budget budget=15 precision=bf16}))' 2>&1 | FileCheck %s --check-prefix=TIGHT-NARROW
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=budget budget=9000000000000000000 parts=4}))' 2>&1 >/dev/null | FileCheck %s --check-prefix=LARGE
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(rematerialise{policy=most}))' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(rematerialise{policy=full precision=fp8}))' 2>&1 | FileCheck %s --check-prefix=PRECISION
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=budget budget=64 report=-}))' 2>&1 >/dev/null | FileCheck %s --check-prefix=TABLE
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=full report=%t.json}))' -o /dev/null && FileCheck %s --check-prefix=JSON <%t.json
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=full}))' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOC

// Two blocks, each exp(tanh(x · w)), 32 bytes per value; the sum has no name and belongs to what it reads. The backward
// pass reads tanh and exp of both. The output of the first block is the input of the second, so it is kept.

// REMARK: remark: full: the backward pass reads 32 of 128 bytes of the forward pass and recomputes 5 ops
// TIGHT: error: a budget of 31 bytes per rank {{.*}} cannot be met: at least 32 bytes are needed
// NARROW: remark: budget: the backward pass reads 32 of 64 bytes of the forward pass and recomputes 3 ops
// TIGHT-NARROW: error: a budget of 15 bytes per rank {{.*}} cannot be met: at least 16 bytes are needed
// LARGE: remark: budget: the backward pass reads 32 of 32 bytes of the forward pass and recomputes 0 ops
// PRECISION: error: unknown precision 'fp8', expected fp32 or bf16
// UNKNOWN: error: unknown policy 'most', expected none, full, attention, selective or budget
// TABLE: rematerialisation: budget; per rank and micro-batch
// TABLE: segment kept of bytes recomputed values
// TABLE: h.0 32 64 80 1
// TABLE: h.1 32 64 16 1
// TABLE: (outside) 0 0 0 0
// TABLE: total 64 128 96 2
// TABLE: budget: 64 bytes
// JSON: "chosen": {
// JSON-NEXT: "recomputed_flops": 176,
// JSON-NEXT: "saved_bytes": 32
// JSON: "front": [
// JSON: "recomputed_flops": 0,
// JSON-NEXT: "saved_bytes": 128
// JSON: "recomputed_flops": 16,
// JSON-NEXT: "saved_bytes": 96
// JSON: "recomputed_flops": 96,
// JSON-NEXT: "saved_bytes": 64
// JSON: "recomputed_flops": 176,
// JSON-NEXT: "saved_bytes": 32
// LOC: train.barrier {{.*}} loc("recompute"("h.0/exp"))
// LOC: train.tanh {{.*}} loc("recompute"("h.1/tanh"))

module {
// CHECK-LABEL: func @step
// CHECK: %[[A0:.*]] = train.dot_general %arg2, %arg0
// CHECK: %[[H0:.*]] = train.tanh %[[A0]]
// CHECK: %[[E0:.*]] = train.exp %[[H0]]
// CHECK: %[[A1:.*]] = train.dot_general %[[E0]], %arg1
// CHECK: %[[H1:.*]] = train.tanh %[[A1]]
// CHECK: %[[E1:.*]] = train.exp %[[H1]]

// FULL: %[[B1:.*]] = train.barrier %[[E0]] {segment = "h.1", train.backward, train.recompute}
// FULL: %[[RA1:.*]] = train.dot_general %[[B1]], %arg1 {{.*}}train.backward, train.recompute}
// FULL: %[[RH1:.*]] = train.tanh %[[RA1]] {train.backward, train.recompute}
// FULL: train.mul %[[RH1]], %[[RH1]] {train.backward}
// FULL: train.barrier %arg2 {segment = "h.0", train.backward, train.recompute}
// FULL: %[[RA0:.*]] = train.dot_general {{.*}}train.backward, train.recompute}
// FULL: %[[RH0:.*]] = train.tanh %[[RA0]] {train.backward, train.recompute}
// FULL: train.mul %[[RH0]], %[[RH0]] {train.backward}

// SELECTIVE-NOT: train.dot_general {{.*}}train.recompute
// SELECTIVE: %[[B1:.*]] = train.barrier %[[A1]] {segment = "h.1", train.backward, train.recompute}
// SELECTIVE-NOT: train.dot_general {{.*}}train.recompute
// SELECTIVE: train.tanh %[[B1]] {train.backward, train.recompute}
// SELECTIVE-NOT: train.dot_general {{.*}}train.recompute
// SELECTIVE: %[[B0:.*]] = train.barrier %[[A0]] {segment = "h.0", train.backward, train.recompute}
// SELECTIVE-NOT: train.dot_general {{.*}}train.recompute
// SELECTIVE: train.tanh %[[B0]] {train.backward, train.recompute}

// exp is cheap to have again; of the products, that of the first block, whose values would be kept for longer.
// BUDGET: train.mul %[[H1]], %[[H1]] {train.backward}
// BUDGET: %[[B1:.*]] = train.barrier %[[H1]] {segment = "h.1", train.backward, train.recompute}
// BUDGET: train.exp %[[B1]] {train.backward, train.recompute}
// BUDGET: train.barrier %arg2 {segment = "h.0", train.backward, train.recompute}
// BUDGET: train.dot_general {{.*}}train.backward, train.recompute}
// BUDGET: train.tanh {{.*}}train.backward, train.recompute}
func.func @step(%w0: tensor<4x4xf32> {train.role = "param", train.name = "h.0.w"}, %w1: tensor<4x4xf32> {train.role = "param", train.name = "h.1.w"},
                %x: tensor<2x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %a0 = train.dot_general %x, %w0 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("h.0/dot")
  %h0 = train.tanh %a0 : tensor<2x4xf32> loc("h.0/tanh")
  %e0 = train.exp %h0 : tensor<2x4xf32> loc("h.0/exp")
  %a1 = train.dot_general %e0, %w1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32> loc("h.1/dot")
  %h1 = train.tanh %a1 : tensor<2x4xf32> loc("h.1/tanh")
  %e1 = train.exp %h1 : tensor<2x4xf32> loc("h.1/exp")
  %loss = train.reduce sum, %e1 {dimensions = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
