// RUN: tessera-opt %s --to-exec | FileCheck %s
// Maxima over the axes of gradients, which computing waits for, have a stream of their own behind those of axes: behind a
// sum of gradients they would wait for all of it.

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: exec.program @maximum
// CHECK-DAG:     exec.collective all_reduce {{.*}}stream = 2
// CHECK-DAG:     exec.collective all_reduce {{.*}}stream = 5
func.func @maximum(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dist.all_reduce %g {axes = ["shard"]} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dist.all_reduce %x {axes = ["shard"], kind = #dist<reduction max>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
}
