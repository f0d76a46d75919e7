// RUN: tessera-interp %s --gradcheck

func.func @conv2d(%x: tensor<2x4x5x4xf64> {train.role = "param", train.name = "x"}, %w: tensor<6x2x3x2xf64> {train.role = "param", train.name = "w"})
    -> (tensor<f64> {train.role = "loss"}, tensor<2x4x5x4xf64> {train.role = "grad", train.of = "x"}, tensor<6x2x3x2xf64> {train.role = "grad", train.of = "w"}) {
  %y = train.conv2d %x, %w {strides = array<i64: 2, 1>, padding = array<i64: 2, 1, 1, 0>, dilations = array<i64: 2, 1>, groups = 2 : i64} : (tensor<2x4x5x4xf64>, tensor<6x2x3x2xf64>) -> tensor<2x6x2x4xf64>
  %square = train.mul %y, %y : tensor<2x6x2x4xf64>
  %loss = train.reduce sum, %square {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x6x2x4xf64>) -> tensor<f64>
  %dy = train.add %y, %y : tensor<2x6x2x4xf64>
  %dx = train.conv2d_input_grad %dy, %w {strides = array<i64: 2, 1>, padding = array<i64: 2, 1, 1, 0>, dilations = array<i64: 2, 1>, groups = 2 : i64} : (tensor<2x6x2x4xf64>, tensor<6x2x3x2xf64>) -> tensor<2x4x5x4xf64>
  %dw = train.conv2d_filter_grad %x, %dy {strides = array<i64: 2, 1>, padding = array<i64: 2, 1, 1, 0>, dilations = array<i64: 2, 1>, groups = 2 : i64} : (tensor<2x4x5x4xf64>, tensor<2x6x2x4xf64>) -> tensor<6x2x3x2xf64>
  return %loss, %dx, %dw : tensor<f64>, tensor<2x4x5x4xf64>, tensor<6x2x3x2xf64>
}
