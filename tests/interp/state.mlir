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

// Signs, decay of the first element only, and a gradient that is clipped to 0.5 before anything else.
func.func @lion() {
  %p = train.constant dense<[1.0, -2.0, 3.0, 4.0]> : tensor<4xf32>
  %m = train.constant dense<[-0.5, 0.0, 0.0, 1.0]> : tensor<4xf32>
  %g = train.constant dense<[2.0, -4.0, 0.0, 0x7FC00000]> : tensor<4xf32>
  %lr = train.constant dense<0.25> : tensor<f32>
  %np, %nm = train.lion_update %p, %m, %g lr(%lr) {beta1 = 0.75, beta2 = 0.5, weight_decay = 0.5, decay_elements = 1 : i64, clip_value = 0.5}
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  // u = -0.375 + 0.125, -0.125, 0, NaN
  %nm_e = train.constant dense<[0.0, -0.25, 0.0, 0x7FC00000]> : tensor<4xf32>
  check.expect_eq %nm, %nm_e : tensor<4xf32>
  %np_e = train.constant dense<[1.125, -1.75, 3.0, 0x7FC00000]> : tensor<4xf32>
  check.expect_eq %np, %np_e : tensor<4xf32>
  return
}

// What is representable stays, as does what is not finite; the rest goes to one of its neighbours, the same in each part.
func.func @stochastic_round() {
  %x = train.constant dense<[1.0, -0.5, 0x7F800000, 0x7FC00000, 1.0e-40]> : tensor<5xf32>
  %seed = train.constant dense<3> : tensor<i64>
  %r = train.stochastic_round %x, %seed {stream = 7 : i64, lane = 1 : i64} : (tensor<5xf32>, tensor<i64>) -> tensor<5xbf16>
  %exact = train.slice %r {starts = array<i64: 0>, limits = array<i64: 4>, strides = array<i64: 1>} : (tensor<5xbf16>) -> tensor<4xbf16>
  %exact_e = train.constant dense<[1.0, -0.5, 0x7F80, 0x7FC0]> : tensor<4xbf16>
  check.expect_eq %exact, %exact_e : tensor<4xbf16>
  %many = train.constant dense<1.001953125> : tensor<4096xf32>
  %all = train.stochastic_round %many, %seed {stream = 7 : i64, lane = 2 : i64} : (tensor<4096xf32>, tensor<i64>) -> tensor<4096xbf16>
  // A quarter of the distance 2^-7 from 1: the mean of many.
  %wide = train.convert %all : (tensor<4096xbf16>) -> tensor<4096xf32>
  %sum = train.reduce sum, %wide {dimensions = array<i64: 0>} : (tensor<4096xf32>) -> tensor<f32>
  %sum_e = train.constant dense<4104.0> : tensor<f32>
  check.expect_close %sum, %sum_e {atol = 1.0, rtol = 0.0} : tensor<f32>
  %half = train.slice %many {starts = array<i64: 0>, limits = array<i64: 2048>, strides = array<i64: 1>} : (tensor<4096xf32>) -> tensor<2048xf32>
  %first = train.constant dense<2048> : tensor<i64>
  %second = train.stochastic_round %half, %seed offset(%first) {stream = 7 : i64, lane = 2 : i64} : (tensor<2048xf32>, tensor<i64>, tensor<i64>) -> tensor<2048xbf16>
  %second_e = train.slice %all {starts = array<i64: 2048>, limits = array<i64: 4096>, strides = array<i64: 1>} : (tensor<4096xbf16>) -> tensor<2048xbf16>
  check.expect_eq %second, %second_e : tensor<2048xbf16>
  return
}
