// A unit that is read in a narrower type is cast by each rank and gathered narrow; gradients are reduced wide, or narrow.

// RUN: tessera-opt %s --annotate-sharding=strategy=zero3 --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding | FileCheck %s --check-prefixes=CHECK,ZERO3
// RUN: tessera-opt %s --annotate-sharding=strategy=zero2 --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding | FileCheck %s --check-prefixes=CHECK,ZERO2
// RUN: tessera-opt %s --annotate-sharding='strategy=ddp reduce-dtype=bf16' --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding | FileCheck %s --check-prefix=DDP
// RUN: not tessera-opt %s --annotate-sharding='strategy=ddp reduce-dtype=fp8' 2>&1 | FileCheck %s --check-prefix=BAD
// BAD: unknown reduce-dtype 'fp8', expected fp32 or bf16

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2>} {
// CHECK-LABEL: func @narrow
// CHECK-SAME: %[[U:[a-z0-9]+]]: tensor<4xf32>
// ZERO3: %[[F:.*]] = train.convert %[[U]] : (tensor<4xf32>) -> tensor<4xbf16>
// ZERO3: dist.all_gather %[[F]] {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["u"]>} : (tensor<4xbf16>) -> tensor<8xbf16>
// ZERO3: %[[B:.*]] = train.convert %[[U]] {train.backward} : (tensor<4xf32>) -> tensor<4xbf16>
// ZERO3: dist.all_gather %[[B]] {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<backward, ["u"]>, train.backward} : (tensor<4xbf16>) -> tensor<8xbf16>
// ZERO2: %[[C:.*]] = train.convert %[[U]] : (tensor<4xf32>) -> tensor<4xbf16>
// ZERO2: dist.all_gather %[[C]] {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<step, ["u"]>} : (tensor<4xbf16>) -> tensor<8xbf16>
// ZERO2-NOT: dist.all_gather
// CHECK: dist.reduce_scatter %{{.*}} : (tensor<8xf32>) -> tensor<4xf32>
// CHECK: dist.all_reduce %{{.*}} : (tensor<4xf32>) -> tensor<4xf32>

// DDP-LABEL: func @narrow
// DDP: train.convert %{{.*}} : (tensor<8xf32>) -> tensor<8xbf16>
// DDP-NOT: dist.all_gather
// DDP: %[[G:.*]] = train.convert %{{.*}} : (tensor<8xf32>) -> tensor<8xbf16>
// DDP: %[[R:.*]] = dist.all_reduce %[[G]] {{.*}} : (tensor<8xbf16>) -> tensor<8xbf16>
// DDP: train.convert %[[R]] {{.*}} : (tensor<8xbf16>) -> tensor<8xf32>
func.func @narrow(%u: tensor<8xf32> {train.role = "param", train.name = "u"},
                  %x: tensor<4x2xbf16> {train.role = "input", train.name = "x"})
    -> (tensor<8xf32> {train.role = "grad", train.of = "u"}) {
  %c = train.convert %u : (tensor<8xf32>) -> tensor<8xbf16>
  %w = train.reshape %c : (tensor<8xbf16>) -> tensor<2x4xbf16>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x2xbf16>, tensor<2x4xbf16>) -> tensor<4x4xbf16>
  %dx = train.dot_general %y, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, train.backward} : (tensor<4x4xbf16>, tensor<2x4xbf16>) -> tensor<4x2xbf16>
  %dw = train.dot_general %dx, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, train.backward} : (tensor<4x2xbf16>, tensor<4x4xbf16>) -> tensor<2x4xf32>
  %g = train.reshape %dw {train.backward} : (tensor<2x4xf32>) -> tensor<8xf32>
  return %g : tensor<8xf32>
}
}
