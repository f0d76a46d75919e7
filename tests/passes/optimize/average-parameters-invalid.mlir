// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(average-parameters{decay=0.75}))' -split-input-file -verify-diagnostics
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(average-parameters{decay=1.0}))' -split-input-file 2>&1 | FileCheck %s

// CHECK: error: decay must lie in [0, 1), got 1

// expected-error@+1 {{has no updated parameter to average; run insert-optimizer first}}
func.func @none(%u: tensor<4xf32> {train.role = "param", train.name = "u"}, %x: tensor<f32>) -> (tensor<f32> {train.role = "loss"}) {
  return %x : tensor<f32>
}

// -----

func.func @guarded(%u: tensor<4xf32> {train.role = "param", train.name = "u"}, %x: tensor<f32>, %a: tensor<i1>)
    -> (tensor<f32> {train.role = "loss"}, tensor<4xf32> {train.alias = 0 : i64}) {
  // expected-error@+1 {{is guarded already; run average-parameters before guard-updates}}
  %p = train.sgd_update %u, %u lr(%x) apply(%a) {momentum = 0.0, weight_decay = 0.0, decay_elements = 0 : i64}
    : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> tensor<4xf32>
  return %x, %p : tensor<f32>, tensor<4xf32>
}
