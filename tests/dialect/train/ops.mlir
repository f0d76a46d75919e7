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

// CHECK-LABEL: module @products attributes {train.products = [#train.product<"/fc/MatMul", weight = "fc.weight", inputs = 8, outputs = 4, output = "e4m3 x e4m3, by row", input_grad = "bf16", weight_grad = "bf16", reason = "">]}
module @products attributes {train.products = [#train.product<"/fc/MatMul", weight = "fc.weight", inputs = 8, outputs = 4,
    output = "e4m3 x e4m3, by row", input_grad = "bf16", weight_grad = "bf16", reason = "">]} {
}
