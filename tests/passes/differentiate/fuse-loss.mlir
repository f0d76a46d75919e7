// RUN: tessera-opt %s --fuse-loss -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --fuse-loss 2>/dev/null | tessera-opt --fuse-loss | FileCheck %s
// RUN: tessera-opt %s --fuse-loss=bytes=240 2>&1 | FileCheck %s --check-prefix=FITS
// RUN: tessera-opt %s --fuse-loss=bytes=-1 2>&1 | FileCheck %s --check-prefix=FITS
// RUN: tessera-opt %s --fuse-loss='bytes=120 parts=2' 2>&1 | FileCheck %s --check-prefix=FITS
// RUN: tessera-opt %s --fuse-loss=bytes=239 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: tessera-opt %s --fuse-loss='bytes=119 parts=2' 2>&1 | FileCheck %s --check-prefix=LARGE
// Loss and gradients stay, with those of logits that were cut off; once by two passes over the logits, once by one.
// RUN: tessera-opt %s --differentiate -o %t.whole.mlir
// RUN: tessera-opt %s --fuse-loss --differentiate -o %t.twice.mlir 2>/dev/null
// RUN: tessera-opt %s --fuse-loss --differentiate --join-loss -o %t.once.mlir 2>/dev/null
// RUN: tessera-interp %t.twice.mlir --compare=%t.whole.mlir
// RUN: tessera-interp %t.once.mlir --compare=%t.whole.mlir
// RUN: tessera-opt %t.once.mlir --tile-loss=bytes=80 | tessera-interp - --compare=%t.whole.mlir

// Of six rows and ten classes in f32.
// FITS: remark: the logits are whole: they fit in --loss-tile
// FITS-NOT: train.linear_cross_entropy
// LARGE: func @by_class
// LARGE: train.linear_cross_entropy
// CHECK-LABEL: func @by_class
// CHECK-NOT: train.dot_general
// CHECK: %[[L:.*]], %{{.*}} = train.linear_cross_entropy %arg0, %arg1, %arg2 {weight_dim = 1 : i64} : (tensor<6x4xf32>, tensor<10x4xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
// CHECK-NEXT: train.reduce sum, %[[L]]
func.func @by_class(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  %l, %s = train.cross_entropy %y, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// What is said of the loss stays said.
// CHECK-LABEL: func @by_feature
// CHECK: train.linear_cross_entropy %arg0, %arg1, %arg2 {ignore_index = 3 : i64, label_smoothing = 1.000000e-01 : f64, weight_dim = 0 : i64}
func.func @by_feature(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<4x10xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x4xf32>, tensor<4x10xf32>) -> tensor<6x10xf32>
  %l, %s = train.cross_entropy %y, %t {ignore_index = 3 : i64, label_smoothing = 0.1} : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// The weight as it is stored.
// CHECK-LABEL: func @transposed
// CHECK: train.linear_cross_entropy %arg0, %arg1, %arg2 {weight_dim = 1 : i64}
func.func @transposed(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %v = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<10x4xf32>) -> tensor<4x10xf32>
  %y = train.dot_general %x, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<6x4xf32>, tensor<4x10xf32>) -> tensor<6x10xf32>
  %l, %s = train.cross_entropy %y, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @positions
// CHECK: %[[T:.*]] = train.reshape %arg2
// CHECK: %[[X:.*]] = train.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// CHECK: train.linear_cross_entropy %[[X]], %arg1, %[[T]]
func.func @positions(%x: tensor<2x3x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<2x3xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x3x4xf32>, tensor<10x4xf32>) -> tensor<2x3x10xf32>
  %z = train.reshape %y : (tensor<2x3x10xf32>) -> tensor<6x10xf32>
  %u = train.reshape %t : (tensor<2x3xi32>) -> tensor<6xi32>
  %l, %s = train.cross_entropy %z, %u : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// A model that shifts its labels itself: no logits are cut off, but losses.
