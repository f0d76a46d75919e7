// No diagnostic: nothing is refused, and every loss of a linear layer is written out, in one range if it fits.
// RUN: tessera-opt %s --tile-loss=bytes=160 | FileCheck %s
// RUN: tessera-opt %s --tile-loss=bytes=160 | tessera-opt --tile-loss=bytes=160 | FileCheck %s
// RUN: tessera-opt %s --tile-loss | FileCheck %s --check-prefix=ONE
// RUN: tessera-opt %s --tile-loss=bytes=1 | FileCheck %s --check-prefix=ROW
// RUN: tessera-opt %s --tile-loss=bytes=160 -o %t.mlir
// RUN: tessera-interp %t.mlir --compare=%s
// RUN: tessera-opt %s --tile-loss | tessera-interp - --compare=%s
// RUN: tessera-opt %s --tile-loss=bytes=1 | tessera-interp - --compare=%s
// RUN: tessera-opt %s --tile-loss=bytes=160 --decompose --canonicalize | tessera-interp - --compare=%s

// Nine rows of ten classes in 160 bytes: three ranges of three rows.
// CHECK-LABEL: func @loss
// CHECK: %[[X0:.*]] = train.slice %arg0 {limits = array<i64: 3, 4>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<9x4xf32>) -> tensor<3x4xf32>
// CHECK: %[[T0:.*]] = train.slice %arg2 {limits = array<i64: 3>, starts = array<i64: 0>, strides = array<i64: 1>}
// CHECK: %[[Y0:.*]] = train.dot_general %[[X0]], %arg1 {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<3x4xf32>, tensor<10x4xf32>) -> tensor<3x10xf32>
// CHECK: %[[L0:.*]], %[[S0:.*]] = train.cross_entropy %[[Y0]], %[[T0]] {ignore_index = 3 : i64, label_smoothing = 1.000000e-01 : f64}
// CHECK: train.slice %arg0 {limits = array<i64: 6, 4>, starts = array<i64: 3, 0>
// CHECK: %[[L1:.*]], %[[S1:.*]] = train.cross_entropy
// CHECK: train.slice %arg0 {limits = array<i64: 9, 4>, starts = array<i64: 6, 0>
// CHECK: %[[L2:.*]], %[[S2:.*]] = train.cross_entropy
// CHECK: %[[L:.*]] = train.concat %[[L0]], %[[L1]], %[[L2]] {dim = 0 : i64} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<9xf32>
// CHECK: %[[S:.*]] = train.concat %[[S0]], %[[S1]], %[[S2]]
// CHECK-NOT: train.linear_cross_entropy
// CHECK: return %[[L]], %[[S]]
// ONE-LABEL: func @loss
// ONE: train.dot_general {{.*}} -> tensor<9x10xf32>
// ONE-COUNT-1: train.cross_entropy
// ONE-NOT: train.concat
// At least one row at a time.
// ROW-LABEL: func @loss
// ROW-COUNT-9: train.cross_entropy {{.*}} : (tensor<1x10xf32>
// ROW-NOT: train.cross_entropy
// ROW: return
func.func @loss(%x: tensor<9x4xf32>, %w: tensor<10x4xf32>, %t: tensor<9xi32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %l, %s = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64, ignore_index = 3 : i64, label_smoothing = 0.1} : (tensor<9x4xf32>, tensor<10x4xf32>, tensor<9xi32>) -> (tensor<9xf32>, tensor<9xf32>)
  return %l, %s : tensor<9xf32>, tensor<9xf32>
}

