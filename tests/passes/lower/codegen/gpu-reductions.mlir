// What GPU kernels read, and how often: whole tensors in accesses of 16 bytes, rows that fit once, long rows once for a
// maximum and the sum that needs it, indices of a scatter once a block.
// RUN: kernel-check --gpu %s --atol=1e-5 | FileCheck %s
// RUN: kernel-check --ptx=sm_90 %s >%t.ptx 2>%t.err
// RUN: FileCheck %s --check-prefix=PTX <%t.ptx
// RUN: kernel-check --ptx=sm_80 %s >/dev/null 2>>%t.err
// RUN: kernel-check --ptx=sm_100 %s >/dev/null 2>>%t.err
// RUN: FileCheck %s --check-prefix=SPILL --allow-empty <%t.err

// No register is spilled, on any architecture (where ptxas is there to tell).
// SPILL-NOT: spill

// Eight elements a thread: one access of the narrow tensors, two of the wide one.
// CHECK: mixed: ok, elementwise
// PTX-LABEL: .entry mixed(
// PTX-NOT: ld.global{{(.nc)?}}.b
// PTX-COUNT-3: ld.global.{{(nc.)?}}v4.b32
// PTX-NOT: ld.global
// PTX: st.global.v4.b32
// PTX-NOT: st.global
// PTX: ret;
func.func @mixed(%x: tensor<64x128xbf16>, %y: tensor<64x128xf32>) -> tensor<64x128xbf16> {
  %0 = train.convert %x : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  %1 = train.mul %0, %y : tensor<64x128xf32>
  %2 = train.convert %1 : (tensor<64x128xf32>) -> tensor<64x128xbf16>
  return %2 : tensor<64x128xbf16>
}
// 200 vectors on 64 threads: the fourth round is not full. Four loads of x and four of the weight, no other.
// CHECK: rms_norm: ok, row, extent 5
// PTX-LABEL: .entry rms_norm(
// PTX: .maxntid 64, 1, 1
// PTX-COUNT-4: ld.global.{{(nc.)?}}v4.b32
// PTX: bar.sync
// PTX-COUNT-4: ld.global.{{(nc.)?}}v4.b32
// PTX-NOT: ld.global
// PTX: ret;
func.func @rms_norm(%x: tensor<5x1600xbf16>, %w: tensor<1600xbf16>) -> tensor<5x1600xbf16> {
  %f = train.convert %x : (tensor<5x1600xbf16>) -> tensor<5x1600xf32>
  %q = train.mul %f, %f : tensor<5x1600xf32>
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (tensor<5x1600xf32>) -> tensor<5xf32>
  %r = train.rsqrt %s : tensor<5xf32>
  %rb = train.broadcast %r {broadcast_dimensions = array<i64: 0>} : (tensor<5xf32>) -> tensor<5x1600xf32>
  %n = train.mul %f, %rb : tensor<5x1600xf32>
  %wf = train.convert %w : (tensor<1600xbf16>) -> tensor<1600xf32>
  %wb = train.broadcast %wf {broadcast_dimensions = array<i64: 1>} : (tensor<1600xf32>) -> tensor<5x1600xf32>
  %y = train.mul %n, %wb : tensor<5x1600xf32>
  %z = train.convert %y : (tensor<5x1600xf32>) -> tensor<5x1600xbf16>
  return %z : tensor<5x1600xbf16>
}
// The maximum and the sum of the powers of a row too long to hold: one pass, one access in its loop.
// CHECK: log_sum_exp: ok, row, extent 2
// PTX-LABEL: .entry log_sum_exp(
// PTX: .maxntid 1024, 1, 1
// PTX: ld.global.{{(nc.)?}}v4.b32
// PTX-NOT: ld.global
// PTX: ret;
func.func @log_sum_exp(%x: tensor<2x20480xbf16>) -> tensor<2xf32> {
  %x0 = train.convert %x : (tensor<2x20480xbf16>) -> tensor<2x20480xf32>
  %x1 = train.convert %x : (tensor<2x20480xbf16>) -> tensor<2x20480xf32>
  %m = train.reduce max, %x0 {dimensions = array<i64: 1>} : (tensor<2x20480xf32>) -> tensor<2xf32>
  %b = train.broadcast %m {broadcast_dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x20480xf32>
  %d = train.sub %x1, %b : tensor<2x20480xf32>
  %e = train.exp %d : tensor<2x20480xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 1>} : (tensor<2x20480xf32>) -> tensor<2xf32>
  %l = train.log %s : tensor<2xf32>
  %r = train.add %l, %m : tensor<2xf32>
  return %r : tensor<2xf32>
}
// The division is a second pass.
// CHECK: long_softmax: ok, row, extent 2
// PTX-LABEL: .entry long_softmax(
// PTX-COUNT-2: ld.global.{{(nc.)?}}v4.b32
// PTX-NOT: ld.global
// PTX: ret;
func.func @long_softmax(%x: tensor<2x20480xf32>) -> tensor<2x20480xf32> {
  %m = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<2x20480xf32>) -> tensor<2xf32>
  %b = train.broadcast %m {broadcast_dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x20480xf32>
  %d = train.sub %x, %b : tensor<2x20480xf32>
  %e = train.exp %d : tensor<2x20480xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 1>} : (tensor<2x20480xf32>) -> tensor<2xf32>
  %c = train.broadcast %s {broadcast_dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x20480xf32>
  %y = train.div %e, %c : tensor<2x20480xf32>
  return %y : tensor<2x20480xf32>
}
// Something else needs the maximum before the sum is known: three passes, each row of an odd length.
// CHECK: shifted: ok, row, extent 2
func.func @shifted(%x: tensor<2x20003xf32>) -> (tensor<2x20003xf32>, tensor<2xf32>) {
  %m = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<2x20003xf32>) -> tensor<2xf32>
  %b = train.broadcast %m {broadcast_dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x20003xf32>
  %d = train.sub %x, %b : tensor<2x20003xf32>
  %e = train.exp %d : tensor<2x20003xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 1>} : (tensor<2x20003xf32>) -> tensor<2xf32>
  return %d, %s : tensor<2x20003xf32>, tensor<2xf32>
}
// Partial sums of a bias gradient: eight columns a thread, and the sums of eight threads meet in shared memory.
// CHECK: partial_sums: ok, column, extent 264
// PTX-LABEL: .entry partial_sums(
// PTX: .maxntid 32, 8, 1
// PTX-NOT: ld.global{{(.nc)?}}.b
// PTX: ld.global.{{(nc.)?}}v4.b32
// PTX-COUNT-2: st.global.v4.b32
// PTX: ret;
func.func @partial_sums(%x: tensor<264x64x256xbf16>) -> tensor<264x256xf32> {
  %0 = train.convert %x : (tensor<264x64x256xbf16>) -> tensor<264x64x256xf32>
  %1 = train.reduce sum, %0 {dimensions = array<i64: 1>} : (tensor<264x64x256xf32>) -> tensor<264x256xf32>
  return %1 : tensor<264x256xf32>
}
// More indices than a block notes at a time, rows that are hit often, lanes without columns.
// CHECK: embedding_grad: ok, scatter
// PTX-LABEL: .entry embedding_grad(
// PTX: .maxntid 32, 16, 1
// PTX: vote.sync.ballot
// PTX: st.shared.b32
// PTX: ret;
func.func @embedding_grad(%x: tensor<33000xf32>, %u: tensor<33000x12xf32>, %init: tensor<21x12xf32>) -> tensor<21x12xf32> {
  %n = train.constant dense<5.0> : tensor<33000xf32>
  %a = train.abs %x : tensor<33000xf32>
  %s = train.mul %a, %n : tensor<33000xf32>
  %c = train.constant dense<-20.0> : tensor<33000xf32>
  %neg = train.neg %s : tensor<33000xf32>
  %max = train.max %neg, %c : tensor<33000xf32>
  %clamped = train.neg %max : tensor<33000xf32>
  %i = train.convert %clamped : (tensor<33000xf32>) -> tensor<33000xi64>
  %0 = train.scatter_add_rows %init, %i, %u : (tensor<21x12xf32>, tensor<33000xi64>, tensor<33000x12xf32>) -> tensor<21x12xf32>
  return %0 : tensor<21x12xf32>
}

