// Rows of masks as pieces that are constant or ascend evenly: what comparisons, sums, products and maxima make of them is exact, or
// the mask stays one.
// RUN: tessera-opt %s --recognize-attention --canonicalize --cse -o %t 2> /dev/null
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=1e-6 --quiet

!x = tensor<1x1x6x2xf32>
!l = tensor<1x1x6xf32>
!i = tensor<1x1x6x6xi64>
!f = tensor<1x1x6x6xf32>
!b = tensor<1x1x6x6xi1>
!i8 = tensor<1x1x6x6xi8>
!bf = tensor<1x1x6x6xbf16>

// One key: an ascent meets a number once.
// CHECK-LABEL: func @equal(
// CHECK: train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64, window = 1 : i64}
func.func @equal(%q: !x, %k: !x, %v: !x) -> !x {
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %m = train.compare eq, %c, %r : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: keys on both sides of one that is hidden.
// CHECK-LABEL: func @not_equal(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @not_equal(%q: !x, %k: !x, %v: !x) -> !x {
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %m = train.compare ne, %c, %r : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// None for the first query.
// CHECK-LABEL: func @less(
// CHECK-DAG: %[[BEGIN:.*]] = train.constant dense<0> :
// CHECK-DAG: %[[END:.*]] = train.constant dense<{{\[\[}}0, 1, 2, 3, 4, 5]]> :
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[BEGIN]] to %[[END]]) {density = 0.41666666666666669 : f64,
func.func @less(%q: !x, %k: !x, %v: !x) -> !x {
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %m = train.compare lt, %c, %r : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// CHECK-LABEL: func @greater_or_equal(
// CHECK-DAG: %[[BEGIN:.*]] = train.constant dense<{{\[\[}}0, 1, 2, 3, 4, 5]]> :
// CHECK-DAG: %[[END:.*]] = train.constant dense<6> :
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[BEGIN]] to %[[END]]) {density = 0.58333333333333337 : f64,
func.func @greater_or_equal(%q: !x, %k: !x, %v: !x) -> !x {
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %m = train.compare ge, %c, %r : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// An ascent that falls.
// CHECK-LABEL: func @falling(
// CHECK-DAG: %[[BEGIN:.*]] = train.constant dense<0> :
// CHECK-DAG: %[[END:.*]] = train.constant dense<{{\[\[}}5, 4, 3, 2, 1, 0]]> :
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[BEGIN]] to %[[END]]) {density = 0.41666666666666669 : f64,
func.func @falling(%q: !x, %k: !x, %v: !x) -> !x {
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %five = train.constant dense<5> : !i
  %d = train.sub %five, %c : !i
  %m = train.compare gt, %d, %r : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// The difference is 0 nowhere: 2 c and 2 r + 1.
// CHECK-LABEL: func @between(
// CHECK: train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64}
func.func @between(%q: !x, %k: !x, %v: !x) -> !x {
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %two = train.constant dense<2> : !i
  %one = train.constant dense<1> : !i
  %c2 = train.mul %c, %two : !i
  %r2 = train.mul %r, %two : !i
  %odd = train.add %r2, %one : !i
  %m = train.compare lt, %c2, %odd : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Two ascents of one slope: no key is one more than itself.
// CHECK-LABEL: func @parallel(
// CHECK-DAG: %[[BEGIN:.*]] = train.constant dense<0> :
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[BEGIN]] to %[[BEGIN]]) {density = 0.000000e+00 : f64,
func.func @parallel(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %one = train.constant dense<1> : !i
  %n = train.add %c, %one : !i
  %m = train.compare le, %n, %c : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// All is below infinity.
// CHECK-LABEL: func @infinite(
// CHECK: train.attention %arg0, %arg1, %arg2 {scale = 5.000000e-01 : f64}
func.func @infinite(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %inf = train.constant dense<0x7F800000> : !f
  %cf = train.convert %c : (!i) -> !f
  %m = train.compare lt, %cf, %inf : (!f, !f) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// No number is unequal to all, and neither below nor above.
// CHECK-LABEL: func @no_number(
// CHECK: train.attention %arg0, %arg1, %arg2 {scale = 5.000000e-01 : f64}
func.func @no_number(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %nan = train.constant dense<0x7FC00000> : !f
  %cf = train.convert %c : (!i) -> !f
  %m = train.compare ne, %cf, %nan : (!f, !f) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// CHECK-LABEL: func @no_number_below(
// CHECK-DAG: %[[BEGIN:.*]] = train.constant dense<0> :
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[BEGIN]] to %[[BEGIN]]) {density = 0.000000e+00 : f64,
func.func @no_number_below(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %nan = train.constant dense<0x7FC00000> : !f
  %cf = train.convert %c : (!i) -> !f
  %m = train.compare le, %cf, %nan : (!f, !f) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Rows whose pieces end at different places: 3 3 3 3 1 1 without 2 2 2 0 0 0.
// CHECK-LABEL: func @pieces(
// CHECK-DAG: %[[BEGIN:.*]] = train.constant dense<3> :
// CHECK-DAG: %[[END:.*]] = train.constant dense<4> :
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[BEGIN]] to %[[END]]) {density = 0.16666666666666666 : f64,
func.func @pieces(%q: !x, %k: !x, %v: !x) -> !x {
  %a = train.constant dense<[[[[2, 2, 2, 0, 0, 0]]]]> : tensor<1x1x1x6xi64>
  %d = train.constant dense<[[[[3, 3, 3, 3, 1, 1]]]]> : tensor<1x1x1x6xi64>
  %aw = train.broadcast %a {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x1x6xi64>) -> !i
  %dw = train.broadcast %d {broadcast_dimensions = array<i64: 0, 1, 2, 3>} : (tensor<1x1x1x6xi64>) -> !i
  %s = train.sub %dw, %aw : !i
  %one = train.constant dense<1> : !i
  %m = train.compare gt, %s, %one : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// The larger of an ascent and a number, on either side of where they meet.
// CHECK-LABEL: func @larger(
// CHECK: train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64}
func.func @larger(%q: !x, %k: !x, %v: !x) -> !x {
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %x = train.max %c, %r : !i
  %m = train.compare le, %x, %r : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// CHECK-LABEL: func @larger_than_both(
// CHECK-DAG: %[[BEGIN:.*]] = train.constant dense<4> :
// CHECK-DAG: %[[END:.*]] = train.constant dense<6> :
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[BEGIN]] to %[[END]]) {density = 0.33333333333333331 : f64,
func.func @larger_than_both(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %three = train.constant dense<3> : !i
  %x = train.max %c, %three : !i
  %m = train.compare gt, %x, %three : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Two numbers are two pieces: -20000 and 0 are no ascent, which an added mask could not be.
// CHECK-LABEL: func @two_numbers(
// CHECK-DAG: %[[BEGIN:.*]] = train.constant dense<1> :
// CHECK-DAG: %[[END:.*]] = train.constant dense<6> :
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[BEGIN]] to %[[END]]) {density = 0.83333333333333337 : f64,
func.func @two_numbers(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %one = train.constant dense<1> : !i
  %two = train.constant dense<2> : !i
  %step = train.constant dense<20000> : !i
  %zero = train.constant dense<0> : !i
  %d = train.sub %c, %one : !i
  %e = train.mul %d, %step : !i
  %p = train.compare lt, %c, %two : (!i, !i) -> !b
  %s = train.select %p, %e, %zero : !b, !i
  %m = train.convert %s : (!i) -> !f
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// Not applied: three numbers are.
// CHECK-LABEL: func @three_numbers(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @three_numbers(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %two = train.constant dense<2> : !i
  %step = train.constant dense<20000> : !i
  %d = train.sub %c, %two : !i
  %e = train.mul %d, %step : !i
  %three = train.constant dense<3> : !i
  %zero = train.constant dense<0> : !i
  %p = train.compare lt, %c, %three : (!i, !i) -> !b
  %s = train.select %p, %e, %zero : !b, !i
  %m = train.convert %s : (!i) -> !f
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !f) -> (!x, !l)
  return %o : !x
}

// CHECK-LABEL: func @negated(
// CHECK: train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64}
func.func @negated(%q: !x, %k: !x, %v: !x) -> !x {
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %cn = train.neg %c : !i
  %rn = train.neg %r : !i
  %m = train.compare ge, %cn, %rn : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// One number is rounded to its type: 256 + 1 is 256.
// CHECK-LABEL: func @rounded(
// CHECK: train.attention %arg0, %arg1, %arg2 {scale = 5.000000e-01 : f64}
func.func @rounded(%q: !x, %k: !x, %v: !x) -> !x {
  %n = train.constant dense<256.0> : !bf
  %one = train.constant dense<1.0> : !bf
  %s = train.add %n, %one : !bf
  %m = train.compare le, %s, %n : (!bf, !bf) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: squares ascend in no even steps.
// CHECK-LABEL: func @squares(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @squares(%q: !x, %k: !x, %v: !x) -> !x {
  %r = train.iota {dim = 2 : i64} : !i
  %c = train.iota {dim = 3 : i64} : !i
  %s = train.mul %c, %c : !i
  %m = train.compare le, %s, %r : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: nor do halves, by whole numbers.
// CHECK-LABEL: func @halves(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @halves(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %cf = train.convert %c : (!i) -> !f
  %half = train.constant dense<0.5> : !f
  %s = train.mul %cf, %half : !f
  %one = train.constant dense<1.0> : !f
  %m = train.compare le, %s, %one : (!f, !f) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: an ascent of nothing finite.
// CHECK-LABEL: func @ascent_of_infinity(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @ascent_of_infinity(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %inf = train.constant dense<0x7F800000> : !f
  %cf = train.convert %c : (!i) -> !f
  %s = train.add %cf, %inf : !f
  %m = train.compare gt, %s, %cf : (!f, !f) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: 125 and more ascend to -128 in i8.
// CHECK-LABEL: func @wrapping(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @wrapping(%q: !x, %k: !x, %v: !x) -> !x {
  %s = train.iota {dim = 3 : i64} : !i8
  %n = train.constant dense<125> : !i8
  %t = train.add %s, %n : !i8
  %zero = train.constant dense<0> : !i8
  %m = train.compare gt, %t, %zero : (!i8, !i8) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: the same, converted.
// CHECK-LABEL: func @wrapping_convert(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @wrapping_convert(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %n = train.constant dense<125> : !i
  %t = train.add %c, %n : !i
  %s = train.convert %t : (!i) -> !i8
  %zero = train.constant dense<0> : !i8
  %m = train.compare gt, %s, %zero : (!i8, !i8) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: the least number is its own negative.
// CHECK-LABEL: func @wrapping_negation(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @wrapping_negation(%q: !x, %k: !x, %v: !x) -> !x {
  %n = train.constant dense<-128> : !i8
  %t = train.neg %n : !i8
  %zero = train.constant dense<0> : !i8
  %m = train.compare gt, %t, %zero : (!i8, !i8) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: bf16 has no 257, so 256 and more do not ascend evenly.
// CHECK-LABEL: func @rounded_ascent(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @rounded_ascent(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %cb = train.convert %c : (!i) -> !bf
  %n = train.constant dense<256.0> : !bf
  %s = train.add %cb, %n : !bf
  %m = train.compare gt, %s, %n : (!bf, !bf) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: the same, converted, though the first and the last number are exact.
// CHECK-LABEL: func @rounded_convert(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @rounded_convert(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %n = train.constant dense<255> : !i
  %t = train.add %c, %n : !i
  %s = train.convert %t : (!i) -> !bf
  %m0 = train.constant dense<256.0> : !bf
  %m = train.compare gt, %s, %m0 : (!bf, !bf) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}

// Not applied: whole numbers beyond 2^53 are no longer told apart.
// CHECK-LABEL: func @too_large(
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @too_large(%q: !x, %k: !x, %v: !x) -> !x {
  %c = train.iota {dim = 3 : i64} : !i
  %n = train.constant dense<9007199254740992> : !i
  %t = train.add %c, %n : !i
  %m = train.compare gt, %t, %n : (!i, !i) -> !b
  %o, %l = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (!x, !x, !x, !b) -> (!x, !l)
  return %o : !x
}