// CHECK-LABEL: func @shifted
// CHECK-NOT: train.dot_general
// CHECK: %[[SHIFTED:.*]] = train.slice %arg2
// CHECK: %[[PADDED:.*]] = train.pad %{{.*}} {high = array<i64: 0, 1>, interior = array<i64: 0, 0>, low = array<i64: 0, 0>}
// CHECK: %[[T:.*]] = train.reshape %[[PADDED]] : (tensor<2x4xi32>) -> tensor<8xi32>
// CHECK: %[[X:.*]] = train.reshape %arg0 : (tensor<2x4x4xf32>) -> tensor<8x4xf32>
// CHECK: %[[L:.*]], %[[S:.*]] = train.linear_cross_entropy %[[X]], %arg1, %[[T]] {ignore_index = 3 : i64, weight_dim = 1 : i64} : {{.*}} -> (tensor<8xf32>, tensor<8xf32>)
// CHECK: %[[ROWS:.*]] = train.reshape %[[L]] : (tensor<8xf32>) -> tensor<2x4xf32>
// CHECK: %[[CUT:.*]] = train.slice %[[ROWS]] {limits = array<i64: 2, 3>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>}
// CHECK: %[[OWN:.*]] = train.reshape %[[CUT]] : (tensor<2x3xf32>) -> tensor<6xf32>
// CHECK: train.reduce sum, %[[OWN]]
func.func @shifted(%x: tensor<2x4x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<2x4xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x4x4xf32>, tensor<10x4xf32>) -> tensor<2x4x10xf32>
  %c = train.slice %y {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 10>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x10xf32>) -> tensor<2x3x10xf32>
  %z = train.reshape %c : (tensor<2x3x10xf32>) -> tensor<6x10xf32>
  %n = train.slice %t {starts = array<i64: 0, 1>, limits = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<2x4xi32>) -> tensor<2x3xi32>
  %u = train.reshape %n : (tensor<2x3xi32>) -> tensor<6xi32>
  %l, %s = train.cross_entropy %z, %u {ignore_index = 3 : i64} : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @cut_at_both_ends
