// Row-column kernels: the input gradient of a norm and the partial sums of its weight's (and bias's) gradient are one
// kernel. A block walks the rows of its chunk, each row in registers.
// RUN: kernel-check --gpu %s --atol=2e-5 | FileCheck %s
// RUN: kernel-check --ptx=sm_90 %s >%t.ptx 2>%t.err
// RUN: FileCheck %s --check-prefix=PTX <%t.ptx
// RUN: kernel-check --ptx=sm_80 %s >/dev/null 2>>%t.err
// RUN: kernel-check --ptx=sm_100 %s >/dev/null 2>>%t.err
// RUN: FileCheck %s --check-prefix=SPILL --allow-empty <%t.err
// On a CPU these are two kernels.
// RUN: not kernel-check %s 2>&1 | FileCheck %s --check-prefix=CPU

// No register is spilled, on any architecture (where ptxas is there to tell).
// SPILL-NOT: spill
// CPU: error: cannot generate a kernel: reductions over different dimensions

// Of each row one access of x, of the incoming gradient and of the residual's gradient; the weight is read before the
// rows. One barrier a row.
// CHECK: rms_grad: ok, rows_columns, extent 6, {{.*}}passes 2, in place 1
// PTX-LABEL: .entry rms_grad(
// PTX: .maxntid 256, 1, 1
// PTX: ld.global.{{(nc.)?}}v4.b32
// PTX: bar.sync
// PTX-NOT: bar.sync
// PTX-COUNT-3: ld.global.{{(nc.)?}}v4.b32
// PTX-NOT: bar.sync
// PTX-NOT: ld.global.{{(nc.)?}}v4.b32
// PTX-COUNT-2: st.global.v4.b32
// PTX-NOT: st.global
// PTX: ret;
func.func @rms_grad(%x: tensor<24x2048xbf16>, %rstd: tensor<24xf32>, %dy: tensor<24x2048xbf16>, %dr: tensor<24x2048xbf16>, %w: tensor<2048xbf16>) -> (tensor<24x2048xbf16>, tensor<6x2048xf32>) {
  %fx = train.convert %x : (tensor<24x2048xbf16>) -> tensor<24x2048xf32>
  %fdy = train.convert %dy : (tensor<24x2048xbf16>) -> tensor<24x2048xf32>
  %fdr = train.convert %dr : (tensor<24x2048xbf16>) -> tensor<24x2048xf32>
  %rb = train.broadcast %rstd {broadcast_dimensions = array<i64: 0>} : (tensor<24xf32>) -> tensor<24x2048xf32>
  %xh = train.mul %fx, %rb : tensor<24x2048xf32>
  %p = train.mul %fdy, %xh : tensor<24x2048xf32>
  %pc = train.reshape %p : (tensor<24x2048xf32>) -> tensor<6x4x2048xf32>
  %dw = train.reduce sum, %pc {dimensions = array<i64: 1>} : (tensor<6x4x2048xf32>) -> tensor<6x2048xf32>
  %wb = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<2048xbf16>) -> tensor<24x2048xbf16>
  %fw = train.convert %wb : (tensor<24x2048xbf16>) -> tensor<24x2048xf32>
  %dxh = train.mul %fdy, %fw : tensor<24x2048xf32>
  %q = train.mul %dxh, %xh : tensor<24x2048xf32>
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (tensor<24x2048xf32>) -> tensor<24xf32>
  %k = train.constant dense<4.882812500e-04> : tensor<24xf32>
  %sk = train.mul %s, %k : tensor<24xf32>
  %sb = train.broadcast %sk {broadcast_dimensions = array<i64: 0>} : (tensor<24xf32>) -> tensor<24x2048xf32>
  %m = train.mul %xh, %sb : tensor<24x2048xf32>
  %d = train.sub %dxh, %m : tensor<24x2048xf32>
  %g = train.mul %d, %rb : tensor<24x2048xf32>
  %dx = train.add %g, %fdr : tensor<24x2048xf32>
  %y = train.convert %dx : (tensor<24x2048xf32>) -> tensor<24x2048xbf16>
  return %y, %dw : tensor<24x2048xbf16>, tensor<6x2048xf32>
}
// Two sums of columns and two of rows, still one barrier a row; the last round is not full (1600 columns, 200 vectors).
// CHECK: layer_grad: ok, rows_columns, extent 3, {{.*}}passes 2, in place 1
// PTX-LABEL: .entry layer_grad(
// PTX: .maxntid 224, 1, 1
// PTX: bar.sync
// PTX-NOT: bar.sync
// PTX: ret;
func.func @layer_grad(%x: tensor<15x1600xbf16>, %rstd: tensor<15xf32>, %dy: tensor<15x1600xbf16>, %dr: tensor<15x1600xbf16>, %w: tensor<1600xbf16>) -> (tensor<15x1600xbf16>, tensor<3x1600xf32>, tensor<3x1600xf32>) {
  %fx = train.convert %x : (tensor<15x1600xbf16>) -> tensor<15x1600xf32>
  %fdy = train.convert %dy : (tensor<15x1600xbf16>) -> tensor<15x1600xf32>
  %fdr = train.convert %dr : (tensor<15x1600xbf16>) -> tensor<15x1600xf32>
  %rb = train.broadcast %rstd {broadcast_dimensions = array<i64: 0>} : (tensor<15xf32>) -> tensor<15x1600xf32>
  %xh = train.mul %fx, %rb : tensor<15x1600xf32>
  %p = train.mul %fdy, %xh : tensor<15x1600xf32>
  %pc = train.reshape %p : (tensor<15x1600xf32>) -> tensor<3x5x1600xf32>
  %dw = train.reduce sum, %pc {dimensions = array<i64: 1>} : (tensor<3x5x1600xf32>) -> tensor<3x1600xf32>
  %bc = train.reshape %fdy : (tensor<15x1600xf32>) -> tensor<3x5x1600xf32>
  %db = train.reduce sum, %bc {dimensions = array<i64: 1>} : (tensor<3x5x1600xf32>) -> tensor<3x1600xf32>
  %wb = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<1600xbf16>) -> tensor<15x1600xbf16>
  %fw = train.convert %wb : (tensor<15x1600xbf16>) -> tensor<15x1600xf32>
  %dxh = train.mul %fdy, %fw : tensor<15x1600xf32>
  %q = train.mul %dxh, %xh : tensor<15x1600xf32>
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (tensor<15x1600xf32>) -> tensor<15xf32>
  %k = train.constant dense<6.250000000e-04> : tensor<15xf32>
  %sk = train.mul %s, %k : tensor<15xf32>
  %sb = train.broadcast %sk {broadcast_dimensions = array<i64: 0>} : (tensor<15xf32>) -> tensor<15x1600xf32>
  %m = train.mul %xh, %sb : tensor<15x1600xf32>
  %d = train.sub %dxh, %m : tensor<15x1600xf32>
  %t = train.reduce sum, %dxh {dimensions = array<i64: 1>} : (tensor<15x1600xf32>) -> tensor<15xf32>
  %tk = train.mul %t, %k : tensor<15xf32>
  %tb = train.broadcast %tk {broadcast_dimensions = array<i64: 0>} : (tensor<15xf32>) -> tensor<15x1600xf32>
  %d2 = train.sub %d, %tb : tensor<15x1600xf32>
  %g = train.mul %d2, %rb : tensor<15x1600xf32>
  %dx = train.add %g, %fdr : tensor<15x1600xf32>
  %y = train.convert %dx : (tensor<15x1600xf32>) -> tensor<15x1600xbf16>
  return %y, %dw, %db : tensor<15x1600xbf16>, tensor<3x1600xf32>, tensor<3x1600xf32>
}
// One chunk, rows of odd length in two rounds.
// CHECK: odd: ok, rows_columns, extent 1
// PTX-LABEL: .entry odd(
// PTX: .maxntid 288, 1, 1
func.func @odd(%x: tensor<7x571xf32>, %rstd: tensor<7xf32>, %dy: tensor<7x571xf32>, %dr: tensor<7x571xf32>, %w: tensor<571xf32>) -> (tensor<7x571xf32>, tensor<571xf32>, tensor<571xf32>) {
  %rb = train.broadcast %rstd {broadcast_dimensions = array<i64: 0>} : (tensor<7xf32>) -> tensor<7x571xf32>
  %xh = train.mul %x, %rb : tensor<7x571xf32>
  %p = train.mul %dy, %xh : tensor<7x571xf32>
  %dw = train.reduce sum, %p {dimensions = array<i64: 0>} : (tensor<7x571xf32>) -> tensor<571xf32>
  %db = train.reduce sum, %dy {dimensions = array<i64: 0>} : (tensor<7x571xf32>) -> tensor<571xf32>
  %wb = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<571xf32>) -> tensor<7x571xf32>
  %dxh = train.mul %dy, %wb : tensor<7x571xf32>
  %q = train.mul %dxh, %xh : tensor<7x571xf32>
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (tensor<7x571xf32>) -> tensor<7xf32>
  %k = train.constant dense<1.751313485e-03> : tensor<7xf32>
  %sk = train.mul %s, %k : tensor<7xf32>
  %sb = train.broadcast %sk {broadcast_dimensions = array<i64: 0>} : (tensor<7xf32>) -> tensor<7x571xf32>
  %m = train.mul %xh, %sb : tensor<7x571xf32>
  %d = train.sub %dxh, %m : tensor<7x571xf32>
  %t = train.reduce sum, %dxh {dimensions = array<i64: 1>} : (tensor<7x571xf32>) -> tensor<7xf32>
  %tk = train.mul %t, %k : tensor<7xf32>
  %tb = train.broadcast %tk {broadcast_dimensions = array<i64: 0>} : (tensor<7xf32>) -> tensor<7x571xf32>
  %d2 = train.sub %d, %tb : tensor<7x571xf32>
  %g = train.mul %d2, %rb : tensor<7x571xf32>
  %dx = train.add %g, %dr : tensor<7x571xf32>
  return %dx, %dw, %db : tensor<7x571xf32>, tensor<571xf32>, tensor<571xf32>
}
// The longest row beside one sum: two vectors a thread.
// CHECK: longest: ok, rows_columns, extent 2
// PTX-LABEL: .entry longest(
// PTX: .maxntid 512, 1, 1
func.func @longest(%x: tensor<4x8192xbf16>, %rstd: tensor<4xf32>, %dy: tensor<4x8192xbf16>, %dr: tensor<4x8192xbf16>, %w: tensor<8192xbf16>) -> (tensor<4x8192xbf16>, tensor<2x8192xf32>) {
  %fx = train.convert %x : (tensor<4x8192xbf16>) -> tensor<4x8192xf32>
  %fdy = train.convert %dy : (tensor<4x8192xbf16>) -> tensor<4x8192xf32>
  %fdr = train.convert %dr : (tensor<4x8192xbf16>) -> tensor<4x8192xf32>
  %rb = train.broadcast %rstd {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8192xf32>
  %xh = train.mul %fx, %rb : tensor<4x8192xf32>
  %p = train.mul %fdy, %xh : tensor<4x8192xf32>
  %pc = train.reshape %p : (tensor<4x8192xf32>) -> tensor<2x2x8192xf32>
  %dw = train.reduce sum, %pc {dimensions = array<i64: 1>} : (tensor<2x2x8192xf32>) -> tensor<2x8192xf32>
  %wb = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<8192xbf16>) -> tensor<4x8192xbf16>
  %fw = train.convert %wb : (tensor<4x8192xbf16>) -> tensor<4x8192xf32>
  %dxh = train.mul %fdy, %fw : tensor<4x8192xf32>
  %q = train.mul %dxh, %xh : tensor<4x8192xf32>
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (tensor<4x8192xf32>) -> tensor<4xf32>
  %k = train.constant dense<1.220703125e-04> : tensor<4xf32>
  %sk = train.mul %s, %k : tensor<4xf32>
  %sb = train.broadcast %sk {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8192xf32>
  %m = train.mul %xh, %sb : tensor<4x8192xf32>
  %d = train.sub %dxh, %m : tensor<4x8192xf32>
  %g = train.mul %d, %rb : tensor<4x8192xf32>
  %dx = train.add %g, %fdr : tensor<4x8192xf32>
  %y = train.convert %dx : (tensor<4x8192xf32>) -> tensor<4x8192xbf16>
  return %y, %dw : tensor<4x8192xbf16>, tensor<2x8192xf32>
}
// A sum of columns in a second pass, of what the row's own sum is part of, and another kind of reduction; a result of
// one element a row in the buffer of an operand that the last pass reads.
// CHECK: second_pass: ok, rows_columns, extent 4, {{.*}}passes 2, in place 1
func.func @second_pass(%x: tensor<12x320xf32>, %r: tensor<12xf32>) -> (tensor<12xf32>, tensor<4x320xf32>, tensor<4x320xf32>) {
  %s = train.reduce sum, %x {dimensions = array<i64: 1>} : (tensor<12x320xf32>) -> tensor<12xf32>
  %sb = train.broadcast %s {broadcast_dimensions = array<i64: 0>} : (tensor<12xf32>) -> tensor<12x320xf32>
  %rb = train.broadcast %r {broadcast_dimensions = array<i64: 0>} : (tensor<12xf32>) -> tensor<12x320xf32>
  %y = train.mul %sb, %rb : tensor<12x320xf32>
  %z = train.add %y, %x : tensor<12x320xf32>
  %zc = train.reshape %z : (tensor<12x320xf32>) -> tensor<4x3x320xf32>
  %xc = train.reshape %x : (tensor<12x320xf32>) -> tensor<4x3x320xf32>
  %a = train.reduce sum, %zc {dimensions = array<i64: 1>} : (tensor<4x3x320xf32>) -> tensor<4x320xf32>
  %b = train.reduce max, %xc {dimensions = array<i64: 1>} : (tensor<4x3x320xf32>) -> tensor<4x320xf32>
  return %s, %a, %b : tensor<12xf32>, tensor<4x320xf32>, tensor<4x320xf32>
}
// One warp a row: no barrier at all.
// CHECK: narrow: ok, rows_columns, extent 5
// PTX-LABEL: .entry narrow(
// PTX: .maxntid 32, 1, 1
// PTX-NOT: bar.sync
// PTX: ret;
func.func @narrow(%x: tensor<20x32xbf16>, %rstd: tensor<20xf32>, %dy: tensor<20x32xbf16>, %dr: tensor<20x32xbf16>, %w: tensor<32xbf16>) -> (tensor<20x32xbf16>, tensor<5x32xf32>, tensor<5x32xf32>) {
  %fx = train.convert %x : (tensor<20x32xbf16>) -> tensor<20x32xf32>
  %fdy = train.convert %dy : (tensor<20x32xbf16>) -> tensor<20x32xf32>
  %fdr = train.convert %dr : (tensor<20x32xbf16>) -> tensor<20x32xf32>
  %rb = train.broadcast %rstd {broadcast_dimensions = array<i64: 0>} : (tensor<20xf32>) -> tensor<20x32xf32>
  %xh = train.mul %fx, %rb : tensor<20x32xf32>
  %p = train.mul %fdy, %xh : tensor<20x32xf32>
  %pc = train.reshape %p : (tensor<20x32xf32>) -> tensor<5x4x32xf32>
  %dw = train.reduce sum, %pc {dimensions = array<i64: 1>} : (tensor<5x4x32xf32>) -> tensor<5x32xf32>
  %bc = train.reshape %fdy : (tensor<20x32xf32>) -> tensor<5x4x32xf32>
  %db = train.reduce sum, %bc {dimensions = array<i64: 1>} : (tensor<5x4x32xf32>) -> tensor<5x32xf32>
  %wb = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<32xbf16>) -> tensor<20x32xbf16>
  %fw = train.convert %wb : (tensor<20x32xbf16>) -> tensor<20x32xf32>
  %dxh = train.mul %fdy, %fw : tensor<20x32xf32>
  %q = train.mul %dxh, %xh : tensor<20x32xf32>
  %s = train.reduce sum, %q {dimensions = array<i64: 1>} : (tensor<20x32xf32>) -> tensor<20xf32>
  %k = train.constant dense<3.125000000e-02> : tensor<20xf32>
  %sk = train.mul %s, %k : tensor<20xf32>
  %sb = train.broadcast %sk {broadcast_dimensions = array<i64: 0>} : (tensor<20xf32>) -> tensor<20x32xf32>
  %m = train.mul %xh, %sb : tensor<20x32xf32>
  %d = train.sub %dxh, %m : tensor<20x32xf32>
  %t = train.reduce sum, %dxh {dimensions = array<i64: 1>} : (tensor<20x32xf32>) -> tensor<20xf32>
  %tk = train.mul %t, %k : tensor<20xf32>
  %tb = train.broadcast %tk {broadcast_dimensions = array<i64: 0>} : (tensor<20xf32>) -> tensor<20x32xf32>
  %d2 = train.sub %d, %tb : tensor<20x32xf32>
  %g = train.mul %d2, %rb : tensor<20x32xf32>
  %dx = train.add %g, %fdr : tensor<20x32xf32>
  %y = train.convert %dx : (tensor<20x32xf32>) -> tensor<20x32xbf16>
  return %y, %dw, %db : tensor<20x32xbf16>, tensor<5x32xf32>, tensor<5x32xf32>
}
