// RUN: tessera-opt %s -annotate-index-bounds | FileCheck %s

// A scatter is guarded as well; what is read from a table of positions is a position.
// CHECK-LABEL: func.func @scatter
// CHECK-SAME:    tensor<2xi64> {train.index_bound = 3 : i64
// CHECK-SAME:    -> (tensor<f32> {train.role = "loss"}, tensor<2xi64> {train.index_bound = 3 : i64, train.index_low = 0 : i64, train.name = "position", train.of = "position", train.role = "index_check"})
func.func @scatter(%x: tensor<2x3xf32> {train.role = "input", train.name = "x"}, %w: tensor<3x3xf32> {train.role = "param", train.name = "w"}, %i: tensor<2xi64> {train.role = "input", train.name = "i"}, %m: tensor<2x8xi64> {train.role = "input", train.name = "m"}) -> (tensor<f32> {train.role = "loss"}) {
  %direct = train.scatter_add_rows %w, %i, %x : (tensor<3x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<3x3xf32>
  %positions = train.iota {dim = 0 : i64} : tensor<3xi64>
  %count = train.reduce sum, %m {dimensions = array<i64: 1>} : (tensor<2x8xi64>) -> tensor<2xi64>
  %position = train.gather_rows %positions, %count : (tensor<3xi64>, tensor<2xi64>) -> tensor<2xi64> loc("position")
  %counted = train.scatter_add_rows %direct, %position, %x : (tensor<3x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<3x3xf32>
  %loss = train.reduce sum, %counted {dimensions = array<i64: 0, 1>} : (tensor<3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
