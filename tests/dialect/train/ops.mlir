// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: func @roundtrip
// CHECK: train.accumulate
func.func @roundtrip(%w: tensor<4x8xf32> {train.role = "param", train.name = "w"}, %x: tensor<2x3x4xf32>) -> tensor<f32> {
  %loss = train.accumulate %x {count = 2 : i64} : (tensor<2x3x4xf32>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %m: tensor<3x4xf32>):
    // CHECK: train.dot_general
    %y = train.dot_general %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    // CHECK: train.compare gt
    %zero = train.constant dense<0.0> : tensor<3x8xf32>
    %p = train.compare gt, %y, %zero : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xi1>
    %r = train.select %p, %y, %zero : tensor<3x8xi1>, tensor<3x8xf32>
    // CHECK: train.layer_norm layer
    %n, %mean, %rstd = train.layer_norm layer, %r {epsilon = 1.0e-05} : (tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3xf32>, tensor<3xf32>)
    // CHECK: train.reduce sum
    %s = train.reduce sum, %n {dimensions = array<i64: 0, 1>} : (tensor<3x8xf32>) -> tensor<f32>
    train.yield %s : tensor<f32>
  }
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @fp8
func.func @fp8(%x: tensor<64x256xbf16>, %w: tensor<128x256xf32>, %a: tensor<64x2xf32>) -> tensor<64x128xbf16> {
  // CHECK: scaling = #train.scaling<block128, activation, weight>
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<block128, activation, weight>} : (tensor<64x256xbf16>, tensor<128x256xf32>) -> tensor<64x128xbf16>
  // CHECK: train.quantize_scale down, %{{.*}} {format = f8E4M3FN, one_if_not_finite} : tensor<64x2xf32>
  %s = train.quantize_scale down, %a {format = f8E4M3FN, one_if_not_finite} : tensor<64x2xf32>
  %e = train.quantize_scale e8m0, %a {format = f8E5M2} : tensor<64x2xf32>
  // CHECK: train.quantize %{{.*}} : (tensor<64x256xbf16>, tensor<64x2xf32>) -> tensor<64x256xf8E4M3FN>
  %q = train.quantize %x, %s : (tensor<64x256xbf16>, tensor<64x2xf32>) -> tensor<64x256xf8E4M3FN>
  %one = train.constant dense<1.0> : tensor<f32>
  %p = train.quantize %w, %one : (tensor<128x256xf32>, tensor<f32>) -> tensor<128x256xf8E4M3FN>
  // CHECK: train.scaled_dot %{{.*}}, %{{.*}} scaled %{{.*}}, %{{.*}} {lhs_contract = array<i64: 1>, power_of_two, rhs_contract = array<i64: 1>}
  %y = train.scaled_dot %q, %p scaled %e, %one {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, power_of_two} : (tensor<64x256xf8E4M3FN>, tensor<128x256xf8E4M3FN>, tensor<64x2xf32>, tensor<f32>) -> tensor<64x128xbf16>
  return %y : tensor<64x128xbf16>
}

