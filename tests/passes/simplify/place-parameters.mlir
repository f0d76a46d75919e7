// RUN: tessera-opt %s --place-parameters="rules={up=0},{down.weight=1}" -split-input-file | FileCheck %s

// The first rule that matches counts. Norms that no rule matches are whole on each rank.
// CHECK-LABEL: func @step
// CHECK-SAME: %arg0: tensor<8x4xf32> {train.name = "up.weight", train.placement = #train.placement<dim = 0, axes = ["tp"], parts = 2>
// CHECK-SAME: %arg1: tensor<8xf32> {train.name = "up.bias", train.placement = #train.placement<dim = 0, axes = ["tp"], parts = 2>
// CHECK-SAME: %arg2: tensor<4x8xf32> {train.name = "down.weight", train.placement = #train.placement<dim = 1, axes = ["tp"], parts = 2>, train.role = "frozen"}
// CHECK-SAME: %arg3: tensor<4xf32> {train.name = "down.bias", train.role = "param"}
// CHECK-SAME: %arg4: tensor<2x4xf32> {train.name = "up", train.role = "input"}
module attributes {dist.mesh = #dist.mesh<tp = 2>} {
func.func @step(%a: tensor<8x4xf32> {train.role = "param", train.name = "up.weight"},
                %b: tensor<8xf32> {train.role = "param", train.name = "up.bias"},
                %c: tensor<4x8xf32> {train.role = "frozen", train.name = "down.weight"},
                %d: tensor<4xf32> {train.role = "param", train.name = "down.bias"},
                %x: tensor<2x4xf32> {train.role = "input", train.name = "up"}) -> (tensor<2x4xf32> {train.role = "output"}) {
  return %x : tensor<2x4xf32>
}
}

// -----

// On all model axes larger than 1, in the order of the mesh.
// CHECK-LABEL: func @axes
// CHECK-SAME: %arg0: tensor<8x4xf32> {train.name = "up.weight", train.placement = #train.placement<dim = 0, axes = ["b", "a"], parts = 8>
// CHECK-SAME: %arg1: tensor<4x8xf32> {train.name = "down.weight", train.placement = #train.placement<dim = 1, axes = ["b", "a"], parts = 8>
module attributes {dist.mesh = #dist.mesh<b : model = 4, shard = 3, one : model = 1, a : model = 2>} {
func.func @axes(%a: tensor<8x4xf32> {train.role = "param", train.name = "up.weight"},
                %b: tensor<4x8xf32> {train.role = "param", train.name = "down.weight"},
                %x: tensor<2x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<2x4xf32> {train.role = "output"}) {
  return %x : tensor<2x4xf32>
}
}

// -----

// Not a step: left alone, without a mesh too.
// CHECK-LABEL: func @other
// CHECK-NOT: placement
func.func @other(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  return %a : tensor<8x4xf32>
}
