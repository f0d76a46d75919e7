// RUN: tessera-opt %s --differentiate -split-input-file | FileCheck %s

// Contributions to the gradient of one value. Each case is executed against finite differences in
// tests/differentiate/rules/slice.mlir and the random models.

// The gradients of slices that tile a dimension become one concat, without sums of pads.
// CHECK-LABEL: func @qkv
// CHECK: train.concat %{{.*}}, %{{.*}}, %{{.*}} {dim = 1 : i64, train.backward} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x9xf32>
// CHECK-NOT: train.pad
// CHECK: return
func.func @qkv(%w: tensor<2x9xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}) {
  %q = train.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<2x9xf32>) -> tensor<2x3xf32>
  %k = train.slice %w {starts = array<i64: 0, 3>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (tensor<2x9xf32>) -> tensor<2x3xf32>
  %v = train.slice %w {starts = array<i64: 0, 6>, limits = array<i64: 2, 9>, strides = array<i64: 1, 1>} : (tensor<2x9xf32>) -> tensor<2x3xf32>
  %a = train.mul %q, %k : tensor<2x3xf32>
  %b = train.mul %a, %v : tensor<2x3xf32>
  %loss = train.reduce sum, %b {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Gaps are filled with zeros, equal boxes are added, boxes that overlap stay pads.
// CHECK-LABEL: func @boxes
// CHECK: %[[P:.*]] = train.pad
// CHECK: %[[Q:.*]] = train.pad
// CHECK: %[[SUM:.*]] = train.add %{{.*}}, %{{.*}} {train.backward} : tensor<2xf32>
// CHECK: %[[ZERO:.*]] = train.constant {train.backward} dense<0.0{{.*}}> : tensor<3xf32>
// CHECK: train.concat %[[SUM]], %[[ZERO]], %{{.*}} {dim = 0 : i64, train.backward} : (tensor<2xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<7xf32>
// CHECK: train.add %[[P]], %[[Q]] {train.backward} : tensor<7xf32>
func.func @boxes(%w: tensor<7xf32> {train.role = "param", train.name = "w"}, %u: tensor<7xf32> {train.role = "param", train.name = "u"}) -> (tensor<f32> {train.role = "loss"}) {
  %p = train.slice %u {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>} : (tensor<7xf32>) -> tensor<2xf32>
  %q = train.slice %u {starts = array<i64: 1>, limits = array<i64: 3>, strides = array<i64: 1>} : (tensor<7xf32>) -> tensor<2xf32>
  %a = train.slice %w {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>} : (tensor<7xf32>) -> tensor<2xf32>
  %b = train.slice %w {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>} : (tensor<7xf32>) -> tensor<2xf32>
  %c = train.slice %w {starts = array<i64: 5>, limits = array<i64: 7>, strides = array<i64: 1>} : (tensor<7xf32>) -> tensor<2xf32>
  %ab = train.mul %a, %b : tensor<2xf32>
  %abc = train.mul %ab, %c : tensor<2xf32>
  %pq = train.mul %p, %q : tensor<2xf32>
  %all = train.mul %abc, %pq : tensor<2xf32>
  %loss = train.reduce sum, %all {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Boxes along different dimensions are not joined: the second stays a pad, and the two are added.
// CHECK-LABEL: func @other_dimensions
// CHECK: %[[A:.*]] = train.pad {{.*}}low = array<i64: 0, 0>
// CHECK: %[[B:.*]] = train.pad
// CHECK: train.add %[[A]], %[[B]] {train.backward} : tensor<2x2xf32>
func.func @other_dimensions(%w: tensor<2x2xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}) {
  %a = train.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 1, 2>, strides = array<i64: 1, 1>} : (tensor<2x2xf32>) -> tensor<1x2xf32>
  %b = train.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 2, 1>, strides = array<i64: 1, 1>} : (tensor<2x2xf32>) -> tensor<2x1xf32>
  %c = train.reshape %b : (tensor<2x1xf32>) -> tensor<1x2xf32>
  %m = train.mul %a, %c : tensor<1x2xf32>
  %loss = train.reduce sum, %m {dimensions = array<i64: 0, 1>} : (tensor<1x2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A slice with gaps is no box.
// CHECK-LABEL: func @strided
// CHECK-NOT: train.concat
// CHECK: return
func.func @strided(%w: tensor<4xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}) {
  %a = train.slice %w {starts = array<i64: 0>, limits = array<i64: 4>, strides = array<i64: 2>} : (tensor<4xf32>) -> tensor<2xf32>
  %b = train.slice %w {starts = array<i64: 1>, limits = array<i64: 4>, strides = array<i64: 2>} : (tensor<4xf32>) -> tensor<2xf32>
  %m = train.mul %a, %b : tensor<2xf32>
  %loss = train.reduce sum, %m {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A value that is used whole and in part: the sum of both, the part padded.
// CHECK-LABEL: func @whole_and_part
// CHECK: %[[PAD:.*]] = train.pad
// CHECK: train.add %{{.*}}%[[PAD]]{{.*}} {train.backward} : tensor<4xf32>
func.func @whole_and_part(%w: tensor<4xf32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.role = "loss"}) {
  %a = train.slice %w {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %s = train.reduce sum, %a {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %e = train.exp %w : tensor<4xf32>
  %t = train.reduce sum, %e {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %loss = train.mul %s, %t : tensor<f32>
  return %loss : tensor<f32>
}
