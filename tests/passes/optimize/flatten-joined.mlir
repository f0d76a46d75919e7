// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(join-products,differentiate,canonicalize,cse,flatten-parameters{wrap=none},canonicalize,cse))' | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(join-products,differentiate,canonicalize,cse,flatten-parameters{wrap=size:200},canonicalize,cse))' | FileCheck %s --check-prefix=SIZE

// Weights that are multiplied as one lie side by side, in the order of the product, not in that of the arguments: the product
// reads a part of the unit, once forward and once backward, and its gradient is one part of the unit's.
// CHECK-LABEL: func @step
// CHECK-SAME: train.segments = [#train.segment<"q", offset = 0, shape = [4, 6]>, #train.segment<"k", offset = 24, shape = [2, 6]>]
// CHECK: %[[W:.*]] = train.reshape %arg0 : (tensor<36xf32>) -> tensor<6x6xf32>
// CHECK: train.dot_general %arg1, %[[W]]
// CHECK-NOT: dim = 0
// CHECK: %[[D:.*]] = train.dot_general {{.*}} -> tensor<6x6xf32>
// CHECK: %[[G:.*]] = train.reshape %[[D]] {{.*}} -> tensor<36xf32>
// CHECK: return %{{.*}}, %[[G]]
// SIZE: tensor<36xf32> {{{.*}}train.name = "unit.0"
// SIZE-NOT: unit.1
func.func @step(%k: tensor<2x6xf32> {train.role = "param", train.name = "k"},
                %q: tensor<4x6xf32> {train.role = "param", train.name = "q"},
                %x: tensor<3x6xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %0 = train.dot_general %x, %q {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<3x6xf32>, tensor<4x6xf32>) -> tensor<3x4xf32>
  %1 = train.dot_general %x, %k {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<3x6xf32>, tensor<2x6xf32>) -> tensor<3x2xf32>
  %2 = train.dot_general %0, %1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %3 = train.reduce sum, %2 {dimensions = array<i64: 0, 1>} : (tensor<4x2xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
