// RUN: tessera-interp %s --gradcheck --samples=100

func.func @step(%q: tensor<2x4x3x2xf64> {train.role = "param", train.name = "q"}, %k: tensor<2x2x3x2xf64> {train.role = "param", train.name = "k"},
                %v: tensor<2x2x3x5xf64> {train.role = "param", train.name = "v"}, %mask: tensor<1x4x1x3xf64> {train.role = "input"})
    -> (tensor<f64> {train.role = "loss"}, tensor<2x4x3x2xf64> {train.role = "grad", train.of = "q"},
        tensor<2x2x3x2xf64> {train.role = "grad", train.of = "k"}, tensor<2x2x3x5xf64> {train.role = "grad", train.of = "v"}) {
  %out, %lse = train.attention %q, %k, %v mask(%mask) {scale = 0.7, causal} : (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x5xf64>, tensor<1x4x1x3xf64>) -> (tensor<2x4x3x5xf64>, tensor<2x4x3xf64>)
  %square = train.mul %out, %out : tensor<2x4x3x5xf64>
  %loss = train.reduce sum, %square {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x5xf64>) -> tensor<f64>
  %do = train.add %out, %out : tensor<2x4x3x5xf64>
  %dq, %dk, %dv = train.attention_grad %q, %k, %v mask(%mask), %out, %lse, %do {scale = 0.7, causal} : (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x5xf64>, tensor<1x4x1x3xf64>, tensor<2x4x3x5xf64>, tensor<2x4x3xf64>, tensor<2x4x3x5xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x5xf64>)
  return %loss, %dq, %dk, %dv : tensor<f64>, tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x5xf64>
}
