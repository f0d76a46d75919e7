// RUN: tessera-opt %s --guard-updates | FileCheck %s
// RUN: tessera-opt %s --guard-updates --canonicalize --cse | FileCheck %s --check-prefix=CLEAN

// Every update takes the flag; another next value (%mean) is chosen by it; the loss is looked at in its own type.
// CHECK-LABEL: func @step(
// CHECK-SAME: %[[ALWAYS:arg[0-9]+]]: tensor<f32> {train.name = "update_always", train.role = "hyper"}
// CHECK-SAME: -> (tensor<f64> {train.role = "loss"}, tensor<f32> {train.name = "grad_norm", train.role = "metric"}, tensor<f32> {train.name = "updated", train.role = "updated"}, tensor<4xf32> {train.alias = 0 : i64}, tensor<4xf32> {train.alias = 1 : i64}, tensor<2xi32> {train.alias = 2 : i64})
// CHECK: %[[INF:.*]] = train.constant dense<0x7FF0000000000000> : tensor<f64>
// CHECK: %[[ABS:.*]] = train.abs %arg4 : tensor<f64>
// CHECK: %[[LOSS:.*]] = train.compare lt, %[[ABS]], %[[INF]]
// CHECK: %[[INFN:.*]] = train.constant dense<0x7F800000> : tensor<f32>
// CHECK: %[[ABSN:.*]] = train.abs %[[NORM:.*]] : tensor<f32>
// CHECK: %[[NORMOK:.*]] = train.compare lt, %[[ABSN]], %[[INFN]]
// CHECK: %[[FINITE:.*]] = train.mul %[[LOSS]], %[[NORMOK]] : tensor<i1>
// CHECK: %[[ZERO:.*]] = train.constant dense<0.0
// CHECK: %[[ASKED:.*]] = train.compare ne, %[[ALWAYS]], %[[ZERO]]
// CHECK: %[[APPLY:.*]] = train.max %[[FINITE]], %[[ASKED]] : tensor<i1>
// CHECK: %[[P:.*]], %[[M:.*]] = train.sgd_update %arg0, %{{.*}} buffer(%arg1) lr(%arg3) apply(%[[APPLY]])
// CHECK: %[[NEW:.*]] = train.add %arg2, %arg2
// CHECK: %[[SPREAD:.*]] = train.broadcast %[[APPLY]]
// CHECK: %[[MEAN:.*]] = train.select %[[SPREAD]], %[[NEW]], %arg2 : tensor<2xi1>, tensor<2xi32>
// CHECK: %[[UPDATED:.*]] = train.convert %[[APPLY]] : (tensor<i1>) -> tensor<f32>
// CHECK: return %arg4, %[[NORM]], %[[UPDATED]], %[[P]], %[[M]], %[[MEAN]]

// Nothing of it folds away: what is not a number is not below infinity.
// CLEAN-LABEL: func @step(
// CLEAN-COUNT-2: train.compare lt
// CLEAN: train.sgd_update {{.*}} apply(
func.func @step(%u: tensor<4xf32> {train.role = "param", train.name = "u"},
                %m: tensor<4xf32> {train.role = "state", train.name = "u.momentum", train.of = "u", train.state = "momentum"},
                %n: tensor<2xi32> {train.role = "frozen", train.name = "n"},
                %lr: tensor<f32> {train.role = "hyper", train.name = "lr"},
                %x: tensor<f64> {train.role = "input", train.name = "x"})
    -> (tensor<f64> {train.role = "loss"}, tensor<f32> {train.role = "metric", train.name = "grad_norm"},
        tensor<4xf32> {train.alias = 0 : i64}, tensor<4xf32> {train.alias = 1 : i64}, tensor<2xi32> {train.alias = 2 : i64}) {
  %norm = train.reduce sum, %u {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %p, %b = train.sgd_update %u, %u buffer(%m) lr(%lr) {momentum = 0.5, weight_decay = 0.0, decay_elements = 0 : i64}
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %next = train.add %n, %n : tensor<2xi32>
  return %x, %norm, %p, %b, %next : tensor<f64>, tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<2xi32>
}

// A function that changes nothing needs no guard.
// CHECK-LABEL: func @evaluate(
// CHECK-NOT: update_always
// CHECK-NOT: train.compare
// CHECK: return %arg1
func.func @evaluate(%u: tensor<4xf32> {train.role = "param", train.name = "u"},
                    %x: tensor<f32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  return %x : tensor<f32>
}
