// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// Mean and rstd are those of the forward pass.
// CHECK-LABEL: func @layer_norm
// CHECK: %{{.*}}, %[[MEAN:.*]], %[[RSTD:.*]] = train.layer_norm layer
// CHECK-DAG: %[[BM:.*]] = train.broadcast %[[MEAN]] {{.*}}train.backward
// CHECK-DAG: %[[BR:.*]] = train.broadcast %[[RSTD]] {{.*}}train.backward
// CHECK-DAG: train.sub %arg0, %[[BM]] {train.backward}
// CHECK-DAG: train.reduce sum, %{{.*}} {dimensions = array<i64: 0, 1>, train.backward} : (tensor<2x3x8xf32>) -> tensor<8xf32>
// CHECK-DAG: train.reduce sum, %{{.*}} {dimensions = array<i64: 2>, train.backward} : (tensor<2x3x8xf32>) -> tensor<2x3xf32>
func.func @layer_norm(
    %x: tensor<2x3x8xf32> {train.role = "param", train.name = "x"},
    %s: tensor<8xf32> {train.role = "param", train.name = "s"},
    %b: tensor<8xf32> {train.role = "param", train.name = "b"},
    %c: tensor<2x3x8xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %mean, %rstd = train.layer_norm layer, %x scale(%s) bias(%b) {epsilon = 1.0e-05} : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x3x8xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @layer_norm_plain
// CHECK-NOT: {dimensions = array<i64: 0, 1>, train.backward
// CHECK: return
func.func @layer_norm_plain(
    %x: tensor<2x3x8xf32> {train.role = "param", train.name = "x"},
    %c: tensor<2x3x8xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %mean, %rstd = train.layer_norm layer, %x  {epsilon = 1.0e-05} : (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x3x8xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Neither operand nor bias needs a gradient.
// CHECK-LABEL: func @layer_norm_scale_only
// CHECK-NOT: {dimensions = array<i64: 2>, train.backward
// CHECK: return
func.func @layer_norm_scale_only(
    %x: tensor<2x3x8xf32> {train.role = "input", train.name = "x"},
    %s: tensor<8xf32> {train.role = "param", train.name = "s"},
    %b: tensor<8xf32> {train.role = "input", train.name = "b"},
    %c: tensor<2x3x8xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %mean, %rstd = train.layer_norm layer, %x scale(%s) bias(%b) {epsilon = 1.0e-05} : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x3x8xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @layer_norm_bias_only
// CHECK-NOT: train.sub
// CHECK: return
func.func @layer_norm_bias_only(
    %x: tensor<2x3x8xf32> {train.role = "input", train.name = "x"},
    %s: tensor<8xf32> {train.role = "input", train.name = "s"},
    %b: tensor<8xf32> {train.role = "param", train.name = "b"},
    %c: tensor<2x3x8xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %mean, %rstd = train.layer_norm layer, %x scale(%s) bias(%b) {epsilon = 1.0e-05} : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x3x8xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @layer_norm_without_scale
// CHECK: return
func.func @layer_norm_without_scale(
    %x: tensor<2x3x8xf32> {train.role = "param", train.name = "x"},
    %b: tensor<8xf32> {train.role = "param", train.name = "b"},
    %c: tensor<2x3x8xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %mean, %rstd = train.layer_norm layer, %x bias(%b) {epsilon = 1.0e-05} : (tensor<2x3x8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x3x8xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Nothing is subtracted.
// CHECK-LABEL: func @rms_norm
// CHECK-NOT: train.sub %arg0
// CHECK: return
func.func @rms_norm(
    %x: tensor<2x3x8xf32> {train.role = "param", train.name = "x"},
    %s: tensor<8xf32> {train.role = "param", train.name = "s"},
    %c: tensor<2x3x8xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %mean, %rstd = train.layer_norm rms, %x scale(%s) {epsilon = 1.0e-05} : (tensor<2x3x8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x3x8xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Mean and rstd may be used like any other result.
// CHECK-LABEL: func @saved_results
// CHECK: return
func.func @saved_results(
    %x: tensor<2x3x8xf32> {train.role = "param", train.name = "x"},
    %c: tensor<2x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %n, %mean, %rstd = train.layer_norm layer, %x {epsilon = 1.0e-05} : (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %y = train.mul %mean, %rstd : tensor<2x3xf32>
  %weighted = train.mul %y, %c : tensor<2x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @saved_rstd
// CHECK: return
func.func @saved_rstd(
    %x: tensor<2x3x8xf32> {train.role = "param", train.name = "x"},
    %c: tensor<2x3x8xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %n, %mean, %rstd = train.layer_norm rms, %x {epsilon = 1.0e-05} : (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %b = train.broadcast %rstd {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3x8xf32>
  %y = train.mul %n, %b : tensor<2x3x8xf32>
  %weighted = train.mul %y, %c : tensor<2x3x8xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
