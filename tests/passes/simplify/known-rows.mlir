// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(recognize-attention,canonicalize,cse))' | FileCheck %s

// Masks that are known at compile time but too large to be constants: classified row by row, from positions.

// Positions that are compared.
// CHECK-LABEL: func @compared
// CHECK: train.attention %arg0, %arg1, %arg2 {causal,
func.func @compared(%q: tensor<2x2x4096x8xf32>, %k: tensor<2x2x4096x8xf32>, %v: tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32> {
  %r = train.iota {dim = 0 : i64} : tensor<4096x4096xi64>
  %c = train.iota {dim = 1 : i64} : tensor<4096x4096xi64>
  %seen = train.compare le, %c, %r : (tensor<4096x4096xi64>, tensor<4096x4096xi64>) -> tensor<4096x4096xi1>
  %b = train.broadcast %seen {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4096x4096xi1>) -> tensor<2x2x4096x4096xi1>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x4096x8xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x4096xf32>
  %low = train.constant dense<0xFF800000> : tensor<2x2x4096x4096xf32>
  %m = train.select %b, %s, %low : tensor<2x2x4096x4096xi1>, tensor<2x2x4096x4096xf32>
  %p = train.softmax %m {dim = 3 : i64} : tensor<2x2x4096x4096xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x4096x4096xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32>
  return %y : tensor<2x2x4096x8xf32>
}

// An upper triangle of the least f32, times what lies after the position: two exporters' steps.
// CHECK-LABEL: func @written_as_triangle
// CHECK: train.attention %arg0, %arg1, %arg2 {causal,
func.func @written_as_triangle(%q: tensor<2x2x4096x8xf32>, %k: tensor<2x2x4096x8xf32>, %v: tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32> {
  %r = train.iota {dim = 0 : i64} : tensor<4096x4096xi64>
  %c = train.iota {dim = 1 : i64} : tensor<4096x4096xi64>
  %one = train.constant dense<1> : tensor<4096x4096xi64>
  %next = train.add %r, %one : tensor<4096x4096xi64>
  %upper = train.compare ge, %c, %next : (tensor<4096x4096xi64>, tensor<4096x4096xi64>) -> tensor<4096x4096xi1>
  %min = train.constant dense<-3.40282347E+38> : tensor<4096x4096xf32>
  %zero = train.constant dense<0.0> : tensor<4096x4096xf32>
  %triangle = train.select %upper, %min, %zero : tensor<4096x4096xi1>, tensor<4096x4096xf32>
  %rf = train.convert %r : (tensor<4096x4096xi64>) -> tensor<4096x4096xf32>
  %cf = train.convert %c : (tensor<4096x4096xi64>) -> tensor<4096x4096xf32>
  %distance = train.sub %rf, %cf : tensor<4096x4096xf32>
  %ahead = train.neg %distance : tensor<4096x4096xf32>
  %after = train.compare gt, %ahead, %zero : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xi1>
  %factor = train.convert %after : (tensor<4096x4096xi1>) -> tensor<4096x4096xf32>
  %mask = train.mul %triangle, %factor : tensor<4096x4096xf32>
  %four = train.reshape %mask : (tensor<4096x4096xf32>) -> tensor<1x1x4096x4096xf32>
  %b = train.broadcast %four {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x4096x4096xf32>) -> tensor<2x2x4096x4096xf32>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x4096x8xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x4096xf32>
  %m = train.add %s, %b : tensor<2x2x4096x4096xf32>
  %p = train.softmax %m {dim = 3 : i64} : tensor<2x2x4096x4096xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x4096x4096xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32>
  return %y : tensor<2x2x4096x8xf32>
}

// Or: what is hidden twice is hidden. A window that nothing falls out of hides nothing.
// CHECK-LABEL: func @hidden_where_either
// CHECK: train.attention %arg0, %arg1, %arg2 {causal,
func.func @hidden_where_either(%q: tensor<2x2x4096x8xf32>, %k: tensor<2x2x4096x8xf32>, %v: tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32> {
  %r = train.iota {dim = 0 : i64} : tensor<4096x4096xi64>
  %c = train.iota {dim = 1 : i64} : tensor<4096x4096xi64>
  %later = train.compare gt, %c, %r : (tensor<4096x4096xi64>, tensor<4096x4096xi64>) -> tensor<4096x4096xi1>
  %wide = train.constant dense<-4096> : tensor<4096x4096xi64>
  %distance = train.sub %c, %r : tensor<4096x4096xi64>
  %far = train.compare lt, %distance, %wide : (tensor<4096x4096xi64>, tensor<4096x4096xi64>) -> tensor<4096x4096xi1>
  %hide = train.max %later, %far : tensor<4096x4096xi1>
  %b = train.broadcast %hide {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4096x4096xi1>) -> tensor<2x2x4096x4096xi1>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x4096x8xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x4096xf32>
  %low = train.constant dense<0xFF800000> : tensor<2x2x4096x4096xf32>
  %m = train.select %b, %low, %s : tensor<2x2x4096x4096xi1>, tensor<2x2x4096x4096xf32>
  %p = train.softmax %m {dim = 3 : i64} : tensor<2x2x4096x4096xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x4096x4096xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32>
  return %y : tensor<2x2x4096x8xf32>
}

// A part of a larger table, whose outer dimensions are exchanged.
// CHECK-LABEL: func @sliced_and_transposed
// CHECK: train.attention %arg0, %arg1, %arg2 {causal,
func.func @sliced_and_transposed(%q: tensor<2x2x4096x8xf32>, %k: tensor<2x2x4096x8xf32>, %v: tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32> {
  %r = train.iota {dim = 1 : i64} : tensor<2x4104x1x4104xi64>
  %c = train.iota {dim = 3 : i64} : tensor<2x4104x1x4104xi64>
  %all = train.compare ge, %r, %c : (tensor<2x4104x1x4104xi64>, tensor<2x4104x1x4104xi64>) -> tensor<2x4104x1x4104xi1>
  %part = train.slice %all {starts = array<i64: 0, 8, 0, 8>, limits = array<i64: 2, 4104, 1, 4104>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x4104x1x4104xi1>) -> tensor<2x4096x1x4096xi1>
  %t = train.transpose %part {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4096x1x4096xi1>) -> tensor<2x1x4096x4096xi1>
  %b = train.broadcast %t {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x1x4096x4096xi1>) -> tensor<2x2x4096x4096xi1>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x4096x8xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x4096xf32>
  %low = train.constant dense<0xFF800000> : tensor<2x2x4096x4096xf32>
  %m = train.select %b, %s, %low : tensor<2x2x4096x4096xi1>, tensor<2x2x4096x4096xf32>
  %p = train.softmax %m {dim = 3 : i64} : tensor<2x2x4096x4096xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x4096x4096xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32>
  return %y : tensor<2x2x4096x8xf32>
}

// Nothing is hidden: no mask.
// CHECK-LABEL: func @nothing_hidden
// CHECK: train.attention %arg0, %arg1, %arg2 {scale
func.func @nothing_hidden(%q: tensor<2x2x4096x8xf32>, %k: tensor<2x2x4096x8xf32>, %v: tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32> {
  %r = train.iota {dim = 0 : i64} : tensor<4096x4096xi64>
  %c = train.iota {dim = 1 : i64} : tensor<4096x4096xi64>
  %most = train.constant dense<4096> : tensor<4096x4096xi64>
  %seen = train.compare lt, %c, %most : (tensor<4096x4096xi64>, tensor<4096x4096xi64>) -> tensor<4096x4096xi1>
  %b = train.broadcast %seen {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4096x4096xi1>) -> tensor<2x2x4096x4096xi1>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x4096x8xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x4096xf32>
  %low = train.constant dense<0xFF800000> : tensor<2x2x4096x4096xf32>
  %m = train.select %b, %s, %low : tensor<2x2x4096x4096xi1>, tensor<2x2x4096x4096xf32>
  %p = train.softmax %m {dim = 3 : i64} : tensor<2x2x4096x4096xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x4096x4096xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32>
  return %y : tensor<2x2x4096x8xf32>
}

// Positions of each sample, equal in all.
// CHECK-LABEL: func @positions_of_each_sample
// CHECK: train.attention %arg0, %arg1, %arg2 {causal,
func.func @positions_of_each_sample(%q: tensor<2x2x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>) -> tensor<2x2x3x8xf32> {
  %at = train.constant dense<[[[[0], [1], [2]]], [[[0], [1], [2]]]]> : tensor<2x1x3x1xi64>
  %c = train.iota {dim = 3 : i64} : tensor<2x2x3x3xi64>
  %r = train.broadcast %at {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x1x3x1xi64>) -> tensor<2x2x3x3xi64>
  %seen = train.compare le, %c, %r : (tensor<2x2x3x3xi64>, tensor<2x2x3x3xi64>) -> tensor<2x2x3x3xi1>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x3x8xf32>, tensor<2x2x3x8xf32>) -> tensor<2x2x3x3xf32>
  %low = train.constant dense<0xFF800000> : tensor<2x2x3x3xf32>
  %m = train.select %seen, %s, %low : tensor<2x2x3x3xi1>, tensor<2x2x3x3xf32>
  %p = train.softmax %m {dim = 3 : i64} : tensor<2x2x3x3xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x3x3xf32>, tensor<2x2x3x8xf32>) -> tensor<2x2x3x8xf32>
  return %y : tensor<2x2x3x8xf32>
}

// Not causal: the second sample begins later.
// CHECK-LABEL: func @positions_differ
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @positions_differ(%q: tensor<2x2x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>) -> tensor<2x2x3x8xf32> {
  %at = train.constant dense<[[[[0], [1], [2]]], [[[1], [2], [3]]]]> : tensor<2x1x3x1xi64>
  %c = train.iota {dim = 3 : i64} : tensor<2x2x3x3xi64>
  %r = train.broadcast %at {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x1x3x1xi64>) -> tensor<2x2x3x3xi64>
  %seen = train.compare le, %c, %r : (tensor<2x2x3x3xi64>, tensor<2x2x3x3xi64>) -> tensor<2x2x3x3xi1>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x3x8xf32>, tensor<2x2x3x8xf32>) -> tensor<2x2x3x3xf32>
  %low = train.constant dense<0xFF800000> : tensor<2x2x3x3xf32>
  %m = train.select %seen, %s, %low : tensor<2x2x3x3xi1>, tensor<2x2x3x3xf32>
  %p = train.softmax %m {dim = 3 : i64} : tensor<2x2x3x3xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x3x3xf32>, tensor<2x2x3x8xf32>) -> tensor<2x2x3x8xf32>
  return %y : tensor<2x2x3x8xf32>
}

// A query does not see its own key: the keys before it are a range.
// CHECK-LABEL: func @strict
// CHECK: train.constant dense<"0x00000000000000000100000000000000
// CHECK: %[[BEGIN:.*]] = train.constant dense<0> : tensor<1x4096xi64>
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[BEGIN]] to %{{.*}}) {density
func.func @strict(%q: tensor<2x2x4096x8xf32>, %k: tensor<2x2x4096x8xf32>, %v: tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32> {
  %r = train.iota {dim = 0 : i64} : tensor<4096x4096xi64>
  %c = train.iota {dim = 1 : i64} : tensor<4096x4096xi64>
  %seen = train.compare lt, %c, %r : (tensor<4096x4096xi64>, tensor<4096x4096xi64>) -> tensor<4096x4096xi1>
  %b = train.broadcast %seen {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4096x4096xi1>) -> tensor<2x2x4096x4096xi1>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x4096x8xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x4096xf32>
  %low = train.constant dense<0xFF800000> : tensor<2x2x4096x4096xf32>
  %m = train.select %b, %s, %low : tensor<2x2x4096x4096xi1>, tensor<2x2x4096x4096xf32>
  %p = train.softmax %m {dim = 3 : i64} : tensor<2x2x4096x4096xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x4096x4096xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32>
  return %y : tensor<2x2x4096x8xf32>
}

// Keys fall out of a window.
// CHECK-LABEL: func @window
// CHECK: train.attention %arg0, %arg1, %arg2 {causal, scale = {{.*}}, window = 128 : i64}
func.func @window(%q: tensor<2x2x4096x8xf32>, %k: tensor<2x2x4096x8xf32>, %v: tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32> {
  %r = train.iota {dim = 0 : i64} : tensor<4096x4096xi64>
  %c = train.iota {dim = 1 : i64} : tensor<4096x4096xi64>
  %seen = train.compare le, %c, %r : (tensor<4096x4096xi64>, tensor<4096x4096xi64>) -> tensor<4096x4096xi1>
  %width = train.constant dense<128> : tensor<4096x4096xi64>
  %begin = train.sub %r, %width : tensor<4096x4096xi64>
  %inside = train.compare gt, %c, %begin : (tensor<4096x4096xi64>, tensor<4096x4096xi64>) -> tensor<4096x4096xi1>
  %both = train.mul %seen, %inside : tensor<4096x4096xi1>
  %b = train.broadcast %both {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4096x4096xi1>) -> tensor<2x2x4096x4096xi1>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x4096x8xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x4096xf32>
  %low = train.constant dense<0xFF800000> : tensor<2x2x4096x4096xf32>
  %m = train.select %b, %s, %low : tensor<2x2x4096x4096xi1>, tensor<2x2x4096x4096xf32>
  %p = train.softmax %m {dim = 3 : i64} : tensor<2x2x4096x4096xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x4096x4096xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32>
  return %y : tensor<2x2x4096x8xf32>
}

// Not known: a part of the mask is data.
// CHECK-LABEL: func @data
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @data(%q: tensor<2x2x4096x8xf32>, %k: tensor<2x2x4096x8xf32>, %v: tensor<2x2x4096x8xf32>, %data: tensor<2x4096xi1>) -> tensor<2x2x4096x8xf32> {
  %r = train.iota {dim = 0 : i64} : tensor<4096x4096xi64>
  %c = train.iota {dim = 1 : i64} : tensor<4096x4096xi64>
  %seen = train.compare le, %c, %r : (tensor<4096x4096xi64>, tensor<4096x4096xi64>) -> tensor<4096x4096xi1>
  %a = train.broadcast %seen {broadcast_dimensions = array<i64: 2, 3>} : (tensor<4096x4096xi1>) -> tensor<2x2x4096x4096xi1>
  %d = train.broadcast %data {broadcast_dimensions = array<i64: 0, 3>} : (tensor<2x4096xi1>) -> tensor<2x2x4096x4096xi1>
  %b = train.mul %a, %d : tensor<2x2x4096x4096xi1>
  %s = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x4096x8xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x4096xf32>
  %low = train.constant dense<0xFF800000> : tensor<2x2x4096x4096xf32>
  %m = train.select %b, %s, %low : tensor<2x2x4096x4096xi1>, tensor<2x2x4096x4096xf32>
  %p = train.softmax %m {dim = 3 : i64} : tensor<2x2x4096x4096xf32>
  %y = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x4096x4096xf32>, tensor<2x2x4096x8xf32>) -> tensor<2x2x4096x8xf32>
  return %y : tensor<2x2x4096x8xf32>
}
