// The ways to run an op on given layouts: what each sends decides, then what is smaller, unless the op asks for one.
// RUN: tessera-opt %s --propagate-sharding --insert-reshards --verify-sharding --verify-diagnostics -o %t.global.mlir
// RUN: FileCheck %s --check-prefix=GLOBAL --input-file=%t.global.mlir
// RUN: tessera-opt %t.global.mlir --localize --verify-sharding -o %t.local.mlir
// RUN: FileCheck %s --input-file=%t.local.mlir
// RUN: tessera-interp %t.local.mlir --compare=%s --quiet

module attributes {dist.mesh = #dist.mesh<data = 2, model = 4>} {
// Fewer looked up rows than there are: they are added up, 4 x 8 x 4 bytes twice but for a rank's own.
// CHECK-LABEL: func @few
// CHECK: dist.all_reduce
func.func @few(%table: tensor<64x8xf32> {dist.sharding = #dist.sharding<[{"model"}, {}]>}, %i: tensor<4xi32>) -> tensor<4x8xf32> {
  // expected-remark@+1 {{rows stay split: each rank sends 192 bytes, gathered it would send 1536}}
  %y = train.gather_rows %table, %i : (tensor<64x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// More is looked up than there is: gathered.
// CHECK-LABEL: func @small_table
// CHECK: dist.all_gather %arg0 {{.*}} -> tensor<8x8xf32>
func.func @small_table(%table: tensor<8x8xf32> {dist.sharding = #dist.sharding<[{"model"}, {}]>}, %i: tensor<64xi32>) -> tensor<64x8xf32> {
  // expected-remark@+2 {{gathered: each rank sends 192 bytes, rows stay split it would send 3072}}
  // expected-remark@+1 {{gathers 'tensor<8x8xf32>' over 'model': it is in parts where this op needs it whole}}
  %y = train.gather_rows %table, %i : (tensor<8x8xf32>, tensor<64xi32>) -> tensor<64x8xf32>
  return %y : tensor<64x8xf32>
}

// Each rank keeps the gradients of its rows: nothing is sent.
// CHECK-LABEL: func @update
// CHECK-NOT: dist.all
// CHECK: train.scatter_add_rows {{.*}} -> tensor<16x8xf32>
// CHECK-NOT: dist.all
// CHECK: return
func.func @update(%table: tensor<64x8xf32> {dist.sharding = #dist.sharding<[{"model"}, {}]>}, %i: tensor<4xi32>, %dy: tensor<4x8xf32>) -> tensor<64x8xf32> {
  %zero = train.constant dense<0.0> : tensor<64x8xf32>
  // expected-remark@+1 {{rows stay split: each rank sends 0 bytes, gathered it would send 0}}
  %d = train.scatter_add_rows %zero, %i, %dy : (tensor<64x8xf32>, tensor<4xi32>, tensor<4x8xf32>) -> tensor<64x8xf32>
  %new = train.sub %table, %d : tensor<64x8xf32>
  return %new : tensor<64x8xf32>
}

// No choice where nothing is split, or where an axis does not divide the classes.
// CHECK-LABEL: func @whole
// CHECK: train.cross_entropy
// CHECK: train.softmax
func.func @whole(%x: tensor<6x30xf32> {dist.sharding = #dist.sharding<[{"data"}, {}]>}, %t: tensor<6xi32>) -> (tensor<6xf32>, tensor<6x30xf32>) {
  %loss, %lse = train.cross_entropy %x, %t : (tensor<6x30xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %p = train.softmax %x {dim = 1 : i64} : tensor<6x30xf32>
  return %loss, %p : tensor<6xf32>, tensor<6x30xf32>
}

// Samples of the targets are split where classes of the logits are: "gathered" would exchange one for the other.
// GLOBAL-LABEL: func @exchange
// GLOBAL: train.cross_entropy %arg0, %{{.*}} {{.*}}[#dist.sharding<[{}]>, #dist.sharding<[{}]>]
func.func @exchange(%x: tensor<8x4096xf32> {dist.sharding = #dist.sharding<[{}, {"model"}]>}, %t: tensor<8xi32> {dist.sharding = #dist.sharding<[{"model"}]>}) -> tensor<8xf32> {
  // expected-remark@+2 {{classes stay split: each rank sends 168 bytes, gathered it would send 24576}}
  // expected-remark@+1 {{gathers 'tensor<8xi32>' over 'model'}}
  %loss, %lse = train.cross_entropy %x, %t : (tensor<8x4096xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %loss : tensor<8xf32>
}

// The op asks for it: keys travel although they are whole on each rank.
// GLOBAL-LABEL: func @asked
// GLOBAL: dist.reshard %arg1 <[{}, {}, {}, {}]> to <[{}, {}, {"model"}, {}]>
// GLOBAL: train.attention
// CHECK-LABEL: func @asked
// CHECK: dist.permute
func.func @asked(%q: tensor<2x4x8x2xf32> {dist.sharding = #dist.sharding<[{}, {}, {"model"}, {}]>}, %k: tensor<2x4x8x2xf32>) -> tensor<2x4x8x2xf32> {
  // expected-remark@+1 {{keys travel: each rank sends 768 bytes, gathered it would send 0}}
  %o, %lse = train.attention %q, %k, %k {scale = 0.5, split = #train<attention_split ring>} : (tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>) -> (tensor<2x4x8x2xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x4x8x2xf32>
}

// What is asked for needs positions that are split: no choice without.
// GLOBAL-LABEL: func @not_split
// GLOBAL-NOT: dist.reshard
// CHECK-LABEL: func @not_split
// CHECK-NOT: dist.permute
func.func @not_split(%q: tensor<2x4x8x2xf32> {dist.sharding = #dist.sharding<[{"data"}, {"model"}, {}, {}]>}, %k: tensor<2x4x8x2xf32> {dist.sharding = #dist.sharding<[{"data"}, {"model"}, {}, {}]>}) -> tensor<2x4x8x2xf32> {
  %o, %lse = train.attention %q, %k, %k {scale = 0.5, split = #train<attention_split ring>} : (tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>) -> (tensor<2x4x8x2xf32>, tensor<2x4x8xf32>)
  return %o : tensor<2x4x8x2xf32>
}
}
