// Smooth elementwise ops as a function of one number, by whose values a GELU is known that is written in another form.
// RUN: tessera-opt %s --recognize-gelu --verify-diagnostics -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=5e-6 --quiet

!t = tensor<64xf32>

// A sigmoid of twice the value.
// CHECK-LABEL: func @sigmoid(
// CHECK: %[[Y:.*]] = train.gelu tanh, %arg0
// CHECK: return %[[Y]]
func.func @sigmoid(%x: !t) -> !t {
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %x, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %w = train.mul %s, %slope : !t
  %two = train.constant dense<2.0> : !t
  %u = train.mul %w, %two : !t
  %t = train.sigmoid %u : !t
  // expected-remark@+1 {{recognised as GELU (tanh) by its values}}
  %y = train.mul %x, %t : !t
  return %y : !t
}

// An exponential, by a difference and a quotient.
// CHECK-LABEL: func @exponential(
// CHECK: %[[Y:.*]] = train.gelu tanh, %arg0
// CHECK: return %[[Y]]
func.func @exponential(%x: !t) -> !t {
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %x, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %w = train.mul %s, %slope : !t
  %two = train.constant dense<2.0> : !t
  %u = train.mul %w, %two : !t
  %t = train.exp %u : !t
  %d = train.add %t, %one : !t
  %q = train.div %x, %d : !t
  // expected-remark@+1 {{recognised as GELU (tanh) by its values}}
  %y = train.sub %x, %q : !t
  return %y : !t
}

// The same, of what is negated.
// CHECK-LABEL: func @negated(
// CHECK: %[[Y:.*]] = train.gelu tanh, %arg0
// CHECK: return %[[Y]]
func.func @negated(%x: !t) -> !t {
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %x, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %w = train.mul %s, %slope : !t
  %two = train.constant dense<2.0> : !t
  %v = train.mul %w, %two : !t
  %u = train.neg %v : !t
  %t = train.exp %u : !t
  %d = train.add %one, %t : !t
  // expected-remark@+1 {{recognised as GELU (tanh) by its values}}
  %y = train.div %x, %d : !t
  return %y : !t
}

// A power that is no polynomial: 2 to -1/2.
// CHECK-LABEL: func @power(
// CHECK: %[[Y:.*]] = train.gelu exact, %arg0
// CHECK: return %[[Y]]
func.func @power(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %two = train.constant dense<2.0> : !t
  %minus = train.constant dense<-0.5> : !t
  %root = train.pow %two, %minus : !t
  %u = train.mul %x, %root : !t
  %t = train.erf %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  // expected-remark@+1 {{recognised as GELU (exact) by its values}}
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// More ops than a polynomial may have.
// CHECK-LABEL: func @many_ops(
// CHECK: %[[Y:.*]] = train.gelu tanh, %arg0
// CHECK: return %[[Y]]
func.func @many_ops(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %n0 = train.neg %x : !t
  %n1 = train.neg %n0 : !t
  %n2 = train.neg %n1 : !t
  %n3 = train.neg %n2 : !t
  %n4 = train.neg %n3 : !t
  %n5 = train.neg %n4 : !t
  %n6 = train.neg %n5 : !t
  %n7 = train.neg %n6 : !t
  %n8 = train.neg %n7 : !t
  %n9 = train.neg %n8 : !t
  %n10 = train.neg %n9 : !t
  %n11 = train.neg %n10 : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %n11, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  // expected-remark@+1 {{recognised as GELU (tanh) by its values}}
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Not applied: another constant, by a part in 100000.
// CHECK-LABEL: func @another_constant(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @another_constant(%x: !t) -> !t {
  %factor = train.constant dense<1.00001> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %x, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %w = train.mul %s, %slope : !t
  %two = train.constant dense<2.0> : !t
  %u = train.mul %w, %two : !t
  %t = train.sigmoid %u : !t
  %xf = train.mul %x, %factor : !t
  %y = train.mul %xf, %t : !t
  return %y : !t
}

// A part in a million is what constants in f32 allow.
// CHECK-LABEL: func @nearly(
// CHECK: %[[Y:.*]] = train.gelu tanh, %arg0
// CHECK: return %[[Y]]
func.func @nearly(%x: !t) -> !t {
  %factor = train.constant dense<1.000001> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %x, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %w = train.mul %s, %slope : !t
  %two = train.constant dense<2.0> : !t
  %u = train.mul %w, %two : !t
  %t = train.sigmoid %u : !t
  %xf = train.mul %x, %factor : !t
  // expected-remark@+1 {{recognised as GELU (tanh) by its values}}
  %y = train.mul %xf, %t : !t
  return %y : !t
}

// Not applied: another function, and one that is no number at 0.
// CHECK-LABEL: func @silu(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @silu(%x: !t) -> !t {
  %zero = train.constant dense<0.0> : !t
  %u = train.add %x, %zero : !t
  %t = train.sigmoid %u : !t
  %y = train.mul %x, %t : !t
  return %y : !t
}

// CHECK-LABEL: func @no_number(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @no_number(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %two = train.constant dense<2.0> : !t
  %minus = train.constant dense<-0.5> : !t
  %root = train.pow %two, %minus : !t
  %x2 = train.mul %x, %x : !t
  %x1 = train.div %x2, %x : !t
  %u = train.mul %x1, %root : !t
  %t = train.erf %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Not applied: it is GELU, by an op that is not smooth.
// CHECK-LABEL: func @not_smooth(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @not_smooth(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %a = train.abs %x : !t
  %root = train.constant dense<1.41421354> : !t
  %u = train.div %a, %root : !t
  %t = train.erf %u : !t
  %at = train.mul %a, %t : !t
  %s = train.add %x, %at : !t
  %y = train.mul %s, %half : !t
  return %y : !t
}

// Not applied: of two values.
// CHECK-LABEL: func @two_values(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @two_values(%x: !t, %z: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %s1 = train.add %x, %z : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %s1, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Not applied: more than 32 ops.
// CHECK-LABEL: func @too_many(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @too_many(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %n0 = train.neg %x : !t
  %n1 = train.neg %n0 : !t
  %n2 = train.neg %n1 : !t
  %n3 = train.neg %n2 : !t
  %n4 = train.neg %n3 : !t
  %n5 = train.neg %n4 : !t
  %n6 = train.neg %n5 : !t
  %n7 = train.neg %n6 : !t
  %n8 = train.neg %n7 : !t
  %n9 = train.neg %n8 : !t
  %n10 = train.neg %n9 : !t
  %n11 = train.neg %n10 : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %n11, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %m0 = train.neg %t : !t
  %m1 = train.neg %m0 : !t
  %m2 = train.neg %m1 : !t
  %m3 = train.neg %m2 : !t
  %m4 = train.neg %m3 : !t
  %m5 = train.neg %m4 : !t
  %m6 = train.neg %m5 : !t
  %m7 = train.neg %m6 : !t
  %m8 = train.neg %m7 : !t
  %m9 = train.neg %m8 : !t
  %m10 = train.neg %m9 : !t
  %m11 = train.neg %m10 : !t
  %m12 = train.neg %m11 : !t
  %m13 = train.neg %m12 : !t
  %h = train.add %m13, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}
