func.func @step(%w: tensor<4x2xf32> {train.role = "param", train.name = "w"}, %b: tensor<2xf32> {train.role = "param", train.name = "b"},
                %x: tensor<8x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<4x2xf32> {train.alias = 0 : i64}, tensor<2xf32> {train.alias = 1 : i64}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<8x2xf32>) -> tensor<f32>
  %w2 = train.add %w, %w : tensor<4x2xf32>
  %b2 = train.neg %b : tensor<2xf32>
  return %loss, %w2, %b2 : tensor<f32>, tensor<4x2xf32>, tensor<2xf32>
}
