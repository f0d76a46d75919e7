// Positions are dealt in blocks, by the pairs of a query and a key that attention sees in a batch.
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(annotate-sharding{attention=ring sequence-order=dealt:blocks=4}))' 2>%t.said | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID --input-file=%t.said

// SAID: positions are dealt in 8 blocks, by the pairs that their queries see; inputs are gathered for it

// What the ranges of keys follow from is computed once more in front, on inputs in ranges; of that the order, of the samples of
// each rank. Then everything else reads inputs as they are dealt.
// CHECK-LABEL: func @documents
// CHECK-SAME: %arg0: tensor<4x16xi64> {dist.sharding = #dist.sharding<[{"shard"}, {"seq"}]>
// CHECK: %[[BEGIN:.*]] = train.add %arg0, %arg0
// CHECK: %[[END:.*]] = train.constant dense<16> : tensor<4x16xi64>
// The keys of a query, causal and in the window, added up in each block.
// CHECK: train.compare lt, %{{.*}}, %[[END]] :
// CHECK: %[[LATER:.*]] = train.compare gt, %{{.*}}, %[[BEGIN]] :
// CHECK: %[[FIRST:.*]] = train.select %[[LATER]], %{{.*}}, %[[BEGIN]] :
// CHECK: %[[LEAST:.*]] = train.max %[[FIRST]],
// CHECK: train.neg %[[LEAST]]
// CHECK: train.reduce sum, %{{.*}} {dimensions = array<i64: 2>} : (tensor<4x8x2xi64>) -> tensor<4x8xi64>
// The samples of each of two ranks.
// CHECK: %[[WORK:.*]] = train.reduce sum, %{{.*}} {dimensions = array<i64: 1>} : (tensor<2x2x8xi64>) -> tensor<2x8xi64>
// CHECK: %[[COUNTED:.*]] = train.mul %[[WORK]],
// CHECK: train.sort_indices %[[COUNTED]] {descending, dim = 1 : i64}
// CHECK: %[[OWNER:.*]] = train.select
// CHECK-NEXT: %[[ORDER:.*]] = train.sort_indices %[[OWNER]] {dim = 1 : i64} : (tensor<2x8xi64>) -> tensor<2x8xi64>
// CHECK-NEXT: %[[SPLIT:.*]] = dist.constrain %[[ORDER]] <[{"shard"}, {}]>
// CHECK-NEXT: dist.deal %[[SPLIT]] : tensor<2x8xi64>
// CHECK-DAG: %[[X:.*]] = dist.constrain %arg1 <[{"shard"}, {"seq": dealt 8}]> : tensor<4x16xf32>
// CHECK-DAG: %[[B:.*]] = dist.constrain %[[BEGIN]] <[{"shard"}, {"seq": dealt 8}]>
// CHECK-DAG: %[[E:.*]] = dist.constrain %[[END]] <[{"shard"}, {"seq": dealt 8}]>
// CHECK: train.reshape %[[X]]
// CHECK: train.attention {{.*}} keys(%[[B]] to %[[E]]) {causal

module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
func.func @documents(%ids: tensor<4x16xi64> {train.dims = #train.dims<[sample, position]>, train.name = "ids", train.role = "input"},
                     %x: tensor<4x16xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %end = train.constant dense<16> : tensor<4x16xi64>
  %q = train.reshape %x : (tensor<4x16xf32>) -> tensor<4x1x16x1xf32>
  %begin = train.add %ids, %ids : tensor<4x16xi64>
  %y, %lse = train.attention %q, %q, %q keys(%begin to %end) {causal, scale = 0.5, window = 6 : i64} :
    (tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x16xi64>, tensor<4x16xi64>) -> (tensor<4x1x16x1xf32>, tensor<4x1x16xf32>)
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x1x16x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// The work is that of all attentions: twice causal, once of all keys. It is the same for all samples, and so is the order.
// CHECK-LABEL: func @layers
// CHECK: %[[CAUSAL:.*]] = train.reduce sum, %{{.*}} : (tensor<1x8x2xi64>) -> tensor<1x8xi64>
// CHECK: %[[TWO:.*]] = train.constant dense<2> : tensor<1x8xi64>
// CHECK: %[[TWICE:.*]] = train.mul %[[CAUSAL]], %[[TWO]]
// CHECK: %[[ALL:.*]] = train.mul %{{.*}}, %{{.*}} : tensor<1x8xi64>
// CHECK: %[[WORK:.*]] = train.add %[[TWICE]], %[[ALL]]
// CHECK: train.sort_indices %[[WORK]] {descending
// CHECK: dist.deal %{{.*}} : tensor<1x8xi64>
module attributes {dist.mesh = #dist.mesh<shard = 2, seq = 2>} {
func.func @layers(%x: tensor<4x16xf32> {train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"})
    -> (tensor<f32> {train.role = "loss"}) {
  %q = train.reshape %x : (tensor<4x16xf32>) -> tensor<4x1x16x1xf32>
  %a, %0 = train.attention %q, %q, %q {causal, scale = 0.5} : (tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>) -> (tensor<4x1x16x1xf32>, tensor<4x1x16xf32>)
  %b, %1 = train.attention %a, %a, %a {causal, scale = 0.5} : (tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>) -> (tensor<4x1x16x1xf32>, tensor<4x1x16xf32>)
  %c, %2 = train.attention %b, %b, %b {scale = 0.5} : (tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>, tensor<4x1x16x1xf32>) -> (tensor<4x1x16x1xf32>, tensor<4x1x16xf32>)
  %loss = train.reduce sum, %c {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<4x1x16x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
