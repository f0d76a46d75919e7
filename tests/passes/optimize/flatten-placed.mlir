// What model axes split is in units of its own: rows of equal parts, in which those that decay are apart from those that
// do not.
// RUN: tessera-opt %s --flatten-parameters="wrap=module pad-multiple=12" | FileCheck %s

// CHECK-LABEL: func @step
// CHECK-SAME: %[[U:arg0]]: tensor<48xf32> {train.decay_elements = 48 : i64, train.module = "root", train.name = "root.tp", train.role = "param", train.segments = [#train.segment<"up", offset = 0, shape = [3, 4], init = "zeros", placement = <dim = 1, axes = ["tp"], parts = 2>>, #train.segment<"down", offset = 6, shape = [4, 5], placement = <dim = 0, axes = ["tp"], parts = 2>>]}
// CHECK-SAME: %[[B:arg1]]: tensor<24xf32> {train.decay_elements = 0 : i64, train.module = "root", train.name = "root.tp.no_decay", train.role = "param", train.segments = [#train.segment<"bias", offset = 0, shape = [4], placement = <dim = 0, axes = ["tp"], parts = 2>>]}
// CHECK-SAME: %[[W:arg2]]: tensor<12xf32> {train.decay_elements = 0 : i64, train.name = "root", train.role = "param", train.segments = [#train.segment<"norm", offset = 0, shape = [5]>]}
// CHECK-SAME: %[[F:arg3]]: tensor<24xf32> {train.module = "root", train.name = "root.frozen.tp", train.role = "frozen"

// A part of dimension 1 is moved in front of it.
// CHECK: %[[ROWS:.*]] = train.reshape %[[U]] : (tensor<48xf32>) -> tensor<2x24xf32>
// CHECK: %[[UP:.*]] = train.slice %[[ROWS]] {limits = array<i64: 2, 6>, starts = array<i64: 0, 0>
// CHECK: %[[PARTS:.*]] = train.reshape %[[UP]] : (tensor<2x6xf32>) -> tensor<2x3x2xf32>
// CHECK: %[[MOVED:.*]] = train.transpose %[[PARTS]] {permutation = array<i64: 1, 0, 2>}
// CHECK: train.reshape %[[MOVED]] : (tensor<3x2x2xf32>) -> tensor<3x4xf32>
// Parts of dimension 0 are there already.
// CHECK: train.slice %{{.*}} {limits = array<i64: 2, 16>, starts = array<i64: 0, 6>
// CHECK-NEXT: train.reshape %{{.*}} : (tensor<2x10xf32>) -> tensor<2x2x5xf32>
// CHECK-NEXT: train.reshape %{{.*}} : (tensor<2x2x5xf32>) -> tensor<4x5xf32>
// Gradients are columns of the rows.
// CHECK: %[[COLUMNS:.*]] = train.concat %{{.*}}, %{{.*}}, %{{.*}} {dim = 1 : i64{{.*}}} : (tensor<2x6xf32>, tensor<2x10xf32>, tensor<2x8xf32>) -> tensor<2x24xf32>
// CHECK: train.reshape %[[COLUMNS]] {{.*}}: (tensor<2x24xf32>) -> tensor<48xf32>
func.func @step(%up: tensor<3x4xf32> {train.role = "param", train.name = "up", train.init = "zeros", train.placement = #train.placement<dim = 1, axes = ["tp"], parts = 2>},
                %bias: tensor<4xf32> {train.role = "param", train.name = "bias", train.placement = #train.placement<dim = 0, axes = ["tp"], parts = 2>},
                %down: tensor<4x5xf32> {train.role = "param", train.name = "down", train.placement = #train.placement<dim = 0, axes = ["tp"], parts = 2>},
                %norm: tensor<5xf32> {train.role = "param", train.name = "norm"},
                %base: tensor<2x3xf32> {train.role = "frozen", train.name = "base", train.placement = #train.placement<dim = 0, axes = ["tp"], parts = 2>},
                %x: tensor<2x3xf32> {train.role = "input", train.name = "x"})
    -> (tensor<2x5xf32> {train.role = "output"}, tensor<3x4xf32> {train.role = "grad", train.of = "up"}, tensor<4xf32> {train.role = "grad", train.of = "bias"},
        tensor<4x5xf32> {train.role = "grad", train.of = "down"}, tensor<5xf32> {train.role = "grad", train.of = "norm"}) {
  %in = train.add %x, %base : tensor<2x3xf32>
  %h = train.dot_general %in, %up {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %rows = train.broadcast %bias {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x4xf32>
  %sum = train.add %h, %rows : tensor<2x4xf32>
  %y = train.dot_general %sum, %down {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %scale = train.broadcast %norm {broadcast_dimensions = array<i64: 1>} : (tensor<5xf32>) -> tensor<2x5xf32>
  %z = train.mul %y, %scale : tensor<2x5xf32>
  %gu = train.neg %up {train.backward} : tensor<3x4xf32>
  %gb = train.neg %bias {train.backward} : tensor<4xf32>
  %gd = train.neg %down {train.backward} : tensor<4x5xf32>
  %gn = train.neg %norm {train.backward} : tensor<5xf32>
  return %z, %gu, %gb, %gd, %gn : tensor<2x5xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4x5xf32>, tensor<5xf32>
}
