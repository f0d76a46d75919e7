// Operands of products in 8 bits become matrices: without a transpose where the operand holds what is contracted in front of
// the rest or behind it. Where tokens are put in the order of samples, the product gets them back in the model's order.
// RUN: rm -rf %t && split-file %s %t
// RUN: tessera-opt %t/matrices.mlir --cast-fp8 -o %t/cast.mlir 2>/dev/null
// RUN: tessera-opt %t/cast.mlir --canonicalize --cse | FileCheck %t/matrices.mlir
// RUN: sed s/RECIPE/mxfp8/ %t/samples.mlir | tessera-opt --cast-fp8 --canonicalize --cse 2>/dev/null | FileCheck %t/samples.mlir --check-prefixes=CHECK,MX
// RUN: sed s/RECIPE/tensorwise/ %t/samples.mlir > %t/groups.mlir
// RUN: tessera-opt %t/groups.mlir --cast-fp8=groups=2 -o %t/groups.cast.mlir 2>/dev/null
// RUN: tessera-opt %t/groups.cast.mlir --canonicalize --cse | FileCheck %t/samples.mlir --check-prefixes=CHECK,GROUPS
// RUN: tessera-opt %t/groups.mlir --cast-fp8 --canonicalize --cse 2>/dev/null | FileCheck %t/samples.mlir --check-prefix=WHOLE

// Zeros and ones are exact in 8 bits, so that the products are, too. Those of one group of samples are so small that with the
// other one's scale they would be zero.
// RUN: tessera-interp %t/cast.mlir --compare=%t/matrices.mlir --rtol=0 --atol=0 --quiet
// RUN: tessera-interp %t/groups.cast.mlir --compare=%t/groups.mlir --rtol=1e-2 --atol=0 --quiet

//--- matrices.mlir
// In order as they are: tokens in front, inputs behind, also of several dimensions.
// CHECK-LABEL: func.func @in_order
// CHECK-NOT: train.transpose
// CHECK: train.scaled_dot {{.*}} {lhs_contract = array<i64: 1>, {{(power_of_two, )?}}rhs_contract = array<i64: 1>} : (tensor<32x32xf8E4M3FN>, tensor<16x32xf8E4M3FN>,
// CHECK-NOT: train.transpose
// CHECK: train.reshape {{.*}} -> tensor<4x8x4x4xbf16>
// CHECK-NOT: train.transpose
func.func @in_order(%bits: tensor<4x8x4x8xi1>, %v: tensor<4x4x4x8xi1>) -> tensor<4x8x4x4xbf16> {
  %x = train.convert %bits : (tensor<4x8x4x8xi1>) -> tensor<4x8x4x8xbf16>
  %w = train.convert %v : (tensor<4x4x4x8xi1>) -> tensor<4x4x4x8xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2, 3>, rhs_contract = array<i64: 2, 3>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<4x8x4x8xbf16>, tensor<4x4x4x8xf32>) -> tensor<4x8x4x4xbf16>
  return %y : tensor<4x8x4x4xbf16>
}

// Inputs in front of the tokens: contracted as they are, too.
// CHECK-LABEL: func.func @inputs_first
// CHECK-NOT: train.transpose
// CHECK: train.scaled_dot {{.*}} {lhs_contract = array<i64: 0>, {{(power_of_two, )?}}rhs_contract = array<i64: 0>} : (tensor<32x32xf8E4M3FN>, tensor<32x16xf8E4M3FN>,
// CHECK-NOT: train.transpose
// CHECK: return
func.func @inputs_first(%bits: tensor<32x32xi1>, %v: tensor<32x16xi1>) -> tensor<32x16xbf16> {
  %x = train.convert %bits : (tensor<32x32xi1>) -> tensor<32x32xbf16>
  %w = train.convert %v : (tensor<32x16xi1>) -> tensor<32x16xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<32x32xbf16>, tensor<32x16xf32>) -> tensor<32x16xbf16>
  return %y : tensor<32x16xbf16>
}

