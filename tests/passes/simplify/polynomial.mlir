// Sums, products and powers as a polynomial of one value, by which a written-out GELU is known whatever the order of its ops.
// RUN: tessera-opt %s --recognize-gelu=by-values=false --verify-diagnostics -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=1e-6 --quiet

!t = tensor<64xf32>

// Differences and negatives, and a cube as a power.
// CHECK-LABEL: func @differences(
// CHECK: %[[Y:.*]] = train.gelu tanh, %arg0
// CHECK: return %[[Y]]
func.func @differences(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %three = train.constant dense<3.0> : !t
  %x3 = train.pow %x, %three : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %cubic, %x3 : !t
  %n = train.neg %c : !t
  %s = train.sub %x, %n : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Quotients, and the square as a power.
// CHECK-LABEL: func @quotients(
// CHECK: %[[Y:.*]] = train.gelu tanh, %arg0
// CHECK: return %[[Y]]
func.func @quotients(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %two = train.constant dense<2.0> : !t
  %x2 = train.pow %x, %two : !t
  %x3 = train.mul %x2, %x : !t
  %cubic = train.constant dense<22.3638611> : !t
  %c = train.div %x3, %cubic : !t
  %s = train.add %x, %c : !t
  %slope = train.constant dense<1.25331414> : !t
  %u = train.div %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Numbers that are themselves computed: 1 + 1 divides, 1 + 1 + 1 is the power.
// CHECK-LABEL: func @numbers(
// CHECK: %[[Y:.*]] = train.gelu tanh, %arg0
// CHECK: return %[[Y]]
func.func @numbers(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %two = train.add %one, %one : !t
  %three = train.add %two, %one : !t
  %x3 = train.pow %x, %three : !t
  %double = train.add %x, %x : !t
  %single = train.div %double, %two : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %single, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Terms that come to nothing.
// CHECK-LABEL: func @cancelled(
// CHECK: %[[Y:.*]] = train.gelu tanh, %arg0
// CHECK: return %[[Y]]
func.func @cancelled(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %x, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %d = train.add %x2, %x2 : !t
  %w = train.add %xh, %d : !t
  %v = train.mul %w, %half : !t
  %y = train.sub %v, %x2 : !t
  return %y : !t
}

// The product split into parts.
// CHECK-LABEL: func @split(
// CHECK: %[[Y:.*]] = train.gelu tanh, %arg0
// CHECK: return %[[Y]]
func.func @split(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %x, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %xt = train.mul %x, %t : !t
  %a = train.mul %xt, %half : !t
  %b = train.mul %half, %x : !t
  %nb = train.neg %b : !t
  %y = train.sub %a, %nb : !t
  return %y : !t
}

// The error function.
// CHECK-LABEL: func @exact(
// CHECK: %[[Y:.*]] = train.gelu exact, %arg0
// CHECK: return %[[Y]]
func.func @exact(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %root = train.constant dense<1.41421354> : !t
  %u = train.div %x, %root : !t
  %t = train.erf %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Ten ops, one behind the other.
// CHECK-LABEL: func @ten_ops(
// CHECK: %[[Y:.*]] = train.gelu tanh, %arg0
// CHECK: return %[[Y]]
func.func @ten_ops(%x: !t) -> !t {
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
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %n7, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Not applied: twelve.
// CHECK-LABEL: func @twelve_ops(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @twelve_ops(%x: !t) -> !t {
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
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %n9, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Not applied: a degree above 3, though it comes to nothing.
// CHECK-LABEL: func @degree(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @degree(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %x4 = train.mul %x2, %x2 : !t
  %more = train.add %x, %x4 : !t
  %same = train.sub %more, %x4 : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %same, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Not applied: another power, and a number that is divided by what is none or 0.
// CHECK-LABEL: func @power(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @power(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %four = train.constant dense<4.0> : !t
  %x2 = train.pow %x, %four : !t
  %x3 = train.mul %x2, %x : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %x, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// CHECK-LABEL: func @divided_by_x(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @divided_by_x(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %q = train.div %x2, %x : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %q, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// CHECK-LABEL: func @divided_by_zero(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @divided_by_zero(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %zero = train.sub %one, %one : !t
  %q = train.div %x, %zero : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %q, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Not applied: a term too much, and one too few.
// CHECK-LABEL: func @more(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @more(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %more = train.add %x, %x2 : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %more, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// CHECK-LABEL: func @fewer(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @fewer(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %x, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}

// Not applied: constants that f32 tells apart.
// CHECK-LABEL: func @other_constant(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @other_constant(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %x, %c : !t
  %slope = train.constant dense<0.797890000> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.add %t, %one : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
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

// Not applied: 1 less the function.
// CHECK-LABEL: func @less(
// CHECK-NOT: train.gelu
// CHECK: return
func.func @less(%x: !t) -> !t {
  %half = train.constant dense<0.5> : !t
  %one = train.constant dense<1.0> : !t
  %x2 = train.mul %x, %x : !t
  %x3 = train.mul %x2, %x : !t
  %cubic = train.constant dense<0.044715> : !t
  %c = train.mul %x3, %cubic : !t
  %s = train.add %x, %c : !t
  %slope = train.constant dense<0.797884583> : !t
  %u = train.mul %s, %slope : !t
  %t = train.tanh %u : !t
  %h = train.sub %one, %t : !t
  %xh = train.mul %x, %h : !t
  %y = train.mul %xh, %half : !t
  return %y : !t
}
