// Which dimension of a value counts samples follows from the batch, by the rules by which values are sharded: cast-fp8 asks,
// where some of the samples share a scale.
// RUN: sed s/RECIPE/mxfp8/ %s | tessera-opt --cast-fp8 --canonicalize --cse 2>/dev/null | FileCheck %s --check-prefixes=CHECK,MX
// RUN: sed s/RECIPE/tensorwise/ %s > %t.mlir
// RUN: tessera-opt %t.mlir --cast-fp8=groups=2 -o %t.cast.mlir 2>/dev/null
// RUN: tessera-opt %t.cast.mlir --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,GROUPS
// RUN: tessera-interp %t.cast.mlir --function=values --compare=%t.mlir --rtol=1e-2 --atol=0 --quiet
// RUN: sed 's/sample\([],]\)/none\1/' %t.mlir | not tessera-opt --cast-fp8=groups=2 2>&1 | FileCheck %s --check-prefix=NONE

// Where no dimension counts samples there is one.
// NONE: error: --fp8-amax local: a micro-batch of 1 sample cannot be 2 equal groups

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

// Nor does what mixes samples: it is added up over them, or they are one side of a matrix that is multiplied.
// CHECK-LABEL: func.func @mixed
// GROUPS-NOT: tensor<2x1xf32>
// CHECK-NOT: train.transpose
// CHECK: return
func.func @mixed(%x: tensor<4x32x32xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, position, none]>}, %g: tensor<4x32xf32> {train.role = "input", train.name = "g"},
                 %w: tensor<64x32xf32>) -> (tensor<32x64xbf16>, tensor<32x64xbf16>) {
  %sum = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<4x32x32xf32>) -> tensor<32x32xf32>
  %s = train.convert %sum : (tensor<32x32xf32>) -> tensor<32x32xbf16>
  %0 = train.dot_general %s, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<RECIPE, activation, weight>} : (tensor<32x32xbf16>, tensor<64x32xf32>) -> tensor<32x64xbf16>
  %gram = train.dot_general %g, %g {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<32x32xf32>
  %m = train.convert %gram : (tensor<32x32xf32>) -> tensor<32x32xbf16>
  %1 = train.dot_general %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<RECIPE, activation, weight>} : (tensor<32x32xbf16>, tensor<64x32xf32>) -> tensor<32x64xbf16>
  return %0, %1 : tensor<32x64xbf16>, tensor<32x64xbf16>
}

// In a loop over micro-batches their samples count. Zeros and ones are exact, also those of the second group of samples, which
// would be zero with the first one's scale.
// CHECK-LABEL: func.func @values
// CHECK: train.accumulate
// GROUPS: train.transpose %{{.*}} {permutation = array<i64: 1, 0, 2>} : (tensor<8x4x32xbf16>) -> tensor<4x8x32xbf16>
// GROUPS: train.quantize_scale none, %{{.*}} {format = f8E4M3FN} : tensor<2x1xf32>
// CHECK: train.scaled_dot
func.func @values(%bits: tensor<2x8x4x32xi1> {train.role = "input", train.name = "x", train.dims = #train.dims<[micro_batch, position, sample, none]>},
                  %v: tensor<16x32xi1>) -> tensor<32x16xf32> {
  %w = train.convert %v : (tensor<16x32xi1>) -> tensor<16x32xf32>
  %size = train.constant dense<[1.0, 1.0, 5.9604644775390625e-08, 5.9604644775390625e-08]> : tensor<4xbf16>
  %all = train.accumulate %bits {count = 2 : i64} : (tensor<2x8x4x32xi1>) -> tensor<32x16xf32> {
  ^bb0(%i: tensor<i64>, %b: tensor<8x4x32xi1>):
    %ones = train.convert %b : (tensor<8x4x32xi1>) -> tensor<8x4x32xbf16>
    %sizes = train.broadcast %size {broadcast_dimensions = array<i64: 1>} : (tensor<4xbf16>) -> tensor<8x4x32xbf16>
    %x = train.mul %ones, %sizes : tensor<8x4x32xbf16>
    %flat = train.reshape %x : (tensor<8x4x32xbf16>) -> tensor<32x32xbf16>
    %0 = train.dot_general %flat, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<RECIPE, activation, weight>} : (tensor<32x32xbf16>, tensor<16x32xf32>) -> tensor<32x16xbf16>
    %y = train.convert %0 : (tensor<32x16xbf16>) -> tensor<32x16xf32>
    train.yield %y : tensor<32x16xf32>
  }
  return %all : tensor<32x16xf32>
}
