// RUN: tessera-opt %s -verify-diagnostics -split-input-file

// train.accumulate_c1
func.func @accumulate_c1(%x: tensor<2xf32>) {
  // expected-error@+1 {{count is 0, expected at least 1}}
  %0 = train.accumulate %x {count = 0 : i64} : (tensor<2xf32>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %m: tensor<f32>):
    train.yield %m : tensor<f32>
  }
  return
}

// -----

// train.accumulate_c2
func.func @accumulate_c2(%x: tensor<2xf32>) {
  // expected-error@+1 {{region argument list has 1 entries, expected 2}}
  %0 = train.accumulate %x {count = 2 : i64} : (tensor<2xf32>) -> tensor<f32> {
  ^bb0(%m: tensor<f32>):
    train.yield %m : tensor<f32>
  }
  return
}

// -----

// train.accumulate_c3
func.func @accumulate_c3(%x: tensor<2xf32>) {
  // expected-error@+1 {{region argument 0 has type 'tensor<i32>', expected 'tensor<i64>'}}
  %0 = train.accumulate %x {count = 2 : i64} : (tensor<2xf32>) -> tensor<f32> {
  ^bb0(%i: tensor<i32>, %m: tensor<f32>):
    train.yield %m : tensor<f32>
  }
  return
}

// -----

// train.accumulate_c4
func.func @accumulate_c4(%x: tensor<2xf32>) {
  // expected-error@+1 {{operand 0 has type 'tensor<2xf32>', expected a leading dimension of size 3}}
  %0 = train.accumulate %x {count = 3 : i64} : (tensor<2xf32>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %m: tensor<f32>):
    train.yield %m : tensor<f32>
  }
  return
}

// -----

// train.accumulate_c5
func.func @accumulate_c5(%x: tensor<2xf32>) {
  // expected-error@+1 {{region argument 1 has type 'tensor<1xf32>', expected 'tensor<f32>'}}
  %0 = train.accumulate %x {count = 2 : i64} : (tensor<2xf32>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %m: tensor<1xf32>):
    train.yield %m : tensor<1xf32>
  }
  return
}

// -----

// train.accumulate_c6
func.func @accumulate_c6(%x: tensor<2xf32>) {
  // expected-error@+1 {{yields value 0 of type 'tensor<f32>', expected 'tensor<f64>'}}
  %0 = train.accumulate %x {count = 2 : i64} : (tensor<2xf32>) -> tensor<f64> {
  ^bb0(%i: tensor<i64>, %m: tensor<f32>):
    train.yield %m : tensor<f32>
  }
  return
}

// -----

// train.accumulate_c7
func.func @accumulate_c7(%x: tensor<2xf32>) {
  // expected-error@+1 {{carries 2 values, of 1 operands and 1 results}}
  %0 = train.accumulate %x {carried = 2 : i64, count = 2 : i64} : (tensor<2xf32>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %m: tensor<f32>):
    train.yield %m : tensor<f32>
  }
  return
}

// -----

// train.accumulate_c8
func.func @accumulate_c8(%x: tensor<2xf32>) {
  // expected-error@+1 {{carries operand 0 of type 'tensor<2xf32>' as region argument 1 of type 'tensor<f32>' and result 0 of type 'tensor<f32>'}}
  %0 = train.accumulate %x {carried = 1 : i64, count = 2 : i64} : (tensor<2xf32>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %m: tensor<f32>):
    train.yield %m : tensor<f32>
  }
  return
}

// -----

// train.adamw_update_c1
func.func @adamw_update_c1(%p: tensor<8xf32>, %m: tensor<9xf32>, %g: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{m has type 'tensor<9xf32>', expected 'tensor<8xf32>'}}
  %0:3 = train.adamw_update %p, %m, %m, %g lr(%s) correction(%s, %s) {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.0, decay_elements = 0 : i64} : (tensor<8xf32>, tensor<9xf32>, tensor<9xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<9xf32>, tensor<9xf32>)
  return
}

// -----

