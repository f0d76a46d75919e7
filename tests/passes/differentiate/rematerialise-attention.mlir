// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=attention},canonicalize,cse))' 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK <%t.err
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=attention}))' -o %t.attention.mlir
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse))' -o %t.none.mlir
// RUN: tessera-interp %t.attention.mlir --compare=%t.none.mlir
// A model without blocks keeps everything, and a remark says so.
// RUN: sed 's/h\.0/proj/g;s/h0/proj/g' %s | tessera-opt --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,rematerialise{policy=attention}))' 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: remark: nothing is recomputed: no name has an integer component
// NONE-NOT: train.barrier

// Queries, which follow from the block's input, are made again; attention is not, and its gradient reads what it gave.
// REMARK: remark: attention: the backward pass reads {{.*}} and recomputes
// CHECK-LABEL: func @step
// CHECK: %[[O:.*]], %[[LSE:.*]] = train.attention
// CHECK-NOT: train.attention %
// CHECK: %[[X:.*]] = train.barrier %arg1 {segment = "h.0", train.backward, train.recompute}
// CHECK: %[[Q:.*]] = train.exp %{{.*}} {train.backward, train.recompute}
// CHECK-NOT: train.attention %
// CHECK: train.attention_grad %[[Q]], %[[Q]], %[[Q]], %[[O]], %[[LSE]]
#loc = loc("h.0/attention")
func.func @step(%w: tensor<4x4xf32> {train.role = "param", train.name = "h.0.w"}, %x: tensor<1x1x8x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) attributes {train.step} {
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 0>} : (tensor<1x1x8x4xf32>, tensor<4x4xf32>) -> tensor<1x1x8x4xf32> loc("h.0/dot")
  %q = train.exp %p : tensor<1x1x8x4xf32> loc("h.0/exp")
  %o, %lse = train.attention %q, %q, %q {causal, scale = 0.5 : f64} : (tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>, tensor<1x1x8x4xf32>) -> (tensor<1x1x8x4xf32>, tensor<1x1x8xf32>) loc(#loc)
  %t = train.tanh %o : tensor<1x1x8x4xf32> loc("h.0/tanh")
  %s = train.reduce sum, %t {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x8x4xf32>) -> tensor<f32> loc("loss")
  return %s : tensor<f32>
}
