// RUN: tessera-opt %s --recognize-gelu -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --recognize-gelu=by-values=false | FileCheck %s --check-prefix=FORM
// RUN: tessera-opt %s --recognize-gelu -o %t.mlir 2> /dev/null
// RUN: tessera-interp %t.mlir --compare=%s --function=by_power --rtol=1e-5 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=by_quotient --rtol=1e-5 --atol=1e-6 --quiet
// RUN: tessera-interp %t.mlir --compare=%s --function=by_exp --rtol=1e-5 --atol=1e-6 --quiet
// RUN: tessera-opt %t.mlir --recognize-gelu | diff %t.mlir -

// x³ as a power, the half last.
// CHECK-LABEL: func.func @by_power
// CHECK:         %[[Y:.*]] = train.gelu tanh, %arg0 : tensor<4x16xf32>
// CHECK:         return %[[Y]]
// FORM-LABEL: func.func @by_power
// FORM:         train.gelu tanh, %arg0
func.func @by_power(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %half = train.constant dense<0.5> : tensor<4x16xf32>
  %one = train.constant dense<1.0> : tensor<4x16xf32>
  %three = train.constant dense<3.0> : tensor<4x16xf32>
  %cubic = train.constant dense<0.044715> : tensor<4x16xf32>
  %root = train.constant dense<0.797884583> : tensor<4x16xf32>
  %x3 = train.pow %x, %three : tensor<4x16xf32>
  %c = train.mul %x3, %cubic : tensor<4x16xf32>
  %s = train.add %c, %x : tensor<4x16xf32>
  %u = train.mul %root, %s : tensor<4x16xf32>
  %t = train.tanh %u : tensor<4x16xf32>
  %h = train.add %one, %t : tensor<4x16xf32>
  %xh = train.mul %x, %h : tensor<4x16xf32>
  %y = train.mul %xh, %half : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// The constants of the polynomial multiplied out; the argument is itself a sum, and read as one.
// CHECK-LABEL: func.func @factored
// CHECK:         %[[X:.*]] = train.add %arg0, %arg0
// CHECK:         %[[Y:.*]] = train.gelu tanh, %[[X]] : tensor<4x16xf32>
// CHECK:         return %[[Y]]
func.func @factored(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %half = train.constant dense<0.5> : tensor<4x16xf32>
  %one = train.constant dense<1.0> : tensor<4x16xf32>
  %cubic = train.constant dense<0.0356774069> : tensor<4x16xf32>
  %root = train.constant dense<0.797884583> : tensor<4x16xf32>
  %z = train.add %x, %x : tensor<4x16xf32>
  %z2 = train.mul %z, %z : tensor<4x16xf32>
  %f = train.mul %z2, %cubic : tensor<4x16xf32>
  %f1 = train.add %f, %root : tensor<4x16xf32>
  %u = train.mul %f1, %z : tensor<4x16xf32>
  %t = train.tanh %u : tensor<4x16xf32>
  %h = train.mul %z, %half : tensor<4x16xf32>
  %th = train.mul %t, %h : tensor<4x16xf32>
  %y = train.add %th, %h : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @by_quotient
// CHECK:         %[[Y:.*]] = train.gelu exact, %arg0 : tensor<4x16xf32>
// CHECK:         return %[[Y]]
// FORM-LABEL: func.func @by_quotient
// FORM:         train.gelu exact, %arg0
func.func @by_quotient(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %two = train.constant dense<2.0> : tensor<4x16xf32>
  %one = train.constant dense<1.0> : tensor<4x16xf32>
  %root = train.constant dense<1.41421354> : tensor<4x16xf32>
  %u = train.div %x, %root : tensor<4x16xf32>
  %e = train.erf %u : tensor<4x16xf32>
  %f = train.add %e, %one : tensor<4x16xf32>
  %xf = train.mul %x, %f : tensor<4x16xf32>
  %y = train.div %xf, %two : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// tanh by exp: x (1 + tanh u) / 2 = x / (1 + exp(-2u)). Numbers may be broadcast scalars.
// CHECK-LABEL: func.func @by_exp
// CHECK:         %[[Y:.*]] = train.gelu tanh, %arg0 : tensor<4x16xf32>
// CHECK:         return %[[Y]]
// FORM-LABEL: func.func @by_exp
// FORM-NOT:     train.gelu
// FORM:         return
func.func @by_exp(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %number = train.constant dense<1.0> : tensor<f32>
  %one = train.broadcast %number {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x16xf32>
  %cubic = train.constant dense<0.044715> : tensor<4x16xf32>
  %twice = train.constant dense<-1.59576917> : tensor<4x16xf32>
  %x2 = train.mul %x, %x : tensor<4x16xf32>
  %x3 = train.mul %x2, %x : tensor<4x16xf32>
  %c = train.mul %x3, %cubic : tensor<4x16xf32>
  %s = train.add %c, %x : tensor<4x16xf32>
  %u = train.mul %twice, %s : tensor<4x16xf32>
  %e = train.exp %u : tensor<4x16xf32>
  %d = train.add %one, %e : tensor<4x16xf32>
  // expected-remark @below {{recognised as GELU (tanh) by its values: it is written in no known form}}
  %y = train.div %x, %d : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Other functions: the cubic term is that of a constant in bf16; the sigmoid of 1.702 x; a maximum is not smooth.
// CHECK-LABEL: func.func @another_constant
// CHECK-NOT:     train.gelu
// CHECK:         return
func.func @another_constant(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %half = train.constant dense<0.5> : tensor<4x16xf32>
  %one = train.constant dense<1.0> : tensor<4x16xf32>
  %cubic = train.constant dense<0.0356445313> : tensor<4x16xf32>
  %root = train.constant dense<0.797884583> : tensor<4x16xf32>
  %x2 = train.mul %x, %x : tensor<4x16xf32>
  %f = train.mul %x2, %cubic : tensor<4x16xf32>
  %f1 = train.add %f, %root : tensor<4x16xf32>
  %u = train.mul %f1, %x : tensor<4x16xf32>
  %t = train.tanh %u : tensor<4x16xf32>
  %h = train.add %t, %one : tensor<4x16xf32>
  %xh = train.mul %x, %half : tensor<4x16xf32>
  %y = train.mul %xh, %h : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @quick
// CHECK-NOT:     train.gelu
// CHECK:         return
func.func @quick(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %slope = train.constant dense<1.702> : tensor<4x16xf32>
  %u = train.mul %x, %slope : tensor<4x16xf32>
  %s = train.sigmoid %u : tensor<4x16xf32>
  %y = train.mul %x, %s : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @not_smooth
// CHECK-NOT:     train.gelu exact, %arg0
// CHECK:         train.max
// CHECK:         train.erf
func.func @not_smooth(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = train.constant dense<0.0> : tensor<4x16xf32>
  %half = train.constant dense<0.5> : tensor<4x16xf32>
  %one = train.constant dense<1.0> : tensor<4x16xf32>
  %root = train.constant dense<0.707106769> : tensor<4x16xf32>
  %z = train.max %x, %zero : tensor<4x16xf32>
  %u = train.mul %x, %root : tensor<4x16xf32>
  %e = train.erf %u : tensor<4x16xf32>
  %f = train.add %e, %one : tensor<4x16xf32>
  %h = train.mul %z, %half : tensor<4x16xf32>
  %y = train.mul %h, %f : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// The argument of the error function is not what is multiplied.
// CHECK-LABEL: func.func @of_two
// CHECK-NOT:     train.gelu
// CHECK:         return
func.func @of_two(%x: tensor<4x16xf32>, %y: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %half = train.constant dense<0.5> : tensor<4x16xf32>
  %one = train.constant dense<1.0> : tensor<4x16xf32>
  %root = train.constant dense<0.707106769> : tensor<4x16xf32>
  %u = train.mul %x, %root : tensor<4x16xf32>
  %e = train.erf %u : tensor<4x16xf32>
  %f = train.add %e, %one : tensor<4x16xf32>
  %h = train.mul %y, %half : tensor<4x16xf32>
  %z = train.mul %h, %f : tensor<4x16xf32>
  return %z : tensor<4x16xf32>
}

// Constants of narrow types are those of another function.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT:     train.gelu
// CHECK:         return
func.func @narrow(%x: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  %half = train.constant dense<0.5> : tensor<4x16xbf16>
  %one = train.constant dense<1.0> : tensor<4x16xbf16>
  %root = train.constant dense<0.707106769> : tensor<4x16xbf16>
  %u = train.mul %x, %root : tensor<4x16xbf16>
  %e = train.erf %u : tensor<4x16xbf16>
  %f = train.add %e, %one : tensor<4x16xbf16>
  %h = train.mul %x, %half : tensor<4x16xbf16>
  %y = train.mul %h, %f : tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}
