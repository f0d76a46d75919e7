// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @log1p
// CHECK: train.log1p
// CHECK: train.add {{.*}} {train.backward}
// CHECK: train.div {{.*}} {train.backward}
func.func @log1p(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  // Into the domain of the function.
  %x = train.mul %w, %w : tensor<3x4xf32>
  %y = train.log1p %x : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
