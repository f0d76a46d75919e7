// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @stop_gradient
// CHECK: return
func.func @stop_gradient(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %v: tensor<3x4xf32> {train.role = "param", train.name = "v"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %e = train.exp %w : tensor<3x4xf32>
  %s = train.stop_gradient %v : tensor<3x4xf32>
  %sv = train.mul %v, %s : tensor<3x4xf32>
  %y = train.mul %e, %v : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @nothing_behind
// CHECK-NOT: train.exp {{.*}}train.backward
// CHECK: return
func.func @nothing_behind(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %f: tensor<3x4xf32> {train.role = "frozen", train.name = "f"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %e = train.exp %f : tensor<3x4xf32>
  %s = train.stop_gradient %e : tensor<3x4xf32>
  %y = train.mul %s, %w : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
