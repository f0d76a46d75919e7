// Every rule, executed: on 2, 3 and 4 virtual ranks each function gives what it gives on one.
// RUN: sed "s/shard = 1/shard = 2/" %s | tessera-opt --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding > %t.2
// RUN: sed "s/shard = 1/shard = 3/" %s | tessera-opt --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding > %t.3
// RUN: sed "s/shard = 1/shard = 2, seq = 2/" %s | sed "s/{\"shard\"}/{\"shard\", \"seq\"}/g" | tessera-opt --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding > %t.4
// RUN: FileCheck %s --input-file=%t.3 --check-prefix=PARTS
// RUN: tessera-interp %t.2 --compare=%s
// RUN: tessera-interp %t.3 --compare=%s
// RUN: tessera-interp %t.4 --compare=%s

// PARTS-LABEL: func @elementwise
// PARTS-NOT: dist.all
// PARTS: return

// PARTS-LABEL: func @moved_batch
// PARTS-NOT: dist.all
// PARTS: train.reshape {{.*}} : (tensor<5x4x6xf32>) -> tensor<20x6xf32>
// PARTS-NOT: dist.all
// PARTS: train.rng_uniform {{.*}}global_shape = array<i64: 5, 12, 6>
// PARTS-NOT: dist.all
// PARTS: return

module attributes {dist.mesh = #dist.mesh<shard = 1>} {
func.func @elementwise(%x: tensor<12x5xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %y: tensor<12x5xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %b: tensor<5xf32>) -> tensor<12x5xf32> {
  %bb = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<5xf32>) -> tensor<12x5xf32>
  %0 = train.add %x, %bb : tensor<12x5xf32>
  %1 = train.mul %0, %y : tensor<12x5xf32>
  %t = train.tanh %1 : tensor<12x5xf32>
  %g = train.gelu tanh, %t : tensor<12x5xf32>
  %2 = train.gelu_grad exact, %g, %t : tensor<12x5xf32>
  %3 = train.max %2, %x : tensor<12x5xf32>
  %4 = train.compare gt, %3, %y : (tensor<12x5xf32>, tensor<12x5xf32>) -> tensor<12x5xi1>
  %5 = train.select %4, %3, %bb : tensor<12x5xi1>, tensor<12x5xf32>
  return %5 : tensor<12x5xf32>
}

func.func @places(%x: tensor<12x5xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> tensor<12x5xf32> {
  %seed = train.constant dense<42> : tensor<i64>
  %r = train.rng_uniform %seed {stream = 3 : i64} : (tensor<i64>) -> tensor<12x5xf32>
  %i = train.iota {dim = 0 : i64} : tensor<12x5xf32>
  %j = train.iota {dim = 1 : i64} : tensor<12x5xf32>
  %table = train.constant dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0], [11.0], [12.0]]> : tensor<12x1xf32>
  %t = train.broadcast %table {broadcast_dimensions = array<i64: 0, 1>} : (tensor<12x1xf32>) -> tensor<12x5xf32>
  %a = train.add %x, %r : tensor<12x5xf32>
  %b = train.mul %a, %i : tensor<12x5xf32>
  %c = train.add %b, %j : tensor<12x5xf32>
  %d = train.add %c, %t : tensor<12x5xf32>
  return %d : tensor<12x5xf32>
}

func.func @shapes(%x: tensor<12x6x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {}]>}) -> (tensor<72x4xf32>, tensor<12x2x6x2xf32>, tensor<14x8xf32>) {
  %m = train.reshape %x : (tensor<12x6x4xf32>) -> tensor<72x4xf32>
  %s = train.reshape %x : (tensor<12x6x4xf32>) -> tensor<12x6x2x2xf32>
  %t = train.transpose %s {permutation = array<i64: 0, 2, 1, 3>} : (tensor<12x6x2x2xf32>) -> tensor<12x2x6x2xf32>
  %a = train.slice %x {starts = array<i64: 0, 1, 0>, limits = array<i64: 12, 2, 4>, strides = array<i64: 1, 1, 1>} : (tensor<12x6x4xf32>) -> tensor<12x1x4xf32>
  %b = train.reshape %a : (tensor<12x1x4xf32>) -> tensor<12x4xf32>
  %c = train.concat %b, %b {dim = 1 : i64} : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x8xf32>
  %p = train.pad %c {low = array<i64: 1, 0>, high = array<i64: 1, 0>, interior = array<i64: 0, 0>, value = 2.0 : f64} : (tensor<12x8xf32>) -> tensor<14x8xf32>
  return %m, %t, %p : tensor<72x4xf32>, tensor<12x2x6x2xf32>, tensor<14x8xf32>
}

