// Masks of documents that compare positions: which of them are ranges of keys.
// RUN: tessera-opt %s --recognize-attention --canonicalize --cse --verify-diagnostics -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=1e-6 --quiet

!x = tensor<2x1x6x2xf32>
!l = tensor<2x1x6xf32>
!d = tensor<2x6xi64>
!i = tensor<2x1x6x6xi64>
!b = tensor<2x1x6x6xi1>
!s = tensor<2x6x6xi64>
!sb = tensor<2x6x6xi1>
!t = tensor<6x6xi64>
!tb = tensor<6x6xi1>
!p = tensor<2x5xi64>
!pb = tensor<2x5xi1>
!w = tensor<2x6xi16>
!sw = tensor<2x6x6xi16>
!pw = tensor<2x5xi16>
!iw = tensor<2x1x6x6xi16>

// Positions count in each document: keys up to the query.
// CHECK-LABEL: func @up_to_query(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @up_to_query(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!d) -> !p
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!d) -> !p
  %difference = train.sub %later, %earlier : !p
  %one = train.constant dense<1> : !p
  %breaks = train.compare ne, %difference, %one : (!p, !p) -> !pb
  %breaks1 = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %breaks1 {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!p) -> !d
  %from = train.iota {dim = 0 : i64} : !t
  %to = train.iota {dim = 1 : i64} : !t
  %tri = train.compare le, %from, %to : (!t, !t) -> !tb
  %takes = train.broadcast %tri {broadcast_dimensions = array<i64: 1, 2>} : (!tb) -> !sb
  %terms = train.broadcast %steps {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !s
  %none = train.constant dense<0> : !s
  %sel = train.select %takes, %terms, %none : !sb, !s
  %ids = train.reduce sum, %sel {dimensions = array<i64: 1>} : (!s) -> !d
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %query = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %key = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %p = train.compare le, %key, %query : (!i, !i) -> !b
  %m = train.mul %same, %p : !b
  // expected-remark@+1 {{positions that the mask of documents compares are taken not to be beyond 2^30}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// The query first.
// CHECK-LABEL: func @query_first(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @query_first(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!d) -> !p
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!d) -> !p
  %difference = train.sub %later, %earlier : !p
  %one = train.constant dense<1> : !p
  %breaks = train.compare ne, %difference, %one : (!p, !p) -> !pb
  %breaks1 = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %breaks1 {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!p) -> !d
  %from = train.iota {dim = 0 : i64} : !t
  %to = train.iota {dim = 1 : i64} : !t
  %tri = train.compare le, %from, %to : (!t, !t) -> !tb
  %takes = train.broadcast %tri {broadcast_dimensions = array<i64: 1, 2>} : (!tb) -> !sb
  %terms = train.broadcast %steps {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !s
  %none = train.constant dense<0> : !s
  %sel = train.select %takes, %terms, %none : !sb, !s
  %ids = train.reduce sum, %sel {dimensions = array<i64: 1>} : (!s) -> !d
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %query = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %key = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %p = train.compare ge, %query, %key : (!i, !i) -> !b
  %m = train.mul %same, %p : !b
  // expected-remark@+1 {{positions that the mask of documents compares are taken not to be beyond 2^30}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// A window, by a number on either side.
// CHECK-LABEL: func @window(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64, window = 2 : i64}
func.func @window(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!d) -> !p
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!d) -> !p
  %difference = train.sub %later, %earlier : !p
  %one = train.constant dense<1> : !p
  %breaks = train.compare ne, %difference, %one : (!p, !p) -> !pb
  %breaks1 = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %breaks1 {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!p) -> !d
  %from = train.iota {dim = 0 : i64} : !t
  %to = train.iota {dim = 1 : i64} : !t
  %tri = train.compare le, %from, %to : (!t, !t) -> !tb
  %takes = train.broadcast %tri {broadcast_dimensions = array<i64: 1, 2>} : (!tb) -> !sb
  %terms = train.broadcast %steps {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !s
  %none = train.constant dense<0> : !s
  %sel = train.select %takes, %terms, %none : !sb, !s
  %ids = train.reduce sum, %sel {dimensions = array<i64: 1>} : (!s) -> !d
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %query = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %key = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %p = train.compare le, %key, %query : (!i, !i) -> !b
  %two = train.constant dense<2> : !i
  %one2 = train.constant dense<1> : !i
  %k2 = train.add %key, %two : !i
  %w = train.compare gt, %k2, %query : (!i, !i) -> !b
  %m0 = train.mul %same, %p : !b
  %m = train.mul %m0, %w : !b
  // expected-remark@+1 {{positions that the mask of documents compares are taken not to be beyond 2^30}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Up to the next key but one, from the one before.
// CHECK-LABEL: func @around(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {density = 0.55555555555555558 : f64,
func.func @around(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!d) -> !p
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!d) -> !p
  %difference = train.sub %later, %earlier : !p
  %one = train.constant dense<1> : !p
  %breaks = train.compare ne, %difference, %one : (!p, !p) -> !pb
  %breaks1 = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %breaks1 {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!p) -> !d
  %from = train.iota {dim = 0 : i64} : !t
  %to = train.iota {dim = 1 : i64} : !t
  %tri = train.compare le, %from, %to : (!t, !t) -> !tb
  %takes = train.broadcast %tri {broadcast_dimensions = array<i64: 1, 2>} : (!tb) -> !sb
  %terms = train.broadcast %steps {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !s
  %none = train.constant dense<0> : !s
  %sel = train.select %takes, %terms, %none : !sb, !s
  %ids = train.reduce sum, %sel {dimensions = array<i64: 1>} : (!s) -> !d
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %query = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %key = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %two = train.constant dense<2> : !i
  %one2 = train.constant dense<1> : !i
  %k2 = train.sub %key, %two : !i
  %p = train.compare le, %k2, %query : (!i, !i) -> !b
  %q2 = train.sub %query, %one2 : !i
  %w = train.compare ge, %key, %q2 : (!i, !i) -> !b
  %m0 = train.mul %same, %p : !b
  %m = train.mul %m0, %w : !b
  // expected-remark@+1 {{positions that the mask of documents compares are taken not to be beyond 2^30}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: positions of another vector.
// CHECK-LABEL: func @other_positions(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @other_positions(%q: !x, %k: !x, %v: !x, %tok: !d, %at: !d) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!d) -> !p
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!d) -> !p
  %difference = train.sub %later, %earlier : !p
  %one = train.constant dense<1> : !p
  %breaks = train.compare ne, %difference, %one : (!p, !p) -> !pb
  %breaks1 = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %breaks1 {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!p) -> !d
  %from = train.iota {dim = 0 : i64} : !t
  %to = train.iota {dim = 1 : i64} : !t
  %tri = train.compare le, %from, %to : (!t, !t) -> !tb
  %takes = train.broadcast %tri {broadcast_dimensions = array<i64: 1, 2>} : (!tb) -> !sb
  %terms = train.broadcast %steps {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !s
  %none = train.constant dense<0> : !s
  %sel = train.select %takes, %terms, %none : !sb, !s
  %ids = train.reduce sum, %sel {dimensions = array<i64: 1>} : (!s) -> !d
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %query = train.broadcast %at {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %key = train.broadcast %at {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %p = train.compare le, %key, %query : (!i, !i) -> !b
  %m = train.mul %same, %p : !b
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: positions are compared that are not known to count in each document}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: positions less a number beyond 2^30 may wrap.
// CHECK-LABEL: func @far(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @far(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!d) -> !p
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!d) -> !p
  %difference = train.sub %later, %earlier : !p
  %one = train.constant dense<1> : !p
  %breaks = train.compare ne, %difference, %one : (!p, !p) -> !pb
  %breaks1 = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %breaks1 {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!p) -> !d
  %from = train.iota {dim = 0 : i64} : !t
  %to = train.iota {dim = 1 : i64} : !t
  %tri = train.compare le, %from, %to : (!t, !t) -> !tb
  %takes = train.broadcast %tri {broadcast_dimensions = array<i64: 1, 2>} : (!tb) -> !sb
  %terms = train.broadcast %steps {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !s
  %none = train.constant dense<0> : !s
  %sel = train.select %takes, %terms, %none : !sb, !s
  %ids = train.reduce sum, %sel {dimensions = array<i64: 1>} : (!s) -> !d
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %query = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %key = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %far = train.constant dense<1073741825> : !i
  %k2 = train.sub %key, %far : !i
  %p = train.compare le, %k2, %query : (!i, !i) -> !b
  %m = train.mul %same, %p : !b
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: another condition of the mask is not a range of keys that is known at compile time}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: positions in i16 may wrap.
// CHECK-LABEL: func @narrow_positions(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @narrow_positions(%q: !x, %k: !x, %v: !x, %tok: !w) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!w) -> !pw
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!w) -> !pw
  %difference = train.sub %later, %earlier : !pw
  %one = train.constant dense<1> : !pw
  %breaks = train.compare ne, %difference, %one : (!pw, !pw) -> !pb
  %breaks1 = train.convert %breaks : (!pb) -> !pw
  %steps = train.pad %breaks1 {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!pw) -> !w
  %from = train.iota {dim = 0 : i64} : !t
  %to = train.iota {dim = 1 : i64} : !t
  %tri = train.compare le, %from, %to : (!t, !t) -> !tb
  %takes = train.broadcast %tri {broadcast_dimensions = array<i64: 1, 2>} : (!tb) -> !sb
  %terms = train.broadcast %steps {broadcast_dimensions = array<i64: 0, 1>} : (!w) -> !sw
  %none = train.constant dense<0> : !sw
  %sel = train.select %takes, %terms, %none : !sb, !sw
  %ids = train.reduce sum, %sel {dimensions = array<i64: 1>} : (!sw) -> !w
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!w) -> !iw
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!w) -> !iw
  %same = train.compare eq, %here, %there : (!iw, !iw) -> !b
  %query = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 2>} : (!w) -> !iw
  %key = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 3>} : (!w) -> !iw
  %p = train.compare le, %key, %query : (!iw, !iw) -> !b
  %m = train.mul %same, %p : !b
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: another condition of the mask is not a range of keys that is known at compile time}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}
