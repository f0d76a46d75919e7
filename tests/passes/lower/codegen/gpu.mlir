// Kernels for GPUs: run by an emulator of blocks and threads, and as PTX.
// RUN: kernel-check --gpu %s --atol=1e-5 | FileCheck %s
// RUN: kernel-check --ptx=sm_90 %s | FileCheck %s --check-prefix=PTX
// RUN: kernel-check --ptx=sm_80 %s | FileCheck %s --check-prefix=ARCH80
// RUN: kernel-check --ptx=sm_100 %s | FileCheck %s --check-prefix=ARCH100
// RUN: not kernel-check --ptx=sm_52 %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// ARCH80: .target sm_80
// ARCH100: .target sm_100
// UNKNOWN: error: unknown GPU target 'sm_52', expected sm_80, sm_90 or sm_100

// Nothing external is left, sine and cosine included.
// PTX-NOT: .extern

// Four floats an access; inputs that no result overwrites go through the read-only cache.
// CHECK: add: ok
// PTX-LABEL: .entry add(
// PTX: .maxntid 256, 1, 1
// PTX: ld.global.v4
// PTX: st.global.v4
func.func @add(%a: tensor<4096xf32>, %b: tensor<4096xf32>) -> tensor<4096xf32> {
  %0 = train.add %a, %b : tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
// CHECK: widen: ok
// PTX-LABEL: .entry widen(
// PTX: ld.global.nc.v4.b32
// PTX: st.global.v4
func.func @widen(%a: tensor<64x128xbf16>) -> tensor<64x128xf32> {
  %0 = train.convert %a : (tensor<64x128xbf16>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}
// One warp a row, which it holds in registers: six loads in front of both reductions and none behind; five exchanges a
// reduction, no barrier.
// CHECK: layer_norm: ok, row, extent 9
// PTX-LABEL: .entry layer_norm(
// PTX: .maxntid 32, 4, 1
// PTX-NOT: bar.sync
// PTX-COUNT-6: ld.global.v4
// PTX-COUNT-10: shfl.sync.bfly
// PTX-NOT: ld.global
// PTX-COUNT-6: st.global.v4
// PTX: ret;
func.func @layer_norm(%x: tensor<9x768xf32>) -> (tensor<9x768xf32>, tensor<9xf32>) {
  %s = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<9x768xf32>) -> tensor<9xf32>
  %n = train.constant dense<768.0> : tensor<9xf32>
  %m = train.div %s, %n : tensor<9xf32>
  %b = train.broadcast %m {broadcast_dimensions = array<i64: 0>} : (tensor<9xf32>) -> tensor<9x768xf32>
  %d = train.sub %x, %b : tensor<9x768xf32>
  %q = train.mul %d, %d : tensor<9x768xf32>
  %v = train.reduce sum, %q {dimensions = array<i64: 1>} : (tensor<9x768xf32>) -> tensor<9xf32>
  %r = train.rsqrt %v : tensor<9xf32>
  %rb = train.broadcast %r {broadcast_dimensions = array<i64: 0>} : (tensor<9xf32>) -> tensor<9x768xf32>
  %y = train.mul %d, %rb : tensor<9x768xf32>
  return %y, %r : tensor<9x768xf32>, tensor<9xf32>
}
// One block a row.
// CHECK: wide_rows: ok, row, extent 3
// PTX-LABEL: .entry wide_rows(
// PTX: .maxntid 160, 1, 1
// PTX: bar.sync
func.func @wide_rows(%x: tensor<3x5003xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3x5003xf32>) {
  %m = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<3x5003xf32>) -> tensor<3xf32>
  %b = train.broadcast %m {broadcast_dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<3x5003xf32>
  %d = train.sub %x, %b : tensor<3x5003xf32>
  %e = train.exp %d : tensor<3x5003xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 1>} : (tensor<3x5003xf32>) -> tensor<3xf32>
  return %m, %s, %e : tensor<3xf32>, tensor<3xf32>, tensor<3x5003xf32>
}
// One block for all: 1024 threads.
// CHECK: whole: ok, reduce_all
func.func @whole(%x: tensor<40x500xf32>) -> (tensor<f32>, tensor<f32>) {
  %q = train.mul %x, %x : tensor<40x500xf32>
  %s = train.reduce sum, %q {dimensions = array<i64: 0, 1>} : (tensor<40x500xf32>) -> tensor<f32>
  %m = train.reduce max, %x {dimensions = array<i64: 0, 1>} : (tensor<40x500xf32>) -> tensor<f32>
  return %s, %m : tensor<f32>, tensor<f32>
}
// Many rows: sixteen partial sums a column; the last tile has idle threads.
// CHECK: columns: ok, column, extent 70
// PTX-LABEL: .entry columns(
// PTX: .maxntid 32, 16, 1
func.func @columns(%x: tensor<700x70xf32>, %bias: tensor<70xf32>) -> (tensor<70xf32>, tensor<700x70xf32>) {
  %b = train.broadcast %bias {broadcast_dimensions = array<i64: 1>} : (tensor<70xf32>) -> tensor<700x70xf32>
  %y = train.mul %x, %b : tensor<700x70xf32>
  %s = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<700x70xf32>) -> tensor<70xf32>
  return %s, %y : tensor<70xf32>, tensor<700x70xf32>
}
// A column kernel of two passes: the sum reaches every thread of the block.
// CHECK: column_softmax: ok, column, extent 33
func.func @column_softmax(%x: tensor<100x33xf32>) -> tensor<100x33xf32> {
  %e = train.exp %x : tensor<100x33xf32>
  %s = train.reduce sum, %e {dimensions = array<i64: 0>} : (tensor<100x33xf32>) -> tensor<33xf32>
  %b = train.broadcast %s {broadcast_dimensions = array<i64: 1>} : (tensor<33xf32>) -> tensor<100x33xf32>
  %y = train.div %e, %b : tensor<100x33xf32>
  return %y : tensor<100x33xf32>
}
// The first of equal values wins, whichever lane has it.
// CHECK: first_maximum: ok, row, extent 5
func.func @first_maximum(%x: tensor<5x1000xf32>) -> tensor<5xi64> {
  %zero = train.constant dense<0.0> : tensor<5x1000xf32>
  %p = train.compare gt, %x, %zero : (tensor<5x1000xf32>, tensor<5x1000xf32>) -> tensor<5x1000xi1>
  %v = train.convert %p : (tensor<5x1000xi1>) -> tensor<5x1000xi32>
  %i = train.argmax %v {dim = 1 : i64} : (tensor<5x1000xi32>) -> tensor<5xi64>
  return %i : tensor<5xi64>
}
// Rows that hit one table row several times are added in their order.
// CHECK: embedding_grad: ok, scatter
// PTX-LABEL: .entry embedding_grad(
// PTX: vote.sync.ballot
func.func @embedding_grad(%x: tensor<100xf32>, %u: tensor<100x48xf32>) -> tensor<11x48xf32> {
  %n = train.constant dense<3.0> : tensor<100xf32>
  %a = train.abs %x : tensor<100xf32>
  %s = train.mul %a, %n : tensor<100xf32>
  %c = train.constant dense<10.0> : tensor<100xf32>
  %neg = train.neg %s : tensor<100xf32>
  %cn = train.neg %c : tensor<100xf32>
  %max = train.max %neg, %cn : tensor<100xf32>
  %clamped = train.neg %max : tensor<100xf32>
  %i = train.convert %clamped : (tensor<100xf32>) -> tensor<100xi32>
  %zero = train.constant dense<0.0> : tensor<11x48xf32>
  %0 = train.scatter_add_rows %zero, %i, %u : (tensor<11x48xf32>, tensor<100xi32>, tensor<100x48xf32>) -> tensor<11x48xf32>
  return %0 : tensor<11x48xf32>
}
// CHECK: rotary: ok
// PTX-LABEL: .entry rotary(
func.func @rotary(%x: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
  %s = train.sin %x : tensor<64x32xf32>
  %c = train.cos %x : tensor<64x32xf32>
  return %s, %c : tensor<64x32xf32>, tensor<64x32xf32>
}
