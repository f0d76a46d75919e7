// RUN: tessera-opt %s --split-input-file --choose-fp8=recipe=rowwise --verify-diagnostics | FileCheck %s

// The first product is cast, and its weight says so; the last one is a head.

// CHECK: module attributes {train.products = [
// CHECK-SAME: #train.product<"", weight = "h.0.fc.weight", inputs = 32, outputs = 16, output = "e4m3 x e4m3, by row", input_grad = "none", weight_grad = "e4m3 x e4m3, by row", reason = "">
// CHECK-SAME: #train.product<"", weight = "head.weight", inputs = 16, outputs = 16, output = "bf16", input_grad = "bf16", weight_grad = "bf16", reason = "a head: only the loss and outputs follow from it">
// CHECK-LABEL: func.func @layers
// CHECK-SAME: train.compute_type = f8E4M3FN, train.name = "h.0.fc.weight"
// CHECK-SAME: %{{.*}}: tensor<16x16xf32> {train.name = "head.weight", train.role = "param"}
module {
func.func @layers(%x: tensor<8x32xf32> {train.role = "input", train.name = "x"},
                  %w: tensor<16x32xf32> {train.role = "param", train.name = "h.0.fc.weight"},
                  %head: tensor<16x16xf32> {train.role = "param", train.name = "head.weight"})
    -> (tensor<f32> {train.role = "loss"}) {
  // CHECK: train.dot_general {{.*}} scaling = #train.scaling<rowwise, activation, weight>
  %h = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32>
  %t = train.tanh %h : tensor<8x16xf32>
  // CHECK: train.dot_general
  // CHECK-NOT: scaling
  // expected-remark@+1 {{the product of 'head.weight' stays in bf16: a head: only the loss and outputs follow from it}}
  %y = train.dot_general %t, %head {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<8x16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// A weight behind a transpose, as the left operand. What is not cast, and why.

// CHECK-LABEL: func.func @reasons
func.func @reasons(%x: tensor<8x32xf32> {train.role = "input", train.name = "x"},
                   %w: tensor<32x16xf32> {train.role = "param", train.name = "w"},
                   %odd: tensor<20x16xf32> {train.role = "param", train.name = "odd"},
                   %router: tensor<16x16xf32> {train.role = "param", train.name = "router"},
                   %topk: tensor<16x16xf32> {train.role = "param", train.name = "topk"},
                   %gate: tensor<16x16xf32> {train.role = "param", train.name = "gate"},
                   %exact: tensor<16x16xf32> {train.role = "param", train.name = "exact", train.compute_type = f32},
                   %shared: tensor<16x16xf32> {train.role = "param", train.name = "shared"},
                   %twice: tensor<16x16xf32> {train.role = "param", train.name = "twice"},
                   %a: tensor<16x16xf32> {train.role = "param", train.name = "a"},
                   %last: tensor<16x16xf32> {train.role = "param", train.name = "last"})
    -> (tensor<f32> {train.role = "loss"}) {
  %wt = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<32x16xf32>) -> tensor<16x32xf32>
  // CHECK: train.dot_general {{.*}} scaling = #train.scaling<rowwise, weight, activation>
  %0 = train.dot_general %wt, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<16x32xf32>, tensor<8x32xf32>) -> tensor<16x8xf32>
  %h = train.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<16x8xf32>) -> tensor<8x16xf32>
  // CHECK-NOT: #train.scaling
  // expected-remark@+1 {{the product of 'odd' stays in bf16: 16 inputs and 20 outputs, expected multiples of 16}}
  %1 = train.dot_general %h, %odd {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<20x16xf32>) -> tensor<8x20xf32>
  %s_1 = train.slice %1 {starts = array<i64: 0, 0>, limits = array<i64: 8, 16>, strides = array<i64: 1, 1>} : (tensor<8x20xf32>) -> tensor<8x16xf32>
  // expected-remark@+1 {{the product of 'router' stays in bf16: a router: what it computes goes into a softmax or chooses among others}}
  %2 = train.dot_general %h, %router {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %s_2 = train.softmax %2 {dim = 1 : i64} : tensor<8x16xf32>
  // expected-remark@+1 {{the product of 'topk' stays in bf16: a router}}
  %3 = train.dot_general %h, %topk {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %order = train.sort_indices %3 {descending, dim = 1 : i64} : (tensor<8x16xf32>) -> tensor<8x16xi32>
  %s_3 = train.convert %order : (tensor<8x16xi32>) -> tensor<8x16xf32>
  // expected-remark@+1 {{the product of 'gate' stays in bf16: a router or a head: what it computes goes into a maximum}}
  %4 = train.dot_general %h, %gate {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %top = train.reduce max, %4 {dimensions = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8xf32>
  %s_4 = train.broadcast %top {broadcast_dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<8x16xf32>
  // expected-remark@+1 {{the product of 'exact' is computed in f32: --keep-f32 names its parameter}}
  %5 = train.dot_general %h, %exact {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, compute_type = f32} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  // expected-remark@+1 {{the product of 'shared' stays in bf16: its parameter has other readers}}
  %6 = train.dot_general %h, %shared {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %rows = train.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi32>
  %r_6 = train.gather_rows %shared, %rows : (tensor<16x16xf32>, tensor<8xi32>) -> tensor<8x16xf32>
  // expected-remark@+1 {{the product of 'twice' stays in bf16: another product of its parameter stays in bf16: a router}}
  %7 = train.dot_general %h, %twice {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  // expected-remark@+1 {{the product of 'twice' stays in bf16: a router}}
  %8 = train.dot_general %7, %twice {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %s_8 = train.softmax %8 {dim = 1 : i64} : tensor<8x16xf32>
  // expected-remark@+1 {{'' stays in bf16: it multiplies two parameters}}
  %9 = train.dot_general %a, %a {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // expected-remark@+1 {{'' stays in bf16: it multiplies no parameter}}
  %10 = train.dot_general %h, %9 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %q = train.reshape %h : (tensor<8x16xf32>) -> tensor<1x1x8x16xf32>
  // expected-remark@+1 {{'' stays in bf16: an attention}}
  %at, %lse = train.attention %q, %q, %q {scale = 1.0 : f64} : (tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) -> (tensor<1x1x8x16xf32>, tensor<1x1x8xf32>)
  %11 = train.reshape %at : (tensor<1x1x8x16xf32>) -> tensor<8x16xf32>
  %s0 = train.add %h, %s_1 : tensor<8x16xf32>
  %s1 = train.add %s0, %s_2 : tensor<8x16xf32>
  %s2 = train.add %s1, %s_3 : tensor<8x16xf32>
  %s3 = train.add %s2, %s_4 : tensor<8x16xf32>
  %s4 = train.add %s3, %5 : tensor<8x16xf32>
  %s5 = train.add %s4, %6 : tensor<8x16xf32>
  %s6 = train.add %s5, %r_6 : tensor<8x16xf32>
  %s7 = train.add %s6, %s_8 : tensor<8x16xf32>
  %s8 = train.add %s7, %10 : tensor<8x16xf32>
  %s9 = train.add %s8, %11 : tensor<8x16xf32>
  // expected-remark@+1 {{the product of 'last' stays in bf16: a head}}
  %y = train.dot_general %s9, %last {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<8x16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Convolutions, products with a batch, and what the model computes in another type.

// CHECK: module attributes {train.products = [
// CHECK-SAME: outputs = 0, output = "f32", input_grad = "f32", weight_grad = "f32", reason = "a convolution">
// CHECK-LABEL: func.func @others
module {
func.func @others(%image: tensor<1x2x4x4xf32> {train.role = "input", train.name = "image"},
                  %filter: tensor<16x2x1x1xf32> {train.role = "param", train.name = "filter"},
                  %w: tensor<16x16xf32> {train.role = "param", train.name = "w"},
                  %experts: tensor<4x16x16xf32> {train.role = "param", train.name = "experts"},
                  %narrow: tensor<16x16xbf16> {train.role = "param", train.name = "narrow"})
    -> (tensor<f32> {train.role = "loss"}) {
  // expected-remark@+1 {{'' is computed in f32: a convolution}}
  %c = train.conv2d %image, %filter {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x4x4xf32>, tensor<16x2x1x1xf32>) -> tensor<1x16x4x4xf32>
  %x = train.reshape %c : (tensor<1x16x4x4xf32>) -> tensor<16x16xf32>
  // CHECK: train.dot_general {{.*}} scaling = #train.scaling<rowwise, activation, weight>
  %h = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  // CHECK-NOT: #train.scaling
  %parts = train.reshape %h : (tensor<16x16xf32>) -> tensor<4x4x16xf32>
  // expected-remark@+1 {{the product of 'experts' stays in bf16: it has a batch of matrices}}
  %e = train.dot_general %parts, %experts {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<4x4x16xf32>, tensor<4x16x16xf32>) -> tensor<4x4x16xf32>
  %rows = train.reshape %e : (tensor<4x4x16xf32>) -> tensor<16x16xf32>
  %b = train.convert %rows : (tensor<16x16xf32>) -> tensor<16x16xbf16>
  // expected-remark@+1 {{the product of 'narrow' stays in bf16: the model has it in bf16}}
  %n = train.dot_general %b, %narrow {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xbf16>
  %y = train.convert %n : (tensor<16x16xbf16>) -> tensor<16x16xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<16x16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// Parts of a parameter are read by products of their own: a weight is cast for all of them or for none. Batch and time are
// tokens, two dimensions may be contracted, and what does not train is cast as well.

// CHECK-LABEL: func.func @parts
// CHECK-SAME: train.compute_type = f8E4M3FN, train.name = "qkv"
// CHECK-SAME: train.compute_type = f8E4M3FN, train.name = "out", train.role = "frozen"
// CHECK-COUNT-3: scaling = #train.scaling<rowwise, activation, weight>
// CHECK-NOT: #train.scaling
func.func @parts(%x: tensor<2x4x16xf32> {train.role = "input", train.name = "x"},
                 %qkv: tensor<48x16xf32> {train.role = "param", train.name = "qkv"},
                 %out: tensor<16x2x16xf32> {train.role = "frozen", train.name = "out"},
                 %scale: tensor<16xf32> {train.role = "param", train.name = "scale"})
    -> (tensor<f32> {train.role = "loss"}) {
  %wq = train.slice %qkv {starts = array<i64: 0, 0>, limits = array<i64: 16, 16>, strides = array<i64: 1, 1>} : (tensor<48x16xf32>) -> tensor<16x16xf32>
  %wkv = train.slice %qkv {starts = array<i64: 16, 0>, limits = array<i64: 48, 16>, strides = array<i64: 1, 1>} : (tensor<48x16xf32>) -> tensor<32x16xf32>
  %q = train.dot_general %x, %wq {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x4x16xf32>, tensor<16x16xf32>) -> tensor<2x4x16xf32>
  %kv = train.dot_general %x, %wkv {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x4x16xf32>, tensor<32x16xf32>) -> tensor<2x4x32xf32>
  %parts = train.reshape %kv : (tensor<2x4x32xf32>) -> tensor<2x4x2x16xf32>
  %o = train.dot_general %parts, %out {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2, 3>, rhs_contract = array<i64: 1, 2>} : (tensor<2x4x2x16xf32>, tensor<16x2x16xf32>) -> tensor<2x4x16xf32>
  %s = train.add %q, %o : tensor<2x4x16xf32>
  %n:3 = train.layer_norm rms, %s scale(%scale) {epsilon = 1.0e-05} : (tensor<2x4x16xf32>, tensor<16xf32>) -> (tensor<2x4x16xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  %loss = train.reduce sum, %n#0 {dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What a parameter that is kept in f32 goes into is computed in f32, whatever its weight; so is what the model has in f64. A frozen
// weight has no gradient, and neither has an activation that no trained parameter has a part in.

// CHECK: module attributes {train.products = [
// CHECK-SAME: weight = "k", inputs = 16, outputs = 16, output = "f32", input_grad = "f32", weight_grad = "f32", reason = "--keep-f32 names what its activation is made of">
// CHECK-SAME: weight = "frozen", inputs = 16, outputs = 16, output = "e4m3 x e4m3, by row", input_grad = "none", weight_grad = "none", reason = "">
// CHECK-SAME: weight = "w", inputs = 16, outputs = 16, output = "e4m3 x e4m3, by row", input_grad = "none", weight_grad = "e4m3 x e4m3, by row", reason = "">
// CHECK-SAME: weight = "wide", inputs = 16, outputs = 16, output = "f64", input_grad = "f64", weight_grad = "f64", reason = "the model has it in f64">
// CHECK-SAME: weight = "none", inputs = 0, outputs = 0, output = "bf16", {{.*}} reason = "it has no elements">
// CHECK-LABEL: func.func @kept
module {
func.func @kept(%x: tensor<8x16xf32> {train.role = "input", train.name = "x"}, %e: tensor<8x0xf32> {train.role = "input", train.name = "e"},
                %latents: tensor<8x16xf32> {train.role = "param", train.name = "latents", train.compute_type = f32},
                %k: tensor<16x16xf32> {train.role = "param", train.name = "k"}, %frozen: tensor<16x16xf32> {train.role = "frozen", train.name = "frozen"},
                %w: tensor<16x16xf32> {train.role = "param", train.name = "w"}, %wide: tensor<16x16xf64> {train.role = "param", train.name = "wide"},
                %none: tensor<16x0xf32> {train.role = "param", train.name = "none"}) -> (tensor<f32> {train.role = "loss"}) {
  %made = train.tanh %latents : tensor<8x16xf32>
  // expected-remark@+1 {{the product of 'k' is computed in f32: --keep-f32 names what its activation is made of}}
  %0 = train.dot_general %made, %k {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, compute_type = f32} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %1 = train.dot_general %x, %frozen {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %2 = train.dot_general %1, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %3 = train.add %0, %2 : tensor<8x16xf32>
  %4 = train.convert %3 : (tensor<8x16xf32>) -> tensor<8x16xf64>
  // expected-remark@+1 {{the product of 'wide' is computed in f64: the model has it in f64}}
  %5 = train.dot_general %4, %wide {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf64>, tensor<16x16xf64>) -> tensor<8x16xf64>
  %6 = train.convert %5 : (tensor<8x16xf64>) -> tensor<8x16xf32>
  // expected-remark@+1 {{the product of 'none' stays in bf16: it has no elements}}
  %7 = train.dot_general %e, %none {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x0xf32>, tensor<16x0xf32>) -> tensor<8x16xf32>
  %8 = train.add %6, %7 : tensor<8x16xf32>
  %loss = train.reduce sum, %8 {dimensions = array<i64: 0, 1>} : (tensor<8x16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// Where model axes split a weight, it is the part of a rank that counts.

// CHECK-LABEL: func.func @placed
func.func @placed(%x: tensor<8x32xf32> {train.role = "input", train.name = "x"},
                  %a: tensor<32x32xf32> {train.role = "param", train.name = "a", train.placement = #train.placement<dim = 0, axes = ["tp"], parts = 2>},
                  %b: tensor<32x48xf32> {train.role = "param", train.name = "b", train.placement = #train.placement<dim = 1, axes = ["tp"], parts = 2>},
                  %c: tensor<48x48xf32> {train.role = "param", train.name = "c", train.placement = #train.placement<dim = 0, axes = ["tp"], parts = 2>},
                  %d: tensor<48x48xf32> {train.role = "param", train.name = "d"}) -> (tensor<f32> {train.role = "loss"}) {
  // CHECK: train.dot_general {{.*}} scaling
  %0 = train.dot_general %x, %a {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x32xf32>, tensor<32x32xf32>) -> tensor<8x32xf32>
  // expected-remark@+1 {{the product of 'b' stays in bf16: 32 inputs and 24 outputs on each rank along model axes, expected multiples of 16}}
  %1 = train.dot_general %0, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x32xf32>, tensor<32x48xf32>) -> tensor<8x48xf32>
  %t = train.transpose %c {permutation = array<i64: 1, 0>} : (tensor<48x48xf32>) -> tensor<48x48xf32>
  // expected-remark@+1 {{the product of 'c' stays in bf16: 24 inputs and 48 outputs on each rank}}
  %2 = train.dot_general %1, %t {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x48xf32>, tensor<48x48xf32>) -> tensor<8x48xf32>
  // expected-remark@+1 {{the product of 'd' stays in bf16: a head}}
  %y = train.dot_general %2, %d {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x48xf32>, tensor<48x48xf32>) -> tensor<8x48xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<8x48xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
