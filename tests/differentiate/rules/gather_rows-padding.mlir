// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate > %t.padded
// RUN: sed -e 's/ {padding_index = 2 : i64}//' -e 's/train.reshape %y/train.select %keep, %y, %%stopped/' -e 's/: (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>/: tensor<2x4x3xi1>, tensor<2x4x3xf32>/' %s | tessera-opt --differentiate > %t.selected
// RUN: tessera-interp %t.padded --compare=%t.selected --quiet

// Lookups of the padding row give it no gradient; its other use does. The same as a selection between the rows and the rows
// without gradient, which the second module has in the place of the reshape.
// CHECK-LABEL: func @padding
// CHECK: %[[KEEP:.*]] = train.compare {{ *}}ne, %arg1, %{{.*}} {train.backward}
// CHECK: %[[UPDATES:.*]] = train.select
// CHECK: train.scatter_add_rows %{{.*}}, %arg1, %[[UPDATES]] {train.backward}
func.func @padding(
    %w: tensor<4x3xf32> {train.role = "param", train.name = "w"},
    %i: tensor<2x4xi32> {train.role = "input", train.name = "i"},
    %c: tensor<2x4x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.gather_rows %w, %i {padding_index = 2 : i64} : (tensor<4x3xf32>, tensor<2x4xi32>) -> tensor<2x4x3xf32>
  %two = train.constant dense<2> : tensor<2x4xi32>
  %other = train.compare ne, %i, %two : (tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4xi1>
  %keep = train.broadcast %other {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x4xi1>) -> tensor<2x4x3xi1>
  %stopped = train.stop_gradient %y : tensor<2x4x3xf32>
  %rows = train.reshape %y : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %weighted = train.mul %rows, %c : tensor<2x4x3xf32>
  %lookups = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x3xf32>) -> tensor<f32>
  %squares = train.mul %w, %w : tensor<4x3xf32>
  %other_use = train.reduce sum, %squares {dimensions = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
  %loss = train.add %lookups, %other_use : tensor<f32>
  return %loss : tensor<f32>
}