// A batch that is not the major part of a merged dimension stays split, inside of blocks.
func.func @moved_batch(%x: tensor<12x5x6xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {}]>}, %w: tensor<6x6xf32>, %s: tensor<6xf32>, %labels: tensor<12x5xi32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>})
    -> (tensor<12x5x6xf32>, tensor<12x5xf32>) {
  %t = train.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<12x5x6xf32>) -> tensor<5x12x6xf32>
  %m = train.reshape %t : (tensor<5x12x6xf32>) -> tensor<60x6xf32>
  %y = train.dot_general %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<60x6xf32>, tensor<6x6xf32>) -> tensor<60x6xf32>
  %n, %mean, %rstd = train.layer_norm rms, %y scale(%s) {epsilon = 1.0e-05} : (tensor<60x6xf32>, tensor<6xf32>) -> (tensor<60x6xf32>, tensor<60xf32>, tensor<60xf32>)
  %seed = train.constant dense<42> : tensor<i64>
  %r = train.rng_uniform %seed {stream = 3 : i64} : (tensor<i64>) -> tensor<60x6xf32>
  %d = train.mul %n, %r : tensor<60x6xf32>
  %i = train.iota {dim = 0 : i64} : tensor<60x6xf32>
  %e = train.add %d, %i : tensor<60x6xf32>
  %lt = train.transpose %labels {permutation = array<i64: 1, 0>} : (tensor<12x5xi32>) -> tensor<5x12xi32>
  %lm = train.reshape %lt : (tensor<5x12xi32>) -> tensor<60xi32>
  %loss, %lse = train.cross_entropy %e, %lm {label_smoothing = 0.1} : (tensor<60x6xf32>, tensor<60xi32>) -> (tensor<60xf32>, tensor<60xf32>)
  %lr = train.reshape %loss : (tensor<60xf32>) -> tensor<5x12xf32>
  %lb = train.transpose %lr {permutation = array<i64: 1, 0>} : (tensor<5x12xf32>) -> tensor<12x5xf32>
  %u = train.reshape %e : (tensor<60x6xf32>) -> tensor<5x12x6xf32>
  %b = train.transpose %u {permutation = array<i64: 1, 0, 2>} : (tensor<5x12x6xf32>) -> tensor<12x5x6xf32>
  return %b, %lb : tensor<12x5x6xf32>, tensor<12x5xf32>
}

// Sums over it are partial sums; where an op or a result needs it otherwise, it changes.
func.func @blocks_end(%x: tensor<12x5x6xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {}]>}, %y: tensor<60x6xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %z: tensor<60x24xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>})
    -> (tensor<6x6xf32>, tensor<60x6xf32>, tensor<12x5x6xf32>, tensor<60x6xf32>, tensor<60x24xf32>, tensor<60x24xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}) {
  %t = train.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<12x5x6xf32>) -> tensor<5x12x6xf32>
  %m = train.reshape %t : (tensor<5x12x6xf32>) -> tensor<60x6xf32>
  %w = train.dot_general %m, %m {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<60x6xf32>, tensor<60x6xf32>) -> tensor<6x6xf32>
  %a = train.add %m, %y : tensor<60x6xf32>
  %r = train.reshape %a : (tensor<60x6xf32>) -> tensor<12x5x6xf32>
  %s = train.softmax %m {dim = 0 : i64} : tensor<60x6xf32>
  %p = train.dot_general %z, %m {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<60x24xf32>, tensor<60x6xf32>) -> tensor<24x6xf32>
  %q = train.dot_general %m, %p {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<60x6xf32>, tensor<24x6xf32>) -> tensor<60x24xf32>
  %e = train.exp %q : tensor<60x24xf32>
  %sum = train.add %e, %z : tensor<60x24xf32>
  %other = train.sub %z, %e : tensor<60x24xf32>
  return %w, %m, %r, %s, %sum, %other : tensor<6x6xf32>, tensor<60x6xf32>, tensor<12x5x6xf32>, tensor<60x6xf32>, tensor<60x24xf32>, tensor<60x24xf32>
}

