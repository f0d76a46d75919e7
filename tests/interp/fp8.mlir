// RUN: tessera-interp %s
// Expected values are worked out from the definitions; those of PyTorch are in tests/end_to_end/test_fp8_casts.py.

// 448 / amax in f64; down to a power of two; the inverse of amax / 448 rounded up to one.
func.func @quantize_scale() {
  %amax = train.constant dense<[448.0, 1.0, 0.0, 1.0e-13, 0x7F800000, 7.0, 0x00800000]> : tensor<7xf32>
  %none = train.quantize_scale none, %amax {format = f8E4M3FN} : tensor<7xf32>
  %none_e = train.constant dense<[1.0, 448.0, 4.48e14, 4.48e14, 0.0, 64.0, 4.48e14]> : tensor<7xf32>
  check.expect_eq %none, %none_e : tensor<7xf32>
  %down = train.quantize_scale down, %amax {format = f8E4M3FN} : tensor<7xf32>
  %down_e = train.constant dense<[1.0, 256.0, 281474976710656.0, 281474976710656.0, 0.0, 64.0, 281474976710656.0]> : tensor<7xf32>
  check.expect_eq %down, %down_e : tensor<7xf32>
  %wide = train.quantize_scale down, %amax {format = f8E5M2, one_if_not_finite} : tensor<7xf32>
  %wide_e = train.constant dense<[128.0, 32768.0, 36028797018963968.0, 36028797018963968.0, 1.0, 8192.0, 36028797018963968.0]> : tensor<7xf32>
  check.expect_eq %wide, %wide_e : tensor<7xf32>
  %small = train.constant dense<[448.0, 449.0, 447.0, 1.0, 0.0, 0x00800000]> : tensor<6xf32>
  %e8m0 = train.quantize_scale e8m0, %small {format = f8E4M3FN} : tensor<6xf32>
  %e8m0_e = train.constant dense<[1.0, 0.5, 1.0, 256.0, 0x7F000000, 0x7F000000]> : tensor<6xf32>
  check.expect_eq %e8m0, %e8m0_e : tensor<6xf32>
  return
}

// What is not a number, and infinities where the quotient has to be a number.
func.func @not_finite() {
  %amax = train.constant dense<[0x7FC00000, 0x7F800000]> : tensor<2xf32>
  %nan = train.quantize_scale e8m0, %amax {format = f8E4M3FN} : tensor<2xf32>
  %isNumber = train.compare eq, %nan, %nan : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  %no = train.constant dense<false> : tensor<2xi1>
  check.expect_eq %isNumber, %no : tensor<2xi1>
  %down = train.quantize_scale down, %amax {format = f8E4M3FN} : tensor<2xf32>
  %isSame = train.compare eq, %down, %down : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  %first = train.constant dense<[false, true]> : tensor<2xi1>
  check.expect_eq %isSame, %first : tensor<2xi1>
  %one = train.quantize_scale none, %amax {format = f8E4M3FN, one_if_not_finite} : tensor<2xf32>
  %one_e = train.constant dense<1.0> : tensor<2xf32>
  check.expect_eq %one, %one_e : tensor<2xf32>
  return
}

// Blocks of two by four; 17 and 19 lie between 16, 18 and 20: ties go to even digits. 2^-10 is half of the smallest number.
func.func @blocks() {
  %x = train.constant dense<[[17.0, 19.0, -17.0, 1000.0, 1.0, 2.0, 3.0, 9.765625e-04],
                             [-0.0, 1.953125e-03, 2.9296875e-03, 0x7F800000, 0.5, 300.0, -300.0, 0.0]]> : tensor<2x8xf32>
  %s = train.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %q = train.quantize %x, %s : (tensor<2x8xf32>, tensor<1x2xf32>) -> tensor<2x8xf8E4M3FN>
  %q_e = train.constant dense<[[16.0, 20.0, -16.0, 448.0, 2.0, 4.0, 6.0, 1.953125e-03],
                               [-0.0, 1.953125e-03, 3.90625e-03, 448.0, 1.0, 448.0, -448.0, 0.0]]> : tensor<2x8xf8E4M3FN>
  check.expect_eq %q, %q_e : tensor<2x8xf8E4M3FN>
  %i = train.constant dense<[[1.0, 0.5]]> : tensor<1x2xf32>
  %d = train.dequantize %q, %i : (tensor<2x8xf8E4M3FN>, tensor<1x2xf32>) -> tensor<2x8xf32>
  %d_e = train.constant dense<[[16.0, 20.0, -16.0, 448.0, 1.0, 2.0, 3.0, 9.765625e-04],
                               [-0.0, 1.953125e-03, 3.90625e-03, 448.0, 0.5, 224.0, -224.0, 0.0]]> : tensor<2x8xf32>
  check.expect_eq %d, %d_e : tensor<2x8xf32>
  return
}

// 1.0625 (1 + 2^-4) is half way between 1 and 1.125. (1 + 2^-23) * 1.0625 / (1 + 2^-23), in f32, is a tie again, which goes to 1;
// a product with more digits would be above it.
func.func @rounded_to_f32_first() {
  %x = train.constant dense<0x3F800001> : tensor<1xf32>
  %s = train.constant dense<0x3F87FFFF> : tensor<f32>
  %q = train.quantize %x, %s : (tensor<1xf32>, tensor<f32>) -> tensor<1xf8E4M3FN>
  %q_e = train.constant dense<1.0> : tensor<1xf8E4M3FN>
  check.expect_eq %q, %q_e : tensor<1xf8E4M3FN>
  return
}

// Two scales along what is contracted on one side, one on the other.
func.func @scaled_dot() {
  %a = train.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf8E4M3FN>
  %b = train.constant dense<[[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, 1.0]]> : tensor<2x4xf8E5M2>
  %sa = train.constant dense<[[1.0, 10.0], [1.0, 100.0]]> : tensor<2x2xf32>
  %sb = train.constant dense<[[1.0], [3.0]]> : tensor<2x1xf32>
  %y = train.scaled_dot %a, %b scaled %sa, %sb {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x4xf8E4M3FN>, tensor<2x4xf8E5M2>, tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %y_e = train.constant dense<[[73.0, 126.0], [1511.0, 2430.0]]> : tensor<2x2xf32>
  check.expect_eq %y, %y_e : tensor<2x2xf32>
  return
}
