// A wrong gradient is found, in f32 IR too.
// RUN: not tessera-interp %s --gradcheck 2>&1 | FileCheck %s
// CHECK: error: gradient of 'w' at [{{[0-2]}}] is {{.*}}, finite differences give

func.func @step(%w: tensor<3xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}, tensor<3xf32> {train.role = "grad", train.of = "w"}) {
  %square = train.mul %w, %w : tensor<3xf32>
  %loss = train.reduce sum, %square {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %loss, %w : tensor<f32>, tensor<3xf32>
}
