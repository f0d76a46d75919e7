// A norm of zeros has the gradient 0, as a square root of a sum, scaled, and as another power of a sum of powers.
func.func @norms(
    %a: tensor<2x2xf32> {train.role = "param", train.name = "a"},
    %b: tensor<2x2xf32> {train.role = "param", train.name = "b"}) -> (tensor<f32> {train.role = "loss"}) {
  %sa = train.stop_gradient %a : tensor<2x2xf32>
  %sb = train.stop_gradient %b : tensor<2x2xf32>
  %half = train.constant dense<0.5> : tensor<2xf32>
  %quarter = train.constant dense<0.25> : tensor<2xf32>
  %four = train.constant dense<4.0> : tensor<2x2xf32>
  %x = train.sub %a, %sa : tensor<2x2xf32>
  %xx = train.mul %x, %x : tensor<2x2xf32>
  %sx = train.reduce sum, %xx {dimensions = array<i64: 1>} : (tensor<2x2xf32>) -> tensor<2xf32>
  %mx = train.mul %sx, %half : tensor<2xf32>
  %nx = train.sqrt %mx : tensor<2xf32>
  %y = train.sub %b, %sb : tensor<2x2xf32>
  %yy = train.pow %y, %four : tensor<2x2xf32>
  %sy = train.reduce sum, %yy {dimensions = array<i64: 1>} : (tensor<2x2xf32>) -> tensor<2xf32>
  %ny = train.pow %sy, %quarter : tensor<2xf32>
  %n = train.add %nx, %ny : tensor<2xf32>
  %loss = train.reduce sum, %n {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
