// RUN: tessera-interp %s
// Expected values are worked out from the definitions.

func.func @softmax() {
  %x = train.constant dense<[[1.0, 3.0], [2.0, 3.0]]> : tensor<2x2xf32>
  %y = train.softmax %x {dim = 0 : i64} : tensor<2x2xf32>
  %e = train.constant dense<[[0.26894142, 0.5], [0.73105858, 0.5]]> : tensor<2x2xf32>
  check.expect_close %y, %e {rtol = 2.0e-7} : tensor<2x2xf32>
  return
}

func.func @layer_norm() {
  %x = train.constant dense<[[1.0, 2.0, 6.0]]> : tensor<1x3xf32>
  %w = train.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = train.constant dense<[0.5, 0.0, -0.5]> : tensor<3xf32>
  %y, %mean, %rstd = train.layer_norm layer, %x scale(%w) bias(%b) {epsilon = 1.0e-05} : (tensor<1x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<1x3xf32>, tensor<1xf32>, tensor<1xf32>)
  %y_e = train.constant dense<[[-0.42582, -0.92582, 3.66619]]> : tensor<1x3xf32>
  check.expect_close %y, %y_e {rtol = 1.0e-5} : tensor<1x3xf32>
  %mean_e = train.constant dense<3.0> : tensor<1xf32>
  check.expect_eq %mean, %mean_e : tensor<1xf32>
  %rstd_e = train.constant dense<0.46290955> : tensor<1xf32>
  check.expect_close %rstd, %rstd_e {rtol = 2.0e-6} : tensor<1xf32>
  return
}

func.func @rms_norm() {
  %x = train.constant dense<[[3.0, 4.0]]> : tensor<1x2xf32>
  %y, %mean, %rstd = train.layer_norm rms, %x {epsilon = 0.0} : (tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1xf32>, tensor<1xf32>)
  %y_e = train.constant dense<[[0.84852814, 1.13137085]]> : tensor<1x2xf32>
  check.expect_close %y, %y_e {rtol = 2.0e-7} : tensor<1x2xf32>
  %zero = train.constant dense<0.0> : tensor<1xf32>
  check.expect_eq %mean, %zero : tensor<1xf32>
  return
}

