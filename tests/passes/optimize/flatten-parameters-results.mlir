// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters{wrap=size:1}))' | FileCheck %s

// A result may be a parameter, and a gradient a parameter of another unit.
// CHECK-LABEL: func @step
// CHECK-SAME: %[[U:.*]]: tensor<4xf32> {{{.*}}train.name = "unit.0"{{.*}}}, %[[V:.*]]: tensor<4xf32> {{{.*}}train.name = "unit.1"
// CHECK-DAG: %[[A:.*]] = train.slice %[[U]]
// CHECK-DAG: %[[B:.*]] = train.slice %[[V]]
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
func.func @step(%a: tensor<4xf32> {train.role = "param", train.name = "a"}, %b: tensor<4xf32> {train.role = "param", train.name = "b"})
    -> (tensor<4xf32> {train.role = "output", train.name = "o"}, tensor<4xf32> {train.role = "grad", train.of = "a"}, tensor<4xf32> {train.role = "grad", train.of = "b"}) {
  return %a, %b, %a : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