// Not as they are: inputs between two dimensions of tokens go behind them, and those that are in another order than in the other
// operand are put in its order.
// CHECK-LABEL: func.func @between
// CHECK: train.transpose %{{.*}} {permutation = array<i64: 0, 2, 1>} : (tensor<8x32x4xbf16>) -> tensor<8x4x32xbf16>
// CHECK: train.scaled_dot {{.*}} {lhs_contract = array<i64: 1>, {{(power_of_two, )?}}rhs_contract = array<i64: 1>}
// CHECK: train.transpose %{{.*}} {permutation = array<i64: 1, 0, 2>} : (tensor<8x4x32xbf16>) -> tensor<4x8x32xbf16>
// CHECK-NOT: train.transpose
// CHECK: train.scaled_dot {{.*}} {lhs_contract = array<i64: 0>, {{(power_of_two, )?}}rhs_contract = array<i64: 0>}
func.func @between(%bits: tensor<8x32x4xi1>, %v: tensor<16x32xi1>, %turned: tensor<8x4x32xi1>, %u: tensor<4x8x16xi1>) -> (tensor<8x4x16xbf16>, tensor<32x16xbf16>) {
  %x = train.convert %bits : (tensor<8x32x4xi1>) -> tensor<8x32x4xbf16>
  %w = train.convert %v : (tensor<16x32xi1>) -> tensor<16x32xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x32x4xbf16>, tensor<16x32xf32>) -> tensor<8x4x16xbf16>
  %t = train.convert %turned : (tensor<8x4x32xi1>) -> tensor<8x4x32xbf16>
  %s = train.convert %u : (tensor<4x8x16xi1>) -> tensor<4x8x16xf32>
  %z = train.dot_general %t, %s {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1, 0>, rhs_contract = array<i64: 0, 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x4x32xbf16>, tensor<4x8x16xf32>) -> tensor<32x16xbf16>
  return %y, %z : tensor<8x4x16xbf16>, tensor<32x16xbf16>
}

