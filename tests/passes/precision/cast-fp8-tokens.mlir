// RUN: sed s/RECIPE/mxfp8/ %s | tessera-opt --cast-fp8 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,MX
// RUN: sed s/RECIPE/tensorwise/ %s | tessera-opt --cast-fp8=groups=2 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,GROUPS
// RUN: sed s/RECIPE/tensorwise/ %s | tessera-opt --cast-fp8 --canonicalize --cse | FileCheck %s --check-prefix=WHOLE
// The order of tokens: that of samples where some of them share a scale, so that ranks have whole groups and blocks. What the
// dimensions of values count follows from those of the batch.

// 8 positions x 4 samples, of which two are one group. Nothing is put in order where all share a scale.
// CHECK-LABEL: func.func @sequence_first
// MX: train.scaled_dot {{.*}} : (tensor<32x32xf8E4M3FN>, tensor<64x32xf8E4M3FN>, tensor<32x1xf32>, tensor<64x1xf32>) -> tensor<32x64xbf16>
// MX-NEXT: %[[Y:.*]] = train.reshape {{.*}} -> tensor<8x4x64xbf16>
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
// WHOLE-LABEL: func.func @flat
func.func @sequence_first(%x: tensor<8x4x32xbf16> {train.role = "input", train.name = "x", train.dims = #train.dims<[position, sample, none]>},
                          %w: tensor<64x32xf32> {train.role = "param", train.name = "w", train.compute_type = f8E4M3FN})
    -> (tensor<f32> {train.role = "loss"}, tensor<64x32xf32> {train.role = "grad", train.of = "w"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>, scaling = #train.scaling<RECIPE, activation, weight>} : (tensor<8x4x32xbf16>, tensor<64x32xf32>) -> tensor<8x4x64xbf16>
  %t = train.tanh %y : tensor<8x4x64xbf16>
  %wide = train.convert %t : (tensor<8x4x64xbf16>) -> tensor<8x4x64xf32>
  %loss = train.reduce sum, %wide {dimensions = array<i64: 0, 1, 2>} : (tensor<8x4x64xf32>) -> tensor<f32>
  %dw = train.dot_general %t, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0, 1>, rhs_contract = array<i64: 0, 1>, scaling = #train.scaling<RECIPE, gradient, activation>, train.backward} : (tensor<8x4x64xbf16>, tensor<8x4x32xbf16>) -> tensor<64x32xf32>
  return %loss, %dw : tensor<f32>, tensor<64x32xf32>
}

// The model has made one dimension of both: blocks of samples.
// CHECK-LABEL: func.func @flat
// MX: %[[G:.*]] = train.reshape %{{.*}} {train.backward} : (tensor<32x64xbf16>) -> tensor<8x4x64xbf16>
// MX: train.transpose %[[G]] {permutation = array<i64: 1, 0, 2>, train.backward}
func.func @flat(%x: tensor<8x4x32xbf16> {train.role = "input", train.name = "x", train.dims = #train.dims<[position, sample, none]>},
                %w: tensor<64x32xf32> {train.role = "param", train.name = "w", train.compute_type = f8E4M3FN})
    -> (tensor<f32> {train.role = "loss"}, tensor<64x32xf32> {train.role = "grad", train.of = "w"}) {
  %f = train.reshape %x : (tensor<8x4x32xbf16>) -> tensor<32x32xbf16>
  %y = train.dot_general %f, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<RECIPE, activation, weight>} : (tensor<32x32xbf16>, tensor<64x32xf32>) -> tensor<32x64xbf16>
  %wide = train.convert %y : (tensor<32x64xbf16>) -> tensor<32x64xf32>
  %loss = train.reduce sum, %wide {dimensions = array<i64: 0, 1>} : (tensor<32x64xf32>) -> tensor<f32>
  %dw = train.dot_general %y, %f {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, scaling = #train.scaling<RECIPE, gradient, activation>, train.backward} : (tensor<32x64xbf16>, tensor<32x32xbf16>) -> tensor<64x32xf32>
  return %loss, %dw : tensor<f32>, tensor<64x32xf32>
}

// What does not depend on the batch has one scale: every rank has all of it.
// CHECK-LABEL: func.func @latents
// GROUPS: train.quantize_scale none, %{{.*}} {format = f8E4M3FN} : tensor<1x1xf32>
// CHECK-NOT: train.transpose
// CHECK: return
func.func @latents(%x: tensor<4x8xbf16> {train.role = "input", train.name = "x"}, %l: tensor<32x32xbf16>,
                   %w: tensor<64x32xf32> {train.role = "param", train.name = "w", train.compute_type = f8E4M3FN}) -> tensor<32x64xbf16> {
  %y = train.dot_general %l, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<RECIPE, activation, weight>} : (tensor<32x32xbf16>, tensor<64x32xf32>) -> tensor<32x64xbf16>
  return %y : tensor<32x64xbf16>
}
