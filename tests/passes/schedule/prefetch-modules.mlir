// RUN: tessera-opt %s --split-async --prefetch --verify-schedule | FileCheck %s
// Units of one module, which differ in type or axes, are gathered ahead together and reduced together: one unit ahead is one
// module ahead, and a small unit does not wait for the large one beside it.

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @gathers
// CHECK: dist.all_gather_start %arg0 {{.*}}"at the beginning: fewer than 1 units come before"
// CHECK: dist.all_gather_start %arg1 {{.*}}"at the beginning: fewer than 1 units come before"
// CHECK: dist.done
// CHECK: dist.all_gather_start %arg2 {{.*}}"1 unit ahead: at the first use of forward:a"
// CHECK: dist.all_gather_start %arg3 {{.*}}"1 unit ahead: at the first use of forward:a"
// CHECK: train.exp
// Another unit without a module, of a name that begins alike, is one by itself.
// CHECK: dist.done {{.*}} {schedule.reason = "at the first use of the unit"}
// CHECK: train.add
// CHECK: dist.done
// CHECK: dist.all_gather_start %arg4 {{.*}}"1 unit ahead: at the first use of forward:b"
func.func @gathers(%a: tensor<4xf32> {train.name = "a", train.role = "param", train.segments = []},
                   %ar: tensor<4xf32> {train.module = "a", train.name = "a.read_f32", train.role = "param", train.segments = []},
                   %b: tensor<4xf32> {train.name = "b", train.role = "param", train.segments = []},
                   %br: tensor<4xf32> {train.module = "b", train.name = "b.read_f32", train.role = "param", train.segments = []},
                   %c: tensor<4xf32> {train.name = "b.c", train.role = "param", train.segments = []}) -> tensor<8xf32> {
  %ga = dist.all_gather %a {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["a"]>} : (tensor<4xf32>) -> tensor<8xf32>
  %gar = dist.all_gather %ar {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["a.read_f32"]>} : (tensor<4xf32>) -> tensor<8xf32>
  %gb = dist.all_gather %b {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["b"]>} : (tensor<4xf32>) -> tensor<8xf32>
  %gbr = dist.all_gather %br {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["b.read_f32"]>} : (tensor<4xf32>) -> tensor<8xf32>
  %gc = dist.all_gather %c {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["b.c"]>} : (tensor<4xf32>) -> tensor<8xf32>
  %0 = train.exp %ga : tensor<8xf32>
  %1 = train.add %0, %gar : tensor<8xf32>
  %2 = train.mul %1, %gb : tensor<8xf32>
  %3 = train.add %2, %gbr : tensor<8xf32>
  %4 = train.mul %3, %gc : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// The first one ends where the next module's starts, not where that of its own does, and before the second one ends.
// CHECK-LABEL: func @reductions
// CHECK: %[[A:.*]] = dist.reduce_scatter_start {{.*}}["a"]
// CHECK: train.tanh
// CHECK: %[[AR:.*]] = dist.reduce_scatter_start {{.*}}["a.read_f32"]
// CHECK: train.sqrt
// CHECK: dist.done %[[A]] {schedule.reason = "before the next collective of its kind and axes starts"}
// CHECK: dist.done %[[AR]] {schedule.reason = "before the next collective of its kind and axes starts"}
// CHECK: dist.reduce_scatter_start {{.*}}["b"]
func.func @reductions(%a: tensor<4xf32> {train.name = "a", train.role = "param", train.segments = []},
                      %ar: tensor<4xf32> {train.module = "a", train.name = "a.read_f32", train.role = "param", train.segments = []},
                      %x: tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = train.exp %x : tensor<8xf32>
  %1 = train.tanh %0 : tensor<8xf32>
  %2 = train.sqrt %1 : tensor<8xf32>
  %ga = dist.reduce_scatter %0 {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["a"]>} : (tensor<8xf32>) -> tensor<4xf32>
  %gar = dist.reduce_scatter %1 {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["a.read_f32"]>} : (tensor<8xf32>) -> tensor<4xf32>
  %gb = dist.reduce_scatter %2 {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["b"]>} : (tensor<8xf32>) -> tensor<4xf32>
  return %ga, %gar, %gb : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
}
