// Scales, 8-bit values and their products on ranks are those of one, bit for bit: of the whole tensor, of rows, of columns
// of all tokens, and of blocks of tokens that ranks have in part. Products are exact here.
// RUN: sed "s/shard = 1/shard = 2/" %s | tessera-opt --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding > %t.2
// RUN: sed "s/shard = 1/shard = 4/" %s | tessera-opt --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding > %t.4
// RUN: FileCheck %s --input-file=%t.2
// RUN: FileCheck %s --input-file=%t.4 --check-prefix=FOUR
// RUN: tessera-interp %t.2 --compare=%s --rtol=0 --atol=0
// RUN: tessera-interp %t.4 --compare=%s --rtol=0 --atol=0

// One maximum over ranks.
// CHECK-LABEL: func @tensor
// CHECK: train.reduce max
// CHECK: dist.all_reduce {{.*}}kind = #dist<reduction max>
// CHECK-NOT: = dist.
// CHECK: return
// A row is on one rank.
// CHECK-LABEL: func @rows
// CHECK-NOT: = dist.
// CHECK: return
// CHECK-LABEL: func @columns
// CHECK: dist.all_reduce {{.*}}kind = #dist<reduction max>{{.*}} -> tensor<1x16xf32>
// CHECK: return
// Two ranks have a block each, four half of one: an axis splits blocks or elements, not both, so that the whole is gathered.
// The driver refuses that.
// CHECK-LABEL: func @blocks
// CHECK-NOT: = dist.
// CHECK: return
// FOUR-LABEL: func @blocks
// FOUR: dist.all_gather
// FOUR: return
module attributes {dist.mesh = #dist.mesh<shard = 1>} {
func.func @tensor(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> (tensor<8x16xf32>, tensor<1x1xf32>) {
  %m = train.abs %x : tensor<8x16xf32>
  %top = train.reduce max, %m {dimensions = array<i64: 0, 1>} : (tensor<8x16xf32>) -> tensor<f32>
  %a = train.reshape %top : (tensor<f32>) -> tensor<1x1xf32>
  %s = train.quantize_scale none, %a {format = f8E5M2} : tensor<1x1xf32>
  %q = train.quantize %x, %s : (tensor<8x16xf32>, tensor<1x1xf32>) -> tensor<8x16xf8E5M2>
  %y = train.convert %q : (tensor<8x16xf8E5M2>) -> tensor<8x16xf32>
  return %y, %s : tensor<8x16xf32>, tensor<1x1xf32>
}

func.func @rows(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> (tensor<8x16xf32>, tensor<8x1xf32>) {
  %m = train.abs %x : tensor<8x16xf32>
  %top = train.reduce max, %m {dimensions = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8xf32>
  %a = train.reshape %top : (tensor<8xf32>) -> tensor<8x1xf32>
  %s = train.quantize_scale down, %a {format = f8E4M3FN} : tensor<8x1xf32>
  %q = train.quantize %x, %s : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf8E4M3FN>
  %y = train.convert %q : (tensor<8x16xf8E4M3FN>) -> tensor<8x16xf32>
  return %y, %s : tensor<8x16xf32>, tensor<8x1xf32>
}

func.func @columns(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> (tensor<8x16xf32>, tensor<1x16xf32>) {
  %m = train.abs %x : tensor<8x16xf32>
  %top = train.reduce max, %m {dimensions = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
  %a = train.reshape %top : (tensor<16xf32>) -> tensor<1x16xf32>
  %s = train.quantize_scale down, %a {format = f8E4M3FN} : tensor<1x16xf32>
  %q = train.quantize %x, %s : (tensor<8x16xf32>, tensor<1x16xf32>) -> tensor<8x16xf8E4M3FN>
  %y = train.convert %q : (tensor<8x16xf8E4M3FN>) -> tensor<8x16xf32>
  return %y, %s : tensor<8x16xf32>, tensor<1x16xf32>
}

func.func @blocks(%x: tensor<8x16xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> (tensor<8x16xf32>, tensor<2x16xf32>) {
  %m = train.abs %x : tensor<8x16xf32>
  %parts = train.reshape %m : (tensor<8x16xf32>) -> tensor<2x4x16xf32>
  %top = train.reduce max, %parts {dimensions = array<i64: 1>} : (tensor<2x4x16xf32>) -> tensor<2x16xf32>
  %s = train.quantize_scale e8m0, %top {format = f8E4M3FN} : tensor<2x16xf32>
  %q = train.quantize %x, %s : (tensor<8x16xf32>, tensor<2x16xf32>) -> tensor<8x16xf8E4M3FN>
  %y = train.convert %q : (tensor<8x16xf8E4M3FN>) -> tensor<8x16xf32>
  return %y, %s : tensor<8x16xf32>, tensor<2x16xf32>
}

// The product over tokens in blocks is a partial sum of what each rank has.
// CHECK-LABEL: func @product
// CHECK: train.scaled_dot {{.*}} (tensor<4x3xf8E4M3FN>, tensor<4x16xf8E4M3FN>, tensor<1x3xf32>, tensor<1x16xf32>)
// CHECK: dist.all_reduce {{.*}} -> tensor<3x16xf32>
// FOUR-LABEL: func @product
// FOUR: dist.all_gather
func.func @product(%x: tensor<8x16xi32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %g: tensor<8x3xi32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> tensor<3x16xf32> {
  %xf = train.convert %x : (tensor<8x16xi32>) -> tensor<8x16xf32>
  %gf = train.convert %g : (tensor<8x3xi32>) -> tensor<8x3xf32>
  %one = train.constant dense<1.0> : tensor<2x16xf32>
  %two = train.constant dense<[[2.0, 4.0, 1.0], [0.5, 1.0, 2.0]]> : tensor<2x3xf32>
  %half = train.constant dense<[[0.5, 0.25, 1.0], [2.0, 1.0, 0.5]]> : tensor<2x3xf32>
  %q = train.quantize %xf, %one : (tensor<8x16xf32>, tensor<2x16xf32>) -> tensor<8x16xf8E4M3FN>
  %p = train.quantize %gf, %two : (tensor<8x3xf32>, tensor<2x3xf32>) -> tensor<8x3xf8E4M3FN>
  %y = train.scaled_dot %p, %q scaled %half, %one {lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, power_of_two} : (tensor<8x3xf8E4M3FN>, tensor<8x16xf8E4M3FN>, tensor<2x3xf32>, tensor<2x16xf32>) -> tensor<3x16xf32>
  return %y : tensor<3x16xf32>
}
}
