// What evaluation computes besides the loss is one more result of the step.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=cross-entropy ignore-index=0 metrics=accuracy,output:near}))' | FileCheck %s
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=cross-entropy metrics=acuracy}))' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=mse of=logits metrics=accuracy}))' 2>&1 | FileCheck %s --check-prefix=MSE
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=cross-entropy metrics=output:logits}))' 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=cross-entropy metrics=output:loss}))' 2>&1 | FileCheck %s --check-prefix=TAKEN
// UNKNOWN: error: unknown metric 'acuracy', expected accuracy or output:<name>
// MSE: error: the metric accuracy is of the loss cross-entropy, got mse
// MANY: error: output 'logits' cannot be a metric: expected one number, got 'tensor<4x5xf32>'
// TAKEN: error: the metric 'output:loss' needs an output of another name

// CHECK-LABEL: func @step
// CHECK-SAME: -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.name = "accuracy", train.role = "evaluated"}, tensor<i64> {train.name = "near", train.role = "evaluated"})
// CHECK: %[[LOSS:.*]] = train.div
// CHECK: %[[BEST:.*]] = train.argmax
// CHECK: %[[HIT:.*]] = train.compare eq, %[[BEST]], %[[T:.*]] : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK: %[[COUNTS:.*]] = train.compare ne, %[[T]]
// CHECK: %[[BOTH:.*]] = train.mul %[[HIT]], %[[COUNTS]]
// CHECK: %[[HITS:.*]] = train.reduce sum
// CHECK: %[[ACCURACY:.*]] = train.div %[[HITS]]
// CHECK: return %[[LOSS]], %[[ACCURACY]], %
func.func @step(%x: tensor<4x5xf32> {train.role = "param", train.name = "x"}, %near: tensor<1xi64> {train.role = "input", train.name = "n"}, %y: tensor<4xf32> {train.role = "input", train.name = "y"})
    -> (tensor<4x5xf32> {train.role = "output", train.name = "logits"}, tensor<1xi64> {train.role = "output", train.name = "near"}, tensor<1xi64> {train.role = "output", train.name = "loss"}) {
  return %x, %near, %near : tensor<4x5xf32>, tensor<1xi64>, tensor<1xi64>
}
