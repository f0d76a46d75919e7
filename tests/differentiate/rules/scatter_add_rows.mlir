// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @scatter_add_rows
// CHECK: %[[G:.*]] = train.mul {{.*}}train.backward
// CHECK: %[[U:.*]] = train.gather_rows %[[G]], %arg2 {train.backward}
// CHECK: return %{{.*}}, %[[G]], %[[U]]
func.func @scatter_add_rows(
    %w: tensor<5x3xf32> {train.role = "param", train.name = "w"},
    %u: tensor<6x3xf32> {train.role = "param", train.name = "u"},
    %i: tensor<6xi32> {train.role = "input", train.name = "i"},
    %c: tensor<5x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.scatter_add_rows %w, %i, %u : (tensor<5x3xf32>, tensor<6xi32>, tensor<6x3xf32>) -> tensor<5x3xf32>
  %weighted = train.mul %y, %c : tensor<5x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<5x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @scatter_add_rows_init
// CHECK-NOT: train.gather_rows
// CHECK: return
func.func @scatter_add_rows_init(
    %w: tensor<5x3xf32> {train.role = "param", train.name = "w"},
    %u: tensor<6x3xf32> {train.role = "input", train.name = "u"},
    %i: tensor<6xi32> {train.role = "input", train.name = "i"},
    %c: tensor<5x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.scatter_add_rows %w, %i, %u : (tensor<5x3xf32>, tensor<6xi32>, tensor<6x3xf32>) -> tensor<5x3xf32>
  %weighted = train.mul %y, %c : tensor<5x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<5x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