// CHECK: train.pad %{{.*}} {high = array<i64: 0, 1>, interior = array<i64: 0, 0>, low = array<i64: 0, 1>}
// CHECK: train.linear_cross_entropy
// CHECK: train.slice %{{.*}} {limits = array<i64: 2, 4>, starts = array<i64: 0, 1>
func.func @cut_at_both_ends(%x: tensor<2x5x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<4x10xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xui8> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<2x5x4xf32>, tensor<4x10xf32>) -> tensor<2x5x10xf32>
  %c = train.slice %y {starts = array<i64: 0, 1, 0>, limits = array<i64: 2, 4, 10>, strides = array<i64: 1, 1, 1>} : (tensor<2x5x10xf32>) -> tensor<2x3x10xf32>
  %z = train.reshape %c : (tensor<2x3x10xf32>) -> tensor<6x10xf32>
  %l, %s = train.cross_entropy %z, %t {label_smoothing = 0.2} : (tensor<6x10xf32>, tensor<6xui8>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Cut off where rows are one dimension.
// CHECK-LABEL: func @cut_of_rows
// CHECK: train.pad %{{.*}} {high = array<i64: 1>, interior = array<i64: 0>, low = array<i64: 2>}
// CHECK: train.slice %{{.*}} {limits = array<i64: 7>, starts = array<i64: 2>, strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<5xf32>
func.func @cut_of_rows(%x: tensor<2x4x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<5xi64> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x4x4xf32>, tensor<10x4xf32>) -> tensor<2x4x10xf32>
  %z = train.reshape %y : (tensor<2x4x10xf32>) -> tensor<8x10xf32>
  %c = train.slice %z {starts = array<i64: 2, 0>, limits = array<i64: 7, 10>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<5x10xf32>
  %l, %s = train.cross_entropy %c, %t : (tensor<5x10xf32>, tensor<5xi64>) -> (tensor<5xf32>, tensor<5xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// --- Not applied ---------------------------------------------------------------

// CHECK-LABEL: func @read_by_another
// CHECK: train.cross_entropy
func.func @read_by_another(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  // expected-remark@+1 {{the logits are whole: something else reads them}}
  %l, %s = train.cross_entropy %y, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %m = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<6x10xf32>) -> tensor<f32>
  %r = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  %loss = train.add %r, %m : tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @bias
// CHECK: train.cross_entropy
func.func @bias(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %b: tensor<10xf32> {train.role = "param", train.name = "b"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  %c = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<10xf32>) -> tensor<6x10xf32>
  %z = train.add %y, %c : tensor<6x10xf32>
  // expected-remark@+1 {{the logits are whole: they pass through train.add}}
  %l, %s = train.cross_entropy %z, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @scaled
// CHECK: train.cross_entropy
func.func @scaled(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  %z = train.tanh %y : tensor<6x10xf32>
  // expected-remark@+1 {{the logits are whole: they pass through train.tanh}}
  %l, %s = train.cross_entropy %z, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Classes that are cut off count in no sum.
// CHECK-LABEL: func @some_classes
// CHECK: train.cross_entropy
func.func @some_classes(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  %z = train.slice %y {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x10xf32>) -> tensor<6x8xf32>
  // expected-remark@+1 {{the logits are whole: they pass through train.slice}}
  %l, %s = train.cross_entropy %z, %t : (tensor<6x8xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @every_other_row
// CHECK: train.cross_entropy
func.func @every_other_row(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<3xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  %z = train.slice %y {starts = array<i64: 0, 0>, limits = array<i64: 6, 10>, strides = array<i64: 2, 1>} : (tensor<6x10xf32>) -> tensor<3x10xf32>
  // expected-remark@+1 {{the logits are whole: they pass through train.slice}}
  %l, %s = train.cross_entropy %z, %t : (tensor<3x10xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @cut_twice
// CHECK: train.cross_entropy
func.func @cut_twice(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<4xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  %z = train.slice %y {starts = array<i64: 0, 0>, limits = array<i64: 5, 10>, strides = array<i64: 1, 1>} : (tensor<6x10xf32>) -> tensor<5x10xf32>
  %u = train.slice %z {starts = array<i64: 1, 0>, limits = array<i64: 5, 10>, strides = array<i64: 1, 1>} : (tensor<5x10xf32>) -> tensor<4x10xf32>
  // expected-remark@+1 {{the logits are whole: they pass through train.slice}}
  %l, %s = train.cross_entropy %u, %t : (tensor<4x10xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// Rows of these logits are halves of the product's.
// CHECK-LABEL: func @mixed
// CHECK: train.cross_entropy
func.func @mixed(%x: tensor<3x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<20x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<3x4xf32>, tensor<20x4xf32>) -> tensor<3x20xf32>
  %z = train.reshape %y : (tensor<3x20xf32>) -> tensor<6x10xf32>
  // expected-remark@+1 {{the logits are whole: they pass through train.reshape}}
  %l, %s = train.cross_entropy %z, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @placed
// CHECK: train.cross_entropy
func.func @placed(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w", train.placement = #train.placement<dim = 0, axes = ["tp"], parts = 2>}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  // expected-remark@+1 {{the logits are whole: the matrix is placed on model axes}}
  %l, %s = train.cross_entropy %y, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @placed_view
// CHECK: train.cross_entropy
func.func @placed_view(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<4x10xf32> {train.role = "param", train.name = "w", train.placement = #train.placement<dim = 1, axes = ["tp"], parts = 2>}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %c = train.convert %w : (tensor<4x10xf32>) -> tensor<4x10xbf16>
  %d = train.convert %c : (tensor<4x10xbf16>) -> tensor<4x10xf32>
  %v = train.transpose %d {permutation = array<i64: 1, 0>} : (tensor<4x10xf32>) -> tensor<10x4xf32>
  %y = train.dot_general %x, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<6x4xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  // expected-remark@+1 {{the logits are whole: the matrix is placed on model axes}}
  %l, %s = train.cross_entropy %y, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @no_product
// CHECK: train.cross_entropy
func.func @no_product(%x: tensor<6x10xf32> {train.role = "param", train.name = "x"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  // expected-remark@+1 {{the logits are whole: they are no product}}
  %l, %s = train.cross_entropy %x, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @batch
// CHECK: train.cross_entropy
func.func @batch(%x: tensor<1x6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<1x10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 2>} : (tensor<1x6x4xf32>, tensor<1x10x4xf32>) -> tensor<1x6x10xf32>
  %z = train.reshape %y : (tensor<1x6x10xf32>) -> tensor<6x10xf32>
  // expected-remark@+1 {{the logits are whole: the product is not of activations and a matrix}}
  %l, %s = train.cross_entropy %z, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @first_dimension
// CHECK: train.cross_entropy
func.func @first_dimension(%x: tensor<4x6xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 1>} : (tensor<4x6xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  // expected-remark@+1 {{the logits are whole: the product is not of activations and a matrix}}
  %l, %s = train.cross_entropy %y, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @own_type
// CHECK: train.cross_entropy
func.func @own_type(%x: tensor<6x4xf32> {train.role = "param", train.name = "x"}, %w: tensor<10x4xf32> {train.role = "param", train.name = "w"}, %t: tensor<6xi32> {train.role = "target", train.name = "t"}) -> (tensor<f32> {train.role = "loss"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, compute_type = f32} : (tensor<6x4xf32>, tensor<10x4xf32>) -> tensor<6x10xf32>
  // expected-remark@+1 {{the logits are whole: the product is computed in a type of its own}}
  %l, %s = train.cross_entropy %y, %t : (tensor<6x10xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = train.reduce sum, %l {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