func.func @dynamic(%x: tensor<12x6xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %k: tensor<i32>) -> (tensor<12x2xf32>, tensor<12x6xf32>) {
  %z = train.constant dense<0> : tensor<i32>
  %s = train.dynamic_slice %x[%z, %k] {sizes = array<i64: 12, 2>} : (tensor<12x6xf32>, tensor<i32>, tensor<i32>) -> tensor<12x2xf32>
  %e = train.exp %s : tensor<12x2xf32>
  %u = train.dynamic_update_slice %x, %e[%z, %k] : (tensor<12x6xf32>, tensor<12x2xf32>, tensor<i32>, tensor<i32>) -> tensor<12x6xf32>
  return %s, %u : tensor<12x2xf32>, tensor<12x6xf32>
}

func.func @reductions(%x: tensor<12x5xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> (tensor<5xf32>, tensor<12xf32>, tensor<f32>, tensor<12xi32>, tensor<5xf32>, tensor<12x5xi32>) {
  %a = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<12x5xf32>) -> tensor<5xf32>
  %b = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<12x5xf32>) -> tensor<12xf32>
  %c = train.reduce max, %x {dimensions = array<i64: 0, 1>} : (tensor<12x5xf32>) -> tensor<f32>
  %d = train.argmax %x {dim = 1 : i64} : (tensor<12x5xf32>) -> tensor<12xi32>
  %e = train.exp %a : tensor<5xf32>
  %f = train.sort_indices %x {dim = 1 : i64} : (tensor<12x5xf32>) -> tensor<12x5xi32>
  return %a, %b, %c, %d, %e, %f : tensor<5xf32>, tensor<12xf32>, tensor<f32>, tensor<12xi32>, tensor<5xf32>, tensor<12x5xi32>
}

func.func @count(%t: tensor<12xi32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> tensor<f32> {
  %n = train.count_valid %t {ignore_index = 3 : i64} : (tensor<12xi32>) -> tensor<f32>
  return %n : tensor<f32>
}

func.func @rows(%table: tensor<8x4xf32>, %i: tensor<12x3xi32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %init: tensor<8x4xf32>) -> (tensor<12x3x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %g = train.gather_rows %table, %i : (tensor<8x4xf32>, tensor<12x3xi32>) -> tensor<12x3x4xf32>
  %zero = train.constant dense<0.0> : tensor<8x4xf32>
  %s = train.scatter_add_rows %zero, %i, %g : (tensor<8x4xf32>, tensor<12x3xi32>, tensor<12x3x4xf32>) -> tensor<8x4xf32>
  %w = train.scatter_add_rows %init, %i, %g : (tensor<8x4xf32>, tensor<12x3xi32>, tensor<12x3x4xf32>) -> tensor<8x4xf32>
  // A number that is there before counts once, not once per rank.
  %half = train.constant dense<0.5> : tensor<8x4xf32>
  %n = train.scatter_add_rows %half, %i, %g : (tensor<8x4xf32>, tensor<12x3xi32>, tensor<12x3x4xf32>) -> tensor<8x4xf32>
  return %g, %s, %w, %n : tensor<12x3x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

func.func @products(%x: tensor<12x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %w: tensor<4x12xf32>, %v: tensor<4x12xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}) -> (tensor<12x12xf32>, tensor<4x12xf32>, tensor<12x12xf32>, tensor<4x4xf32>) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<12x4xf32>, tensor<4x12xf32>) -> tensor<12x12xf32>
  %g = train.dot_general %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<12x4xf32>, tensor<12x12xf32>) -> tensor<4x12xf32>
  %both = train.dot_general %x, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<12x4xf32>, tensor<4x12xf32>) -> tensor<12x12xf32>
  %c = train.dot_general %v, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x12xf32>, tensor<12x4xf32>) -> tensor<4x4xf32>
  return %y, %g, %both, %c : tensor<12x12xf32>, tensor<4x12xf32>, tensor<12x12xf32>, tensor<4x4xf32>
}