// A few rows of the table are hit by most of 700 indices (a frequent token), the others by few or none: all warps of the
// block add up the frequent ones, and exchange their sums.
// CHECK: frequent: ok, scatter
// PTX-LABEL: .entry frequent(
// PTX: popc.b32
// PTX: frequent_shared3
// PTX: ret;
func.func @frequent(%x: tensor<700xf32>, %u: tensor<700x200xbf16>, %init: tensor<40x200xf32>) -> tensor<40x200xf32> {
  %n = train.constant dense<4.0> : tensor<700xf32>
  %a = train.abs %x : tensor<700xf32>
  %s = train.mul %a, %n : tensor<700xf32>
  %c = train.constant dense<-39.0> : tensor<700xf32>
  %neg = train.neg %s : tensor<700xf32>
  %max = train.max %neg, %c : tensor<700xf32>
  %clamped = train.neg %max : tensor<700xf32>
  %i = train.convert %clamped : (tensor<700xf32>) -> tensor<700xi64>
  %w = train.convert %u : (tensor<700x200xbf16>) -> tensor<700x200xf32>
  %0 = train.scatter_add_rows %init, %i, %w : (tensor<40x200xf32>, tensor<700xi64>, tensor<700x200xf32>) -> tensor<40x200xf32>
  return %0 : tensor<40x200xf32>
}
