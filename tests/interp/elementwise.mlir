// RUN: tessera-interp %s

func.func @unary() {
  %x = train.constant dense<[-1.0, 0.5, 4.0]> : tensor<3xf32>
  %positive = train.constant dense<[0.25, 1.0, 4.0]> : tensor<3xf32>
  %neg = train.neg %x : tensor<3xf32>
  %neg_e = train.constant dense<[1.0, -0.5, -4.0]> : tensor<3xf32>
  check.expect_eq %neg, %neg_e : tensor<3xf32>
  %abs = train.abs %x : tensor<3xf32>
  %abs_e = train.constant dense<[1.0, 0.5, 4.0]> : tensor<3xf32>
  check.expect_eq %abs, %abs_e : tensor<3xf32>
  %exp = train.exp %x : tensor<3xf32>
  %exp_e = train.constant dense<[0.36787944, 1.64872127, 54.59815003]> : tensor<3xf32>
  check.expect_close %exp, %exp_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %log = train.log %positive : tensor<3xf32>
  %log_e = train.constant dense<[-1.38629436, 0.0, 1.38629436]> : tensor<3xf32>
  check.expect_close %log, %log_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %sqrt = train.sqrt %positive : tensor<3xf32>
  %sqrt_e = train.constant dense<[0.5, 1.0, 2.0]> : tensor<3xf32>
  check.expect_eq %sqrt, %sqrt_e : tensor<3xf32>
  %rsqrt = train.rsqrt %positive : tensor<3xf32>
  %rsqrt_e = train.constant dense<[2.0, 1.0, 0.5]> : tensor<3xf32>
  check.expect_eq %rsqrt, %rsqrt_e : tensor<3xf32>
  %tanh = train.tanh %x : tensor<3xf32>
  %tanh_e = train.constant dense<[-0.76159416, 0.46211716, 0.99932930]> : tensor<3xf32>
  check.expect_close %tanh, %tanh_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %erf = train.erf %x : tensor<3xf32>
  %erf_e = train.constant dense<[-0.84270079, 0.52049988, 0.99999998]> : tensor<3xf32>
  check.expect_close %erf, %erf_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %sin = train.sin %x : tensor<3xf32>
  %sin_e = train.constant dense<[-0.84147098, 0.47942554, -0.75680250]> : tensor<3xf32>
  check.expect_close %sin, %sin_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %cos = train.cos %x : tensor<3xf32>
  %cos_e = train.constant dense<[0.54030231, 0.87758256, -0.65364362]> : tensor<3xf32>
  check.expect_close %cos, %cos_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %expm1 = train.expm1 %x : tensor<3xf32>
  %expm1_e = train.constant dense<[-0.63212056, 0.64872127, 53.59815003]> : tensor<3xf32>
  check.expect_close %expm1, %expm1_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %log1p = train.log1p %positive : tensor<3xf32>
  %log1p_e = train.constant dense<[0.22314355, 0.69314718, 1.60943791]> : tensor<3xf32>
  check.expect_close %log1p, %log1p_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %sigmoid = train.sigmoid %x : tensor<3xf32>
  %sigmoid_e = train.constant dense<[0.26894142, 0.62245933, 0.98201379]> : tensor<3xf32>
  check.expect_close %sigmoid, %sigmoid_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %softplus = train.softplus %x : tensor<3xf32>
  %softplus_e = train.constant dense<[0.31326169, 0.97407698, 4.01814993]> : tensor<3xf32>
  check.expect_close %softplus, %softplus_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %grad = train.constant dense<[2.0, -1.0, 0.5]> : tensor<3xf32>
  %gelu_exact = train.gelu exact, %x : tensor<3xf32>
  %gelu_exact_e = train.constant dense<[-0.15865525, 0.34573123, 3.99987332]> : tensor<3xf32>
  check.expect_close %gelu_exact, %gelu_exact_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %gelu_exact_grad = train.gelu_grad exact, %grad, %x : tensor<3xf32>
  %gelu_exact_grad_e = train.constant dense<[-0.16663094, -0.86749512, 0.50025182]> : tensor<3xf32>
  check.expect_close %gelu_exact_grad, %gelu_exact_grad_e {rtol = 1.0e-6, atol = 0.0} : tensor<3xf32>
  %gelu_tanh = train.gelu tanh, %x : tensor<3xf32>
  %gelu_tanh_e = train.constant dense<[-0.15880801, 0.34571401, 3.99992975]> : tensor<3xf32>
  check.expect_close %gelu_tanh, %gelu_tanh_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %gelu_tanh_grad = train.gelu_grad tanh, %grad, %x : tensor<3xf32>
  %gelu_tanh_grad_e = train.constant dense<[-0.16592817, -0.86736990, 0.50016756]> : tensor<3xf32>
  check.expect_close %gelu_tanh_grad, %gelu_tanh_grad_e {rtol = 1.0e-6, atol = 0.0} : tensor<3xf32>
  %atan = train.atan %x : tensor<3xf32>
  %atan_e = train.constant dense<[-0.78539816, 0.46364761, 1.32581766]> : tensor<3xf32>
  check.expect_close %atan, %atan_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %unit = train.constant dense<[-1.0, 0.5, 0.25]> : tensor<3xf32>
  %asin = train.asin %unit : tensor<3xf32>
  %asin_e = train.constant dense<[-1.57079633, 0.52359878, 0.25268026]> : tensor<3xf32>
  check.expect_close %asin, %asin_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %acos = train.acos %unit : tensor<3xf32>
  %acos_e = train.constant dense<[3.14159265, 1.04719755, 1.31811607]> : tensor<3xf32>
  check.expect_close %acos, %acos_e {rtol = 2.0e-7, atol = 0.0} : tensor<3xf32>
  %halves = train.constant dense<[0.5, 1.5, -2.5]> : tensor<3xf32>
  %round = train.round %halves : tensor<3xf32>
  %round_e = train.constant dense<[0.0, 2.0, -2.0]> : tensor<3xf32>
  check.expect_eq %round, %round_e : tensor<3xf32>
  %floor = train.floor %x : tensor<3xf32>
  %floor_e = train.constant dense<[-1.0, 0.0, 4.0]> : tensor<3xf32>
  check.expect_eq %floor, %floor_e : tensor<3xf32>
  %stop = train.stop_gradient %x : tensor<3xf32>
  check.expect_eq %stop, %x : tensor<3xf32>
  %barrier = train.barrier %x {segment = "h.0"} : tensor<3xf32>
  check.expect_eq %barrier, %x : tensor<3xf32>
  return
}

