// Masks of documents: which comparisons of ids are ranges of keys, and where these begin and end.
// RUN: tessera-opt %s --recognize-attention --canonicalize --cse --verify-diagnostics -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=1e-6 --quiet

!x = tensor<2x1x6x2xf32>
!l = tensor<2x1x6xf32>
!d = tensor<2x6xi64>
!db = tensor<2x6xi1>
!i = tensor<2x1x6x6xi64>
!b = tensor<2x1x6x6xi1>
!f = tensor<2x1x6x6xf32>
!s = tensor<2x6x6xi64>
!sb = tensor<2x6x6xi1>
!t = tensor<6x6xi64>
!tb = tensor<6x6xi1>
!d1 = tensor<6xi64>
!one = tensor<1x1x1x6xi64>
!oneb = tensor<1x1x1x6xi1>
!h = tensor<1x2x6x6xi64>
!hb = tensor<1x2x6x6xi1>
!xh = tensor<1x2x6x2xf32>
!lh = tensor<1x2x6xf32>
!g = tensor<2x2x6x6xi64>
!gb = tensor<2x2x6x6xi1>
!xg = tensor<2x2x6x2xf32>
!lg = tensor<2x2x6xf32>

// A query sees the keys of its id.
// CHECK-LABEL: func @equal(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @equal(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// The query stands first.
// CHECK-LABEL: func @exchanged(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @exchanged(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %there, %here : (!i, !i) -> !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// What is hidden where ids differ.
// CHECK-LABEL: func @unequal(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @unequal(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %p = train.compare ne, %here, %there : (!i, !i) -> !b
  %low = train.constant dense<0xFF800000> : !f
  %open = train.constant dense<0.0> : !f
  %m = train.select %p, %low, %open : !b, !f
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// Numbers that are added to both sides stay apart in sums that are known to be small.
// CHECK-LABEL: func @offsets(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @offsets(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %zero = train.constant dense<0> : !d
  %begins = train.compare eq, %tok, %zero : (!d, !d) -> !db
  %steps = train.convert %begins : (!db) -> !d
  %from = train.iota {dim = 0 : i64} : !t
  %to = train.iota {dim = 1 : i64} : !t
  %tri = train.compare le, %from, %to : (!t, !t) -> !tb
  %takes = train.broadcast %tri {broadcast_dimensions = array<i64: 1, 2>} : (!tb) -> !sb
  %terms = train.broadcast %steps {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !s
  %none = train.constant dense<0> : !s
  %sel = train.select %takes, %terms, %none : !sb, !s
  %ids = train.reduce sum, %sel {dimensions = array<i64: 1>} : (!s) -> !d
  %seven = train.constant dense<7> : !d
  %more = train.add %ids, %seven : !d
  %there = train.broadcast %more {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %more {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: in ids of an input they may wrap.
// CHECK-LABEL: func @offsets_of_input(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @offsets_of_input(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %seven = train.constant dense<7> : !d
  %more = train.add %ids, %seven : !d
  %there = train.broadcast %more {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %more {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: ids of keys are not those of queries.
// CHECK-LABEL: func @two_vectors(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @two_vectors(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}, %others: !d {train.dims = #train.dims<[sample, position]>, train.name = "others", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %others {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: each head has documents of its own.
// CHECK-LABEL: func @heads(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @heads(%q: !xh, %k: !xh, %v: !xh, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !xh {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 1, 2>} : (!d) -> !h
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 1, 3>} : (!d) -> !h
  %m = train.compare eq, %here, %there : (!h, !h) -> !hb
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!xh, !xh, !xh, !hb) -> (!xh, !lh)
  return %o : !xh
}

// Not applied: a head's queries are compared with a sample's keys.
// CHECK-LABEL: func @sample_and_head(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @sample_and_head(%q: !xg, %k: !xg, %v: !xg, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !xg {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 1, 2>} : (!d) -> !g
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !g
  %m = train.compare eq, %here, %there : (!g, !g) -> !gb
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!xg, !xg, !xg, !gb) -> (!xg, !lg)
  return %o : !xg
}