// train.adamw_update_c2
func.func @adamw_update_c2(%p: tensor<8xf32>, %m: tensor<8xf32>, %g: tensor<9xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{grad has type 'tensor<9xf32>', expected 'tensor<8xf32>'}}
  %0:3 = train.adamw_update %p, %m, %m, %g lr(%s) correction(%s, %s) {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.0, decay_elements = 0 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<9xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// train.adamw_update_c3
func.func @adamw_update_c3(%p: tensor<8xf32>, %m: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{beta1 is 1.000000e+00, expected at least 0 and less than 1}}
  %0:3 = train.adamw_update %p, %m, %m, %g lr(%s) correction(%s, %s) {beta1 = 1.0, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.0, decay_elements = 0 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// train.adamw_update_c4
func.func @adamw_update_c4(%p: tensor<8xf32>, %m: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{decay_elements is -1, expected at least 0}}
  %0:3 = train.adamw_update %p, %m, %m, %g lr(%s) correction(%s, %s) {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.0, decay_elements = -1 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// train.sgd_update_c1
func.func @sgd_update_c1(%p: tensor<8xf32>, %g: tensor<9xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{grad has type 'tensor<9xf32>', expected 'tensor<8xf32>'}}
  %0:1 = train.sgd_update %p, %g lr(%s) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64} : (tensor<8xf32>, tensor<9xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

// train.sgd_update_c2
func.func @sgd_update_c2(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{needs both a buffer and its next value, or neither}}
  %0:1 = train.sgd_update %p, %g buffer(%b) lr(%s) {momentum = 0.9, weight_decay = 0.0, decay_elements = 0 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

// train.sgd_update_c3
func.func @sgd_update_c3(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{new_buffer has type 'tensor<9xf32>', expected 'tensor<8xf32>'}}
  %0:2 = train.sgd_update %p, %g buffer(%b) lr(%s) {momentum = 0.9, weight_decay = 0.0, decay_elements = 0 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<9xf32>)
  return
}

// -----

// train.sgd_update_c4
func.func @sgd_update_c4(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{has momentum but no buffer}}
  %0:1 = train.sgd_update %p, %g lr(%s) {momentum = 0.9, weight_decay = 0.0, decay_elements = 0 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

// train.sgd_update_c5
func.func @sgd_update_c5(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{is nesterov but has no momentum}}
  %0:1 = train.sgd_update %p, %g lr(%s) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64, nesterov} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

// train.sgd_update_c6
func.func @sgd_update_c6(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{decay_elements is -4, expected at least 0}}
  %0:1 = train.sgd_update %p, %g lr(%s) {momentum = 0.0, weight_decay = 0.0, decay_elements = -4 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

// train.adamw_update_c5
func.func @adamw_update_c5(%p: tensor<8xf32>, %m: tensor<8xbf16>, %g: tensor<8xf32>, %s: tensor<f32>, %seed: tensor<i64>) {
  // expected-error@+1 {{needs both a seed and a rounding_stream, or neither}}
  %0:3 = train.adamw_update %p, %m, %m, %g lr(%s) correction(%s, %s) seed(%seed) {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.0, decay_elements = 0 : i64} : (tensor<8xf32>, tensor<8xbf16>, tensor<8xbf16>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i64>) -> (tensor<8xf32>, tensor<8xbf16>, tensor<8xbf16>)
  return
}

// -----

// train.lion_update_c1
func.func @lion_update_c1(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{clip_value is 0.000000e+00, expected a positive number}}
  %0:2 = train.lion_update %p, %p, %g lr(%s) {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0, decay_elements = 0 : i64, clip_value = 0.0} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// train.lion_update_c2
func.func @lion_update_c2(%p: tensor<8xf32>, %g: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{beta2 is -1.000000e+00, expected at least 0 and less than 1}}
  %0:2 = train.lion_update %p, %p, %g lr(%s) {beta1 = 0.9, beta2 = -1.0, weight_decay = 0.0, decay_elements = 0 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// train.stochastic_round_c1
func.func @stochastic_round_c1(%x: tensor<8xf32>, %seed: tensor<i64>) {
  // expected-error@+1 {{lane is 8, expected 0 to 7}}
  %0 = train.stochastic_round %x, %seed {stream = 0 : i64, lane = 8 : i64} : (tensor<8xf32>, tensor<i64>) -> tensor<8xbf16>
  return
}