// What a query attends to, how blocks of keys travel, and results in the type in which they are added up.
// CHECK-LABEL: func @attention
func.func @attention(%q: tensor<2x4x3x8xbf16>, %k: tensor<2x2x5x8xbf16>, %v: tensor<2x2x5x6xbf16>, %m: tensor<1x1x3x5xi1>, %b: tensor<1x3xi64>, %e: tensor<2x3xi64>, %d: tensor<2x4x3x6xbf16>) -> tensor<2x4x3x8xf32> {
  // CHECK: train.attention %{{.*}}, %{{.*}}, %{{.*}} {causal, scale = 1.000000e+00 : f64, split = #train<attention_split ring>, window = 2 : i64} : (tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x6xbf16>) -> (tensor<2x4x3x6xbf16>, tensor<2x4x3xf32>)
  %o, %lse = train.attention %q, %k, %v {scale = 1.0, causal, window = 2 : i64, split = #train<attention_split ring>} : (tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x6xbf16>) -> (tensor<2x4x3x6xbf16>, tensor<2x4x3xf32>)
  // CHECK: train.attention %{{.*}}, %{{.*}}, %{{.*}} mask(%[[M:.*]]) keys(%[[B:.*]] to %[[E:.*]]) {density = 5.000000e-01 : f64, scale = 1.000000e+00 : f64, split = #train<attention_split gather>} : (tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x6xbf16>, tensor<1x1x3x5xi1>, tensor<1x3xi64>, tensor<2x3xi64>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  %p, %plse = train.attention %q, %k, %v mask(%m) keys(%b to %e) {scale = 1.0, density = 0.5, split = #train<attention_split gather>} : (tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x6xbf16>, tensor<1x1x3x5xi1>, tensor<1x3xi64>, tensor<2x3xi64>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  // CHECK: train.attention_grad %{{.*}}, %{{.*}}, %{{.*}} mask(%[[M]]) keys(%[[B]] to %[[E]]), %{{.*}}, %{{.*}}, %{{.*}} {density = 2.500000e-01 : f64, partial, scale = 1.000000e+00 : f64} : {{.*}} -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xbf16>)
  %dq, %dk, %dv = train.attention_grad %q, %k, %v mask(%m) keys(%b to %e), %o, %lse, %d {scale = 1.0, density = 0.25, partial} : (tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x6xbf16>, tensor<1x1x3x5xi1>, tensor<1x3xi64>, tensor<2x3xi64>, tensor<2x4x3x6xbf16>, tensor<2x4x3xf32>, tensor<2x4x3x6xbf16>) -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xbf16>)
  // CHECK: train.attention_grad %{{.*}}, %{{.*}}, %{{.*}} keys(%[[B]] to %[[E]]), %{{.*}}, %{{.*}}, %{{.*}} {causal, scale = 1.000000e+00 : f64, split = #train<attention_split ring>, window = 1 : i64}
  %eq, %ek, %ev = train.attention_grad %q, %k, %v keys(%b to %e), %o, %lse, %d {scale = 1.0, causal, window = 1 : i64, split = #train<attention_split ring>} : (tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x6xbf16>, tensor<1x3xi64>, tensor<2x3xi64>, tensor<2x4x3x6xbf16>, tensor<2x4x3xf32>, tensor<2x4x3x6xbf16>) -> (tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x6xbf16>)
  return %dq : tensor<2x4x3x8xf32>
}

// CHECK-LABEL: func @linear_cross_entropy
func.func @linear_cross_entropy(%x: tensor<8x4xbf16>, %w: tensor<10x4xbf16>, %v: tensor<4x10xbf16>, %t: tensor<8xi32>, %g: tensor<8xf32>) -> tensor<4x10xf32> {
  // A label smoothing of 0 is not printed.
  // CHECK: train.linear_cross_entropy %{{.*}}, %{{.*}}, %{{.*}} {weight_dim = 1 : i64} : (tensor<8x4xbf16>, tensor<10x4xbf16>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  %l, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64, label_smoothing = 0.0} : (tensor<8x4xbf16>, tensor<10x4xbf16>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: train.linear_cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {ignore_index = -100 : i64, label_smoothing = 1.000000e-01 : f64, weight_dim = 0 : i64} : (tensor<8x4xbf16>, tensor<4x10xbf16>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8x4xbf16>, tensor<4x10xf32>)
  %m, %mse, %dx, %dv = train.linear_cross_entropy_grad %x, %v, %t, %g {weight_dim = 0 : i64, ignore_index = -100 : i64, label_smoothing = 1.0e-01} : (tensor<8x4xbf16>, tensor<4x10xbf16>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8x4xbf16>, tensor<4x10xf32>)
  return %dv : tensor<4x10xf32>
}

// CHECK-LABEL: module @products attributes {train.products = [#train.product<"/fc/MatMul", weight = "fc.weight", inputs = 8, outputs = 4, output = "e4m3 x e4m3, by row", input_grad = "bf16", weight_grad = "bf16", reason = "">]}
module @products attributes {train.products = [#train.product<"/fc/MatMul", weight = "fc.weight", inputs = 8, outputs = 4,
    output = "e4m3 x e4m3, by row", input_grad = "bf16", weight_grad = "bf16", reason = "">]} {
}
