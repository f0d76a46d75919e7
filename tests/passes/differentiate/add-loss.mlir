// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=cross-entropy label-smoothing=0.1}))' | FileCheck %s --check-prefix=CE
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=cross-entropy of=hidden ignore-index=0}))' | FileCheck %s --check-prefix=OF
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=mse}))' | FileCheck %s --check-prefix=MSE
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:own}))' | FileCheck %s --check-prefix=OUT

// CE-LABEL: func @step
// CE-SAME: %[[TARGETS:[a-z0-9]+]]: tensor<2x3xi32> {train.name = "targets", train.role = "target"}) -> (tensor<f32> {train.role = "loss"})
// CE: %[[LOGITS:.*]] = train.reshape %{{.*}} : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
// CE: %[[FLAT:.*]] = train.reshape %[[TARGETS]] : (tensor<2x3xi32>) -> tensor<6xi32>
// CE: %[[ROWS:.*]], %{{.*}} = train.cross_entropy %[[LOGITS]], %[[FLAT]] {ignore_index = -100 : i64, label_smoothing = 1.000000e-01 : f64}
// CE: %[[COUNT:.*]] = train.count_valid %[[TARGETS]] {ignore_index = -100 : i64} : (tensor<2x3xi32>) -> tensor<f32>
// CE: %[[SUM:.*]] = train.reduce sum, %[[ROWS]]
// CE: %[[LOSS:.*]] = train.div %[[SUM]], %[[COUNT]]
// CE: return %[[LOSS]] : tensor<f32>

// OF: tensor<2xi32> {train.name = "targets", train.role = "target"}
// OF: train.count_valid %{{.*}} {ignore_index = 0 : i64} : (tensor<2xi32>) -> tensor<f32>

// MSE: tensor<2x3x5xf32> {train.name = "targets", train.role = "target"}
// MSE: %[[E:.*]] = train.sub
// MSE: %[[S:.*]] = train.mul %[[E]], %[[E]]
// MSE: %[[T:.*]] = train.reduce sum, %[[S]]
// MSE: %[[N:.*]] = train.constant dense<3.000000e+01> : tensor<f32>
// MSE: train.div %[[T]], %[[N]]

// OUT: (%{{.*}}: tensor<2x3x5xf32>{{.*}}) -> (tensor<f32> {train.role = "loss"})
// OUT: %[[R:.*]] = train.reshape %{{.*}} : (tensor<1xf32>) -> tensor<f32>
// OUT: return %[[R]] : tensor<f32>
func.func @step(%x: tensor<2x3x5xf32> {train.role = "param", train.name = "x"}, %y: tensor<2x5xf32> {train.role = "input", train.name = "y"}, %z: tensor<1xf32> {train.role = "input", train.name = "z"})
    -> (tensor<2x5xf32> {train.role = "output", train.name = "hidden"}, tensor<2x3x5xf32> {train.role = "output", train.name = "logits"}, tensor<1xf32> {train.role = "output", train.name = "own"}) {
  return %y, %x, %z : tensor<2x5xf32>, tensor<2x3x5xf32>, tensor<1xf32>
}
