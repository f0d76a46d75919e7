// RUN: tessera-interp %s
// Expected values are worked out from torch.optim's formulas.

func.func @adamw() {
  %p = train.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %m = train.constant dense<[0.1, 0.0]> : tensor<2xf32>
  %v = train.constant dense<[0.01, 0.0]> : tensor<2xf32>
  %g = train.constant dense<[1.0, 4.0]> : tensor<2xf32>
  %lr = train.constant dense<0.1> : tensor<f32>
  %c1 = train.constant dense<0.19> : tensor<f32>
  %c2 = train.constant dense<0.001999> : tensor<f32>
  %half = train.constant dense<0.5> : tensor<f32>
  // Element 0 is the last decayed one.
  %offset = train.constant dense<9> : tensor<i64>
  %np, %nm, %nv = train.adamw_update %p, %m, %v, %g lr(%lr) correction(%c1, %c2) scale(%half) offset(%offset)
    {beta1 = 0.9, beta2 = 0.999, epsilon = 1.0e-8, weight_decay = 0.1, decay_elements = 10 : i64}
    : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  %nm_e = train.constant dense<[0.14, 0.2]> : tensor<2xf32>
  check.expect_close %nm, %nm_e {rtol = 1.0e-6} : tensor<2xf32>
  %nv_e = train.constant dense<[0.01024, 0.004]> : tensor<2xf32>
  check.expect_close %nv, %nv_e {rtol = 1.0e-6} : tensor<2xf32>
  // 1 * (1 - 0.01) - 0.1/0.19 * 0.14 / sqrt(0.01024/0.001999); -2 - 0.1/0.19 * 0.2 / sqrt(0.004/0.001999)
  %np_e = train.constant dense<[0.95744412, -2.07441294]> : tensor<2xf32>
  check.expect_close %np, %np_e {rtol = 1.0e-5} : tensor<2xf32>
  return
}

func.func @sgd() {
  %p = train.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %b = train.constant dense<[0.5, 0.5]> : tensor<2xf32>
  %g = train.constant dense<[1.0, 4.0]> : tensor<2xf32>
  %lr = train.constant dense<0.5> : tensor<f32>
  %np = train.sgd_update %p, %g lr(%lr) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64}
    : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %np_e = train.constant dense<[0.5, -4.0]> : tensor<2xf32>
  check.expect_eq %np, %np_e : tensor<2xf32>
  // b' = 0.5 * b + g + 0.25 * p for the first element only; nesterov: p - lr * (g + 0.5 * b').
  %n, %nb = train.sgd_update %p, %g buffer(%b) lr(%lr) {momentum = 0.5, weight_decay = 0.25, decay_elements = 1 : i64, nesterov}
    : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
  %nb_e = train.constant dense<[1.5, 4.25]> : tensor<2xf32>
  check.expect_eq %nb, %nb_e : tensor<2xf32>
  %n_e = train.constant dense<[0.0, -5.0625]> : tensor<2xf32>
  check.expect_eq %n, %n_e : tensor<2xf32>
  return
}

// An update that is not applied leaves everything as it was, whatever the gradient.
func.func @held() {
  %p = train.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %m = train.constant dense<[0.1, 0.5]> : tensor<2xf32>
  %v = train.constant dense<[0.01, 0.25]> : tensor<2xf32>
  %g = train.constant dense<[0x7FC00000, 0x7F800000]> : tensor<2xf32>
  %lr = train.constant dense<0.1> : tensor<f32>
  %offset = train.constant dense<9> : tensor<i64>
  %no = train.constant dense<false> : tensor<i1>
  %np, %nm, %nv = train.adamw_update %p, %m, %v, %g lr(%lr) correction(%lr, %lr) scale(%lr) offset(%offset) apply(%no)
    {beta1 = 0.9, beta2 = 0.999, epsilon = 1.0e-8, weight_decay = 0.1, decay_elements = 10 : i64}
    : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  check.expect_eq %np, %p : tensor<2xf32>
  check.expect_eq %nm, %m : tensor<2xf32>
  check.expect_eq %nv, %v : tensor<2xf32>
  %n, %nb = train.sgd_update %p, %g buffer(%m) lr(%lr) apply(%no) {momentum = 0.5, weight_decay = 0.25, decay_elements = 1 : i64}
    : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>)
  check.expect_eq %n, %p : tensor<2xf32>
  check.expect_eq %nb, %m : tensor<2xf32>
  %plain = train.sgd_update %p, %g lr(%lr) apply(%no) {momentum = 0.0, weight_decay = 0.25, decay_elements = 1 : i64}
    : (tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<i1>) -> tensor<2xf32>
  check.expect_eq %plain, %p : tensor<2xf32>
  return
}

// One that is applied is the one without the flag.
func.func @applied() {
  %p = train.constant dense<[1.0, -2.0]> : tensor<2xf32>
  %g = train.constant dense<[1.0, 4.0]> : tensor<2xf32>
  %lr = train.constant dense<0.5> : tensor<f32>
  %yes = train.constant dense<true> : tensor<i1>
  %np = train.sgd_update %p, %g lr(%lr) apply(%yes) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64}
    : (tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<i1>) -> tensor<2xf32>
  %np_e = train.constant dense<[0.5, -4.0]> : tensor<2xf32>
  check.expect_eq %np, %np_e : tensor<2xf32>
  return
}
