// Parameters moved to given values.
func.func @ties(%a: tensor<3xf32> {train.role = "param", train.name = "a"}, %b: tensor<3xf32> {train.role = "param", train.name = "b"}) -> (tensor<f32> {train.role = "loss"}) {
  %sa = train.stop_gradient %a : tensor<3xf32>
  %za = train.sub %a, %sa : tensor<3xf32>
  %va = train.constant dense<[1.0, 0.0, 1.0]> : tensor<3xf32>
  %x = train.add %va, %za : tensor<3xf32>
  %max = train.reduce max, %x {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  %sb = train.stop_gradient %b : tensor<3xf32>
  %zb = train.sub %b, %sb : tensor<3xf32>
  %vb = train.constant dense<[3.0, 0.0, 4.0]> : tensor<3xf32>
  %y = train.add %vb, %zb : tensor<3xf32>
  %product = train.reduce mul, %y {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  %loss = train.add %max, %product : tensor<f32>
  return %loss : tensor<f32>
}
