// RUN: kernel-check %s | FileCheck %s
// RUN: kernel-check %s --target-cpu=x86-64 | FileCheck %s
// RUN: kernel-check %s --target-cpu=x86-64-v3 | FileCheck %s
// RUN: kernel-check --gpu %s | FileCheck %s
// RUN: kernel-check --ptx=sm_90 %s | FileCheck %s --check-prefix=PTX --implicit-check-not=.func

// What libdevice has as a function of its own (f64's pow) is part of the kernel, too.
// PTX: .entry unary(

// Every elementwise op on f32, in one kernel of odd size.
// CHECK: unary: ok, elementwise, extent 1003
func.func @unary(%x: tensor<1003xf32>) -> (tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>) {
  %abs = train.abs %x : tensor<1003xf32>
  %neg = train.neg %x : tensor<1003xf32>
  %exp = train.exp %x : tensor<1003xf32>
  %log = train.log %abs : tensor<1003xf32>
  %sqrt = train.sqrt %abs : tensor<1003xf32>
  %rsqrt = train.rsqrt %abs : tensor<1003xf32>
  %tanh = train.tanh %x : tensor<1003xf32>
  %erf = train.erf %x : tensor<1003xf32>
  %sin = train.sin %x : tensor<1003xf32>
  %cos = train.cos %x : tensor<1003xf32>
  %floor = train.floor %x : tensor<1003xf32>
  return %abs, %neg, %exp, %log, %sqrt, %rsqrt, %tanh, %erf, %sin, %cos, %floor : tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>
}

// tensor<1003xf32>he rest of them.
// CHECK: more_unary: ok, elementwise, extent 1003
func.func @more_unary(%x: tensor<1003xf32>) -> (tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>) {
  %bounded = train.sin %x : tensor<1003xf32>
  %abs = train.abs %x : tensor<1003xf32>
  %expm1 = train.expm1 %x : tensor<1003xf32>
  %log1p = train.log1p %abs : tensor<1003xf32>
  %sigmoid = train.sigmoid %x : tensor<1003xf32>
  %softplus = train.softplus %x : tensor<1003xf32>
  %atan = train.atan %x : tensor<1003xf32>
  %asin = train.asin %bounded : tensor<1003xf32>
  %acos = train.acos %bounded : tensor<1003xf32>
  %round = train.round %x : tensor<1003xf32>
  return %expm1, %log1p, %sigmoid, %softplus, %atan, %asin, %acos, %round : tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>
}

// Both forms of GELU and their gradients; narrow types are computed in f32 and rounded once.
// CHECK: gelu_f32: ok, elementwise
func.func @gelu_f32(%x: tensor<1003xf32>, %dy: tensor<1003xf32>) -> (tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>) {
  %exact = train.gelu exact, %x : tensor<1003xf32>
  %tanh = train.gelu tanh, %x : tensor<1003xf32>
  %exact_grad = train.gelu_grad exact, %dy, %x : tensor<1003xf32>
  %tanh_grad = train.gelu_grad tanh, %dy, %x : tensor<1003xf32>
  return %exact, %tanh, %exact_grad, %tanh_grad : tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>, tensor<1003xf32>
}

// CHECK: gelu_f64: ok, elementwise
func.func @gelu_f64(%x: tensor<1003xf64>, %dy: tensor<1003xf64>) -> (tensor<1003xf64>, tensor<1003xf64>, tensor<1003xf64>, tensor<1003xf64>) {
  %exact = train.gelu exact, %x : tensor<1003xf64>
  %tanh = train.gelu tanh, %x : tensor<1003xf64>
  %exact_grad = train.gelu_grad exact, %dy, %x : tensor<1003xf64>
  %tanh_grad = train.gelu_grad tanh, %dy, %x : tensor<1003xf64>
  return %exact, %tanh, %exact_grad, %tanh_grad : tensor<1003xf64>, tensor<1003xf64>, tensor<1003xf64>, tensor<1003xf64>
}

// CHECK: gelu_bf16: ok, elementwise
func.func @gelu_bf16(%x: tensor<1003xbf16>, %dy: tensor<1003xbf16>) -> (tensor<1003xbf16>, tensor<1003xbf16>, tensor<1003xbf16>, tensor<1003xbf16>) {
  %exact = train.gelu exact, %x : tensor<1003xbf16>
  %tanh = train.gelu tanh, %x : tensor<1003xbf16>
  %exact_grad = train.gelu_grad exact, %dy, %x : tensor<1003xbf16>
  %tanh_grad = train.gelu_grad tanh, %dy, %x : tensor<1003xbf16>
  return %exact, %tanh, %exact_grad, %tanh_grad : tensor<1003xbf16>, tensor<1003xbf16>, tensor<1003xbf16>, tensor<1003xbf16>
}