//--- samples.mlir
// 8 positions x 4 samples, of which two are one group or all 32 tokens one block. Nothing is put in order where all share a
// scale, or none.
// CHECK-LABEL: func.func @sequence_first
// MX-NOT: train.transpose
// MX: train.scaled_dot {{.*}} : (tensor<32x32xf8E4M3FN>, tensor<64x32xf8E4M3FN>, tensor<32x1xf32>, tensor<64x1xf32>) -> tensor<32x64xbf16>
// MX-NEXT: train.reshape {{.*}} -> tensor<8x4x64xbf16>
// GROUPS: %[[X:.*]] = train.transpose %{{.*}} {permutation = array<i64: 1, 0, 2>} : (tensor<8x4x32xbf16>) -> tensor<4x8x32xbf16>
// GROUPS: train.reshape %[[X]] : (tensor<4x8x32xbf16>) -> tensor<32x32xbf16>
// GROUPS: train.quantize_scale none, %{{.*}} {format = f8E4M3FN} : tensor<2x1xf32>
// GROUPS: %[[P:.*]] = train.scaled_dot
// GROUPS: %[[S:.*]] = train.reshape %[[P]] : (tensor<32x64xbf16>) -> tensor<4x8x64xbf16>
// GROUPS: train.transpose %[[S]] {permutation = array<i64: 1, 0, 2>} : (tensor<4x8x64xbf16>) -> tensor<8x4x64xbf16>
// CHECK: train.transpose %{{.*}} {permutation = array<i64: 1, 0, 2>, train.backward} : (tensor<8x4x64xbf16>) -> tensor<4x8x64xbf16>
// CHECK: train.scaled_dot {{.*}} {lhs_contract = array<i64: 0>, {{(power_of_two, )?}}rhs_contract = array<i64: 0>, train.backward} : (tensor<32x64xf8E{{.*}}>, tensor<32x32xf8E4M3FN>,
// MX-SAME: tensor<1x64xf32>, tensor<1x32xf32>) -> tensor<64x32xf32>
// GROUPS-SAME: tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<64x32xf32>
// WHOLE-LABEL: func.func @sequence_first
// WHOLE-NOT: train.transpose
// WHOLE-LABEL: func.func @samples_inside
func.func @sequence_first(%bits: tensor<8x4x32xi1> {train.role = "input", train.name = "x", train.dims = #train.dims<[position, sample, none]>},
                          %d: tensor<8x4x64xi1> {train.role = "input", train.name = "d", train.dims = #train.dims<[position, sample, none]>},
                          %v: tensor<64x32xi1>) -> (tensor<8x4x64xbf16>, tensor<64x32xf32>) {
  %ones = train.convert %bits : (tensor<8x4x32xi1>) -> tensor<8x4x32xbf16>
  %size = train.constant dense<[1.0, 1.0, 5.9604644775390625e-08, 5.9604644775390625e-08]> : tensor<4xbf16>
  %sizes = train.broadcast %size {broadcast_dimensions = array<i64: 1>} : (tensor<4xbf16>) -> tensor<8x4x32xbf16>
  %x = train.mul %ones, %sizes : tensor<8x4x32xbf16>
  %w = train.convert %v : (tensor<64x32xi1>) -> tensor<64x32xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>, scaling = #train.scaling<RECIPE, activation, weight>} : (tensor<8x4x32xbf16>, tensor<64x32xf32>) -> tensor<8x4x64xbf16>
  %g = train.convert %d {train.backward} : (tensor<8x4x64xi1>) -> tensor<8x4x64xbf16>
  %dw = train.dot_general %g, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0, 1>, rhs_contract = array<i64: 0, 1>, scaling = #train.scaling<RECIPE, gradient, activation>, train.backward} : (tensor<8x4x64xbf16>, tensor<8x4x32xbf16>) -> tensor<64x32xf32>
  return %y, %dw : tensor<8x4x64xbf16>, tensor<64x32xf32>
}

// The model has made one dimension of 2 blocks, 4 samples and 4 positions of each.
// CHECK-LABEL: func.func @samples_inside
// GROUPS: %[[PARTS:.*]] = train.reshape %{{.*}} : (tensor<32x32xbf16>) -> tensor<2x4x4x32xbf16>
// GROUPS: train.transpose %[[PARTS]] {permutation = array<i64: 1, 0, 2, 3>} : (tensor<2x4x4x32xbf16>) -> tensor<4x2x4x32xbf16>
// GROUPS: train.scaled_dot
// GROUPS: train.transpose %{{.*}} {permutation = array<i64: 1, 0, 2, 3>} : (tensor<4x2x4x16xbf16>) -> tensor<2x4x4x16xbf16>
// MX-NOT: train.transpose
// MX: return
func.func @samples_inside(%bits: tensor<2x4x4x32xi1> {train.role = "input", train.name = "x", train.dims = #train.dims<[none, sample, position, none]>},
                          %v: tensor<16x32xi1>) -> tensor<32x16xbf16> {
  %ones = train.convert %bits : (tensor<2x4x4x32xi1>) -> tensor<2x4x4x32xbf16>
  %size = train.constant dense<[1.0, 1.0, 5.9604644775390625e-08, 5.9604644775390625e-08]> : tensor<4xbf16>
  %sizes = train.broadcast %size {broadcast_dimensions = array<i64: 1>} : (tensor<4xbf16>) -> tensor<2x4x4x32xbf16>
  %sized = train.mul %ones, %sizes : tensor<2x4x4x32xbf16>
  %flat = train.reshape %sized : (tensor<2x4x4x32xbf16>) -> tensor<32x32xbf16>
  %x = train.neg %flat : tensor<32x32xbf16>
  %w = train.convert %v : (tensor<16x32xi1>) -> tensor<16x32xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<RECIPE, activation, weight>} : (tensor<32x32xbf16>, tensor<16x32xf32>) -> tensor<32x16xbf16>
  return %y : tensor<32x16xbf16>
}