func.func @binary() {
  %a = train.constant dense<[3.0, -2.0, 0.0]> : tensor<3xf32>
  %b = train.constant dense<[2.0, 2.0, -4.0]> : tensor<3xf32>
  %add = train.add %a, %b : tensor<3xf32>
  %add_e = train.constant dense<[5.0, 0.0, -4.0]> : tensor<3xf32>
  check.expect_eq %add, %add_e : tensor<3xf32>
  %sub = train.sub %a, %b : tensor<3xf32>
  %sub_e = train.constant dense<[1.0, -4.0, 4.0]> : tensor<3xf32>
  check.expect_eq %sub, %sub_e : tensor<3xf32>
  %mul = train.mul %a, %b : tensor<3xf32>
  %mul_e = train.constant dense<[6.0, -4.0, -0.0]> : tensor<3xf32>
  check.expect_eq %mul, %mul_e : tensor<3xf32>
  %div = train.div %a, %b : tensor<3xf32>
  %div_e = train.constant dense<[1.5, -1.0, -0.0]> : tensor<3xf32>
  check.expect_eq %div, %div_e : tensor<3xf32>
  %max = train.max %a, %b : tensor<3xf32>
  %max_e = train.constant dense<[3.0, 2.0, 0.0]> : tensor<3xf32>
  check.expect_eq %max, %max_e : tensor<3xf32>
  %pow = train.pow %a, %b : tensor<3xf32>
  %pow_e = train.constant dense<[9.0, 4.0, 0x7F800000]> : tensor<3xf32>
  check.expect_eq %pow, %pow_e : tensor<3xf32>
  return
}

