// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(clip-gradients{max-norm=0.5}))' | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(clip-gradients))' | FileCheck %s --check-prefix=METRIC
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(clip-gradients{max-norm=0.5 metric=false}))' | FileCheck %s --check-prefix=QUIET
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(clip-gradients{max-norm=-1}))' 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// CHECK-LABEL: func @step
// CHECK-SAME: -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.name = "grad_norm", train.role = "metric"}, tensor<8xf32> {train.of = "u", train.role = "grad"}, tensor<2x2xf32> {train.of = "v", train.role = "grad"})
// CHECK: %[[SU:.*]] = train.reduce sum, %{{.*}} : (tensor<8xf32>) -> tensor<f32>
// CHECK: %[[SV:.*]] = train.reduce sum, %{{.*}} : (tensor<2x2xf32>) -> tensor<f32>
// CHECK: %[[S:.*]] = train.add %[[SU]], %[[SV]]
// CHECK: %[[NORM:.*]] = train.sqrt %[[S]]
// CHECK: %[[EPS:.*]] = train.constant dense<9.99999997E-7>
// CHECK: %[[D:.*]] = train.add %[[NORM]], %[[EPS]]
// CHECK: %[[MAX:.*]] = train.constant dense<5.000000e-01>
// CHECK: %[[RATIO:.*]] = train.div %[[MAX]], %[[D]]
// CHECK: %[[ONE:.*]] = train.constant dense<1.0
// CHECK: %[[ABOVE:.*]] = train.compare gt, %[[RATIO]], %[[ONE]]
// CHECK: %[[SCALE:.*]] = train.select %[[ABOVE]], %[[ONE]], %[[RATIO]]
// CHECK: %[[BU:.*]] = train.broadcast %[[SCALE]]
// CHECK: %[[GU:.*]] = train.mul %arg0, %[[BU]]
// CHECK: %[[BV:.*]] = train.broadcast %[[SCALE]]
// CHECK: %[[GV:.*]] = train.mul %arg1, %[[BV]]
// CHECK: return %arg2, %[[NORM]], %[[GU]], %[[GV]]

// METRIC: "grad_norm"
// METRIC: %[[NORM:.*]] = train.sqrt
// METRIC-NEXT: return %arg2, %[[NORM]], %arg0, %arg1

// QUIET-NOT: grad_norm
// QUIET: return %arg2, %{{.*}}, %{{.*}} : tensor<f32>, tensor<8xf32>, tensor<2x2xf32>

// NEGATIVE: error: max-norm must not be negative, got -1
func.func @step(%u: tensor<8xf32> {train.role = "param", train.name = "u"}, %v: tensor<2x2xf32> {train.role = "param", train.name = "v"}, %x: tensor<f32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<8xf32> {train.role = "grad", train.of = "u"}, tensor<2x2xf32> {train.role = "grad", train.of = "v"}) {
  return %x, %u, %v : tensor<f32>, tensor<8xf32>, tensor<2x2xf32>
}

// Units that the same axes split are added up before others, so that each group has one sum over its axes.
// CHECK-LABEL: func @placed
// CHECK: %[[SA:.*]] = train.reduce sum, %{{.*}} : (tensor<8xf32>) -> tensor<f32>
// CHECK: %[[SP:.*]] = train.reduce sum, %{{.*}} : (tensor<6xf32>) -> tensor<f32>
// CHECK: %[[SB:.*]] = train.reduce sum, %{{.*}} : (tensor<4xf32>) -> tensor<f32>
// CHECK: %[[WHOLE:.*]] = train.add %[[SA]], %[[SB]]
// CHECK: %[[SQ:.*]] = train.reduce sum, %{{.*}} : (tensor<2xf32>) -> tensor<f32>
// CHECK: %[[PARTS:.*]] = train.add %[[SP]], %[[SQ]]
// CHECK: %[[S:.*]] = train.add %[[WHOLE]], %[[PARTS]]
// CHECK: train.sqrt %[[S]]
func.func @placed(%a: tensor<8xf32> {train.role = "param", train.name = "a"},
                  %p: tensor<6xf32> {train.role = "param", train.name = "p", train.segments = [#train.segment<"w", offset = 0, shape = [6], placement = <dim = 0, axes = ["tp"], parts = 2>>]},
                  %b: tensor<4xf32> {train.role = "param", train.name = "b"},
                  %q: tensor<2xf32> {train.role = "param", train.name = "q", train.segments = [#train.segment<"v", offset = 0, shape = [2], placement = <dim = 0, axes = ["tp"], parts = 2>>]},
                  %x: tensor<f32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<8xf32> {train.role = "grad", train.of = "a"}, tensor<6xf32> {train.role = "grad", train.of = "p"},
        tensor<4xf32> {train.role = "grad", train.of = "b"}, tensor<2xf32> {train.role = "grad", train.of = "q"}) {
  return %x, %a, %p, %b, %q : tensor<f32>, tensor<8xf32>, tensor<6xf32>, tensor<4xf32>, tensor<2xf32>
}
