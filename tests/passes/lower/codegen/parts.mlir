// RUN: kernel-check %s | FileCheck %s
// RUN: kernel-check --gpu %s | FileCheck %s
// Concatenations that take the place of what they are computed of: each thread reads what belongs to all parts of its
// position before it writes them.

// Two equal parts, each of both halves: the gradient of a gated activation.
// CHECK: halves: ok, elementwise, {{.*}}in place 1
func.func @halves(%x: tensor<5x64xf32>, %d: tensor<5x32xf32>) -> tensor<5x64xf32> {
  %a = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 5, 32>, strides = array<i64: 1, 1>} : (tensor<5x64xf32>) -> tensor<5x32xf32>
  %b = train.slice %x {starts = array<i64: 0, 32>, limits = array<i64: 5, 64>, strides = array<i64: 1, 1>} : (tensor<5x64xf32>) -> tensor<5x32xf32>
  %da = train.mul %b, %d : tensor<5x32xf32>
  %db = train.mul %a, %d : tensor<5x32xf32>
  %c = train.concat %da, %db {dim = 1 : i64} : (tensor<5x32xf32>, tensor<5x32xf32>) -> tensor<5x64xf32>
  return %c : tensor<5x64xf32>
}

// Rotary positions of the first five of seven heads; the others stay as they are.
// CHECK: heads: ok, elementwise, {{.*}}in place 1
func.func @heads(%x: tensor<2x3x7x16xf32>, %cos: tensor<3x16xf32>, %sin: tensor<3x16xf32>) -> tensor<2x3x7x16xf32> {
  %q = train.slice %x {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 3, 5, 16>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x7x16xf32>) -> tensor<2x3x5x16xf32>
  %v = train.slice %x {starts = array<i64: 0, 0, 5, 0>, limits = array<i64: 2, 3, 7, 16>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x7x16xf32>) -> tensor<2x3x2x16xf32>
  %t = train.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x5x16xf32>) -> tensor<2x5x3x16xf32>
  %l = train.slice %t {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 5, 3, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x5x3x16xf32>) -> tensor<2x5x3x8xf32>
  %h = train.slice %t {starts = array<i64: 0, 0, 0, 8>, limits = array<i64: 2, 5, 3, 16>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x5x3x16xf32>) -> tensor<2x5x3x8xf32>
  %n = train.neg %h : tensor<2x5x3x8xf32>
  %r = train.concat %n, %l {dim = 3 : i64} : (tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32>) -> tensor<2x5x3x16xf32>
  %bc = train.broadcast %cos {broadcast_dimensions = array<i64: 2, 3>} : (tensor<3x16xf32>) -> tensor<2x5x3x16xf32>
  %bs = train.broadcast %sin {broadcast_dimensions = array<i64: 2, 3>} : (tensor<3x16xf32>) -> tensor<2x5x3x16xf32>
  %0 = train.mul %t, %bc : tensor<2x5x3x16xf32>
  %1 = train.mul %r, %bs : tensor<2x5x3x16xf32>
  %2 = train.add %0, %1 : tensor<2x5x3x16xf32>
  %u = train.transpose %2 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x5x3x16xf32>) -> tensor<2x3x5x16xf32>
  %c = train.concat %u, %v {dim = 2 : i64} : (tensor<2x3x5x16xf32>, tensor<2x3x2x16xf32>) -> tensor<2x3x7x16xf32>
  return %c : tensor<2x3x7x16xf32>
}

// Pairs that lie side by side, and parts of which one is a number for the whole row.
// CHECK: pairs: ok, elementwise, {{.*}}in place 1
func.func @pairs(%x: tensor<6x40x2xf32>, %y: tensor<6x40xf32>) -> tensor<6x40x2xf32> {
  %a = train.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 6, 40, 1>, strides = array<i64: 1, 1, 1>} : (tensor<6x40x2xf32>) -> tensor<6x40x1xf32>
  %b = train.slice %x {starts = array<i64: 0, 0, 1>, limits = array<i64: 6, 40, 2>, strides = array<i64: 1, 1, 1>} : (tensor<6x40x2xf32>) -> tensor<6x40x1xf32>
  %r = train.reshape %y : (tensor<6x40xf32>) -> tensor<6x40x1xf32>
  %p = train.mul %b, %r : tensor<6x40x1xf32>
  %q = train.sub %a, %r : tensor<6x40x1xf32>
  %c = train.concat %p, %q {dim = 2 : i64} : (tensor<6x40x1xf32>, tensor<6x40x1xf32>) -> tensor<6x40x2xf32>
  return %c : tensor<6x40x2xf32>
}

// Not in place: what another position writes is read, by a reversed order, a neighbour, or the first dimension's parts.
// CHECK: swapped_rows: ok, elementwise, {{.*}}in place 0
func.func @swapped_rows(%x: tensor<2x40xf32>) -> tensor<2x40xf32> {
  %a = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 1, 40>, strides = array<i64: 1, 1>} : (tensor<2x40xf32>) -> tensor<1x40xf32>
  %b = train.slice %x {starts = array<i64: 1, 0>, limits = array<i64: 2, 40>, strides = array<i64: 1, 1>} : (tensor<2x40xf32>) -> tensor<1x40xf32>
  %m = train.neg %b : tensor<1x40xf32>
  %c = train.concat %m, %a {dim = 0 : i64} : (tensor<1x40xf32>, tensor<1x40xf32>) -> tensor<2x40xf32>
  return %c : tensor<2x40xf32>
}
// CHECK: neighbours: ok, elementwise, {{.*}}in place 0
func.func @neighbours(%x: tensor<6x64xf32>) -> tensor<6x64xf32> {
  %a = train.slice %x {starts = array<i64: 0, 1>, limits = array<i64: 6, 33>, strides = array<i64: 1, 1>} : (tensor<6x64xf32>) -> tensor<6x32xf32>
  %b = train.slice %x {starts = array<i64: 0, 32>, limits = array<i64: 6, 64>, strides = array<i64: 1, 1>} : (tensor<6x64xf32>) -> tensor<6x32xf32>
  %m = train.neg %b : tensor<6x32xf32>
  %c = train.concat %m, %a {dim = 1 : i64} : (tensor<6x32xf32>, tensor<6x32xf32>) -> tensor<6x64xf32>
  return %c : tensor<6x64xf32>
}

// Unequal parts that do not begin where a row of the operand does.
// CHECK: odd: ok, elementwise, {{.*}}
func.func @odd(%x: tensor<4x5x3xf32>, %y: tensor<4x7xf32>) -> tensor<4x22xf32> {
  %r = train.reshape %x : (tensor<4x5x3xf32>) -> tensor<4x15xf32>
  %t = train.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<4x5x3xf32>) -> tensor<4x3x5xf32>
  %s = train.reshape %t : (tensor<4x3x5xf32>) -> tensor<4x15xf32>
  %0 = train.add %r, %s : tensor<4x15xf32>
  %n = train.neg %y : tensor<4x7xf32>
  %c = train.concat %n, %0 {dim = 1 : i64} : (tensor<4x7xf32>, tensor<4x15xf32>) -> tensor<4x22xf32>
  return %c : tensor<4x22xf32>
}
