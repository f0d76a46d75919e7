// RUN: tessera-opt %s -to-exec -split-input-file | FileCheck %s

// One instruction per op: operands, attributes and streams. to-exec.mlir has products and kernels, streams.mlir the
// events between streams, to-exec-invalid.mlir what has no instruction.

// A product whose result is wanted transposed is computed transposed: bT aT.
// CHECK-LABEL: exec.program @transposed_product
// CHECK-DAG: %[[A:.+]] = exec.buffer %a.slot + 0 : memref<32xi8> to memref<4x2xf32, strided<[1, 4]>>
// CHECK-DAG: %[[B:.+]] = exec.buffer %b.slot + 0 : memref<48xi8> to memref<3x4xf32, strided<[1, 3]>>
// CHECK: exec.gemm %[[B]], %[[A]] -> %{{.*}} : memref<3x4xf32, strided<[1, 3]>>, memref<4x2xf32, strided<[1, 4]>> -> memref<3x2xf32>
func.func @transposed_product(%a: tensor<2x4xf32> {train.role = "input", train.name = "a"}, %b: tensor<4x3xf32> {train.role = "input", train.name = "b"}) -> (tensor<3x2xf32> {train.role = "output"}) {
  %p = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %t = train.transpose %p {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %t : tensor<3x2xf32>
}

// -----

// A product that adds to a sum accumulates (beta = 1) where the sum lies.
// CHECK-LABEL: exec.program @accumulating_product
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[S:[^ ]+]] :
// CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[S]] {{.*}}beta = 1.0{{.*}}
func.func @accumulating_product(%x: tensor<4x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output"}) {
  %s = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = exec.add_product %s, %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %t : tensor<4x4xf32>
}

// -----

// Attention: the mask is an operand, the log-sum-exp a result; the gradient gets a workspace of two numbers per row.
// CHECK-LABEL: exec.program @attention
// CHECK-DAG: exec.slot "{{.*}}workspace" in @activations workspace : memref<64xi8>
// CHECK: exec.attention %q, %q, %q mask(%m : memref<1x1x4x4xf32>) ->
// CHECK: exec.attention_grad %q, %q, %q mask(%m : memref<1x1x4x4xf32>)
func.func @attention(%q: tensor<1x2x4x8xf32> {train.role = "input", train.name = "q"}, %m: tensor<1x1x4x4xf32> {train.role = "input", train.name = "m"}) -> (tensor<1x2x4x8xf32> {train.role = "output"}) {
  %y, %lse = train.attention %q, %q, %q mask(%m) {scale = 0.5 : f64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  %dq, %dk, %dv = train.attention_grad %q, %q, %q mask(%m), %y, %lse, %q {scale = 0.5 : f64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x1x4x4xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32>, tensor<1x2x4x8xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  return %dq : tensor<1x2x4x8xf32>
}

// -----

// The three forms of a convolution name the same three tensors: what is computed is their result.
// CHECK-LABEL: exec.program @convolutions
// CHECK: exec.conv forward %x, %w, %[[Y:.+]] :
// CHECK: exec.conv input_grad %[[DX:.+]], %w, %[[Y]] :
// CHECK: exec.conv filter_grad %x, %[[DW:.+]], %[[Y]] :
func.func @convolutions(%x: tensor<1x1x3x3xf32> {train.role = "input", train.name = "x"}, %w: tensor<1x1x2x2xf32> {train.role = "param", train.name = "w"}) -> (tensor<1x1x3x3xf32> {train.role = "output", train.name = "dx"}, tensor<1x1x2x2xf32> {train.role = "output", train.name = "dw"}) {
  %y = train.conv2d %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  %dx = train.conv2d_input_grad %y, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x3x3xf32>
  %dw = train.conv2d_filter_grad %x, %y {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x2xf32>
  return %dx, %dw : tensor<1x1x3x3xf32>, tensor<1x1x2x2xf32>
}

// -----

// Gathers run on stream 1, reductions on stream 2, with the words of the schedule; a copy to the host on stream 3.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: exec.program @collectives
// CHECK: exec.collective all_gather %u -> %{{.*}} over ["shard"] {done_reason = "late", origin = #dist.origin<forward, ["u"]>, reason = "early", stream = 1 : i64}
// CHECK: exec.collective reduce_scatter %{{.*}} -> %{{.*}} over ["shard"] {{.*}}stream = 2
// CHECK: exec.collective permute %{{.*}} -> %{{.*}} over ["shard"] {shift = 1 : i64, stream = 1 : i64}
// CHECK: exec.axis_index %{{.*}} over ["shard"]
// CHECK: exec.copy %{{.*}} -> %{{.*}} {stream = 3 : i64}
func.func @collectives(%u: tensor<8xf32> {train.role = "param", train.name = "u"}) -> (tensor<8xf32> {train.role = "output", train.name = "p"}, tensor<i64> {train.role = "output", train.name = "i"}, tensor<16xf32> {train.role = "output", train.name = "g"}) {
  %f = dist.all_gather_start %u {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["u"]>, schedule.reason = "early"} : (tensor<8xf32>) -> !dist.future<tensor<16xf32>>
  %g = dist.done %f {schedule.reason = "late"} : (!dist.future<tensor<16xf32>>) -> tensor<16xf32>
  %r = dist.reduce_scatter %g {axes = ["shard"], dim = 0 : i64} : (tensor<16xf32>) -> tensor<8xf32>
  %p = dist.permute %r {axes = ["shard"], shift = 1 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  %i = dist.axis_index {axes = ["shard"]} : tensor<i64>
  %c = dist.copy_start %g to "host" : (tensor<16xf32>) -> !dist.future<tensor<16xf32>>
  %h = dist.done %c : (!dist.future<tensor<16xf32>>) -> tensor<16xf32>
  return %p, %i, %h : tensor<8xf32>, tensor<i64>, tensor<16xf32>
}
}
