// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @dynamic_update_slice
// CHECK: train.dynamic_update_slice {{.*}}train.backward
// CHECK: train.dynamic_slice {{.*}}train.backward
func.func @dynamic_update_slice(
    %w: tensor<5x7xf32> {train.role = "param", train.name = "w"},
    %u: tensor<2x3xf32> {train.role = "param", train.name = "u"},
    %c: tensor<5x7xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %s = train.constant dense<2> : tensor<i32>
  %far = train.constant dense<9> : tensor<i32>
  %y = train.dynamic_update_slice %w, %u [%s, %far] : (tensor<5x7xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<5x7xf32>
  %weighted = train.mul %y, %c : tensor<5x7xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<5x7xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @dynamic_update_slice_update
// CHECK-NOT: train.dynamic_update_slice {{.*}}train.backward
// CHECK: train.dynamic_slice {{.*}}train.backward
func.func @dynamic_update_slice_update(
    %w: tensor<5x7xf32> {train.role = "input", train.name = "w"},
    %u: tensor<2x3xf32> {train.role = "param", train.name = "u"},
    %c: tensor<5x7xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %s = train.constant dense<2> : tensor<i32>
  %far = train.constant dense<9> : tensor<i32>
  %y = train.dynamic_update_slice %w, %u [%s, %far] : (tensor<5x7xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<5x7xf32>
  %weighted = train.mul %y, %c : tensor<5x7xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<5x7xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
