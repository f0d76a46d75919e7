// What goes from rank to rank starts where it stands, in front of what is computed meanwhile, and ends at its first use; those of one
// group end in the order in which they start.
// RUN: tessera-opt %s --split-async --prefetch --verify-schedule | FileCheck %s
// RUN: tessera-opt %s --split-async --prefetch-auto --verify-schedule | FileCheck %s

module attributes {dist.mesh = #dist.mesh<seq = 4>} {
// CHECK-LABEL: func @ring
// CHECK: %[[K:.*]] = dist.permute_start %arg0
// CHECK-NEXT: %[[V:.*]] = dist.permute_start %arg1
// CHECK-NEXT: train.exp
// CHECK-NEXT: dist.done %[[K]] {schedule.reason = "before the one that starts next ends"}
// CHECK-NEXT: dist.done %[[V]] {schedule.reason = "at the first use of what arrives"}
// CHECK-NEXT: train.add
func.func @ring(%k: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<4xf32> {
  %k1 = dist.permute %k {axes = ["seq"], shift = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %v1 = dist.permute %v {axes = ["seq"], shift = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %e = train.exp %k : tensor<4xf32>
  // The second to start is used first.
  %a = train.add %e, %v1 : tensor<4xf32>
  %b = train.add %a, %k1 : tensor<4xf32>
  return %b : tensor<4xf32>
}

// Not moved: it is used at once.
// CHECK-LABEL: func @exposed
// CHECK: %[[K:.*]] = dist.permute_start
// CHECK-NEXT: dist.done %[[K]]
// CHECK-NEXT: train.exp
func.func @exposed(%k: tensor<4xf32>) -> tensor<4xf32> {
  %k1 = dist.permute %k {axes = ["seq"], shift = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %e = train.exp %k1 : tensor<4xf32>
  return %e : tensor<4xf32>
}
}
