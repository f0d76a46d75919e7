// RUN: tessera-opt %s --lower-accumulate | FileCheck %s
// No diagnostic: every accumulate of a verified step has this form.

// Accumulators start at zero and are added to in every iteration; values from above are still used directly.
// CHECK-LABEL: func.func @two
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8xf32>
// CHECK:         %[[Z0:.*]] = train.constant dense<0.000000e+00> : tensor<f32>
// CHECK:         %[[Z1:.*]] = train.constant dense<0.000000e+00> : tensor<8xf32>
// CHECK:         %[[R:.*]]:2 = exec.repeat count = 4 batch(%[[X]]) init(%[[Z0]], %[[Z1]])
// CHECK:         ^bb0(%{{.*}}: tensor<i64>, %[[M:.*]]: tensor<8xf32>, %[[A0:.*]]: tensor<f32>, %[[A1:.*]]: tensor<8xf32>):
// CHECK:           %[[P:.*]] = train.mul %[[M]], %[[W]]
// CHECK:           %[[N1:.*]] = train.add %[[A1]], %[[P]]
// CHECK:           %[[S:.*]] = train.reduce sum, %[[P]]
// CHECK:           %[[N0:.*]] = train.add %[[A0]], %[[S]]
// CHECK:           exec.yield %[[N0]], %[[N1]]
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @two(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>) {
  %0:2 = train.accumulate %x {count = 4 : i64} : (tensor<4x8xf32>) -> (tensor<f32>, tensor<8xf32>) {
  ^bb0(%i: tensor<i64>, %m: tensor<8xf32>):
    %p = train.mul %m, %w : tensor<8xf32>
    %s = train.reduce sum, %p {dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    train.yield %s, %p : tensor<f32>, tensor<8xf32>
  }
  return %0#0, %0#1 : tensor<f32>, tensor<8xf32>
}

// What is carried begins as the operand and is not added up.
// CHECK-LABEL: func.func @carried
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8xf32>
// CHECK:         %[[Z:.*]] = train.constant dense<0.000000e+00> : tensor<f32>
// CHECK:         exec.repeat count = 4 batch(%[[X]]) init(%[[Z]], %[[B]])
// CHECK:         ^bb0(%{{.*}}: tensor<i64>, %[[M:.*]]: tensor<8xf32>, %[[SUM:.*]]: tensor<f32>, %[[C:.*]]: tensor<8xf32>):
// CHECK:           %[[NEXT:.*]] = train.mul %[[M]], %[[C]]
// CHECK:           %[[TERM:.*]] = train.reduce sum, %[[NEXT]]
// CHECK:           %[[TOTAL:.*]] = train.add %[[SUM]], %[[TERM]]
// CHECK:           exec.yield %[[TOTAL]], %[[NEXT]]
func.func @carried(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>) {
  %0:2 = train.accumulate %x, %b {carried = 1 : i64, count = 4 : i64} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>) {
  ^bb0(%i: tensor<i64>, %m: tensor<8xf32>, %c: tensor<8xf32>):
    %p = train.mul %m, %c : tensor<8xf32>
    %s = train.reduce sum, %p {dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    train.yield %s, %p : tensor<f32>, tensor<8xf32>
  }
  return %0#0, %0#1 : tensor<f32>, tensor<8xf32>
}

// A function without accumulation stays as it is.
// CHECK-LABEL: func.func @none
// CHECK-NOT:     exec.repeat
func.func @none(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
