// The conditions that an added mask is made of, and those that are seen through changes of shape.
// RUN: tessera-opt %s --recognize-attention --canonicalize --cse --verify-diagnostics -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=1e-6 --quiet

!x = tensor<2x1x6x2xf32>
!l = tensor<2x1x6xf32>
!d = tensor<2x6xi64>
!i = tensor<2x1x6x6xi64>
!b = tensor<2x1x6x6xi1>
!f = tensor<2x1x6x6xf32>
!s = tensor<2x6x6xi64>
!sb = tensor<2x6x6xi1>
!j = tensor<12x6xi1>
!k64 = tensor<2x6x1x6xi64>
!k1 = tensor<2x6x1x6xi1>
!col = tensor<2x1x6x1xi64>
!rowt = tensor<2x1x1x6xi64>
!w = tensor<2x6x1x6xi1>
!w64 = tensor<2x6x1x6xi64>

// What is added: 0, and minus infinity.
// CHECK-LABEL: func @added(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @added(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %open = train.constant dense<0.0> : !f
  %low = train.constant dense<0xFF800000> : !f
  %m = train.select %same, %open, %low : !b, !f
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// The other way round.
// CHECK-LABEL: func @added_hidden(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @added_hidden(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %differ = train.compare ne, %here, %there : (!i, !i) -> !b
  %open = train.constant dense<0.0> : !f
  %low = train.constant dense<0xFF800000> : !f
  %m = train.select %differ, %low, %open : !b, !f
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// Two that are added.
// CHECK-LABEL: func @sum(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @sum(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare le, %c, %r : (!i, !i) -> !b
  %open = train.constant dense<0.0> : !f
  %low = train.constant dense<0xFF800000> : !f
  %m1 = train.select %same, %open, %low : !b, !f
  %m2 = train.select %order, %open, %low : !b, !f
  %m = train.add %m1, %m2 : !f
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// A large number times what is left of 1, and times what is hidden.
// CHECK-LABEL: func @times(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @times(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %later = train.compare gt, %c, %r : (!i, !i) -> !b
  %one = train.constant dense<1.0> : !f
  %s1 = train.convert %same : (!b) -> !f
  %rest = train.sub %one, %s1 : !f
  %low = train.constant dense<-1.0e9> : !f
  %m1 = train.mul %rest, %low : !f
  %l1 = train.convert %later : (!b) -> !f
  %m2 = train.mul %low, %l1 : !f
  %m = train.add %m1, %m2 : !f
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// Divided by a small one.
// CHECK-LABEL: func @divided(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @divided(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %differ = train.compare ne, %here, %there : (!i, !i) -> !b
  %d1 = train.convert %differ : (!b) -> !f
  %small = train.constant dense<-1.0e-9> : !f
  %m = train.div %d1, %small : !f
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// Not applied: a number that does not hide.
// CHECK-LABEL: func @small(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @small(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %differ = train.compare ne, %here, %there : (!i, !i) -> !b
  %d1 = train.convert %differ : (!b) -> !f
  %small = train.constant dense<-100.0> : !f
  %m = train.mul %d1, %small : !f
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// Not applied: what is hidden is shown.
// CHECK-LABEL: func @shown(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @shown(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %open = train.constant dense<0.0> : !f
  %low = train.constant dense<0xFF800000> : !f
  %m = train.select %same, %low, %open : !b, !f
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// Keys before the query: where there is none the result is 0 if minus infinity hides them.
// CHECK-LABEL: func @strict(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {density = 0.41666666666666669 : f64,
func.func @strict(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare lt, %c, %r : (!i, !i) -> !b
  %p = train.mul %same, %order : !b
  %open = train.constant dense<0.0> : !f
  %low = train.constant dense<0xFF800000> : !f
  %m = train.select %p, %open, %low : !b, !f
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// Not applied: a number that is not infinite still counts there.
// CHECK-LABEL: func @strict_finite(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @strict_finite(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare lt, %c, %r : (!i, !i) -> !b
  %p = train.mul %same, %order : !b
  %open = train.constant dense<0.0> : !f
  %low = train.constant dense<-1.0e9> : !f
  %m = train.select %p, %open, %low : !b, !f
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// CHECK-LABEL: func @strict_times(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @strict_times(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare lt, %c, %r : (!i, !i) -> !b
  %p = train.mul %same, %order : !b
  %one = train.constant dense<1.0> : !f
  %p1 = train.convert %p : (!b) -> !f
  %rest = train.sub %one, %p1 : !f
  %low = train.constant dense<-1.0e9> : !f
  %m = train.mul %rest, %low : !f
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// Transposed: queries and keys keep their dimensions.
// CHECK-LABEL: func @views(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @views(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !k64
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !k64
  %turned = train.compare eq, %here, %there : (!k64, !k64) -> !k1
  %same = train.transpose %turned {permutation = array<i64: 0, 2, 3, 1>} : (!k1) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare le, %c, %r : (!i, !i) -> !b
  %m = train.mul %same, %order : !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: an order whose rows are keys.
// CHECK-LABEL: func @transposed(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @transposed(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare le, %c, %r : (!i, !i) -> !b
  %turned = train.transpose %order {permutation = array<i64: 0, 1, 3, 2>} : (!b) -> !b
  %m = train.mul %same, %turned : !b
  // expected-remark@+2 {{documents are masked for all pairs of queries and keys: another condition of the mask is not a range of keys that is known at compile time}}
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Columns and rows of ids.
// CHECK-LABEL: func @columns(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @columns(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %column = train.reshape %ids : (!d) -> !col
  %line = train.reshape %ids : (!d) -> !rowt
  %there = train.broadcast %column {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (!col) -> !i
  %here = train.broadcast %line {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (!rowt) -> !i
  %m = train.compare eq, %here, %there : (!i, !i) -> !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// A size of 1 that comes elsewhere.
// CHECK-LABEL: func @reshaped(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @reshaped(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !w64
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !w64
  %same = train.compare eq, %here, %there : (!w64, !w64) -> !w
  %m = train.reshape %same : (!w) -> !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: sizes that are joined on the way.
// CHECK-LABEL: func @joined(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @joined(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 1>} : (!d) -> !s
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !s
  %same = train.compare eq, %here, %there : (!s, !s) -> !sb
  %rows = train.reshape %same : (!sb) -> !j
  %m = train.reshape %rows : (!j) -> !b
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}