func.func @cross_entropy() {
  %x = train.constant dense<[[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [5.0, 1.0, 1.0]]> : tensor<3x3xf32>
  %t = train.constant dense<[2, 0, -100]> : tensor<3xi32>
  %loss, %lse = train.cross_entropy %x, %t {ignore_index = -100 : i64, label_smoothing = 0.1} : (tensor<3x3xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  %loss_e = train.constant dense<[0.50760596, 1.09861229, 0.0]> : tensor<3xf32>
  check.expect_close %loss, %loss_e {rtol = 1.0e-6} : tensor<3xf32>
  %lse_e = train.constant dense<[3.40760596, 1.09861229, 5.03597633]> : tensor<3xf32>
  check.expect_close %lse, %lse_e {rtol = 1.0e-5} : tensor<3xf32>
  %n = train.count_valid %t {ignore_index = -100 : i64} : (tensor<3xi32>) -> tensor<f32>
  %two = train.constant dense<2.0> : tensor<f32>
  check.expect_eq %n, %two : tensor<f32>
  %none = train.constant dense<-100> : tensor<3xi32>
  %m = train.count_valid %none {ignore_index = -100 : i64} : (tensor<3xi32>) -> tensor<f32>
  %one = train.constant dense<1.0> : tensor<f32>
  check.expect_eq %m, %one : tensor<f32>
  return
}

// Attention equals its definition by softmax and products; two query heads share one key head.
func.func @attention(%q: tensor<2x4x3x2xf32>, %k: tensor<2x2x3x2xf32>, %v: tensor<2x2x3x5xf32>) {
  %out, %lse = train.attention %q, %k, %v {scale = 0.5, causal} : (tensor<2x4x3x2xf32>, tensor<2x2x3x2xf32>, tensor<2x2x3x5xf32>) -> (tensor<2x4x3x5xf32>, tensor<2x4x3xf32>)
  %k4 = train.broadcast %k {broadcast_dimensions = array<i64: 0, 1, 3, 4>} : (tensor<2x2x3x2xf32>) -> tensor<2x2x2x3x2xf32>
  %kk = train.reshape %k4 : (tensor<2x2x2x3x2xf32>) -> tensor<2x4x3x2xf32>
  %v4 = train.broadcast %v {broadcast_dimensions = array<i64: 0, 1, 3, 4>} : (tensor<2x2x3x5xf32>) -> tensor<2x2x2x3x5xf32>
  %vv = train.reshape %v4 : (tensor<2x2x2x3x5xf32>) -> tensor<2x4x3x5xf32>
  %s = train.dot_general %q, %kk {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>) -> tensor<2x4x3x3xf32>
  %half = train.constant dense<0.5> : tensor<2x4x3x3xf32>
  %scaled = train.mul %s, %half : tensor<2x4x3x3xf32>
  %rows = train.iota {dim = 2 : i64} : tensor<2x4x3x3xi32>
  %columns = train.iota {dim = 3 : i64} : tensor<2x4x3x3xi32>
  %seen = train.compare le, %columns, %rows : (tensor<2x4x3x3xi32>, tensor<2x4x3x3xi32>) -> tensor<2x4x3x3xi1>
  %minus = train.constant dense<0xFF800000> : tensor<2x4x3x3xf32>
  %masked = train.select %seen, %scaled, %minus : tensor<2x4x3x3xi1>, tensor<2x4x3x3xf32>
  %p = train.softmax %masked {dim = 3 : i64} : tensor<2x4x3x3xf32>
  %e = train.dot_general %p, %vv {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x4x3x3xf32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x5xf32>
  check.expect_close %out, %e {rtol = 1.0e-6, atol = 1.0e-6} : tensor<2x4x3x5xf32>
  // The same by a boolean and by an added mask.
  %seen1 = train.slice %seen {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 1, 1, 3, 3>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x4x3x3xi1>) -> tensor<1x1x3x3xi1>
  %byBool, %lseBool = train.attention %q, %k, %v mask(%seen1) {scale = 0.5} : (tensor<2x4x3x2xf32>, tensor<2x2x3x2xf32>, tensor<2x2x3x5xf32>, tensor<1x1x3x3xi1>) -> (tensor<2x4x3x5xf32>, tensor<2x4x3xf32>)
  check.expect_eq %byBool, %out : tensor<2x4x3x5xf32>
  check.expect_eq %lseBool, %lse : tensor<2x4x3xf32>
  %zero = train.constant dense<0.0> : tensor<1x1x3x3xf32>
  %minus1 = train.constant dense<0xFF800000> : tensor<1x1x3x3xf32>
  %added = train.select %seen1, %zero, %minus1 : tensor<1x1x3x3xi1>, tensor<1x1x3x3xf32>
  %byAdd, %lseAdd = train.attention %q, %k, %v mask(%added) {scale = 0.5} : (tensor<2x4x3x2xf32>, tensor<2x2x3x2xf32>, tensor<2x2x3x5xf32>, tensor<1x1x3x3xf32>) -> (tensor<2x4x3x5xf32>, tensor<2x4x3xf32>)
  check.expect_eq %byAdd, %out : tensor<2x4x3x5xf32>
  return
}

// A row that attends to nothing gives 0.
func.func @attention_to_nothing(%q: tensor<1x1x1x2xf32>, %k: tensor<1x1x2x2xf32>) {
  %no = train.constant dense<false> : tensor<1x1x1x2xi1>
  %out, %lse = train.attention %q, %k, %k mask(%no) {scale = 1.0} : (tensor<1x1x1x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x1x2xi1>) -> (tensor<1x1x1x2xf32>, tensor<1x1x1xf32>)
  %zero = train.constant dense<0.0> : tensor<1x1x1x2xf32>
  check.expect_eq %out, %zero : tensor<1x1x1x2xf32>
  %minus = train.constant dense<0xFF800000> : tensor<1x1x1xf32>
  check.expect_eq %lse, %minus : tensor<1x1x1xf32>
  return
}

// e4m3: 448 is the largest number, 3 mantissa bits; e5m2: 57344, 2 bits.
func.func @quantize() {
  %x = train.constant dense<[[1.0, 1000.0], [-3.3, 0.1]]> : tensor<2x2xf32>
  %scale = train.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %q = train.quantize %x, %scale : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf8E4M3FN>
  %q_e = train.constant dense<[[1.0, 448.0], [-6.5, 0.203125]]> : tensor<2x2xf8E4M3FN>
  check.expect_eq %q, %q_e : tensor<2x2xf8E4M3FN>
  %inverse = train.constant dense<[[1.0], [0.5]]> : tensor<2x1xf32>
  %d = train.dequantize %q, %inverse : (tensor<2x2xf8E4M3FN>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %d_e = train.constant dense<[[1.0, 448.0], [-3.25, 0.1015625]]> : tensor<2x2xf32>
  check.expect_eq %d, %d_e : tensor<2x2xf32>
  %one = train.constant dense<1.0> : tensor<f32>
  %h = train.quantize %x, %one : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf8E5M2>
  %h_e = train.constant dense<[[1.0, 1024.0], [-3.5, 0.09375]]> : tensor<2x2xf8E5M2>
  check.expect_eq %h, %h_e : tensor<2x2xf8E5M2>
  return
}
