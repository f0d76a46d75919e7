// A function is known by its values, in whatever form it is written: here GELU behind a product.
// RUN: tessera-opt %s --fuse-epilogues 2>&1 | FileCheck %s

// x³ as a power, the constants where the paper has them, the half last.
// CHECK-LABEL: func.func @by_power
// CHECK:         exec.epilogue_product gelu
// CHECK-NOT:     train.tanh
func.func @by_power(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %half = train.constant dense<0.5> : tensor<4x16xf32>
  %one = train.constant dense<1.0> : tensor<4x16xf32>
  %three = train.constant dense<3.0> : tensor<4x16xf32>
  %cubic = train.constant dense<0.044715> : tensor<4x16xf32>
  %root = train.constant dense<0.797884583> : tensor<4x16xf32>
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %z3 = train.pow %z, %three : tensor<4x16xf32>
  %c = train.mul %z3, %cubic : tensor<4x16xf32>
  %s = train.add %c, %z : tensor<4x16xf32>
  %u = train.mul %root, %s : tensor<4x16xf32>
  %t = train.tanh %u : tensor<4x16xf32>
  %h = train.add %one, %t : tensor<4x16xf32>
  %zh = train.mul %z, %h : tensor<4x16xf32>
  %g = train.mul %zh, %half : tensor<4x16xf32>
  return %g : tensor<4x16xf32>
}

// tanh by exp: z (1 + tanh u) / 2 = z / (1 + exp(-2u)). Numbers may be broadcast scalars.
// CHECK-LABEL: func.func @by_exp
// CHECK:         exec.epilogue_product gelu
// CHECK-NOT:     train.exp
func.func @by_exp(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %number = train.constant dense<1.0> : tensor<f32>
  %one = train.broadcast %number {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x16xf32>
  %cubic = train.constant dense<0.044715> : tensor<4x16xf32>
  %twice = train.constant dense<-1.59576917> : tensor<4x16xf32>
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %z2 = train.mul %z, %z : tensor<4x16xf32>
  %z3 = train.mul %z2, %z : tensor<4x16xf32>
  %c = train.mul %z3, %cubic : tensor<4x16xf32>
  %s = train.add %c, %z : tensor<4x16xf32>
  %u = train.mul %twice, %s : tensor<4x16xf32>
  %e = train.exp %u : tensor<4x16xf32>
  %d = train.add %one, %e : tensor<4x16xf32>
  %g = train.div %z, %d : tensor<4x16xf32>
  return %g : tensor<4x16xf32>
}

// Conversions between floating point types and barriers are no part of the function.
// CHECK-LABEL: func.func @converted
// CHECK:         exec.epilogue_product gelu
// CHECK-NOT:     train.tanh
func.func @converted(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>) -> tensor<4x16xbf16> {
  %half = train.constant dense<0.5> : tensor<4x16xf32>
  %one = train.constant dense<1.0> : tensor<4x16xf32>
  %cubic = train.constant dense<0.0356774069> : tensor<4x16xf32>
  %root = train.constant dense<0.797884583> : tensor<4x16xf32>
  %n = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xbf16>
  %z = train.convert %n : (tensor<4x16xbf16>) -> tensor<4x16xf32>
  %z2 = train.mul %z, %z : tensor<4x16xf32>
  %f = train.mul %z2, %cubic : tensor<4x16xf32>
  %f1 = train.add %f, %root : tensor<4x16xf32>
  %u = train.mul %f1, %z : tensor<4x16xf32>
  %t = train.tanh %u : tensor<4x16xf32>
  %h = train.add %t, %one : tensor<4x16xf32>
  %zh = train.mul %z, %half : tensor<4x16xf32>
  %g = train.mul %zh, %h : tensor<4x16xf32>
  %r = train.convert %g : (tensor<4x16xf32>) -> tensor<4x16xbf16>
  return %r : tensor<4x16xbf16>
}

// Another function: its cubic term is that of a constant in bf16.
// CHECK-LABEL: func.func @another_constant
// CHECK-NOT:     exec.epilogue_product
// CHECK:         return
func.func @another_constant(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %half = train.constant dense<0.5> : tensor<4x16xf32>
  %one = train.constant dense<1.0> : tensor<4x16xf32>
  %cubic = train.constant dense<0.0356445313> : tensor<4x16xf32>
  %root = train.constant dense<0.797884583> : tensor<4x16xf32>
  %z = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %z2 = train.mul %z, %z : tensor<4x16xf32>
  %f = train.mul %z2, %cubic : tensor<4x16xf32>
  %f1 = train.add %f, %root : tensor<4x16xf32>
  %u = train.mul %f1, %z : tensor<4x16xf32>
  %t = train.tanh %u : tensor<4x16xf32>
  %h = train.add %t, %one : tensor<4x16xf32>
  %zh = train.mul %z, %half : tensor<4x16xf32>
  %g = train.mul %zh, %h : tensor<4x16xf32>
  return %g : tensor<4x16xf32>
}

// GELU for positive numbers only: a maximum is not smooth.
// CHECK-LABEL: func.func @not_smooth
// CHECK-NOT:     exec.epilogue_product
// CHECK:         return
func.func @not_smooth(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %zero = train.constant dense<0.0> : tensor<4x16xf32>
  %half = train.constant dense<0.5> : tensor<4x16xf32>
  %one = train.constant dense<1.0> : tensor<4x16xf32>
  %cubic = train.constant dense<0.0356774069> : tensor<4x16xf32>
  %root = train.constant dense<0.797884583> : tensor<4x16xf32>
  %p = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %z = train.max %p, %zero : tensor<4x16xf32>
  %z2 = train.mul %z, %z : tensor<4x16xf32>
  %f = train.mul %z2, %cubic : tensor<4x16xf32>
  %f1 = train.add %f, %root : tensor<4x16xf32>
  %u = train.mul %f1, %z : tensor<4x16xf32>
  %t = train.tanh %u : tensor<4x16xf32>
  %h = train.add %t, %one : tensor<4x16xf32>
  %zh = train.mul %z, %half : tensor<4x16xf32>
  %g = train.mul %zh, %h : tensor<4x16xf32>
  return %g : tensor<4x16xf32>
}
