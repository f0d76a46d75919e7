// RUN: tessera-opt %s -annotate-index-bounds=check=clamp -split-input-file -verify-diagnostics | FileCheck %s

// Through a reshape and an integer conversion; the smallest table counts.
// CHECK-LABEL: func.func @tokens
// CHECK-SAME: %{{.*}}: tensor<50x4xf32> {train.name = "wte", train.role = "param"}
// CHECK-SAME: %{{.*}}: tensor<2x8xi64> {train.index_bound = 20 : i64, train.name = "ids", train.role = "input"}
func.func @tokens(%t: tensor<50x4xf32> {train.role = "param", train.name = "wte"}, %s: tensor<20x4xf32> {train.role = "param", train.name = "wpe"},
                  %ids: tensor<2x8xi64> {train.role = "input", train.name = "ids"}) -> (tensor<16x4xf32>, tensor<2x8x4xf32>) {
  %0 = train.reshape %ids : (tensor<2x8xi64>) -> tensor<16xi64>
  %1 = train.convert %0 : (tensor<16xi64>) -> tensor<16xi32>
  %2 = train.gather_rows %t, %1 : (tensor<50x4xf32>, tensor<16xi32>) -> tensor<16x4xf32>
  %3 = train.gather_rows %s, %ids : (tensor<20x4xf32>, tensor<2x8xi64>) -> tensor<2x8x4xf32>
  return %2, %3 : tensor<16x4xf32>, tensor<2x8x4xf32>
}

// -----

