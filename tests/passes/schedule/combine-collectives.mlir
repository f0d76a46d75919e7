// RUN: tessera-opt %s --combine-collectives="bytes=64 ahead=2" -split-input-file -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --combine-collectives="bytes=0" -split-input-file | FileCheck %s --check-prefix=OFF
// RUN: tessera-opt %s --combine-collectives="bytes=64 ahead=2" --split-async --prefetch --verify-schedule -split-input-file | FileCheck %s --check-prefix=AHEAD
// RUN: not tessera-opt %s --combine-collectives="bytes=-1" -split-input-file 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: bytes and ahead are -1 and 1, expected at least 0

// All-reduces join into one of the concatenation, where the last of them was.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @all_reduce
// CHECK: %[[E:.*]] = train.exp
// CHECK: %[[F:.*]] = train.reshape %arg0 : (tensor<2x2xf32>) -> tensor<4xf32>
// CHECK: %[[C:.*]] = train.concat %[[F]], %[[E]] {dim = 0 : i64} : (tensor<4xf32>, tensor<2xf32>) -> tensor<6xf32>
// CHECK: %[[R:.*]] = dist.all_reduce %[[C]] {axes = ["shard"], origin = #dist.origin<gradient, ["a", "b"]>} : (tensor<6xf32>) -> tensor<6xf32>
// CHECK: %[[A:.*]] = train.slice %[[R]] {limits = array<i64: 4>, starts = array<i64: 0>
// CHECK: %[[W:.*]] = train.reshape %[[A]] : (tensor<4xf32>) -> tensor<2x2xf32>
// CHECK: %[[B:.*]] = train.slice %[[R]] {limits = array<i64: 6>, starts = array<i64: 4>
// CHECK: return %[[W]], %[[B]]
// OFF-LABEL: func @all_reduce
// OFF-COUNT-2: dist.all_reduce
func.func @all_reduce(%a: tensor<2x2xf32>, %b: tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>) {
  %x = dist.all_reduce %a {axes = ["shard"], origin = #dist.origin<gradient, ["a"]>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %e = train.exp %b : tensor<2xf32>
  %y = dist.all_reduce %e {axes = ["shard"], origin = #dist.origin<gradient, ["b"]>} : (tensor<2xf32>) -> tensor<2xf32>
  return %x, %y : tensor<2x2xf32>, tensor<2xf32>
}
}

// -----

// A maximum does not join a sum, but another maximum.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @kinds
// CHECK: dist.all_reduce %arg0 {axes = ["shard"]} : (tensor<2xf32>)
// CHECK: %[[C:.*]] = train.concat %arg1, %arg2
// CHECK: dist.all_reduce %[[C]] {axes = ["shard"], kind = #dist<reduction max>} : (tensor<4xf32>)
func.func @kinds(%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %x = dist.all_reduce %a {axes = ["shard"]} : (tensor<2xf32>) -> tensor<2xf32>
  %y = dist.all_reduce %b {axes = ["shard"], kind = #dist<reduction max>} : (tensor<2xf32>) -> tensor<2xf32>
  %z = dist.all_reduce %c {axes = ["shard"], kind = #dist<reduction max>} : (tensor<2xf32>) -> tensor<2xf32>
  return %x, %y, %z : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
}

// -----

// Gathers stand where the first was; the parts of a rank lie together, so the result is taken apart by columns. They are
// still gathered ahead, with what joins them.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @all_gather
// CHECK: dist.all_gather %arg0 {{.*}}origin = #dist.origin<forward, ["a"]>
// CHECK: %[[C:.*]] = train.concat %arg1, %arg2 {{.*}} -> tensor<6xf32>
// CHECK: %[[G:.*]] = dist.all_gather %[[C]] {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["b", "c"]>} : (tensor<6xf32>) -> tensor<12xf32>
// CHECK: %[[M:.*]] = train.reshape %[[G]] : (tensor<12xf32>) -> tensor<2x6xf32>
// CHECK: %[[B:.*]] = train.slice %[[M]] {limits = array<i64: 2, 4>, starts = array<i64: 0, 0>
// CHECK: train.reshape %[[B]] : (tensor<2x4xf32>) -> tensor<8xf32>
// CHECK: %[[D:.*]] = train.slice %[[M]] {limits = array<i64: 2, 6>, starts = array<i64: 0, 4>
// CHECK: train.reshape %[[D]] : (tensor<2x2xf32>) -> tensor<4xf32>
// CHECK: dist.all_gather %arg3 {{.*}}origin = #dist.origin<forward, ["d"]>
// AHEAD-LABEL: func @all_gather
// AHEAD: dist.all_gather_start %arg0
// AHEAD: dist.done
// AHEAD: train.concat %arg1, %arg2
// AHEAD-NEXT: dist.all_gather_start {{.*}}origin = #dist.origin<forward, ["b", "c"]>, schedule.reason = "1 unit ahead: at the first use of forward:a"
// AHEAD: train.exp
func.func @all_gather(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<2xf32>, %d: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>) {
  %ga = dist.all_gather %a {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["a"]>} : (tensor<4xf32>) -> tensor<8xf32>
  %x = train.exp %ga : tensor<8xf32>
  // expected-remark @below {{forward:b is not combined with forward:a: nothing hides the first gather of the block, which must not grow}}
  %gb = dist.all_gather %b {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["b"]>} : (tensor<4xf32>) -> tensor<8xf32>
  %y = train.mul %x, %gb : tensor<8xf32>
  %gc = dist.all_gather %c {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["c"]>} : (tensor<2xf32>) -> tensor<4xf32>
  %z = train.exp %gc : tensor<4xf32>
  // expected-remark @below {{forward:d is not combined with forward:c: 80 bytes together, the threshold is 64}}
  %gd = dist.all_gather %d {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["d"]>} : (tensor<4xf32>) -> tensor<8xf32>
  return %y, %z, %gd : tensor<8xf32>, tensor<4xf32>, tensor<8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2>} {
// Operands of reduce-scatters are interleaved. Another axis, another type, another phase and what is too large stay.
// CHECK-LABEL: func @reduce_scatter
// CHECK: %[[A:.*]] = train.reshape %arg0 : (tensor<4xf32>) -> tensor<2x2xf32>
// CHECK: %[[B:.*]] = train.reshape %arg1 : (tensor<2xf32>) -> tensor<2x1xf32>
// CHECK: %[[C:.*]] = train.concat %[[A]], %[[B]] {dim = 1
// CHECK: %[[F:.*]] = train.reshape %[[C]] : (tensor<2x3xf32>) -> tensor<6xf32>
// CHECK: dist.reduce_scatter %[[F]] {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["a", "b"]>} : (tensor<6xf32>) -> tensor<3xf32>
// CHECK: dist.reduce_scatter %arg2
// CHECK: dist.all_reduce {{.*}}["replicate"]
// CHECK: dist.all_reduce {{.*}}["shard"]
func.func @reduce_scatter(%a: tensor<4xf32>, %b: tensor<2xf32>, %c: tensor<32xf32>) -> (tensor<2xf32>, tensor<1xf32>, tensor<16xf32>, tensor<2xf32>, tensor<2xf32>) {
  %x = dist.reduce_scatter %a {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["a"]>} : (tensor<4xf32>) -> tensor<2xf32>
  %y = dist.reduce_scatter %b {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["b"]>} : (tensor<2xf32>) -> tensor<1xf32>
  %z = dist.reduce_scatter %c {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["c"]>} : (tensor<32xf32>) -> tensor<16xf32>
  %r = dist.all_reduce %b {axes = ["replicate"]} : (tensor<2xf32>) -> tensor<2xf32>
  %s = dist.all_reduce %b {axes = ["shard"]} : (tensor<2xf32>) -> tensor<2xf32>
  return %x, %y, %z, %r, %s : tensor<2xf32>, tensor<1xf32>, tensor<16xf32>, tensor<2xf32>, tensor<2xf32>
}

// A sum that is needed before the next one is complete is not delayed.
// CHECK-LABEL: func @dependent
// CHECK-COUNT-2: dist.all_reduce
func.func @dependent(%a: tensor<2xf32>) -> tensor<2xf32> {
  %x = dist.all_reduce %a {axes = ["shard"], origin = #dist.origin<result, ["x"]>} : (tensor<2xf32>) -> tensor<2xf32>
  %e = train.exp %x : tensor<2xf32>
  // expected-remark @below {{y is not combined with x: x is used before the other is complete}}
  %y = dist.all_reduce %e {axes = ["shard"], origin = #dist.origin<result, ["y"]>} : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// Nor is one that the next one adds up again.
// CHECK-LABEL: func @chained
// CHECK: %[[X:.*]] = dist.all_reduce %arg0
// CHECK: %[[V:.*]] = train.reshape %[[X]]
// CHECK: dist.all_reduce %[[V]]
func.func @chained(%a: tensor<2x2xf32>) -> tensor<4xf32> {
  %x = dist.all_reduce %a {axes = ["shard"], origin = #dist.origin<result, ["x"]>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %v = train.reshape %x : (tensor<2x2xf32>) -> tensor<4xf32>
  // expected-remark @below {{y is not combined with x: x is used before the other is complete}}
  %y = dist.all_reduce %v {axes = ["shard"], origin = #dist.origin<result, ["y"]>} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
}

// -----

// Along another dimension the parts of ranks do not lie one behind the other.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @other_dimension
// CHECK: dist.all_gather %arg0 {axes = ["shard"], dim = 1
// CHECK: dist.all_gather %arg1 {axes = ["shard"], dim = 1
// CHECK: dist.reduce_scatter %arg0
// CHECK: dist.reduce_scatter %arg1
func.func @other_dimension(%a: tensor<2x2xf32>, %b: tensor<1x2xf32>) -> (tensor<2x4xf32>, tensor<1x4xf32>, tensor<2x1xf32>, tensor<1x1xf32>) {
  // expected-remark @below {{a is not combined: it works along dimension 1, and only along dimension 0 do the parts of ranks lie one behind the other}}
  %x = dist.all_gather %a {axes = ["shard"], dim = 1 : i64, origin = #dist.origin<result, ["a"]>} : (tensor<2x2xf32>) -> tensor<2x4xf32>
  // expected-remark @below {{b is not combined: it works along dimension 1}}
  %y = dist.all_gather %b {axes = ["shard"], dim = 1 : i64, origin = #dist.origin<result, ["b"]>} : (tensor<1x2xf32>) -> tensor<1x4xf32>
  // expected-remark @below {{c is not combined: it works along dimension 1}}
  %z = dist.reduce_scatter %a {axes = ["shard"], dim = 1 : i64, origin = #dist.origin<result, ["c"]>} : (tensor<2x2xf32>) -> tensor<2x1xf32>
  // expected-remark @below {{d is not combined: it works along dimension 1}}
  %w = dist.reduce_scatter %b {axes = ["shard"], dim = 1 : i64, origin = #dist.origin<result, ["d"]>} : (tensor<1x2xf32>) -> tensor<1x1xf32>
  return %x, %y, %z, %w : tensor<2x4xf32>, tensor<1x4xf32>, tensor<2x1xf32>, tensor<1x1xf32>
}
}

// -----

// Narrow copies of parts are made in front of the joined gather.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func @narrow
// CHECK: %[[A:.*]] = train.convert %arg0
// CHECK: %[[B:.*]] = train.convert %arg1
// CHECK: %[[C:.*]] = train.concat %[[A]], %[[B]]
// CHECK: dist.all_gather %[[C]] {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<step, ["a", "b"]>}
// CHECK-NOT: dist.all_gather
func.func @narrow(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<8xbf16>, tensor<8xbf16>) {
  %ca = train.convert %a : (tensor<4xf32>) -> tensor<4xbf16>
  %ga = dist.all_gather %ca {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<step, ["a"]>} : (tensor<4xbf16>) -> tensor<8xbf16>
  %x = train.neg %ga : tensor<8xbf16>
  %cb = train.convert %b : (tensor<4xf32>) -> tensor<4xbf16>
  %gb = dist.all_gather %cb {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<step, ["b"]>} : (tensor<4xbf16>) -> tensor<8xbf16>
  return %x, %gb : tensor<8xbf16>, tensor<8xbf16>
}
}

// -----

// Sums over replicas wait for the joined reduce-scatter, and join as well. One whose result is computed with cannot wait.
module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2>} {
// CHECK-LABEL: func @replicas
// CHECK: train.exp
// CHECK: %[[S:.*]] = dist.reduce_scatter {{.*}}origin = #dist.origin<gradient, ["a", "b"]>
// CHECK: dist.all_reduce {{.*}} {axes = ["replicate"], origin = #dist.origin<gradient, ["a", "b"]>} : (tensor<3xf32>) -> tensor<3xf32>
// CHECK: dist.reduce_scatter {{.*}}origin = #dist.origin<gradient, ["c"]>
// CHECK: dist.all_reduce {{.*}}origin = #dist.origin<gradient, ["c"]>
// CHECK-NOT: dist.reduce_scatter
func.func @replicas(%a: tensor<4xf32>, %b: tensor<2xf32>, %c: tensor<8xf32>) -> (tensor<2xf32>, tensor<1xf32>, tensor<4xf32>) {
  %x = dist.reduce_scatter %a {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["a"]>} : (tensor<4xf32>) -> tensor<2xf32>
  %rx = dist.all_reduce %x {axes = ["replicate"], origin = #dist.origin<gradient, ["a"]>} : (tensor<2xf32>) -> tensor<2xf32>
  %e = train.exp %b : tensor<2xf32>
  %y = dist.reduce_scatter %e {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["b"]>} : (tensor<2xf32>) -> tensor<1xf32>
  %ry = dist.all_reduce %y {axes = ["replicate"], origin = #dist.origin<gradient, ["b"]>} : (tensor<1xf32>) -> tensor<1xf32>
  %n = train.exp %rx : tensor<2xf32>
  // expected-remark @below {{gradient:c is not combined with gradient:b: gradient:a is used before the other is complete}}
  %z = dist.reduce_scatter %c {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<gradient, ["c"]>} : (tensor<8xf32>) -> tensor<4xf32>
  // expected-remark @below {{gradient:c is not combined with gradient:b: gradient:a is used before the other is complete}}
  %rz = dist.all_reduce %z {axes = ["replicate"], origin = #dist.origin<gradient, ["c"]>} : (tensor<4xf32>) -> tensor<4xf32>
  return %n, %ry, %rz : tensor<2xf32>, tensor<1xf32>, tensor<4xf32>
}
}
