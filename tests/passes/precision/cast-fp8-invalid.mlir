// RUN: tessera-opt %s --cast-fp8 --split-input-file --verify-diagnostics
// RUN: not tessera-opt %s --cast-fp8=groups=0 --split-input-file 2>&1 | FileCheck %s --check-prefix=GROUPS
// RUN: not tessera-opt %s --cast-fp8=nonfinite=banana --split-input-file 2>&1 | FileCheck %s --check-prefix=NONFINITE
// RUN: sed "s/shard = 4/shard = 1/" %s | not tessera-opt --cast-fp8=groups=4 --split-input-file 2>&1 | FileCheck %s --check-prefix=PARTS
// What cast-fp8 refuses, at the product that is the reason, and what it only says.
// GROUPS: error: cast-fp8: groups must be at least 1, got 0
// NONFINITE: error: cast-fp8: nonfinite must be propagate or scale1, got 'banana'
// PARTS: recipe mxfp8 needs a multiple of 32 tokens in each group, got 64 in 4 groups

func.func @columns(%x: tensor<8x100xbf16>, %w: tensor<32x100xf32>) -> tensor<8x32xbf16> {
  // expected-error@+1 {{recipe block128 needs inputs and outputs that are multiples of 128, got 100}}
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<block128, activation, weight>} : (tensor<8x100xbf16>, tensor<32x100xf32>) -> tensor<8x32xbf16>
  return %0 : tensor<8x32xbf16>
}

// -----

// Each product whose tokens a block does not divide, of those that a rank has; what does not depend on samples is whole on each.
module attributes {dist.mesh = #dist.mesh<shard = 4>} {
  func.func @ranks(%x: tensor<4x16x64xbf16> {train.role = "input", train.name = "x"}, %g: tensor<4x16x64xbf16> {train.role = "input", train.name = "g"},
                   %l: tensor<32x64xbf16>, %m: tensor<32x64xbf16>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
    // expected-error@unknown {{recipe mxfp8 needs a multiple of 32 tokens in a micro-batch on each rank, got 64 on 4 ranks: 'first', 'second'}}
    %0 = train.dot_general %g, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0, 1>, rhs_contract = array<i64: 0, 1>, scaling = #train.scaling<mxfp8, gradient, activation>} : (tensor<4x16x64xbf16>, tensor<4x16x64xbf16>) -> tensor<64x64xf32> loc("first")
    %1 = train.dot_general %x, %g {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0, 1>, rhs_contract = array<i64: 0, 1>, scaling = #train.scaling<mxfp8, gradient, activation>} : (tensor<4x16x64xbf16>, tensor<4x16x64xbf16>) -> tensor<64x64xf32> loc("second")
    %2 = train.dot_general %l, %m {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, gradient, activation>} : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<64x64xf32>
    return %0, %1, %2 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  }
}

// -----

func.func @empty(%x: tensor<8x0xbf16>, %w: tensor<32x0xf32>, %y: tensor<0x32xbf16>, %v: tensor<32x32xf32>) -> (tensor<8x32xbf16>, tensor<0x32xbf16>) {
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x0xbf16>, tensor<32x0xf32>) -> tensor<8x32xbf16>
  %1 = train.dot_general %y, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<0x32xbf16>, tensor<32x32xf32>) -> tensor<0x32xbf16>
  return %0, %1 : tensor<8x32xbf16>, tensor<0x32xbf16>
}

// -----

// A product that reads another one as it is.
func.func @chain(%x: tensor<8x32xbf16>, %v: tensor<32x32xf32>) -> tensor<8x32xbf16> {
  // expected-remark@+1 {{quantised where it is read}}
  %0 = train.dot_general %x, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x32xbf16>, tensor<32x32xf32>) -> tensor<8x32xbf16>
  // expected-remark@+1 {{quantised where it is read}}
  %1 = train.dot_general %0, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x32xbf16>, tensor<32x32xf32>) -> tensor<8x32xbf16>
  return %1 : tensor<8x32xbf16>
}
