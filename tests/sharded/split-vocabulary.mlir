// Embedding, head and cross-entropy with a vocabulary that is split, on 2, 3 and 4 virtual ranks: the loss and every
// gradient are those of one rank up to the order of sums, and nothing of the vocabulary's size is gathered.
// DEFINE: %{mesh} = shard = 2
// DEFINE: %{out} = %t.2
// DEFINE: %{shard} = sed "s/shard = 1/%{mesh}/" %s | tessera-opt --differentiate --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding --cse --canonicalize > %{out}
// RUN: tessera-opt %s --differentiate > %t.1
// RUN: %{shard}
// RUN: FileCheck %s --input-file=%t.2
// RUN: tessera-interp %t.1 --compare=%t.2 --rtol=1e-6
// REDEFINE: %{mesh} = shard = 3
// REDEFINE: %{out} = %t.3
// RUN: %{shard}
// RUN: tessera-interp %t.1 --compare=%t.3 --rtol=1e-6
// REDEFINE: %{mesh} = shard = 2, seq = 2
// REDEFINE: %{out} = %t.4
// RUN: %{shard}
// RUN: tessera-interp %t.1 --compare=%t.4 --rtol=1e-6
// REDEFINE: %{mesh} = shard = 1
// REDEFINE: %{out} = %t.whole
// RUN: %{shard}
// RUN: tessera-interp %t.1 --compare=%t.whole --rtol=0 --atol=0

module attributes {dist.mesh = #dist.mesh<shard = 1>} {
// CHECK-LABEL: func @step
// CHECK-NOT: dist.all_gather
// CHECK: train.gather_rows %{{.*}} : (tensor<24x8xf32>, tensor<6xi32>)
// CHECK: dist.all_reduce %{{.*}} : (tensor<6x8xf32>)
// CHECK: dist.all_reduce %{{.*}}kind = #dist<reduction max>{{.*}} : (tensor<6xf32>)
// CHECK: dist.all_reduce %{{.*}} : (tensor<6xf32>)
// CHECK: dist.all_reduce %{{.*}} : (tensor<6xf32>)
// CHECK: dist.all_reduce %{{.*}} : (tensor<6xf32>)
// CHECK: return
func.func @step(%table: tensor<48x8xf32> {train.role = "param", train.name = "table", dist.sharding = #dist.sharding<[{"shard"}, {}]>},
                %w: tensor<8x48xf32> {train.role = "param", train.name = "head", dist.sharding = #dist.sharding<[{}, {"shard"}]>},
                %tokens: tensor<6xi32> {train.role = "input", train.name = "tokens"},
                %targets: tensor<6xi32> {train.role = "target", train.name = "targets"}) -> (tensor<f32> {train.role = "loss"}) {
  %e = train.gather_rows %table, %tokens : (tensor<48x8xf32>, tensor<6xi32>) -> tensor<6x8xf32>
  %h = train.tanh %e : tensor<6x8xf32>
  %y = train.dot_general %h, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x8xf32>, tensor<8x48xf32>) -> tensor<6x48xf32>
  %rows, %lse = train.cross_entropy %y, %targets {ignore_index = 7 : i64, label_smoothing = 0.1} : (tensor<6x48xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %rows {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
