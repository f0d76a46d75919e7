// Buffers that the model changes keep their next values through the passes of this phase.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters))' | FileCheck %s --check-prefix=FLAT
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters,accumulate-gradients{count=2}))' | FileCheck %s --check-prefix=MICRO
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters,accumulate-gradients{count=2},clip-gradients{max-norm=1.0},insert-optimizer{kind=sgd},guard-updates))' | FileCheck %s --check-prefix=GUARD

// The argument has another number behind the unit.
// FLAT: func.func @step(%{{[^:]*}}: tensor<4xf32> {{{.*}}train.name = "root"
// FLAT-SAME: %arg1: tensor<4xf32> {train.name = "mean", train.role = "buffer"}
// FLAT-SAME: train.alias = 1

// The second micro-batch begins with what the first one leaves, and nothing is added up or scaled.
// MICRO: %[[LOOP:.*]]:3 = train.accumulate %{{.*}}, %arg1 {carried = 1 : i64, count = 2 : i64}
// MICRO: ^bb0(%{{.*}}: tensor<i64>, %{{.*}}: tensor<2x4xf32>, %[[MEAN:.*]]: tensor<4xf32>)
// MICRO: %[[NEXT:.*]] = train.add %[[MEAN]], %
// MICRO: train.yield %{{.*}}, %{{.*}}, %[[NEXT]]
// MICRO: return %{{.*}}, %{{.*}}, %[[LOOP]]#2

// A step that is left out keeps them.
// GUARD: %[[LOOP:.*]]:3 = train.accumulate
// GUARD: %[[KEPT:.*]] = train.select %{{.*}}, %[[LOOP]]#2, %arg1
// GUARD: return {{.*}}%[[KEPT]]
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %mean: tensor<4xf32> {train.role = "buffer", train.name = "mean"},
                %x: tensor<2x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.alias = 1 : i64},
        tensor<4xf32> {train.role = "grad", train.of = "w"}) {
  %rows = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<4xf32>
  %next = train.add %mean, %rows : tensor<4xf32>
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x4xf32>
  %y = train.mul %x, %wide : tensor<2x4xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
  return %loss, %next, %rows : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