// CHECK: binary: ok
func.func @binary(%x: tensor<17x3xf32>, %y: tensor<17x3xf32>) -> (tensor<17x3xf32>, tensor<17x3xf32>, tensor<17x3xf32>, tensor<17x3xf32>, tensor<17x3xf32>, tensor<17x3xf32>) {
  %a = train.add %x, %y : tensor<17x3xf32>
  %s = train.sub %x, %y : tensor<17x3xf32>
  %m = train.mul %x, %y : tensor<17x3xf32>
  %d = train.div %x, %y : tensor<17x3xf32>
  %x2 = train.max %x, %y : tensor<17x3xf32>
  %abs = train.abs %x : tensor<17x3xf32>
  %p = train.pow %abs, %y : tensor<17x3xf32>
  return %a, %s, %m, %d, %x2, %p : tensor<17x3xf32>, tensor<17x3xf32>, tensor<17x3xf32>, tensor<17x3xf32>, tensor<17x3xf32>, tensor<17x3xf32>
}

// Booleans are one byte in memory; select, compare in all directions, logic.
// CHECK: booleans: ok
func.func @booleans(%x: tensor<100xf32>, %y: tensor<100xf32>, %p: tensor<100xi1>) -> (tensor<100xi1>, tensor<100xi1>, tensor<100xi1>, tensor<100xi1>, tensor<100xi1>, tensor<100xi1>, tensor<100xf32>, tensor<100xi1>, tensor<100xi1>, tensor<100xf32>) {
  %eq = train.compare eq, %x, %x : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xi1>
  %ne = train.compare ne, %x, %y : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xi1>
  %lt = train.compare lt, %x, %y : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xi1>
  %le = train.compare le, %x, %y : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xi1>
  %gt = train.compare gt, %x, %y : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xi1>
  %ge = train.compare ge, %x, %y : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xi1>
  %s = train.select %p, %x, %y : tensor<100xi1>, tensor<100xf32>
  %and = train.mul %p, %lt : tensor<100xi1>
  %or = train.max %p, %gt : tensor<100xi1>
  %f = train.convert %p : (tensor<100xi1>) -> tensor<100xf32>
  return %eq, %ne, %lt, %le, %gt, %ge, %s, %and, %or, %f : tensor<100xi1>, tensor<100xi1>, tensor<100xi1>, tensor<100xi1>, tensor<100xi1>, tensor<100xi1>, tensor<100xf32>, tensor<100xi1>, tensor<100xi1>, tensor<100xf32>
}

// CHECK: integers: ok
func.func @integers(%x: tensor<33xi32>, %y: tensor<33xi32>, %z: tensor<33xi64>) -> (tensor<33xi32>, tensor<33xi32>, tensor<33xi32>, tensor<33xi32>, tensor<33xi32>, tensor<33xi64>, tensor<33xf32>, tensor<33xi8>, tensor<33xi1>, tensor<33xi32>) {
  %one = train.constant dense<1> : tensor<33xi32>
  %n = train.neg %x : tensor<33xi32>
  %a = train.add %n, %y : tensor<33xi32>
  %s = train.sub %n, %y : tensor<33xi32>
  %m = train.mul %n, %y : tensor<33xi32>
  %y1 = train.add %y, %one : tensor<33xi32>
  %d = train.div %n, %y1 : tensor<33xi32>
  %x2 = train.max %n, %y : tensor<33xi32>
  %w = train.convert %n : (tensor<33xi32>) -> tensor<33xi64>
  %f = train.convert %n : (tensor<33xi32>) -> tensor<33xf32>
  %i8 = train.convert %z : (tensor<33xi64>) -> tensor<33xi8>
  %b = train.convert %x : (tensor<33xi32>) -> tensor<33xi1>
  %abs = train.abs %n : tensor<33xi32>
  return %a, %s, %m, %d, %x2, %w, %f, %i8, %b, %abs : tensor<33xi32>, tensor<33xi32>, tensor<33xi32>, tensor<33xi32>, tensor<33xi32>, tensor<33xi64>, tensor<33xf32>, tensor<33xi8>, tensor<33xi1>, tensor<33xi32>
}

