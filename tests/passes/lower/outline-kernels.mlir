// RUN: tessera-opt %s --decompose --fuse --outline-kernels | FileCheck %s
// No diagnostic: every fusion becomes a kernel; what cannot be one is refused by fuse.

// Two equal layers share a kernel; another constant makes another one.
// CHECK-LABEL: func.func @layers
// CHECK:         exec.fusion "elementwise" @[[K:k[0-9]+_elementwise_tanh]](
// CHECK:         exec.fusion "elementwise" @[[K]](
// CHECK:         exec.fusion "elementwise" @[[O:k[0-9]+_elementwise_tanh]](
// CHECK:       module @kernels
// CHECK-COUNT-2: func.func @k{{[0-9]+}}_elementwise_tanh(
// CHECK-NOT:     func.func
func.func @layers(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %h = train.constant dense<0.5> : tensor<8x8xf32>
  %q = train.constant dense<0.25> : tensor<8x8xf32>
  %0 = train.mul %x, %h : tensor<8x8xf32>
  %1 = train.tanh %0 : tensor<8x8xf32>
  %t = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = train.dot_general %1, %t {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = train.mul %2, %h : tensor<8x8xf32>
  %4 = train.tanh %3 : tensor<8x8xf32>
  %5 = train.dot_general %4, %t {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = train.mul %5, %q : tensor<8x8xf32>
  %7 = train.tanh %6 : tensor<8x8xf32>
  return %7 : tensor<8x8xf32>
}
