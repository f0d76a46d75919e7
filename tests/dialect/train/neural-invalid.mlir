// RUN: tessera-opt %s -verify-diagnostics -split-input-file

// train.softmax_c1
func.func @softmax_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{dim is 2, expected at least 0 and less than 2}}
  %0 = train.softmax %x {dim = 2 : i64} : tensor<2x3xf32>
  return
}

// -----

// train.layer_norm_c1
func.func @layer_norm_c1(%x: tensor<f32>) {
  // expected-error@+1 {{operand has rank 0, expected at least 1}}
  %0:3 = train.layer_norm layer, %x {epsilon = 1.0e-5} : (tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return
}

// -----

// train.layer_norm_c2
func.func @layer_norm_c2(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{scale has type 'tensor<2xf32>', expected 'tensor<3xf32>'}}
  %0:3 = train.layer_norm layer, %x scale(%s) {epsilon = 1.0e-5} : (tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

// train.layer_norm_c3
func.func @layer_norm_c3(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{bias has type 'tensor<2xf32>', expected 'tensor<3xf32>'}}
  %0:3 = train.layer_norm layer, %x bias(%s) {epsilon = 1.0e-5} : (tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

// train.layer_norm_c4
func.func @layer_norm_c4(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // expected-error@+1 {{has a bias, which mode rms does not take}}
  %0:3 = train.layer_norm rms, %x bias(%s) {epsilon = 1.0e-5} : (tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

// train.layer_norm_c5
func.func @layer_norm_c5(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{rstd has type 'tensor<2x1xf32>', expected 'tensor<2xf32>'}}
  %0:3 = train.layer_norm layer, %x {epsilon = 1.0e-5} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2x1xf32>)
  return
}

// -----

// train.layer_norm_c6
func.func @layer_norm_c6(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{epsilon is negative or not finite}}
  %0:3 = train.layer_norm layer, %x {epsilon = -1.0} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

// train.cross_entropy_c1
func.func @cross_entropy_c1(%l: tensor<2x2x8xf32>, %t: tensor<4xi32>) {
  // expected-error@+1 {{logits have rank 3, expected 2}}
  %0:2 = train.cross_entropy %l, %t : (tensor<2x2x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// train.cross_entropy_c2
func.func @cross_entropy_c2(%l: tensor<4x8xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{targets has type 'tensor<8xi32>', expected 'tensor<4xi32>'}}
  %0:2 = train.cross_entropy %l, %t : (tensor<4x8xf32>, tensor<8xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// train.cross_entropy_c3
func.func @cross_entropy_c3(%l: tensor<4x8xf32>, %t: tensor<4xi32>) {
  // expected-error@+1 {{loss has type 'tensor<f32>', expected 'tensor<4xf32>'}}
  %0:2 = train.cross_entropy %l, %t : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

// train.cross_entropy_c4
func.func @cross_entropy_c4(%l: tensor<4x8xf32>, %t: tensor<4xi32>) {
  // expected-error@+1 {{label_smoothing is 1.500000e+00, expected at least 0 and at most 1}}
  %0:2 = train.cross_entropy %l, %t {label_smoothing = 1.5} : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// train.linear_cross_entropy_c1
func.func @linear_cross_entropy_c1(%x: tensor<2x4x4xf32>, %w: tensor<10x4xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{hidden has rank 3 and weight 2, expected 2}}
  %0:2 = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<2x4x4xf32>, tensor<10x4xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// train.linear_cross_entropy_c1
func.func @linear_cross_entropy_c1_weight(%x: tensor<8x4xf32>, %w: tensor<40xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{hidden has rank 2 and weight 1, expected 2}}
  %0:2 = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<8x4xf32>, tensor<40xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// train.linear_cross_entropy_c2
func.func @linear_cross_entropy_c2(%x: tensor<8x4xf32>, %w: tensor<10x4xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{weight_dim is 2, expected at least 0 and less than 2}}
  %0:2 = train.linear_cross_entropy %x, %w, %t {weight_dim = 2 : i64} : (tensor<8x4xf32>, tensor<10x4xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// train.linear_cross_entropy_c3
func.func @linear_cross_entropy_c3(%x: tensor<8x4xf32>, %w: tensor<10x4xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{contracts 4 with 10 elements}}
  %0:2 = train.linear_cross_entropy %x, %w, %t {weight_dim = 0 : i64} : (tensor<8x4xf32>, tensor<10x4xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// train.linear_cross_entropy_c4
func.func @linear_cross_entropy_c4(%x: tensor<8x4xf32>, %w: tensor<10x4xf32>, %t: tensor<10xi32>) {
  // expected-error@+1 {{targets has type 'tensor<10xi32>', expected 'tensor<8xi32>'}}
  %0:2 = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<8x4xf32>, tensor<10x4xf32>, tensor<10xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// train.linear_cross_entropy_c4
func.func @linear_cross_entropy_c4_loss(%x: tensor<8x4xf32>, %w: tensor<10x4xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{loss has type 'tensor<f32>', expected 'tensor<8xf32>'}}
  %0:2 = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<8x4xf32>, tensor<10x4xf32>, tensor<8xi32>) -> (tensor<f32>, tensor<8xf32>)
  return
}

// -----

// train.linear_cross_entropy_c4
func.func @linear_cross_entropy_c4_lse(%x: tensor<8x4xf32>, %w: tensor<4x10xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{lse has type 'tensor<8x1xf32>', expected 'tensor<8xf32>'}}
  %0:2 = train.linear_cross_entropy %x, %w, %t {weight_dim = 0 : i64} : (tensor<8x4xf32>, tensor<4x10xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8x1xf32>)
  return
}

// -----

// train.linear_cross_entropy_c5
func.func @linear_cross_entropy_c5(%x: tensor<8x4xf32>, %w: tensor<10x4xf32>, %t: tensor<8xi32>) {
  // expected-error@+1 {{label_smoothing is -5.000000e-01, expected at least 0 and at most 1}}
  %0:2 = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64, label_smoothing = -0.5} : (tensor<8x4xf32>, tensor<10x4xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

// train.linear_cross_entropy_c3
func.func @linear_cross_entropy_grad_c3(%x: tensor<8x4xf32>, %w: tensor<10x4xf32>, %t: tensor<8xi32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{contracts 4 with 10 elements}}
  %0:4 = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 0 : i64} : (tensor<8x4xf32>, tensor<10x4xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<10x4xf32>)
  return
}

// -----

// train.linear_cross_entropy_grad_c1
func.func @linear_cross_entropy_grad_c1(%x: tensor<8x4xf32>, %w: tensor<10x4xf32>, %t: tensor<8xi32>, %g: tensor<f32>) {
  // expected-error@+1 {{loss_grad has type 'tensor<f32>', expected 'tensor<8xf32>'}}
  %0:4 = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64} : (tensor<8x4xf32>, tensor<10x4xf32>, tensor<8xi32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<10x4xf32>)
  return
}

// -----

// train.linear_cross_entropy_grad_c2
func.func @linear_cross_entropy_grad_c2(%x: tensor<8x4xbf16>, %w: tensor<10x4xbf16>, %t: tensor<8xi32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{hidden_grad has type 'tensor<8x4xf16>', expected 'tensor<8x4xbf16>' or 'tensor<8x4xf32>'}}
  %0:4 = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64} : (tensor<8x4xbf16>, tensor<10x4xbf16>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8x4xf16>, tensor<10x4xbf16>)
  return
}

// -----

// train.linear_cross_entropy_grad_c2
func.func @linear_cross_entropy_grad_c2_weight(%x: tensor<8x4xbf16>, %w: tensor<10x4xbf16>, %t: tensor<8xi32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{weight_grad has type 'tensor<4x10xf32>', expected 'tensor<10x4xbf16>' or 'tensor<10x4xf32>'}}
  %0:4 = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64} : (tensor<8x4xbf16>, tensor<10x4xbf16>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<4x10xf32>)
  return
}

// -----

// train.attention_c1
func.func @attention_c1(%q: tensor<2x4x3xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>) {
  // expected-error@+1 {{query has rank 3, expected 4}}
  %0:2 = train.attention %q, %k, %v {scale = 1.0} : (tensor<2x4x3xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c2
func.func @attention_c2(%q: tensor<2x4x3x8xf32>, %k: tensor<2x3x5x8xf32>, %v: tensor<2x2x5x6xf32>) {
  // expected-error@+1 {{query has 4 heads, expected a multiple of the key's 3}}
  %0:2 = train.attention %q, %k, %v {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x3x5x8xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c3
func.func @attention_c3(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x7xf32>, %v: tensor<2x2x5x6xf32>) {
  // expected-error@+1 {{key has type 'tensor<2x2x5x7xf32>', expected 'tensor<2x2x5x8xf32>'}}
  %0:2 = train.attention %q, %k, %v {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x7xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c4
func.func @attention_c4(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x4x6xf32>) {
  // expected-error@+1 {{value has type 'tensor<2x2x4x6xf32>', expected 'tensor<2x2x5x6xf32>'}}
  %0:2 = train.attention %q, %k, %v {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x4x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c5
func.func @attention_c5(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>) {
  // expected-error@+1 {{output has type 'tensor<2x4x3x8xf32>', expected 'tensor<2x4x3x6xf32>'}}
  %0:2 = train.attention %q, %k, %v {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c6
func.func @attention_c6(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>) {
  // expected-error@+1 {{lse has type 'tensor<2x4xf32>', expected 'tensor<2x4x3xf32>'}}
  %0:2 = train.attention %q, %k, %v {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4xf32>)
  return
}

// -----

// train.attention_c7
func.func @attention_c7(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %m: tensor<1x1x3x5xi32>) {
  // expected-error@+1 {{mask has element type 'i32', expected i1 or floating point}}
  %0:2 = train.attention %q, %k, %v mask(%m) {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<1x1x3x5xi32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c8
func.func @attention_c8(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %m: tensor<1x1x3x1xi1>) {
  // expected-error@+1 {{mask has type 'tensor<1x1x3x1xi1>', expected 'tensor<2x4x3x5xi1>' or size 1 in the first three dimensions}}
  %0:2 = train.attention %q, %k, %v mask(%m) {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<1x1x3x1xi1>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c9
func.func @attention_c9(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %b: tensor<1x3xi64>) {
  // expected-error@+1 {{has one end of the keys that are seen, expected both or none}}
  %0:2 = "train.attention"(%q, %k, %v, %b) <{scale = 1.0, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0>}> : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<1x3xi64>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c10
func.func @attention_c10_i32(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %b: tensor<1x3xi32>, %e: tensor<1x3xi32>) {
  // expected-error@+1 {{keys that are seen have type 'tensor<1x3xi32>', expected tensor<2x3xi64>, or size 1 in the first dimension}}
  %0:2 = train.attention %q, %k, %v keys(%b to %e) {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<1x3xi32>, tensor<1x3xi32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c10
func.func @attention_c10_rank(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %b: tensor<3xi64>, %e: tensor<3xi64>) {
  // expected-error@+1 {{keys that are seen have type 'tensor<3xi64>', expected tensor<2x3xi64>, or size 1 in the first dimension}}
  %0:2 = train.attention %q, %k, %v keys(%b to %e) {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<3xi64>, tensor<3xi64>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c10
func.func @attention_c10_samples(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %b: tensor<2x3xi64>, %e: tensor<4x3xi64>) {
  // expected-error@+1 {{keys that are seen have type 'tensor<4x3xi64>', expected tensor<2x3xi64>, or size 1 in the first dimension}}
  %0:2 = train.attention %q, %k, %v keys(%b to %e) {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x3xi64>, tensor<4x3xi64>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c10
func.func @attention_c10_queries(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %b: tensor<1x5xi64>, %e: tensor<1x3xi64>) {
  // expected-error@+1 {{keys that are seen have type 'tensor<1x5xi64>', expected tensor<2x3xi64>, or size 1 in the first dimension}}
  %0:2 = train.attention %q, %k, %v keys(%b to %e) {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<1x5xi64>, tensor<1x3xi64>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c11
func.func @attention_c11_causal(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>) {
  // expected-error@+1 {{has a window of 2 keys, expected at least 1, and causal}}
  %0:2 = train.attention %q, %k, %v {scale = 1.0, window = 2 : i64} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c11
func.func @attention_c11_none(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>) {
  // expected-error@+1 {{has a window of 0 keys, expected at least 1, and causal}}
  %0:2 = train.attention %q, %k, %v {scale = 1.0, causal, window = 0 : i64} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c12
func.func @attention_c12(%q: tensor<2x4x3x8xbf16>, %k: tensor<2x2x5x8xbf16>, %v: tensor<2x2x5x6xbf16>) {
  // expected-error@+1 {{result has type 'tensor<2x4x3x6xf16>', expected 'tensor<2x4x3x6xbf16>' or 'tensor<2x4x3x6xf32>'}}
  %0:2 = train.attention %q, %k, %v {scale = 1.0} : (tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x6xbf16>) -> (tensor<2x4x3x6xf16>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_c12
func.func @attention_c12_narrower(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>) {
  // expected-error@+1 {{result has type 'tensor<2x4x3x6xbf16>', expected 'tensor<2x4x3x6xf32>' or 'tensor<2x4x3x6xf32>'}}
  %0:2 = train.attention %q, %k, %v {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xbf16>, tensor<2x4x3xf32>)
  return
}

// -----

func.func @attention_split(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>) {
  // expected-error@+2 {{to be one of: gather, ring}}
  // expected-error@+1 {{failed to parse Train_AttentionSplitAttr}}
  %0:2 = train.attention %q, %k, %v {scale = 1.0, split = #train<attention_split heads>} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x4x3xf32>)
  return
}

// -----

// train.attention_grad_c1
func.func @attention_grad_c1(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %o: tensor<2x4x3x6xf32>, %l: tensor<2x4x3xf32>, %d: tensor<2x4x3x8xf32>) {
  // expected-error@+1 {{output_grad has type 'tensor<2x4x3x8xf32>', expected 'tensor<2x4x3x6xf32>'}}
  %0:3 = train.attention_grad %q, %k, %v, %o, %l, %d {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x4x3x6xf32>, tensor<2x4x3xf32>, tensor<2x4x3x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>)
  return
}

// -----

// train.attention_grad_c2
func.func @attention_grad_c2(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %o: tensor<2x4x3x6xf32>, %l: tensor<2x4x3xf32>, %d: tensor<2x4x3x6xf32>) {
  // expected-error@+1 {{query_grad has type 'tensor<2x4x3x6xf32>', expected 'tensor<2x4x3x8xf32>' or 'tensor<2x4x3x8xf32>'}}
  %0:3 = train.attention_grad %q, %k, %v, %o, %l, %d {scale = 1.0} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x4x3x6xf32>, tensor<2x4x3xf32>, tensor<2x4x3x6xf32>) -> (tensor<2x4x3x6xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>)
  return
}

// -----

// train.attention_grad_c2
func.func @attention_grad_c2_key(%q: tensor<2x4x3x8xbf16>, %k: tensor<2x2x5x8xbf16>, %v: tensor<2x2x5x6xbf16>, %o: tensor<2x4x3x6xbf16>, %l: tensor<2x4x3xf32>, %d: tensor<2x4x3x6xbf16>) {
  // expected-error@+1 {{key_grad has type 'tensor<2x2x5x8xf16>', expected 'tensor<2x2x5x8xbf16>' or 'tensor<2x2x5x8xf32>'}}
  %0:3 = train.attention_grad %q, %k, %v, %o, %l, %d {scale = 1.0, partial} : (tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x6xbf16>, tensor<2x4x3x6xbf16>, tensor<2x4x3xf32>, tensor<2x4x3x6xbf16>) -> (tensor<2x4x3x8xbf16>, tensor<2x2x5x8xf16>, tensor<2x2x5x6xbf16>)
  return
}

// -----

// train.attention_grad_c2
func.func @attention_grad_c2_value(%q: tensor<2x4x3x8xbf16>, %k: tensor<2x2x5x8xbf16>, %v: tensor<2x2x5x6xbf16>, %o: tensor<2x4x3x6xbf16>, %l: tensor<2x4x3xf32>, %d: tensor<2x4x3x6xbf16>) {
  // expected-error@+1 {{value_grad has type 'tensor<2x2x5x6xf64>', expected 'tensor<2x2x5x6xbf16>' or 'tensor<2x2x5x6xf32>'}}
  %0:3 = train.attention_grad %q, %k, %v, %o, %l, %d {scale = 1.0, partial} : (tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x6xbf16>, tensor<2x4x3x6xbf16>, tensor<2x4x3xf32>, tensor<2x4x3x6xbf16>) -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xbf16>, tensor<2x2x5x6xf64>)
  return
}

// -----

// train.attention_c9
func.func @attention_grad_c9(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %o: tensor<2x4x3x6xf32>, %l: tensor<2x4x3xf32>, %d: tensor<2x4x3x6xf32>, %b: tensor<1x3xi64>) {
  // expected-error@+1 {{has one end of the keys that are seen, expected both or none}}
  %0:3 = "train.attention_grad"(%q, %k, %v, %b, %o, %l, %d) <{scale = 1.0, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1, 1, 1, 1>}> : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<1x3xi64>, tensor<2x4x3x6xf32>, tensor<2x4x3xf32>, tensor<2x4x3x6xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>)
  return
}

// -----

// train.attention_c11
func.func @attention_grad_c11(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %o: tensor<2x4x3x6xf32>, %l: tensor<2x4x3xf32>, %d: tensor<2x4x3x6xf32>) {
  // expected-error@+1 {{has a window of 3 keys, expected at least 1, and causal}}
  %0:3 = train.attention_grad %q, %k, %v, %o, %l, %d {scale = 1.0, window = 3 : i64} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x4x3x6xf32>, tensor<2x4x3xf32>, tensor<2x4x3x6xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>)
  return
}

// -----

// train.quantize_c1
func.func @quantize_c1(%x: tensor<2x3xf32>, %s: tensor<2x1xf32>) {
  // expected-error@+1 {{result has element type 'bf16', expected f8E4M3FN or f8E5M2}}
  %0 = train.quantize %x, %s : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xbf16>
  return
}

// -----

// train.quantize_c2
func.func @quantize_c2(%x: tensor<2x3xf32>, %s: tensor<2x1xf32>) {
  // expected-error@+1 {{result has type 'tensor<3x2xf8E5M2>', expected 'tensor<2x3xf8E5M2>'}}
  %0 = train.quantize %x, %s : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<3x2xf8E5M2>
  return
}

// -----

// train.quantize_c3
func.func @quantize_c3(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{scale has type 'tensor<2xf32>', expected a scalar or the rank of 'tensor<2x3xf32>' with divisors of its sizes}}
  %0 = train.quantize %x, %s : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf8E4M3FN>
  return
}

// -----

// train.quantize_c3_blocks
func.func @quantize_c3_blocks(%x: tensor<2x6xf32>, %s: tensor<2x4xf32>) {
  // expected-error@+1 {{scale has type 'tensor<2x4xf32>', expected a scalar or the rank of 'tensor<2x6xf32>' with divisors of its sizes}}
  %0 = train.quantize %x, %s : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<2x6xf8E4M3FN>
  return
}

// -----

// train.quantize_c3_f64
func.func @quantize_c3_f64(%x: tensor<2x3xf32>, %s: tensor<f64>) {
  // expected-error@+1 {{scale has element type 'f64', expected f32}}
  %0 = train.quantize %x, %s : (tensor<2x3xf32>, tensor<f64>) -> tensor<2x3xf8E4M3FN>
  return
}

// -----

// train.quantize_c4
func.func @quantize_c4(%x: tensor<2x3xf64>, %s: tensor<f32>) {
  // expected-error@+1 {{operand has element type 'f64', expected f32, bf16 or f16}}
  %0 = train.quantize %x, %s : (tensor<2x3xf64>, tensor<f32>) -> tensor<2x3xf8E4M3FN>
  return
}

// -----

// train.quantize_scale_c1
func.func @quantize_scale_c1(%a: tensor<2xf32>) {
  // expected-error@+1 {{format has element type 'bf16', expected f8E4M3FN or f8E5M2}}
  %0 = train.quantize_scale none, %a {format = bf16} : tensor<2xf32>
  return
}

// -----

// train.quantize_scale_c2
func.func @quantize_scale_c2(%a: tensor<2xf64>) {
  // expected-error@+1 {{result has element type 'f64', expected f32}}
  %0 = train.quantize_scale none, %a {format = f8E5M2} : tensor<2xf64>
  return
}

// -----

// train.scaled_dot_c1
func.func @scaled_dot_c1(%a: tensor<2x8xf8E4M3FN>, %b: tensor<4x8xbf16>, %s: tensor<f32>) {
  // expected-error@+1 {{rhs has element type 'bf16', expected f8E4M3FN or f8E5M2}}
  %0 = train.scaled_dot %a, %b scaled %s, %s {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x8xf8E4M3FN>, tensor<4x8xbf16>, tensor<f32>, tensor<f32>) -> tensor<2x4xf32>
  return
}

// -----

// train.scaled_dot_c2
func.func @scaled_dot_c2(%a: tensor<2x8xf8E4M3FN>, %b: tensor<4x8xf8E5M2>, %s: tensor<f32>) {
  // expected-error@+1 {{result has type 'tensor<4x2xf32>', expected 'tensor<2x4xf32>'}}
  %0 = train.scaled_dot %a, %b scaled %s, %s {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x8xf8E4M3FN>, tensor<4x8xf8E5M2>, tensor<f32>, tensor<f32>) -> tensor<4x2xf32>
  return
}

// -----

// train.scaled_dot_c3
func.func @scaled_dot_c3(%a: tensor<2x8xf8E4M3FN>, %b: tensor<4x8xf8E4M3FN>, %s: tensor<f32>, %t: tensor<3x1xf32>) {
  // expected-error@+1 {{rhs_inverse_scale has type 'tensor<3x1xf32>', expected a scalar or the rank of 'tensor<4x8xf8E4M3FN>' with divisors of its sizes}}
  %0 = train.scaled_dot %a, %b scaled %s, %t {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<3x1xf32>) -> tensor<2x4xf32>
  return
}

// -----

// train.scaled_dot_c4
func.func @scaled_dot_c4(%a: tensor<2x8xf8E4M3FN>, %b: tensor<4x8xf8E4M3FN>, %s: tensor<2x2xf32>, %t: tensor<4x4xf32>) {
  // expected-error@+1 {{has 2 scales along dimension 1 of lhs, and 4 along dimension 1 of rhs, which is contracted with it}}
  %0 = train.scaled_dot %a, %b scaled %s, %t {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<2x2xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// train.scaled_dot_c5
func.func @scaled_dot_c5(%a: tensor<2x8xf8E4M3FN>, %b: tensor<4x8xf8E4M3FN>, %s: tensor<f32>) {
  // expected-error@+1 {{result has element type 'f8E4M3FN', expected f32, bf16 or f16}}
  %0 = train.scaled_dot %a, %b scaled %s, %s {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<2x4xf8E4M3FN>
  return
}

// -----

// train.dequantize_c1
func.func @dequantize_c1(%x: tensor<2x3xf32>, %s: tensor<2x1xf32>) {
  // expected-error@+1 {{operand has element type 'f32', expected f8E4M3FN or f8E5M2}}
  %0 = train.dequantize %x, %s : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return
}

// -----

// train.dequantize_c2
func.func @dequantize_c2(%x: tensor<2x3xf8E4M3FN>, %s: tensor<2x1xf32>) {
  // expected-error@+1 {{result has type 'tensor<3x2xf32>', expected 'tensor<2x3xf32>'}}
  %0 = train.dequantize %x, %s : (tensor<2x3xf8E4M3FN>, tensor<2x1xf32>) -> tensor<3x2xf32>
  return
}

// -----

// train.dequantize_c3
func.func @dequantize_c3(%x: tensor<2x3xf8E4M3FN>, %s: tensor<1x2xf32>) {
  // expected-error@+1 {{inverse_scale has type 'tensor<1x2xf32>', expected a scalar}}
  %0 = train.dequantize %x, %s : (tensor<2x3xf8E4M3FN>, tensor<1x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

// train.dequantize_c4
func.func @dequantize_c4(%x: tensor<2x3xf8E4M3FN>, %s: tensor<f32>) {
  // expected-error@+1 {{result has element type 'f64', expected f32, bf16 or f16}}
  %0 = train.dequantize %x, %s : (tensor<2x3xf8E4M3FN>, tensor<f32>) -> tensor<2x3xf64>
  return
}

// -----

func.func @gelu_integers(%x: tensor<2xi32>) {
  // expected-error@+1 {{operand #0 must be statically shaped tensor of floating point}}
  %0 = train.gelu exact, %x : tensor<2xi32>
  return
}

// -----

func.func @gelu_form(%x: tensor<2xf32>) {
  // expected-error@+2 {{to be one of: exact, tanh}}
  // expected-error@+1 {{failed to parse Train_GeluFormAttr}}
  %0 = train.gelu erf, %x : tensor<2xf32>
  return
}

// -----

func.func @gelu_grad_shapes(%x: tensor<2xf32>, %dy: tensor<3xf32>) {
  // expected-note@-1 {{prior use here}}
  // expected-error@+1 {{use of value '%dy' expects different type than prior uses}}
  %0 = train.gelu_grad tanh, %dy, %x : tensor<2xf32>
  return
}
