// What the gradient of attention reads is computed once more for it, from barriers of its own, but for attention; without the
// option both parts of the block share what is computed.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=full twice=true},canonicalize,cse))' -o %t.mlir 2>/dev/null
// RUN: FileCheck %s --check-prefix=TWICE --input-file=%t.mlir
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse))' -o %t.plain.mlir
// RUN: tessera-interp %t.mlir --compare=%t.plain.mlir --quiet
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=full},canonicalize,cse))' 2>/dev/null | FileCheck %s --check-prefix=ONCE

// TWICE: %[[X:.*]] = train.exp %arg1
// TWICE: %[[B0:.*]] = train.barrier %[[X]] {segment = "h.0", train.backward, train.recompute}
// TWICE: %[[Q0:.*]] = train.mul %{{.*}}, %[[B0]] {train.backward, train.recompute}
// TWICE: %[[Y:.*]], %[[L:.*]] = train.attention %[[Q0]], {{.*}}train.recompute}
// TWICE: %[[B1:.*]] = train.barrier %[[X]] {segment = "h.0, attention", train.backward, train.recompute}
// TWICE: %[[Q1:.*]] = train.mul %{{.*}}, %[[B1]] {train.backward, train.recompute}
// TWICE-NOT: train.attention %
// TWICE: train.attention_grad %[[Q1]], {{.*}}, %[[Y]], %[[L]]
// ONCE: train.barrier {{.*}} {segment = "h.0", train.backward, train.recompute}
// ONCE: %[[Q:.*]] = train.mul {{.*}} {train.backward, train.recompute}
// ONCE: train.attention %[[Q]],
// ONCE-NOT: train.barrier
// ONCE: train.attention_grad %[[Q]],
func.func @step(%w: tensor<1x1x4x2xf32> {train.role = "param", train.name = "h.0.w"}, %x: tensor<1x1x4x2xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %e = train.exp %x : tensor<1x1x4x2xf32> loc("embed/exp")
  %q = train.mul %w, %e : tensor<1x1x4x2xf32> loc("h.0/q")
  %y, %lse = train.attention %q, %q, %q {causal, scale = 0.5} : (tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>) -> (tensor<1x1x4x2xf32>, tensor<1x1x4xf32>) loc("h.0/attention")
  %t = train.tanh %y : tensor<1x1x4x2xf32> loc("h.0/tanh")
  %s = train.exp %t : tensor<1x1x4x2xf32> loc("h.0/exp")
  %loss = train.reduce sum, %s {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x4x2xf32>) -> tensor<f32> loc("loss")
  return %loss : tensor<f32>
}
