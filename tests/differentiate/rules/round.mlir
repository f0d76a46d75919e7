// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// No gradient flows through the op; the sum has the other one only.
// CHECK-LABEL: func @round
// CHECK: train.round
// CHECK-NOT: train.add {{.*}}train.backward
// CHECK: return
func.func @round(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %z = train.round %w : tensor<3x4xf32>
  %y = train.add %z, %w : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
