// Functions of f32 are within 2 units in the last place of the interpreter's f64, over all exponents and both signs:
// subnormal numbers, overflow, infinities and NaN. RUN lines: CPUs with vectors of each kind. GPUs: gpu-accuracy.test.
// RUN: kernel-check %s --sweep=2 | FileCheck %s
// RUN: kernel-check %s --sweep=2 --target-cpu=x86-64 | FileCheck %s
// RUN: kernel-check %s --sweep=2 --target-cpu=x86-64-v3 | FileCheck %s

// CHECK: exponentials: ok
func.func @exponentials(%x: tensor<65536xf32>) -> (tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>) {
  %exp = train.exp %x : tensor<65536xf32>
  %expm1 = train.expm1 %x : tensor<65536xf32>
  %tanh = train.tanh %x : tensor<65536xf32>
  return %exp, %expm1, %tanh : tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>
}

// CHECK: logarithms: ok
func.func @logarithms(%x: tensor<65536xf32>) -> (tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>) {
  %log = train.log %x : tensor<65536xf32>
  %log1p = train.log1p %x : tensor<65536xf32>
  %softplus = train.softplus %x : tensor<65536xf32>
  return %log, %log1p, %softplus : tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>
}

// The sigmoid of what lies below -88.7 is 0, as in PyTorch, where the exact value is subnormal (less than 3e-39).
// CHECK: others: ok
func.func @others(%x: tensor<65536xf32>) -> (tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>) {
  %low = train.constant dense<-8.8e+01> : tensor<65536xf32>
  %bounded = train.max %x, %low : tensor<65536xf32>
  %sigmoid = train.sigmoid %bounded : tensor<65536xf32>
  %erf = train.erf %x : tensor<65536xf32>
  %sqrt = train.sqrt %x : tensor<65536xf32>
  %rsqrt = train.rsqrt %x : tensor<65536xf32>
  return %sigmoid, %erf, %sqrt, %rsqrt : tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>
}

// Library calls.
// CHECK: calls: ok
func.func @calls(%x: tensor<16384xf32>, %y: tensor<16384xf32>) -> (tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>) {
  %sin = train.sin %x : tensor<16384xf32>
  %cos = train.cos %x : tensor<16384xf32>
  %atan = train.atan %x : tensor<16384xf32>
  %asin = train.asin %x : tensor<16384xf32>
  %acos = train.acos %x : tensor<16384xf32>
  %pow = train.pow %x, %y : tensor<16384xf32>
  %round = train.round %x : tensor<16384xf32>
  %floor = train.floor %x : tensor<16384xf32>
  return %sin, %cos, %atan, %asin, %acos, %pow, %round, %floor : tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>
}
