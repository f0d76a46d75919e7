// RUN: tessera-opt %s --check-differentiable -split-input-file -verify-diagnostics

// Every active op without a rule is reported, with its path to the loss; the inactive one is not.
func.func @step(%w: tensor<1x1x4x8xf32> {train.role = "param", train.name = "w"}, %x: tensor<1x1x4x8xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %o, %lse = train.attention %w, %w, %w {scale = 1.0} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4xf32>)
  // expected-error@+2 {{'train.attention_grad' has no gradient rule}}
  // expected-note@+1 {{path: loss <- train.reduce <- train.mul <- train.attention_grad}}
  %q, %k, %v = train.attention_grad %w, %w, %w, %o, %lse, %x {scale = 1.0} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>)
  // expected-error@+2 {{'train.attention_grad' has no gradient rule}}
  // expected-note@+1 {{path: loss <- train.reduce <- train.mul <- train.exp (node.7) <- train.attention_grad}}
  %q2, %k2, %v2 = train.attention_grad %x, %w, %x, %o, %lse, %x {scale = 1.0} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>)
  %qx, %kx, %vx = train.attention_grad %x, %x, %x, %x, %lse, %x {scale = 1.0} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>)
  %e = train.exp %k2 : tensor<1x1x4x8xf32> loc("node.7")
  %m = train.mul %q, %e : tensor<1x1x4x8xf32>
  %loss = train.reduce sum, %m {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Behind a stop_gradient, an integer or a frozen argument nothing needs a rule.
func.func @inactive(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %f: tensor<4xf32> {train.role = "frozen", train.name = "f"}) -> (tensor<f32> {train.role = "loss"}) {
  %best = train.argmax %w {dim = 0 : i64} : (tensor<4xf32>) -> tensor<i32>
  %index = train.convert %best : (tensor<i32>) -> tensor<f32>
  %g = train.mul %w, %f : tensor<4xf32>
  %s = train.reduce sum, %g {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %loss = train.mul %s, %index : tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @constant(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<f32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  return %x : tensor<f32>
}
