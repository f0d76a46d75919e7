// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(recognize-norm,canonicalize))' --verify-diagnostics | FileCheck %s

// torch's TorchScript exporter: ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, then weight and bias.
// CHECK-LABEL: func @layer
// CHECK-NEXT: %[[Y:[a-z0-9_]+]], %{{.*}} = train.layer_norm layer, %arg0 scale(%arg1) bias(%arg2) {epsilon = 9.99999{{[0-9]*}}E-6 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @layer(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %inv = train.constant dense<0.125> : tensor<2x3xf32>
  %eps = train.constant dense<1.0e-05> : tensor<2x3x1xf32>
  %s = train.reduce sum, %x {dimensions = array<i64: 2>} : (tensor<2x3x8xf32>) -> tensor<2x3xf32>
  %m = train.mul %s, %inv : tensor<2x3xf32>
  %mk = train.reshape %m : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %mb = train.broadcast %mk {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %d = train.sub %x, %mb : tensor<2x3x8xf32>
  %q = train.mul %d, %d : tensor<2x3x8xf32>
  %vs = train.reduce sum, %q {dimensions = array<i64: 2>} : (tensor<2x3x8xf32>) -> tensor<2x3xf32>
  %v = train.mul %vs, %inv : tensor<2x3xf32>
  %vk = train.reshape %v : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %ve = train.add %vk, %eps : tensor<2x3x1xf32>
  %r = train.sqrt %ve : tensor<2x3x1xf32>
  %rb = train.broadcast %r {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %n = train.div %d, %rb : tensor<2x3x8xf32>
  %wb = train.broadcast %w {broadcast_dimensions = array<i64: 2>} : (tensor<8xf32>) -> tensor<2x3x8xf32>
  %y = train.mul %n, %wb : tensor<2x3x8xf32>
  %bb = train.broadcast %b {broadcast_dimensions = array<i64: 2>} : (tensor<8xf32>) -> tensor<2x3x8xf32>
  %z = train.add %y, %bb : tensor<2x3x8xf32>
  return %z : tensor<2x3x8xf32>
}

// Llama: the weight times x times 1/sqrt(mean of squares + epsilon).
// CHECK-LABEL: func @rms
// CHECK-NEXT: %[[Y:[a-z0-9_]+]], %{{.*}} = train.layer_norm rms, %arg0 scale(%arg1)
// CHECK-NEXT: return %[[Y]]
func.func @rms(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4x8xf32> {
  %inv = train.constant dense<0.125> : tensor<4xf32>
  %eps = train.constant dense<1.0e-06> : tensor<4xf32>
  %one = train.constant dense<1.0> : tensor<4xf32>
  %q = train.mul %x, %x : tensor<4x8xf32>
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %m = train.mul %s, %inv : tensor<4xf32>
  %e = train.add %m, %eps : tensor<4xf32>
  %r = train.sqrt %e : tensor<4xf32>
  %i = train.div %one, %r : tensor<4xf32>
  %ib = train.broadcast %i {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
  %n = train.mul %x, %ib : tensor<4x8xf32>
  %wb = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %y = train.mul %wb, %n : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Without a weight, and with rsqrt.
// CHECK-LABEL: func @plain
// CHECK-NEXT: train.layer_norm rms, %arg0 {epsilon
func.func @plain(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %eight = train.constant dense<8.0> : tensor<4xf32>
  %eps = train.constant dense<1.0e-06> : tensor<4xf32>
  %q = train.mul %x, %x : tensor<4x8xf32>
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %m = train.div %s, %eight : tensor<4xf32>
  %e = train.add %m, %eps : tensor<4xf32>
  %r = train.rsqrt %e : tensor<4xf32>
  %rb = train.broadcast %r {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
  %n = train.mul %x, %rb : tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// The sum of squares is not divided by the row's length: not a mean, nothing to recognise.
// CHECK-LABEL: func @not_a_mean
// CHECK-NOT: train.layer_norm
func.func @not_a_mean(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %inv = train.constant dense<0.25> : tensor<4xf32>
  %q = train.mul %x, %x : tensor<4x8xf32>
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %m = train.mul %s, %inv : tensor<4xf32>
  %r = train.rsqrt %m : tensor<4xf32>
  %rb = train.broadcast %r {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
  %n = train.mul %x, %rb : tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// Another value is scaled than the one that is measured.
// CHECK-LABEL: func @other_value
// CHECK-NOT: train.layer_norm
func.func @other_value(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %inv = train.constant dense<0.125> : tensor<4xf32>
  %q = train.mul %x, %x : tensor<4x8xf32>
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %m = train.mul %s, %inv : tensor<4xf32>
  %r = train.rsqrt %m : tensor<4xf32>
  %rb = train.broadcast %r {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
  // expected-remark @below {{normalisation not recognised: the value that is scaled is not the one whose mean square is taken}}
  %n = train.mul %y, %rb : tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}