// Each op on bf16 rounds its result.
// CHECK: bf16: ok
func.func @bf16(%x: tensor<1000xbf16>, %y: tensor<1000xbf16>) -> (tensor<1000xbf16>, tensor<1000xbf16>, tensor<1000xf32>, tensor<1000xbf16>) {
  %a = train.add %x, %y : tensor<1000xbf16>
  %m = train.mul %a, %y : tensor<1000xbf16>
  %f = train.convert %m : (tensor<1000xbf16>) -> tensor<1000xf32>
  %e = train.exp %f : tensor<1000xf32>
  %n = train.convert %e : (tensor<1000xf32>) -> tensor<1000xbf16>
  %t = train.tanh %x : tensor<1000xbf16>
  return %m, %n, %f, %t : tensor<1000xbf16>, tensor<1000xbf16>, tensor<1000xf32>, tensor<1000xbf16>
}

// CHECK: f64: ok
func.func @f64(%x: tensor<101xf64>, %y: tensor<101xf64>) -> (tensor<101xf64>, tensor<101xf64>, tensor<101xf64>, tensor<101xf32>) {
  %a = train.add %x, %y : tensor<101xf64>
  %e = train.exp %a : tensor<101xf64>
  %t = train.tanh %x : tensor<101xf64>
  %r = train.erf %y : tensor<101xf64>
  %f = train.convert %x : (tensor<101xf64>) -> tensor<101xf32>
  return %e, %t, %r, %f : tensor<101xf64>, tensor<101xf64>, tensor<101xf64>, tensor<101xf32>
}

// One element, and none.
// CHECK: scalar: ok, elementwise, extent 1
func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  %0 = train.exp %x : tensor<f32>
  return %0 : tensor<f32>
}
// CHECK: empty: ok
func.func @empty(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  %0 = train.exp %x : tensor<0x4xf32>
  return %0 : tensor<0x4xf32>
}

// Infinities and NaN come out as the ops say: max keeps NaN, exp(-inf) = 0, log(0) = -inf.
// CHECK: special: ok
func.func @special() -> (tensor<20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xi1>) {
  %x = train.constant dense<[0x7F800000, 0xFF800000, 0x7FC00000, 0.0, -0.0, 1.0, -1.0, 100.0, -100.0, 88.0, 1.0e-3, 3.0, 0x7F800000, 0xFF800000, 0x7FC00000, 0.5, 7.0, -7.0, 20.0, -20.0]> : tensor<20xf32>
  %y = train.constant dense<1.0> : tensor<20xf32>
  %e = train.exp %x : tensor<20xf32>
  %l = train.log %x : tensor<20xf32>
  %t = train.tanh %x : tensor<20xf32>
  %m = train.max %x, %y : tensor<20xf32>
  %a = train.erf %x : tensor<20xf32>
  %c = train.compare ne, %x, %x : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xi1>
  return %e, %l, %t, %m, %a, %c : tensor<20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xi1>
}

// Bases for which LLVM knows a function that no kernel may call: 2, a power of 2, 10; an integer exponent; roots.
// CHECK: powers: ok
func.func @powers(%x: tensor<37xf32>, %n: tensor<37xi32>, %d: tensor<37xf64>) -> (tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf64>, tensor<37xf32>) {
  %two = train.constant dense<2.0> : tensor<37xf32>
  %four = train.constant dense<4.0> : tensor<37xf32>
  %ten = train.constant dense<10.0> : tensor<37xf32>
  %half = train.constant dense<0.5> : tensor<37xf32>
  %third = train.constant dense<0.333333343> : tensor<37xf32>
  %wide = train.constant dense<2.0> : tensor<37xf64>
  %a = train.abs %x : tensor<37xf32>
  %i = train.convert %n : (tensor<37xi32>) -> tensor<37xf32>
  %p2 = train.pow %two, %x : tensor<37xf32>
  %p4 = train.pow %four, %x : tensor<37xf32>
  %p10 = train.pow %ten, %x : tensor<37xf32>
  %pi = train.pow %two, %i : tensor<37xf32>
  %root = train.pow %a, %half : tensor<37xf32>
  %cube = train.pow %a, %third : tensor<37xf32>
  %pd = train.pow %wide, %d : tensor<37xf64>
  %e = train.exp %x : tensor<37xf32>
  %pe = train.pow %e, %x : tensor<37xf32>
  return %p2, %p4, %p10, %pi, %root, %cube, %pd, %pe : tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf32>, tensor<37xf64>, tensor<37xf32>
}