func.func @convolution(%x: tensor<12x2x4x4xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {}, {}]>}, %w: tensor<3x2x3x3xf32>) -> (tensor<12x3x4x4xf32>, tensor<12x2x4x4xf32>, tensor<3x2x3x3xf32>) {
  %y = train.conv2d %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<12x2x4x4xf32>, tensor<3x2x3x3xf32>) -> tensor<12x3x4x4xf32>
  %dx = train.conv2d_input_grad %y, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<12x3x4x4xf32>, tensor<3x2x3x3xf32>) -> tensor<12x2x4x4xf32>
  %dw = train.conv2d_filter_grad %x, %y {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<12x2x4x4xf32>, tensor<12x3x4x4xf32>) -> tensor<3x2x3x3xf32>
  return %y, %dx, %dw : tensor<12x3x4x4xf32>, tensor<12x2x4x4xf32>, tensor<3x2x3x3xf32>
}

func.func @neural(%x: tensor<12x4x6xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {}]>}, %s: tensor<6xf32>, %t: tensor<48xi32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> (tensor<12x4x6xf32>, tensor<12x4xf32>, tensor<48xf32>, tensor<48xf32>, tensor<12x4x6xf32>) {
  %n, %mean, %rstd = train.layer_norm layer, %x scale(%s) bias(%s) {epsilon = 1.0e-05} : (tensor<12x4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<12x4x6xf32>, tensor<12x4xf32>, tensor<12x4xf32>)
  %p = train.softmax %n {dim = 1 : i64} : tensor<12x4x6xf32>
  %l = train.reshape %p : (tensor<12x4x6xf32>) -> tensor<48x6xf32>
  %loss, %lse = train.cross_entropy %l, %t {label_smoothing = 0.1} : (tensor<48x6xf32>, tensor<48xi32>) -> (tensor<48xf32>, tensor<48xf32>)
  %whole = train.softmax %x {dim = 0 : i64} : tensor<12x4x6xf32>
  return %p, %rstd, %loss, %lse, %whole : tensor<12x4x6xf32>, tensor<12x4xf32>, tensor<48xf32>, tensor<48xf32>, tensor<12x4x6xf32>
}

func.func @attention(%q: tensor<12x4x3x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {}, {}]>}, %k: tensor<12x2x3x2xf32>, %v: tensor<12x2x3x2xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}, {}, {}]>}, %mask: tensor<12x1x1x3xf32>) -> (tensor<12x4x3x2xf32>, tensor<12x4x3x2xf32>, tensor<12x2x3x2xf32>, tensor<12x2x3x2xf32>) {
  %o, %lse = train.attention %q, %k, %v mask(%mask) {scale = 0.7, causal} : (tensor<12x4x3x2xf32>, tensor<12x2x3x2xf32>, tensor<12x2x3x2xf32>, tensor<12x1x1x3xf32>) -> (tensor<12x4x3x2xf32>, tensor<12x4x3xf32>)
  %dq, %dk, %dv = train.attention_grad %q, %k, %v mask(%mask), %o, %lse, %o {scale = 0.7, causal} : (tensor<12x4x3x2xf32>, tensor<12x2x3x2xf32>, tensor<12x2x3x2xf32>, tensor<12x1x1x3xf32>, tensor<12x4x3x2xf32>, tensor<12x4x3xf32>, tensor<12x4x3x2xf32>) -> (tensor<12x4x3x2xf32>, tensor<12x2x3x2xf32>, tensor<12x2x3x2xf32>)
  return %o, %dq, %dk, %dv : tensor<12x4x3x2xf32>, tensor<12x4x3x2xf32>, tensor<12x2x3x2xf32>, tensor<12x2x3x2xf32>
}

// Twelve heads for the query and for the key: sharded heads.
func.func @heads(%q: tensor<2x24x3x2xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}, {}, {}]>}, %k: tensor<2x12x3x2xf32>) -> tensor<2x24x3x2xf32> {
  %o, %lse = train.attention %q, %k, %k {scale = 0.7} : (tensor<2x24x3x2xf32>, tensor<2x12x3x2xf32>, tensor<2x12x3x2xf32>) -> (tensor<2x24x3x2xf32>, tensor<2x24x3xf32>)
  return %o : tensor<2x24x3x2xf32>
}