// CHECK-LABEL: func.func @targets
// CHECK-SAME: %{{.*}}: tensor<4xi32> {train.ignore_index = -100 : i64, train.index_bound = 10 : i64, train.name = "targets", train.role = "target"}
func.func @targets(%x: tensor<4x10xf32> {train.role = "input", train.name = "x"}, %y: tensor<4xi32> {train.role = "target", train.name = "targets"}) -> tensor<4xf32> {
  %loss, %lse = train.cross_entropy %x, %y {ignore_index = -100 : i64} : (tensor<4x10xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss : tensor<4xf32>
}

// -----

// Not an index: no bound. A parameter used as a table is no batch argument.
// CHECK-LABEL: func.func @values
// CHECK-NOT: index_bound
func.func @values(%x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> tensor<4xf32> {
  %0 = train.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Computed indices whose range is known: 3 + the number of ones among 8 is at most 11.
// CHECK-LABEL: func.func @positions
// CHECK-NOT: train.max
func.func @positions(%t: tensor<12x4xf32> {train.role = "param", train.name = "wpe"}, %m: tensor<2x8xi64> {train.role = "input", train.name = "mask"}) -> tensor<2x4xf32> {
  %zero = train.constant dense<0> : tensor<2x8xi64>
  %0 = train.compare ne, %m, %zero : (tensor<2x8xi64>, tensor<2x8xi64>) -> tensor<2x8xi1>
  %1 = train.convert %0 : (tensor<2x8xi1>) -> tensor<2x8xi64>
  %2 = train.reduce sum, %1 {dimensions = array<i64: 1>} : (tensor<2x8xi64>) -> tensor<2xi64>
  %three = train.constant dense<3> : tensor<2xi64>
  %3 = train.add %2, %three : tensor<2xi64>
  %4 = train.gather_rows %t, %3 : (tensor<12x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}

// -----

// The same with one row less: clamped, with a remark.
// CHECK-LABEL: func.func @unknown
// CHECK: %[[LOW:.*]] = train.max
// CHECK: %[[LAST:.*]] = train.constant dense<10> : tensor<2xi64>
// CHECK: %[[BELOW:.*]] = train.compare lt, %[[LOW]], %[[LAST]]
// CHECK: %[[IN:.*]] = train.select %[[BELOW]], %[[LOW]], %[[LAST]]
// CHECK: train.gather_rows %{{.*}}, %[[IN]]
func.func @unknown(%t: tensor<11x4xf32> {train.role = "param", train.name = "wpe"}, %m: tensor<2x8xi64> {train.role = "input", train.name = "mask"}) -> tensor<2x4xf32> {
  %zero = train.constant dense<0> : tensor<2x8xi64>
  %0 = train.compare ne, %m, %zero : (tensor<2x8xi64>, tensor<2x8xi64>) -> tensor<2x8xi1>
  %1 = train.convert %0 : (tensor<2x8xi1>) -> tensor<2x8xi64>
  %2 = train.reduce sum, %1 {dimensions = array<i64: 1>} : (tensor<2x8xi64>) -> tensor<2xi64>
  %three = train.constant dense<3> : tensor<2xi64>
  %3 = train.add %2, %three : tensor<2xi64>
  // expected-remark @below {{indices are computed from data and not known to be in [0, 11): those outside count as the nearest one inside}}
  %4 = train.gather_rows %t, %3 : (tensor<11x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %4 : tensor<2x4xf32>
}

// -----

// Computed targets: the ignored one stays.
// CHECK-LABEL: func.func @computed_targets
// CHECK: %[[IN:.*]] = train.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xi1>, tensor<4xi64>
// CHECK: %[[IGNORED:.*]] = train.constant dense<-100> : tensor<4xi64>
// CHECK: %[[IS:.*]] = train.compare eq, %[[SUM:.*]], %[[IGNORED]]
// CHECK: train.select %[[IS]], %[[SUM]], %[[IN]]
func.func @computed_targets(%x: tensor<4x10xf32> {train.role = "input", train.name = "x"}, %y: tensor<4xi64> {train.role = "target", train.name = "targets"}) -> tensor<4xf32> {
  %0 = train.add %y, %y : tensor<4xi64>
  // expected-remark @below {{not known to be in [0, 10)}}
  %loss, %lse = train.cross_entropy %x, %0 {ignore_index = -100 : i64} : (tensor<4x10xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss : tensor<4xf32>
}

// -----

// An index of a table and a target: what the loss ignores is no row of the table, so it is not allowed.
// CHECK-LABEL: func.func @both
// CHECK-SAME: %{{.*}}: tensor<4xi32> {train.index_bound = 10 : i64, train.name = "ids", train.role = "input"}
func.func @both(%t: tensor<12x10xf32> {train.role = "param", train.name = "wte"}, %ids: tensor<4xi32> {train.role = "input", train.name = "ids"}) -> tensor<4xf32> {
  %x = train.gather_rows %t, %ids : (tensor<12x10xf32>, tensor<4xi32>) -> tensor<4x10xf32>
  %loss, %lse = train.cross_entropy %x, %ids {ignore_index = -100 : i64} : (tensor<4x10xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss : tensor<4xf32>
}

// -----

// Two losses that ignore different values: neither value is allowed.
// CHECK-LABEL: func.func @two_losses
// CHECK-SAME: %{{.*}}: tensor<4xi32> {train.index_bound = 10 : i64, train.name = "t", train.role = "target"}
func.func @two_losses(%x: tensor<4x10xf32> {train.role = "input", train.name = "x"}, %t: tensor<4xi32> {train.role = "target", train.name = "t"}) -> (tensor<4xf32>, tensor<4xf32>) {
  %loss, %lse = train.cross_entropy %x, %t {ignore_index = -100 : i64} : (tensor<4x10xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %other, %lse2 = train.cross_entropy %x, %t {ignore_index = -1 : i64} : (tensor<4x10xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss, %other : tensor<4xf32>, tensor<4xf32>
}

// -----

// The loss of the next token: only the last position is a target and no index, and may be ignored.
// CHECK-LABEL: func.func @next_token
// CHECK-SAME: %{{.*}}: tensor<2x5xi64> {train.index_parts = [
// CHECK-SAME: {bound = 50 : i64, limits = array<i64: 4>, starts = array<i64: 0>, strides = array<i64: 1>}
// CHECK-SAME: {bound = 40 : i64, ignore_index = -100 : i64, limits = array<i64: 5>, starts = array<i64: 1>, strides = array<i64: 1>}
// CHECK-NOT: index_bound
func.func @next_token(%t: tensor<50x40xf32> {train.role = "param", train.name = "wte"}, %ids: tensor<2x5xi64> {train.role = "input", train.name = "ids"}) -> tensor<8xf32> {
  %head = train.slice %ids {starts = array<i64: 0, 0>, limits = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<2x5xi64>) -> tensor<2x4xi64>
  %tail = train.slice %ids {starts = array<i64: 0, 1>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (tensor<2x5xi64>) -> tensor<2x4xi64>
  %x = train.gather_rows %t, %head : (tensor<50x40xf32>, tensor<2x4xi64>) -> tensor<2x4x40xf32>
  %rows = train.reshape %x : (tensor<2x4x40xf32>) -> tensor<8x40xf32>
  %targets = train.reshape %tail : (tensor<2x4xi64>) -> tensor<8xi64>
  %loss, %lse = train.cross_entropy %rows, %targets {ignore_index = -100 : i64} : (tensor<8x40xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  return %loss : tensor<8xf32>
}

// -----

// Each column has a table of its own; what lies behind a reshape is taken for the whole box before it.
// CHECK-LABEL: func.func @columns
// CHECK-SAME: train.index_parts = [
// CHECK-SAME: {bound = 50 : i64, limits = array<i64: 1>, starts = array<i64: 0>, strides = array<i64: 1>}
// CHECK-SAME: {bound = 7 : i64, limits = array<i64: 4>, starts = array<i64: 1>, strides = array<i64: 2>}]
func.func @columns(%a: tensor<50x3xf32> {train.role = "param", train.name = "a"}, %b: tensor<7x3xf32> {train.role = "param", train.name = "b"}, %ids: tensor<2x5xi64> {train.role = "input", train.name = "ids"}) -> (tensor<2x3xf32>, tensor<1x3xf32>) {
  %first = train.slice %ids {starts = array<i64: 0, 0>, limits = array<i64: 2, 1>, strides = array<i64: 1, 1>} : (tensor<2x5xi64>) -> tensor<2x1xi64>
  %flat = train.reshape %first : (tensor<2x1xi64>) -> tensor<2xi64>
  %x = train.gather_rows %a, %flat : (tensor<50x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %rest = train.slice %ids {starts = array<i64: 0, 1>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (tensor<2x5xi64>) -> tensor<2x4xi64>
  %odd = train.slice %rest {starts = array<i64: 0, 0>, limits = array<i64: 2, 4>, strides = array<i64: 1, 2>} : (tensor<2x4xi64>) -> tensor<2x2xi64>
  %four = train.reshape %odd : (tensor<2x2xi64>) -> tensor<4xi64>
  %one = train.slice %four {starts = array<i64: 0>, limits = array<i64: 1>, strides = array<i64: 1>} : (tensor<4xi64>) -> tensor<1xi64>
  %y = train.gather_rows %b, %one : (tensor<7x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
  return %x, %y : tensor<2x3xf32>, tensor<1x3xf32>
}

// -----

// An index that is computed from targets that may be ignored: -100 + 1 is no row.
// CHECK-LABEL: func.func @shifted_targets
// CHECK: train.max
func.func @shifted_targets(%t: tensor<11x10xf32> {train.role = "param", train.name = "wte"}, %x: tensor<4x10xf32> {train.role = "input", train.name = "x"}, %y: tensor<4xi64> {train.role = "target", train.name = "targets"}) -> (tensor<4xf32>, tensor<4x10xf32>) {
  %loss, %lse = train.cross_entropy %x, %y {ignore_index = -100 : i64} : (tensor<4x10xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  %one = train.constant dense<1> : tensor<4xi64>
  %0 = train.add %y, %one : tensor<4xi64>
  // expected-remark @below {{not known to be in [0, 11)}}
  %1 = train.gather_rows %t, %0 : (tensor<11x10xf32>, tensor<4xi64>) -> tensor<4x10xf32>
  return %loss, %1 : tensor<4xf32>, tensor<4x10xf32>
}

// -----

// Where the ignored target was replaced it is a row: nothing to clamp.
// CHECK-LABEL: func.func @replaced_targets
// CHECK-NOT: train.max
func.func @replaced_targets(%t: tensor<10x10xf32> {train.role = "param", train.name = "weights"}, %x: tensor<4x10xf32> {train.role = "input", train.name = "x"}, %y: tensor<4xi64> {train.role = "target", train.name = "targets"}) -> (tensor<4xf32>, tensor<4x10xf32>) {
  %loss, %lse = train.cross_entropy %x, %y {ignore_index = -100 : i64} : (tensor<4x10xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>)
  %ignored = train.constant dense<-100> : tensor<4xi64>
  %zero = train.constant dense<0> : tensor<4xi64>
  %valid = train.compare ne, %y, %ignored : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
  %safe = train.select %valid, %y, %zero : tensor<4xi1>, tensor<4xi64>
  %1 = train.gather_rows %t, %safe : (tensor<10x10xf32>, tensor<4xi64>) -> tensor<4x10xf32>
  return %loss, %1 : tensor<4xf32>, tensor<4x10xf32>
}

// -----

// 200 becomes negative in 8 bits.
// CHECK-LABEL: func.func @narrowed
// CHECK-SAME: train.index_bound = 128 : i64
func.func @narrowed(%t: tensor<256x4xf32> {train.role = "param", train.name = "wte"}, %ids: tensor<4xi64> {train.role = "input", train.name = "ids"}) -> tensor<4x4xf32> {
  %0 = train.convert %ids : (tensor<4xi64>) -> tensor<4xi8>
  %1 = train.gather_rows %t, %0 : (tensor<256x4xf32>, tensor<4xi8>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// A sum of bounded numbers of 8 bits may wrap around: 99 + 99 is -58. None is too large for 200 rows.
// CHECK-LABEL: func.func @narrow_sum
// CHECK: train.add
// CHECK: %[[INSIDE:.*]] = train.max
// CHECK-NOT: train.select
// CHECK: train.gather_rows %arg1, %[[INSIDE]]
func.func @narrow_sum(%t: tensor<100x2xf32> {train.role = "param", train.name = "t"},
                      %u: tensor<200x2xf32> {train.role = "param", train.name = "u"},
                      %i: tensor<4xi8> {train.role = "input", train.name = "i"}) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %0 = train.gather_rows %t, %i : (tensor<100x2xf32>, tensor<4xi8>) -> tensor<4x2xf32>
  %twice = train.add %i, %i : tensor<4xi8>
  // expected-remark@+1 {{indices are computed from data and not known to be in [0, 200)}}
  %1 = train.gather_rows %u, %twice : (tensor<200x2xf32>, tensor<4xi8>) -> tensor<4x2xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<4x2xf32>
}
