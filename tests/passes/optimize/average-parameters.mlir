// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(average-parameters{decay=0.75}))' | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(average-parameters{decay=0.75},guard-updates))' | FileCheck %s --check-prefix=GUARD
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(average-parameters))' | FileCheck %s --check-prefix=NONE

// CHECK-LABEL: func @step(
// CHECK-SAME: %[[AVERAGE:arg[0-9]+]]: tensor<4xf32> {train.name = "u.average", train.of = "u", train.role = "state", train.state = "average"}
// CHECK-SAME: tensor<4xbf16> {train.alias = 0 : i64}, tensor<4xf32> {train.alias = 4 : i64})
// CHECK: %[[NEW:.*]] = train.sgd_update
// CHECK: %[[WIDE:.*]] = train.convert %[[NEW]] : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK: %[[FAR:.*]] = train.sub %[[WIDE]], %[[AVERAGE]]
// CHECK: %[[SHARE:.*]] = train.constant dense<2.500000e-01>
// CHECK: %[[STEP:.*]] = train.mul %[[FAR]], %[[SHARE]]
// CHECK: %[[NEXT:.*]] = train.add %[[AVERAGE]], %[[STEP]]
// CHECK: return %{{.*}}, %{{.*}}, %[[NEW]], %[[NEXT]]

// A step that is left out leaves the average, too.
// GUARD: %[[NEXT:.*]] = train.add %[[AVERAGE:arg4]],
// GUARD: train.select %{{.*}}, %[[NEXT]], %[[AVERAGE]]

// NONE-NOT: average
func.func @step(%u: tensor<4xbf16> {train.role = "param", train.name = "u"}, %lr: tensor<f32> {train.role = "hyper", train.name = "lr"},
                %x: tensor<f32> {train.role = "input", train.name = "x"}, %g: tensor<4xf32> {train.role = "input", train.name = "g"})
    -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.role = "metric", train.name = "grad_norm"}, tensor<4xbf16> {train.alias = 0 : i64}) {
  %new = train.sgd_update %u, %g lr(%lr) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64}
    : (tensor<4xbf16>, tensor<4xf32>, tensor<f32>) -> tensor<4xbf16>
  return %x, %x, %new : tensor<f32>, tensor<f32>, tensor<4xbf16>
}