// Heads that are split inside of a group of the key: its gradients are partial sums.
func.func @heads_of_a_group(%q: tensor<2x12x3x2xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}, {}, {}]>}, %k: tensor<2x1x3x2xf32>, %v: tensor<2x1x3x2xf32>) -> (tensor<2x12x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x2xf32>) {
  %o, %lse = train.attention %q, %k, %v {scale = 0.7} : (tensor<2x12x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x2xf32>) -> (tensor<2x12x3x2xf32>, tensor<2x12x3xf32>)
  %dq, %dk, %dv = train.attention_grad %q, %k, %v, %o, %lse, %o {scale = 0.7} : (tensor<2x12x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x12x3x2xf32>, tensor<2x12x3xf32>, tensor<2x12x3x2xf32>) -> (tensor<2x12x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x2xf32>)
  return %dq, %dk, %dv : tensor<2x12x3x2xf32>, tensor<2x1x3x2xf32>, tensor<2x1x3x2xf32>
}

// A partial sum is added up before it takes a type of the same width that holds other values: 4096 + 1 is 4097 in f16
// alone, and 3 bits more or less are lost in each term.
func.func @same_width(%x: tensor<12x2xf16> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) -> tensor<2xbf16> {
  %s = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<12x2xf16>) -> tensor<2xf16>
  %c = train.convert %s : (tensor<2xf16>) -> tensor<2xbf16>
  return %c : tensor<2xbf16>
}

func.func @updates(%p: tensor<24xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}, %m: tensor<24xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}, %v: tensor<24xf32>, %g: tensor<24xf32>, %lr: tensor<f32>) -> (tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>) {
  %w = train.mul %v, %v : tensor<24xf32>
  %c = train.constant dense<0.5> : tensor<f32>
  %np, %nm, %nv = train.adamw_update %p, %m, %w, %g lr(%lr) correction(%c, %c) {beta1 = 0.9, beta2 = 0.95, epsilon = 1.0e-08, weight_decay = 0.5, decay_elements = 17 : i64} : (tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<24xf32>, tensor<24xf32>, tensor<24xf32>)
  %sp, %sb = train.sgd_update %p, %g buffer(%m) lr(%lr) {momentum = 0.9, weight_decay = 0.5, decay_elements = 11 : i64, nesterov} : (tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<f32>) -> (tensor<24xf32>, tensor<24xf32>)
  return %np, %nm, %nv, %sp, %sb : tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32>
}

func.func @regions(%x: tensor<3x12xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}, %w: tensor<12xf32> {dist.sharding = #dist.sharding<[{"shard"}]>}) -> (tensor<f32>, tensor<12xf32>) {
  %s, %g = train.accumulate %x {count = 3 : i64} : (tensor<3x12xf32>) -> (tensor<f32>, tensor<12xf32>) {
  ^bb0(%i: tensor<i64>, %m: tensor<12xf32>):
    %whole = train.softmax %w {dim = 0 : i64} : tensor<12xf32>
    %c = train.mul %m, %whole : tensor<12xf32>
    %r = train.reduce sum, %c {dimensions = array<i64: 0>} : (tensor<12xf32>) -> tensor<f32>
    train.yield %r, %c : tensor<f32>, tensor<12xf32>
  }
  %q = train.exp %s : tensor<f32>
  return %q, %g : tensor<f32>, tensor<12xf32>
}

// Every change of sharding, through function results of another sharding.
func.func @changes(%x: tensor<12x12xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}, %y: tensor<12x12xf32>)
    -> (tensor<12x12xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}, tensor<12x12xf32> {dist.sharding = #dist.sharding<[{}, {}]>},
        tensor<12x12xf32> {dist.sharding = #dist.sharding<[{}, {"shard"}]>}, tensor<12x12xf32> {dist.sharding = #dist.sharding<[{"shard"}, {}]>}) {
  %g = train.dot_general %x, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<12x12xf32>, tensor<12x12xf32>) -> tensor<12x12xf32>
  %p = dist.constrain %y <[{}, {}], unreduced = {"shard"}> : tensor<12x12xf32>
  return %x, %x, %g, %p : tensor<12x12xf32>, tensor<12x12xf32>, tensor<12x12xf32>, tensor<12x12xf32>
}
}
