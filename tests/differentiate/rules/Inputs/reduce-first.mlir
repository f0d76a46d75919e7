// Of equal extreme elements the first takes all, in row-major order over all reduced dimensions.
func.func @first(
    %a: tensor<2x3xf32> {train.role = "param", train.name = "a"}) -> (tensor<f32> {train.role = "loss"}) {
  %same = train.stop_gradient %a : tensor<2x3xf32>
  %table = train.constant dense<[[1.0, 3.0, 3.0], [2.0, 0.0, 3.0]]> : tensor<2x3xf32>
  %zero = train.sub %a, %same : tensor<2x3xf32>
  %x = train.add %zero, %table : tensor<2x3xf32>
  %rows = train.reduce max, %x {dimensions = array<i64: 1>, train.first} : (tensor<2x3xf32>) -> tensor<2xf32>
  %least = train.reduce min, %zero {dimensions = array<i64: 0, 1>, train.first} : (tensor<2x3xf32>) -> tensor<f32>
  %sum = train.reduce sum, %rows {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %loss = train.add %sum, %least : tensor<f32>
  return %loss : tensor<f32>
}
