// RUN: tessera-opt %s --annotate-sharding=strategy=zero3 --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding | FileCheck %s
// A weight that has the shape of its unit's chunks, and is read in rows and in columns: by rows in 8 bits, which are gathered; by
// columns in f32, which is gathered for itself, though both share the absolute values.

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @rows_and_columns
// CHECK-SAME: %[[U:[a-z0-9]+]]: tensor<32xf32>
// CHECK: %[[CHUNKS:.*]] = train.reshape %[[U]] : (tensor<32xf32>) -> tensor<4x8xf32>
// CHECK: %[[WHOLE:.*]] = dist.all_gather %[[U]] {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["u"]>} : (tensor<32xf32>) -> tensor<64xf32>
// CHECK: %[[W:.*]] = train.reshape %[[WHOLE]] : (tensor<64xf32>) -> tensor<8x8xf32>
// CHECK: train.abs %[[CHUNKS]] : tensor<4x8xf32>
// CHECK: train.abs %[[W]] : tensor<8x8xf32>
// CHECK: %[[Q:.*]] = train.quantize %[[CHUNKS]], %{{.*}} : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf8E4M3FN>
// CHECK: train.quantize %[[W]], %{{.*}} : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf8E4M3FN>
// CHECK: dist.all_gather %[[Q]] {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["u"]>} : (tensor<4x8xf8E4M3FN>) -> tensor<8x8xf8E4M3FN>
// CHECK-NOT: dist.all_reduce
func.func @rows_and_columns(%u: tensor<64xf32> {train.role = "param", train.name = "u"},
                            %x: tensor<4x8xf8E4M3FN> {train.role = "input", train.name = "x"}) -> (tensor<4x8xf32> {train.role = "output", train.name = "y"},
                            tensor<4x8xf32> {train.role = "output", train.name = "z"}) {
  %one = train.constant dense<1.0> : tensor<1x1xf32>
  %w = train.reshape %u : (tensor<64xf32>) -> tensor<8x8xf32>
  %a = train.abs %w : tensor<8x8xf32>
  %r = train.reduce max, %a {dimensions = array<i64: 1>} : (tensor<8x8xf32>) -> tensor<8xf32>
  %rows = train.reshape %r : (tensor<8xf32>) -> tensor<8x1xf32>
  %qr = train.quantize %w, %rows : (tensor<8x8xf32>, tensor<8x1xf32>) -> tensor<8x8xf8E4M3FN>
  %c = train.reduce max, %a {dimensions = array<i64: 0>} : (tensor<8x8xf32>) -> tensor<8xf32>
  %columns = train.reshape %c : (tensor<8xf32>) -> tensor<1x8xf32>
  %qc = train.quantize %w, %columns : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf8E4M3FN>
  %y = train.scaled_dot %x, %qr scaled %one, %one {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>, tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<4x8xf32>
  %z = train.scaled_dot %x, %qc scaled %one, %one {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>, tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}
}
