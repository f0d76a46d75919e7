// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// CHECK-LABEL: func @pow_square
// CHECK-NOT: train.pow {{.*}}train.backward
// CHECK: return
func.func @pow_square(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %x = train.exp %w : tensor<3x4xf32>
  %e = train.constant dense<2.0> : tensor<3x4xf32>
  %y = train.pow %x, %e : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @pow_root
// CHECK: train.div %{{.*}} {train.backward}
func.func @pow_root(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %x = train.exp %w : tensor<3x4xf32>
  %e = train.constant dense<5.0e-01> : tensor<3x4xf32>
  %y = train.pow %x, %e : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @pow_cube
// CHECK: train.pow %{{.*}} {train.backward}
func.func @pow_cube(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %x = train.exp %w : tensor<3x4xf32>
  %e = train.constant dense<3.0> : tensor<3x4xf32>
  %y = train.pow %x, %e : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @pow_one
// CHECK-NOT: train.pow {{.*}}train.backward
// CHECK: return
func.func @pow_one(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %x = train.exp %w : tensor<3x4xf32>
  %e = train.constant dense<1.0> : tensor<3x4xf32>
  %y = train.pow %x, %e : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @pow_minus
// CHECK: train.pow %{{.*}} {train.backward}
func.func @pow_minus(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %x = train.exp %w : tensor<3x4xf32>
  %e = train.constant dense<-1.5> : tensor<3x4xf32>
  %y = train.pow %x, %e : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Even powers of negative numbers.
// CHECK-LABEL: func @pow_negative_base
// CHECK: return
func.func @pow_negative_base(
    %w: tensor<3x4xf32> {train.role = "param", train.name = "w"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %e = train.constant dense<2.0> : tensor<3x4xf32>
  %y = train.pow %w, %e : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @pow_both
// CHECK: train.log %{{.*}} {train.backward}
func.func @pow_both(
    %a: tensor<3x4xf32> {train.role = "param", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %x = train.exp %a : tensor<3x4xf32>
  %y = train.pow %x, %b : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Only the exponent needs a gradient.
// CHECK-LABEL: func @pow_exponent
// CHECK-NOT: train.pow {{.*}}train.backward
// CHECK: train.log
func.func @pow_exponent(
    %a: tensor<3x4xf32> {train.role = "input", train.name = "a"},
    %b: tensor<3x4xf32> {train.role = "param", train.name = "b"},
    %c: tensor<3x4xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %x = train.exp %a : tensor<3x4xf32>
  %y = train.pow %x, %b : tensor<3x4xf32>
  %weighted = train.mul %y, %c : tensor<3x4xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