// With its gradient: logits once for both. Gradients of the weight are added up range by range, in f32, and rounded once; those of the
// logits are rounded to what they are multiplied with. Seven rows are four and three.
// CHECK-LABEL: func @grad
// CHECK: %[[X0:.*]] = train.slice %arg0 {limits = array<i64: 4, 4>
// CHECK: %[[Y0:.*]] = train.dot_general %[[X0]], %arg1 {{.*}}rhs_contract = array<i64: 0>} : (tensor<4x4xbf16>, tensor<4x10xbf16>) -> tensor<4x10xf32>
// CHECK: train.cross_entropy %[[Y0]]
// CHECK: train.exp
// CHECK: %[[D0:.*]] = train.convert %{{.*}} : (tensor<4x10xf32>) -> tensor<4x10xbf16>
// CHECK: %[[H0:.*]] = train.dot_general %[[D0]], %arg1 {{.*}}lhs_contract = array<i64: 1>, {{.*}}rhs_contract = array<i64: 1>} : {{.*}} -> tensor<4x4xbf16>
// CHECK: %[[W0:.*]] = train.dot_general %[[X0]], %[[D0]] {{.*}}lhs_contract = array<i64: 0>, {{.*}}rhs_contract = array<i64: 0>} : {{.*}} -> tensor<4x10xf32>
// CHECK: train.slice %arg0 {limits = array<i64: 7, 4>, starts = array<i64: 4, 0>
// CHECK: train.cross_entropy {{.*}} : (tensor<3x10xf32>
// CHECK: %[[W1:.*]] = train.dot_general {{.*}} -> tensor<4x10xf32>
// CHECK: %[[W:.*]] = train.add %[[W0]], %[[W1]] : tensor<4x10xf32>
// CHECK: %[[DX:.*]] = train.concat %[[H0]], %{{.*}} : (tensor<4x4xbf16>, tensor<3x4xbf16>) -> tensor<7x4xbf16>
// CHECK: %[[DW:.*]] = train.convert %[[W]] : (tensor<4x10xf32>) -> tensor<4x10xbf16>
// CHECK-NOT: train.linear_cross_entropy
// CHECK: return %{{.*}}, %[[DX]], %[[DW]]
func.func @grad(%x: tensor<7x4xbf16>, %w: tensor<4x10xbf16>, %t: tensor<7xi64>, %g: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7x4xbf16>, tensor<4x10xbf16>) {
  %l, %s, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 0 : i64, ignore_index = 3 : i64, label_smoothing = 0.1} : (tensor<7x4xbf16>, tensor<4x10xbf16>, tensor<7xi64>, tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7x4xbf16>, tensor<4x10xbf16>)
  return %l, %s, %dx, %dw : tensor<7xf32>, tensor<7xf32>, tensor<7x4xbf16>, tensor<4x10xbf16>
}

// Gradients of the type in which they are added up.
// CHECK-LABEL: func @sums
// CHECK: train.dot_general {{.*}}rhs_contract = array<i64: 0>} : (tensor<4x10xbf16>, tensor<10x4xbf16>) -> tensor<4x4xf32>
// CHECK: train.dot_general {{.*}}lhs_contract = array<i64: 0>, {{.*}}rhs_contract = array<i64: 0>} : (tensor<4x10xbf16>, tensor<4x4xbf16>) -> tensor<10x4xf32>
// CHECK: return
func.func @sums(%x: tensor<7x4xbf16>, %w: tensor<10x4xbf16>, %t: tensor<7xui8>, %g: tensor<7xf32>) -> (tensor<7x4xf32>, tensor<10x4xf32>) {
  %l, %s, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64} : (tensor<7x4xbf16>, tensor<10x4xbf16>, tensor<7xui8>, tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7x4xf32>, tensor<10x4xf32>)
  return %dx, %dw : tensor<7x4xf32>, tensor<10x4xf32>
}

// What nothing reads is not computed.
// CHECK-LABEL: func @hidden_only
// CHECK: train.dot_general {{.*}} -> tensor<4x10xf32>
// CHECK: train.dot_general {{.*}} -> tensor<4x4xf32>
// CHECK: train.dot_general {{.*}} -> tensor<3x10xf32>
// CHECK: train.dot_general {{.*}} -> tensor<3x4xf32>
// CHECK-NOT: train.dot_general
// CHECK: return
func.func @hidden_only(%x: tensor<7x4xf32>, %w: tensor<10x4xf32>, %t: tensor<7xi32>, %g: tensor<7xf32>) -> tensor<7x4xf32> {
  %l, %s, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64} : (tensor<7x4xf32>, tensor<10x4xf32>, tensor<7xi32>, tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7x4xf32>, tensor<10x4xf32>)
  return %dx : tensor<7x4xf32>
}

// CHECK-LABEL: func @loss_only
// CHECK-COUNT-2: train.dot_general
// CHECK-NOT: train.dot_general
// CHECK: return
func.func @loss_only(%x: tensor<7x4xf32>, %w: tensor<10x4xf32>, %t: tensor<7xi32>, %g: tensor<7xf32>) -> tensor<7xf32> {
  %l, %s, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64} : (tensor<7x4xf32>, tensor<10x4xf32>, tensor<7xi32>, tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7x4xf32>, tensor<10x4xf32>)
  return %l : tensor<7xf32>
}

// Not applied: a cross-entropy of logits that are whole.
// CHECK-LABEL: func @whole
// CHECK: train.cross_entropy %arg0, %arg1 : (tensor<9x10xf32>, tensor<9xi32>)
// CHECK-NOT: train.concat
// CHECK: return
func.func @whole(%y: tensor<9x10xf32>, %t: tensor<9xi32>) -> tensor<9xf32> {
  %l, %s = train.cross_entropy %y, %t : (tensor<9x10xf32>, tensor<9xi32>) -> (tensor<9xf32>, tensor<9xf32>)
  return %l : tensor<9xf32>
}
