// The conditions that a mask is made of: a document and an order of keys are found in each way to write both.
// RUN: tessera-opt %s --recognize-attention --canonicalize --cse --verify-diagnostics -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=1e-6 --quiet

!x = tensor<2x1x6x2xf32>
!l = tensor<2x1x6xf32>
!d = tensor<2x6xi64>
!i = tensor<2x1x6x6xi64>
!b = tensor<2x1x6x6xi1>
!f = tensor<2x1x6x6xf32>

// Both conditions.
// CHECK-LABEL: func @both(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @both(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare le, %c, %r : (!i, !i) -> !b
  %m = train.mul %same, %order : !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// The same, selected.
// CHECK-LABEL: func @selected(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @selected(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare le, %c, %r : (!i, !i) -> !b
  %no = train.constant dense<false> : !b
  %m = train.select %same, %order, %no : !b, !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: either.
// CHECK-LABEL: func @either(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @either(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare le, %c, %r : (!i, !i) -> !b
  %m = train.max %same, %order : !b
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: selected against another condition, and what is selected the other way.
// CHECK-LABEL: func @selected_either(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @selected_either(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare le, %c, %r : (!i, !i) -> !b
  %m = train.select %same, %order, %same : !b, !b
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// CHECK-LABEL: func @selected_otherwise(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @selected_otherwise(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare le, %c, %r : (!i, !i) -> !b
  %no = train.constant dense<false> : !b
  %m = train.select %same, %no, %order : !b, !b
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Neither of two that hide.
// CHECK-LABEL: func @neither(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @neither(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %differ = train.compare ne, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %later = train.compare gt, %c, %r : (!i, !i) -> !b
  %hide = train.max %differ, %later : !b
  %no = train.constant dense<false> : !b
  %m = train.compare eq, %hide, %no : (!b, !b) -> !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// The same, selected.
// CHECK-LABEL: func @neither_selected(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @neither_selected(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %differ = train.compare ne, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %later = train.compare gt, %c, %r : (!i, !i) -> !b
  %yes = train.constant dense<true> : !b
  %no = train.constant dense<false> : !b
  %hide = train.select %differ, %yes, %later : !b, !b
  %m = train.compare eq, %hide, %no : (!b, !b) -> !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: not both.
// CHECK-LABEL: func @not_both(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @not_both(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare le, %c, %r : (!i, !i) -> !b
  %no = train.constant dense<false> : !b
  %all = train.mul %same, %order : !b
  %m = train.compare eq, %all, %no : (!b, !b) -> !b
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Conditions as numbers that are compared with 0 or 1.
// CHECK-LABEL: func @numbers(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @numbers(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %later = train.compare gt, %c, %r : (!i, !i) -> !b
  %s1 = train.convert %same : (!b) -> !f
  %nought = train.constant dense<0.0> : !f
  %shown = train.compare ne, %s1, %nought : (!f, !f) -> !b
  %l1 = train.convert %later : (!b) -> !i
  %one = train.constant dense<1> : !i
  %up = train.compare ne, %l1, %one : (!i, !i) -> !b
  %m = train.mul %shown, %up : !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: a number that no condition is.
// CHECK-LABEL: func @other_number(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @other_number(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %s1 = train.convert %same : (!b) -> !f
  %two = train.constant dense<2.0> : !f
  %m = train.compare ne, %s1, %two : (!f, !f) -> !b
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Converted to numbers and back.
// CHECK-LABEL: func @converted(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale = 5.000000e-01 : f64}
func.func @converted(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %s1 = train.convert %same : (!b) -> !i
  %m = train.convert %s1 : (!i) -> !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// A condition behind 16 ops.
// CHECK-LABEL: func @deep(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal, scale = 5.000000e-01 : f64}
func.func @deep(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare le, %c, %r : (!i, !i) -> !b
  %m0 = train.mul %order, %same : !b
  %m1 = train.mul %order, %m0 : !b
  %m2 = train.mul %order, %m1 : !b
  %m3 = train.mul %order, %m2 : !b
  %m4 = train.mul %order, %m3 : !b
  %m5 = train.mul %order, %m4 : !b
  %m6 = train.mul %order, %m5 : !b
  %m7 = train.mul %order, %m6 : !b
  %m8 = train.mul %order, %m7 : !b
  %m9 = train.mul %order, %m8 : !b
  %m10 = train.mul %order, %m9 : !b
  %m11 = train.mul %order, %m10 : !b
  %m12 = train.mul %order, %m11 : !b
  %m13 = train.mul %order, %m12 : !b
  %m14 = train.mul %order, %m13 : !b
  %m = train.mul %order, %m14 : !b
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: behind 17.
// CHECK-LABEL: func @too_deep(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @too_deep(%q: !x, %k: !x, %v: !x, %ids: !d {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> !x {
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (!d) -> !i
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (!d) -> !i
  %same = train.compare eq, %here, %there : (!i, !i) -> !b
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %order = train.compare le, %c, %r : (!i, !i) -> !b
  %m0 = train.mul %order, %same : !b
  %m1 = train.mul %order, %m0 : !b
  %m2 = train.mul %order, %m1 : !b
  %m3 = train.mul %order, %m2 : !b
  %m4 = train.mul %order, %m3 : !b
  %m5 = train.mul %order, %m4 : !b
  %m6 = train.mul %order, %m5 : !b
  %m7 = train.mul %order, %m6 : !b
  %m8 = train.mul %order, %m7 : !b
  %m9 = train.mul %order, %m8 : !b
  %m10 = train.mul %order, %m9 : !b
  %m11 = train.mul %order, %m10 : !b
  %m12 = train.mul %order, %m11 : !b
  %m13 = train.mul %order, %m12 : !b
  %m14 = train.mul %order, %m13 : !b
  %m15 = train.mul %order, %m14 : !b
  %m = train.mul %order, %m15 : !b
  // expected-remark@+1 {{the mask stays a mask}}
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}
