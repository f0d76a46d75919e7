// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @gelu
// CHECK: train.gelu exact, %arg0
// CHECK: train.gelu_grad tanh, %{{.*}}, %{{.*}} {train.backward}
// CHECK: train.gelu_grad exact, %{{.*}}, %arg0 {train.backward}
func.func @gelu(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %e = train.gelu exact, %w : tensor<3x4xf32>
  %y = train.gelu tanh, %e : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
