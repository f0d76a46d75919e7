// RUN: tessera-opt %s -to-exec -split-input-file | FileCheck %s

// A linear layer of a flat unit: weights are views of the unit, the weight gradient is written into the unit's gradient,
// the update is in place.
// CHECK-LABEL: exec.program @step
func.func @step(%u: tensor<40xf32> {train.role = "param", train.name = "u"}, %x: tensor<2x8xf32> {train.role = "input", train.name = "x"},
                %lr: tensor<f32> {train.role = "hyper", train.name = "lr"})
    -> (tensor<f32> {train.role = "loss", train.name = "loss"}, tensor<40xf32> {train.alias = 0 : i64}) {
  // CHECK-DAG: %[[U:.+]] = exec.buffer %u.slot + 0 : memref<160xi8> to memref<40xf32>
  // CHECK-DAG: %[[W:.+]] = exec.buffer %u.slot + 0 : memref<160xi8> to memref<8x4xf32>
  // CHECK-DAG: %[[B:.+]] = exec.buffer %u.slot + 128 : memref<160xi8> to memref<4xf32>
  // CHECK-DAG: %[[GW:.+]] = exec.buffer %[[GSLOT:.+]] + 0 : memref<160xi8> to memref<8x4xf32>
  // CHECK-DAG: %[[GB:.+]] = exec.buffer %[[GSLOT]] + 128 : memref<160xi8> to memref<4xf32>
  // CHECK-DAG: %[[PAD:.+]] = exec.buffer %[[GSLOT]] + 144 : memref<160xi8> to memref<4xf32>
  // CHECK-DAG: %[[G:.+]] = exec.buffer %[[GSLOT]] + 0 : memref<160xi8> to memref<40xf32>
  %w0 = train.slice %u {starts = array<i64: 0>, limits = array<i64: 32>, strides = array<i64: 1>} : (tensor<40xf32>) -> tensor<32xf32>
  %w = train.reshape %w0 : (tensor<32xf32>) -> tensor<8x4xf32>
  %b = train.slice %u {starts = array<i64: 32>, limits = array<i64: 36>, strides = array<i64: 1>} : (tensor<40xf32>) -> tensor<4xf32>
  // CHECK: exec.gemm %{{.*}}, %[[W]] -> %[[Y:.+]] : memref<2x8xf32>, memref<8x4xf32> -> memref<2x4xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  // CHECK: exec.launch @k0(%[[Y]], %[[B]]) -> (%[[Y]])
  %z = exec.fusion "elementwise" @k0(%y, %b) {extent = 8 : i64, grain = 4 : i64, inplace = array<i64: 0>} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: tensor<2x4xf32>, %c: tensor<4xf32>):
    exec.yield %a : tensor<2x4xf32>
  }
  // CHECK: exec.launch @k1(%[[Y]]) -> (%[[LOSS:.+]], %[[GB]])
  %loss, %gb = exec.fusion "row" @k1(%z) {extent = 1 : i64, grain = 1 : i64, inplace = array<i64: -1, -1>} : (tensor<2x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  ^bb0(%a: tensor<2x4xf32>):
    %s = train.reduce sum, %a {dimensions = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
    %t = train.reduce sum, %a {dimensions = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<4xf32>
    exec.yield %s, %t : tensor<f32>, tensor<4xf32>
  }
  // CHECK: exec.gemm %{{.*}}, %{{.*}} -> %[[GW]] : memref<8x2xf32, strided<[1, 8]>>, memref<2x4xf32> -> memref<8x4xf32>
  %gw = train.dot_general %x, %z {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %gw1 = train.reshape %gw : (tensor<8x4xf32>) -> tensor<32xf32>
  %zero = train.constant dense<0.0> : tensor<4xf32>
  // CHECK: exec.fill %[[PAD]] with 0.000000e+00
  %g = train.concat %gw1, %gb, %zero {dim = 0 : i64} : (tensor<32xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<40xf32>
  // CHECK: exec.probe %[[G]] of "u"
  // CHECK-NEXT: exec.launch @k2(%[[U]], %[[G]], %{{.*}}) -> (%[[U]])
  %u1 = exec.fusion "elementwise" @k2(%u, %g, %lr) {extent = 40 : i64, grain = 8 : i64, inplace = array<i64: 0>, train.units = ["u"], train.grad_operands = array<i64: 1>} : (tensor<40xf32>, tensor<40xf32>, tensor<f32>) -> tensor<40xf32> {
  ^bb0(%a: tensor<40xf32>, %c: tensor<40xf32>, %d: tensor<f32>):
    exec.yield %a : tensor<40xf32>
  }
  // CHECK: exec.result %[[LOSS]] {train.name = "loss", train.role = "loss"}
  // CHECK-NOT: exec.copy
  return %loss, %u1 : tensor<f32>, tensor<40xf32>
}
