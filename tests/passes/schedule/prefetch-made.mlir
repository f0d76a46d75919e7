// RUN: tessera-opt %s --split-async --prefetch --verify-schedule | FileCheck %s
// What a block makes of a unit (8 bits) is gathered ahead as units are, but not before it is made. A gather of an activation,
// which is of no unit, stays where it is.

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @made
// CHECK: %[[A:.*]] = train.abs %arg0
// CHECK-NEXT: dist.all_gather_start %[[A]] {{.*}}"as soon as its operand is complete"
// CHECK-NEXT: %[[B:.*]] = train.abs %arg1
// CHECK-NEXT: dist.done
// CHECK-NEXT: dist.all_gather_start %[[B]] {{.*}}"1 unit ahead: at the first use of forward:a"
// CHECK: %[[E:.*]] = train.exp
// CHECK-NEXT: dist.done
// CHECK: train.mul
func.func @made(%a: tensor<4xbf16>, %b: tensor<4xbf16>) -> tensor<8xbf16> {
  %na = train.abs %a : tensor<4xbf16>
  %nb = train.abs %b : tensor<4xbf16>
  %ga = dist.all_gather %na {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["a"]>} : (tensor<4xbf16>) -> tensor<8xbf16>
  %0 = train.exp %ga : tensor<8xbf16>
  %gb = dist.all_gather %nb {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["b"]>} : (tensor<4xbf16>) -> tensor<8xbf16>
  %1 = train.mul %0, %gb : tensor<8xbf16>
  return %1 : tensor<8xbf16>
}

// CHECK-LABEL: func @activation
// CHECK: train.exp
// CHECK-NEXT: dist.all_gather_start {{.*}}"where the collective was"
func.func @activation(%a: tensor<4xf32>) -> tensor<8xf32> {
  %0 = train.exp %a : tensor<4xf32>
  %1 = dist.all_gather %0 {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
}