// Beside keys that are the same for all queries, and known.
// CHECK-LABEL: func @one_row(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {density = 0.66666666666666663 : f64,
func.func @one_row(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %c1 = train.iota {dim = 3 : i64} : !one
  %five = train.constant dense<5> : !one
  %first = train.constant dense<1> : !one
  %before = train.compare lt, %c1, %five : (!one, !one) -> !oneb
  %behind = train.compare ge, %c1, %first : (!one, !one) -> !oneb
  %row = train.mul %before, %behind : !oneb
  %p = train.broadcast %row {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (!oneb) -> !b
  %m = train.mul %same, %p : !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Two kinds of documents, one of them the same in all samples.
// CHECK-LABEL: func @two_kinds(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @two_kinds(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}, %chunks: !d1 {train.dims = #train.dims<[position]>, train.name = "chunks", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %t2 = train.broadcast %chunks {broadcast_dimensions = array<i64: 2>} : (!d1) -> !i
  %h2 = train.broadcast %chunks {broadcast_dimensions = array<i64: 3>} : (!d1) -> !i
  %p = train.compare eq, %h2, %t2 : (!i, !i) -> !b
  %m = train.mul %same, %p : !b
  // expected-remark@+2 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'chunks'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: beside keys that are no range.
// CHECK-LABEL: func @no_range(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @no_range(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %c1 = train.iota {dim = 3 : i64} : !i
  %four = train.constant dense<4> : !i
  %p = train.compare ne, %c1, %four : (!i, !i) -> !b
  %m = train.mul %same, %p : !b
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: another condition of the mask is not a range of keys that is known at compile time}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Sums of what is before a token, both ways.
// CHECK-LABEL: func @exclusive(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @exclusive(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %zero = train.constant dense<0> : !d
  %begins = train.compare eq, %tok, %zero : (!d, !d) -> !db
  %steps = train.convert %begins : (!db) -> !d
  %from = train.iota {dim = 0 : i64} : !t
  %to = train.iota {dim = 1 : i64} : !t
  %tri = train.compare lt, %from, %to : (!t, !t) -> !tb
  %takes = train.broadcast %tri {broadcast_dimensions = array<i64: 1, 2>} : (!tb) -> !sb
  %terms = train.broadcast %steps {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !s
  %none = train.constant dense<0> : !s
  %sel = train.select %takes, %terms, %none : !sb, !s
  %ids = train.reduce sum, %sel {dimensions = array<i64: 1>} : (!s) -> !d
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Sums from a token on.
// CHECK-LABEL: func @from_here(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @from_here(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %zero = train.constant dense<0> : !d
  %begins = train.compare eq, %tok, %zero : (!d, !d) -> !db
  %steps = train.convert %begins : (!db) -> !d
  %from = train.iota {dim = 1 : i64} : !t
  %to = train.iota {dim = 0 : i64} : !t
  %tri = train.compare le, %from, %to : (!t, !t) -> !tb
  %takes = train.broadcast %tri {broadcast_dimensions = array<i64: 1, 2>} : (!tb) -> !sb
  %terms = train.broadcast %steps {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !s
  %none = train.constant dense<0> : !s
  %sel = train.select %takes, %terms, %none : !sb, !s
  %ids = train.reduce sum, %sel {dimensions = array<i64: 1>} : (!s) -> !d
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Sums of what is behind a token.
// CHECK-LABEL: func @behind(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @behind(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %zero = train.constant dense<0> : !d
  %begins = train.compare eq, %tok, %zero : (!d, !d) -> !db
  %steps = train.convert %begins : (!db) -> !d
  %from = train.iota {dim = 1 : i64} : !t
  %to = train.iota {dim = 0 : i64} : !t
  %tri = train.compare lt, %from, %to : (!t, !t) -> !tb
  %takes = train.broadcast %tri {broadcast_dimensions = array<i64: 1, 2>} : (!tb) -> !sb
  %terms = train.broadcast %steps {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !s
  %none = train.constant dense<0> : !s
  %sel = train.select %takes, %terms, %none : !sb, !s
  %ids = train.reduce sum, %sel {dimensions = array<i64: 1>} : (!s) -> !d
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Steps that are numbers: a document begins where they are not 0.
// CHECK-LABEL: func @numbers(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @numbers(%q: !x, %k: !x, %v: !x, %tok: !d) -> !x {
  %zero = train.constant dense<0> : !d
  %begins = train.compare eq, %tok, %zero : (!d, !d) -> !db
  %two = train.constant dense<2> : !d
  %steps = train.select %begins, %two, %zero : !db, !d
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
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}
