// RUN: tessera-opt %s --split-input-file --verify-diagnostics --guard-updates

// expected-error@+1 {{has no metric grad_norm; run clip-gradients with metric=true before the optimizer}}
func.func @norm(%u: tensor<4xf32> {train.role = "param", train.name = "u"}, %x: tensor<f32>)
    -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.alias = 0 : i64}) {
  return %x, %u : tensor<f32>, tensor<4xf32>
}

// -----

// expected-error@+1 {{expected one result of role "loss", got 0}}
func.func @loss(%u: tensor<4xf32> {train.role = "param", train.name = "u"}) -> (tensor<4xf32> {train.alias = 0 : i64}) {
  return %u : tensor<4xf32>
}

// -----

func.func @order(%u: tensor<4xf32> {train.role = "param", train.name = "u"}, %x: tensor<f32>)
    -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "metric", train.name = "grad_norm"}, tensor<4xf32> {train.alias = 0 : i64}) {
  // expected-error@+1 {{updates a parameter before the loss and grad_norm are known}}
  %p = train.sgd_update %u, %u lr(%x) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64}
    : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %norm = train.reduce sum, %p {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %x, %norm, %p : tensor<f32>, tensor<f32>, tensor<4xf32>
}

// -----

// expected-error@+1 {{the loss and grad_norm must be floating-point scalars}}
func.func @type(%u: tensor<4xf32> {train.role = "param", train.name = "u"}, %x: tensor<f32>)
    -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.role = "metric", train.name = "grad_norm"}, tensor<4xf32> {train.alias = 0 : i64}) {
  return %x, %u, %u : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
