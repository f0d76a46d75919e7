// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// One elementwise expression of the logits.
// CHECK-LABEL: func @cross_entropy
// CHECK: %{{.*}}, %[[LSE:.*]] = train.cross_entropy
// CHECK: %[[B:.*]] = train.broadcast %[[LSE]] {{.*}}train.backward
// CHECK: %[[D:.*]] = train.sub %arg0, %[[B]] {train.backward}
// CHECK: %[[P:.*]] = train.exp %[[D]] {train.backward}
// CHECK: %[[CLASS:.*]] = train.iota {dim = 1 : i64, train.backward} : tensor<4x5xi32>
// CHECK: train.compare eq, %[[CLASS]], %{{.*}} {train.backward}
// CHECK-NOT: train.reduce
// CHECK: return
func.func @cross_entropy(
    %w: tensor<4x5xf32> {train.role = "param", train.name = "w"},
    %t: tensor<4xi32> {train.role = "target", train.name = "t"},
    %c: tensor<4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.cross_entropy %w, %t : (tensor<4x5xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %weighted = train.mul %y, %c : tensor<4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @smoothed
// CHECK: train.constant {train.backward} dense<2.000000e-02>
func.func @smoothed(
    %w: tensor<4x5xf32> {train.role = "param", train.name = "w"},
    %t: tensor<4xi32> {train.role = "target", train.name = "t"},
    %c: tensor<4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.cross_entropy %w, %t {label_smoothing = 1.0e-01} : (tensor<4x5xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %weighted = train.mul %y, %c : tensor<4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @ignored
// CHECK: train.constant {train.backward} dense<2> : tensor<4xi32>
// CHECK: train.compare eq, %arg1, %{{.*}} {train.backward} : (tensor<4xi32>, tensor<4xi32>)
func.func @ignored(
    %w: tensor<4x5xf32> {train.role = "param", train.name = "w"},
    %t: tensor<4xi32> {train.role = "target", train.name = "t"},
    %c: tensor<4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.cross_entropy %w, %t {ignore_index = 2 : i64} : (tensor<4x5xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %weighted = train.mul %y, %c : tensor<4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @ignored_and_smoothed
// CHECK: return
func.func @ignored_and_smoothed(
    %w: tensor<4x5xf32> {train.role = "param", train.name = "w"},
    %t: tensor<4xi32> {train.role = "target", train.name = "t"},
    %c: tensor<4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.cross_entropy %w, %t {ignore_index = -100 : i64, label_smoothing = 3.0e-01} : (tensor<4x5xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %weighted = train.mul %y, %c : tensor<4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// The log-sum-exp may be used like any other result.
// CHECK-LABEL: func @log_sum_exp
// CHECK-NOT: train.iota
// CHECK: return
func.func @log_sum_exp(
    %w: tensor<4x5xf32> {train.role = "param", train.name = "w"},
    %t: tensor<4xi32> {train.role = "target", train.name = "t"},
    %c: tensor<4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.cross_entropy %w, %t : (tensor<4x5xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %weighted = train.mul %lse, %c : tensor<4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Targets of one byte, more classes than a byte counts: classes are counted in i32.
// CHECK-LABEL: func @narrow_targets
// CHECK: train.iota {dim = 1 : i64, train.backward} : tensor<4x300xi32>
func.func @narrow_targets(
    %w: tensor<4x300xf32> {train.role = "param", train.name = "w"},
    %t: tensor<4xui8> {train.role = "target", train.name = "t"},
    %c: tensor<4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.cross_entropy %w, %t : (tensor<4x300xf32>, tensor<4xui8>) -> (tensor<4xf32>, tensor<4xf32>)
  %weighted = train.mul %y, %c : tensor<4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
