// Ids that are elements of an input, and positions that count in each document.
// RUN: tessera-opt %s --recognize-attention --canonicalize --cse --verify-diagnostics -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=1e-6 --quiet

!x = tensor<2x1x6x2xf32>
!l = tensor<2x1x6xf32>
!d = tensor<2x6xi64>
!db = tensor<2x6xi1>
!i = tensor<2x1x6x6xi64>
!b = tensor<2x1x6x6xi1>
!s = tensor<2x6x6xi64>
!sb = tensor<2x6x6xi1>
!t = tensor<6x6xi64>
!tb = tensor<6x6xi1>
!p = tensor<2x5xi64>
!pb = tensor<2x5xi1>
!one = tensor<2x1xi64>
!m = tensor<2x7xi64>
!df = tensor<2x6xf32>
!e = tensor<2x6xi8>
!di = tensor<2x6xi32>
!u = tensor<2x1x6xi64>
!c = tensor<6x2xi64>
!ifl = tensor<2x1x6x6xf32>
!pe = tensor<2x5xi8>

// Ids in a wider type, and with a dimension of size 1.
// CHECK-LABEL: func @input(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @input(%q: !x, %k: !x, %v: !x, %ids: !di {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %wide = train.convert %ids : (!di) -> !d
  %three = train.reshape %wide : (!d) -> !u
  %back = train.reshape %three : (!u) -> !d
  %there = train.broadcast %back {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %back {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: ids in another order of samples and positions.
// CHECK-LABEL: func @input_reshaped(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @input_reshaped(%q: !x, %k: !x, %v: !x, %ids: !c {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %x = train.reshape %ids : (!c) -> !d
  %there = train.broadcast %x {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %x {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: numbers that are no integers.
// CHECK-LABEL: func @input_of_floats(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @input_of_floats(%q: !x, %k: !x, %v: !x, %ids: !df {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!df) -> !ifl
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!df) -> !ifl
  %m = train.compare eq, %here, %there : (!ifl, !ifl) -> !b
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: ids that were narrower on the way.
// CHECK-LABEL: func @input_narrowed(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @input_narrowed(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %narrow = train.convert %ids : (!d) -> !di
  %wide = train.convert %narrow : (!di) -> !d
  %there = train.broadcast %wide {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %wide {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: an argument that is no input of a batch.
// CHECK-LABEL: func @parameter(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @parameter(%q: !x, %k: !x, %v: !x, %ids: !d {train.name = "docs", train.role = "frozen"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// A position that does not count on begins a document. What the first step says means nothing.
// CHECK-LABEL: func @counted(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @counted(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!d) -> !p
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!d) -> !p
  %difference = train.sub %later, %earlier : !p
  %one = train.constant dense<1> : !p
  %breaks = train.compare ne, %difference, %one : (!p, !p) -> !pb
  %some = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %some {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 1.0 : f64} : (!p) -> !d
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

// The same, where they are not equal to what counts on.
// CHECK-LABEL: func @not_equal(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @not_equal(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!d) -> !p
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!d) -> !p
  %difference = train.sub %later, %earlier : !p
  %one = train.constant dense<1> : !p
  %counts = train.compare eq, %difference, %one : (!p, !p) -> !pb
  %no = train.constant dense<false> : !pb
  %breaks = train.compare eq, %counts, %no : (!pb, !pb) -> !pb
  %some = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %some {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!p) -> !d
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

// Differences with the tokens before, of which the first may be anything.
// CHECK-LABEL: func @with_before(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @with_before(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %head = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 1>, strides = array<i64: 1, 1>} : (!d) -> !one
  %longer = train.concat %head, %tok {dim = 1 : i64} : (!one, !d) -> !m
  %before = train.slice %longer {starts = array<i64: 0, 0>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!m) -> !d
  %difference = train.sub %tok, %before : !d
  %one = train.constant dense<1> : !d
  %breaks = train.compare ne, %difference, %one : (!d, !d) -> !db
  %steps = train.convert %breaks : (!db) -> !d
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

// Not applied: positions that count down.
// CHECK-LABEL: func @down(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @down(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!d) -> !p
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!d) -> !p
  %difference = train.sub %earlier, %later : !p
  %one = train.constant dense<1> : !p
  %breaks = train.compare ne, %difference, %one : (!p, !p) -> !pb
  %some = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %some {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!p) -> !d
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
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: positions are compared that are not known to count in each document}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: positions that count by two.
// CHECK-LABEL: func @by_two(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @by_two(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!d) -> !p
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!d) -> !p
  %difference = train.sub %later, %earlier : !p
  %one = train.constant dense<2> : !p
  %breaks = train.compare ne, %difference, %one : (!p, !p) -> !pb
  %some = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %some {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!p) -> !d
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
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: positions are compared that are not known to count in each document}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: positions that count on begin a document.
// CHECK-LABEL: func @counting(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @counting(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %later = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!d) -> !p
  %earlier = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!d) -> !p
  %difference = train.sub %later, %earlier : !p
  %one = train.constant dense<1> : !p
  %breaks = train.compare eq, %difference, %one : (!p, !p) -> !pb
  %some = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %some {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!p) -> !d
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
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: positions are compared that are not known to count in each document}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: differences in a narrower type, which may wrap.
// CHECK-LABEL: func @narrow_difference(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @narrow_difference(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %n = train.convert %tok : (!d) -> !e
  %later = train.slice %n {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (!e) -> !pe
  %earlier = train.slice %n {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (!e) -> !pe
  %difference = train.sub %later, %earlier : !pe
  %one = train.constant dense<1> : !pe
  %breaks = train.compare ne, %difference, %one : (!pe, !pe) -> !pb
  %some = train.convert %breaks : (!pb) -> !p
  %steps = train.pad %some {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (!p) -> !d
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
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: positions are compared that are not known to count in each document}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}