func.func @nan() {
  %a = train.constant dense<[0x7FC00000, 1.0]> : tensor<2xf32>
  %b = train.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>
  %max = train.max %a, %b : tensor<2xf32>
  %nan = train.constant dense<0x7FC00000> : tensor<2xf32>
  check.expect_eq %max, %nan : tensor<2xf32>
  %lt = train.compare lt, %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  %false = train.constant dense<false> : tensor<2xi1>
  check.expect_eq %lt, %false : tensor<2xi1>
  %ne = train.compare ne, %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  %true = train.constant dense<true> : tensor<2xi1>
  check.expect_eq %ne, %true : tensor<2xi1>
  return
}

func.func @integers() {
  %a = train.constant dense<[7, -7, 127]> : tensor<3xi8>
  %b = train.constant dense<[2, 2, 1]> : tensor<3xi8>
  %add = train.add %a, %b : tensor<3xi8>
  %add_e = train.constant dense<[9, -5, -128]> : tensor<3xi8>
  check.expect_eq %add, %add_e : tensor<3xi8>
  %div = train.div %a, %b : tensor<3xi8>
  %div_e = train.constant dense<[3, -3, 127]> : tensor<3xi8>
  check.expect_eq %div, %div_e : tensor<3xi8>
  %p = train.constant dense<[true, true, false]> : tensor<3xi1>
  %q = train.constant dense<[true, false, false]> : tensor<3xi1>
  %and = train.mul %p, %q : tensor<3xi1>
  check.expect_eq %and, %q : tensor<3xi1>
  %or = train.max %p, %q : tensor<3xi1>
  check.expect_eq %or, %p : tensor<3xi1>
  %s = train.select %q, %a, %b : tensor<3xi1>, tensor<3xi8>
  %s_e = train.constant dense<[7, 2, 1]> : tensor<3xi8>
  check.expect_eq %s, %s_e : tensor<3xi8>
  return
}

// bf16 has 8 bits of precision: 257 is half way between 256 and 258, and ties go to even.
func.func @convert() {
  %x = train.constant dense<[257.0, -1.75, 0.0]> : tensor<3xf32>
  %half = train.convert %x : (tensor<3xf32>) -> tensor<3xbf16>
  %half_e = train.constant dense<[256.0, -1.75, 0.0]> : tensor<3xbf16>
  check.expect_eq %half, %half_e : tensor<3xbf16>
  %int = train.convert %x : (tensor<3xf32>) -> tensor<3xi32>
  %int_e = train.constant dense<[257, -1, 0]> : tensor<3xi32>
  check.expect_eq %int, %int_e : tensor<3xi32>
  %bool = train.convert %x : (tensor<3xf32>) -> tensor<3xi1>
  %bool_e = train.constant dense<[true, true, false]> : tensor<3xi1>
  check.expect_eq %bool, %bool_e : tensor<3xi1>
  %back = train.convert %bool : (tensor<3xi1>) -> tensor<3xf64>
  %back_e = train.constant dense<[1.0, 1.0, 0.0]> : tensor<3xf64>
  check.expect_eq %back, %back_e : tensor<3xf64>
  return
}

// A result in f32 is rounded to f32, in f64 it is not.
func.func @rounding() {
  %tiny = train.constant dense<1.0e-9> : tensor<f32>
  %one = train.constant dense<1.0> : tensor<f32>
  %sum = train.add %one, %tiny : tensor<f32>
  check.expect_eq %sum, %one : tensor<f32>
  %tiny64 = train.constant dense<1.0e-9> : tensor<f64>
  %one64 = train.constant dense<1.0> : tensor<f64>
  %sum64 = train.add %one64, %tiny64 : tensor<f64>
  %sum64_e = train.constant dense<1.000000001> : tensor<f64>
  check.expect_eq %sum64, %sum64_e : tensor<f64>
  return
}
