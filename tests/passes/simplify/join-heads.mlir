// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(join-heads,canonicalize,cse))' | FileCheck %s
// No diagnostic: queries and keys that have nothing in common are the usual case.

// Rotary positions of four heads of queries and two of keys, which lie side by side in one product, as do the values: what
// is computed has the shape of what it is computed of, and can take its place.
// CHECK-LABEL: func @rotary
// CHECK: %[[X:.*]] = train.reshape %arg0 : (tensor<2x5x64xf32>) -> tensor<2x5x8x8xf32>
// CHECK: %[[H:.*]] = train.slice %[[X]] {limits = array<i64: 2, 5, 6, 8>, starts = array<i64: 0, 0, 0, 0>
// CHECK: %[[T:.*]] = train.transpose %[[H]] {{.*}} -> tensor<2x6x5x8xf32>
// CHECK: train.neg {{.*}} : tensor<2x6x5x4xf32>
// CHECK-NOT: train.neg
// CHECK: %[[R:.*]] = train.add {{.*}} : tensor<2x6x5x8xf32>
// CHECK-DAG: %[[V:.*]] = train.slice %[[X]] {limits = array<i64: 2, 5, 8, 8>, starts = array<i64: 0, 0, 6, 0>
// CHECK-DAG: %[[RT:.*]] = train.transpose %[[R]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK: %[[C:.*]] = train.concat %[[RT]], %[[V]] {dim = 2 : i64} : {{.*}} -> tensor<2x5x8x8xf32>
// CHECK: %[[A:.*]] = train.transpose %[[C]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK: %[[Q:.*]] = train.slice %[[A]] {limits = array<i64: 2, 4, 5, 8>, starts = array<i64: 0, 0, 0, 0>
// CHECK: %[[K:.*]] = train.slice %[[A]] {limits = array<i64: 2, 6, 5, 8>, starts = array<i64: 0, 4, 0, 0>
// CHECK: %[[W:.*]] = train.slice %[[A]] {limits = array<i64: 2, 8, 5, 8>, starts = array<i64: 0, 6, 0, 0>
// CHECK: train.attention %[[Q]], %[[K]], %[[W]]
func.func @rotary(%x: tensor<2x5x64xf32>, %cos: tensor<5x8xf32>, %sin: tensor<5x8xf32>) -> tensor<2x4x5x8xf32> {
  %xq = train.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 5, 32>, strides = array<i64: 1, 1, 1>} : (tensor<2x5x64xf32>) -> tensor<2x5x32xf32>
  %xk = train.slice %x {starts = array<i64: 0, 0, 32>, limits = array<i64: 2, 5, 48>, strides = array<i64: 1, 1, 1>} : (tensor<2x5x64xf32>) -> tensor<2x5x16xf32>
  %xv = train.slice %x {starts = array<i64: 0, 0, 48>, limits = array<i64: 2, 5, 64>, strides = array<i64: 1, 1, 1>} : (tensor<2x5x64xf32>) -> tensor<2x5x16xf32>
  %hq = train.reshape %xq : (tensor<2x5x32xf32>) -> tensor<2x5x4x8xf32>
  %hk = train.reshape %xk : (tensor<2x5x16xf32>) -> tensor<2x5x2x8xf32>
  %hv = train.reshape %xv : (tensor<2x5x16xf32>) -> tensor<2x5x2x8xf32>
  %tq = train.transpose %hq {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x5x4x8xf32>) -> tensor<2x4x5x8xf32>
  %tk = train.transpose %hk {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x5x2x8xf32>) -> tensor<2x2x5x8xf32>
  %tv = train.transpose %hv {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x5x2x8xf32>) -> tensor<2x2x5x8xf32>
  %q1 = train.slice %tq {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 4, 5, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x4xf32>
  %q2 = train.slice %tq {starts = array<i64: 0, 0, 0, 4>, limits = array<i64: 2, 4, 5, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x4x5x8xf32>) -> tensor<2x4x5x4xf32>
  %nq = train.neg %q2 : tensor<2x4x5x4xf32>
  %cq = train.concat %nq, %q1 {dim = 3 : i64} : (tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>) -> tensor<2x4x5x8xf32>
  %cosq = train.broadcast %cos {broadcast_dimensions = array<i64: 2, 3>} : (tensor<5x8xf32>) -> tensor<2x4x5x8xf32>
  %sinq = train.broadcast %sin {broadcast_dimensions = array<i64: 2, 3>} : (tensor<5x8xf32>) -> tensor<2x4x5x8xf32>
  %aq = train.mul %tq, %cosq : tensor<2x4x5x8xf32>
  %bq = train.mul %cq, %sinq : tensor<2x4x5x8xf32>
  %q = train.add %aq, %bq : tensor<2x4x5x8xf32>
  %k1 = train.slice %tk {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 2, 5, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x5x8xf32>) -> tensor<2x2x5x4xf32>
  %k2 = train.slice %tk {starts = array<i64: 0, 0, 0, 4>, limits = array<i64: 2, 2, 5, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x5x8xf32>) -> tensor<2x2x5x4xf32>
  %nk = train.neg %k2 : tensor<2x2x5x4xf32>
  %ck = train.concat %nk, %k1 {dim = 3 : i64} : (tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>) -> tensor<2x2x5x8xf32>
  %cosk = train.broadcast %cos {broadcast_dimensions = array<i64: 2, 3>} : (tensor<5x8xf32>) -> tensor<2x2x5x8xf32>
  %sink = train.broadcast %sin {broadcast_dimensions = array<i64: 2, 3>} : (tensor<5x8xf32>) -> tensor<2x2x5x8xf32>
  %ak = train.mul %tk, %cosk : tensor<2x2x5x8xf32>
  %bk = train.mul %ck, %sink : tensor<2x2x5x8xf32>
  %k = train.add %ak, %bk : tensor<2x2x5x8xf32>
  %y, %lse = train.attention %q, %k, %tv {causal, scale = 0.5} : (tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x4x5xf32>)
  return %y : tensor<2x4x5x8xf32>
}

// Factors that differ along the heads, another function of the keys, and a value with another reader.
// CHECK-LABEL: func @other_factors
// CHECK: train.mul {{.*}} : tensor<1x4x5x8xf32>
// CHECK: train.mul {{.*}} : tensor<1x2x5x8xf32>
func.func @other_factors(%x: tensor<1x6x5x8xf32>, %v: tensor<1x2x5x8xf32>, %f: tensor<4xf32>, %g: tensor<2xf32>) -> tensor<1x4x5x8xf32> {
  %xq = train.slice %x {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 1, 4, 5, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x5x8xf32>) -> tensor<1x4x5x8xf32>
  %xk = train.slice %x {starts = array<i64: 0, 4, 0, 0>, limits = array<i64: 1, 6, 5, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x5x8xf32>) -> tensor<1x2x5x8xf32>
  %bf = train.broadcast %f {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<1x4x5x8xf32>
  %bg = train.broadcast %g {broadcast_dimensions = array<i64: 1>} : (tensor<2xf32>) -> tensor<1x2x5x8xf32>
  %q = train.mul %xq, %bf : tensor<1x4x5x8xf32>
  %k = train.mul %xk, %bg : tensor<1x2x5x8xf32>
  %y, %lse = train.attention %q, %k, %v {scale = 0.5} : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  return %y : tensor<1x4x5x8xf32>
}

// CHECK-LABEL: func @other_function
// CHECK: train.neg {{.*}} : tensor<1x4x5x8xf32>
// CHECK: train.exp {{.*}} : tensor<1x2x5x8xf32>
func.func @other_function(%x: tensor<1x6x5x8xf32>, %v: tensor<1x2x5x8xf32>) -> tensor<1x4x5x8xf32> {
  %xq = train.slice %x {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 1, 4, 5, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x5x8xf32>) -> tensor<1x4x5x8xf32>
  %xk = train.slice %x {starts = array<i64: 0, 4, 0, 0>, limits = array<i64: 1, 6, 5, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x5x8xf32>) -> tensor<1x2x5x8xf32>
  %q = train.neg %xq : tensor<1x4x5x8xf32>
  %k = train.exp %xk : tensor<1x2x5x8xf32>
  %y, %lse = train.attention %q, %k, %v {scale = 0.5} : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  return %y : tensor<1x4x5x8xf32>
}

// CHECK-LABEL: func @other_reader
// CHECK: train.neg {{.*}} : tensor<1x4x5x8xf32>
// CHECK: train.neg {{.*}} : tensor<1x2x5x8xf32>
func.func @other_reader(%x: tensor<1x6x5x8xf32>, %v: tensor<1x2x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>) {
  %xq = train.slice %x {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 1, 4, 5, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x5x8xf32>) -> tensor<1x4x5x8xf32>
  %xk = train.slice %x {starts = array<i64: 0, 4, 0, 0>, limits = array<i64: 1, 6, 5, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x5x8xf32>) -> tensor<1x2x5x8xf32>
  %q = train.neg %xq : tensor<1x4x5x8xf32>
  %k = train.neg %xk : tensor<1x2x5x8xf32>
  %y, %lse = train.attention %q, %k, %v {scale = 0.5} : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  return %y, %k : tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>
}

// Keys that lie before the queries, scaled by a constant.
// CHECK-LABEL: func @keys_first
// CHECK: %[[S:.*]] = train.mul %arg0, {{.*}} : tensor<1x6x5x8xf32>
// CHECK-DAG: %[[Q:.*]] = train.slice %[[S]] {limits = array<i64: 1, 6, 5, 8>, starts = array<i64: 0, 2, 0, 0>
// CHECK-DAG: %[[K:.*]] = train.slice %[[S]] {limits = array<i64: 1, 2, 5, 8>, starts = array<i64: 0, 0, 0, 0>
// CHECK: train.attention %[[Q]], %[[K]],
func.func @keys_first(%x: tensor<1x6x5x8xf32>, %v: tensor<1x2x5x8xf32>) -> tensor<1x4x5x8xf32> {
  %xk = train.slice %x {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 1, 2, 5, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x5x8xf32>) -> tensor<1x2x5x8xf32>
  %xq = train.slice %x {starts = array<i64: 0, 2, 0, 0>, limits = array<i64: 1, 6, 5, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x5x8xf32>) -> tensor<1x4x5x8xf32>
  %tq = train.constant dense<2.0> : tensor<1x4x5x8xf32>
  %tk = train.constant dense<2.0> : tensor<1x2x5x8xf32>
  %q = train.mul %xq, %tq : tensor<1x4x5x8xf32>
  %k = train.mul %xk, %tk : tensor<1x2x5x8xf32>
  %y, %lse = train.attention %q, %k, %v {scale = 0.5} : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  return %y : tensor<1x4x5x8xf32>
}

// Every other element of a row is no part of a view of memory: what is joined stays a slice of its own.
// CHECK-LABEL: func @every_other
// CHECK-DAG: train.slice {{.*}}starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 2>
// CHECK-DAG: train.slice {{.*}}starts = array<i64: 0, 0, 0, 1>, strides = array<i64: 1, 1, 1, 2>
// CHECK: train.attention
func.func @every_other(%x: tensor<4x4x32xf32>, %v: tensor<4x2x4x8xf32>) -> tensor<4x2x4x8xf32> {
  %xq = train.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 4, 4, 16>, strides = array<i64: 1, 1, 1>} : (tensor<4x4x32xf32>) -> tensor<4x4x16xf32>
  %xk = train.slice %x {starts = array<i64: 0, 0, 16>, limits = array<i64: 4, 4, 32>, strides = array<i64: 1, 1, 1>} : (tensor<4x4x32xf32>) -> tensor<4x4x16xf32>
  %hq = train.reshape %xq : (tensor<4x4x16xf32>) -> tensor<4x4x2x8xf32>
  %hk = train.reshape %xk : (tensor<4x4x16xf32>) -> tensor<4x4x2x8xf32>
  %tq = train.transpose %hq {permutation = array<i64: 0, 2, 1, 3>} : (tensor<4x4x2x8xf32>) -> tensor<4x2x4x8xf32>
  %tk = train.transpose %hk {permutation = array<i64: 0, 2, 1, 3>} : (tensor<4x4x2x8xf32>) -> tensor<4x2x4x8xf32>
  %evenq = train.slice %tq {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 4, 2, 4, 8>, strides = array<i64: 1, 1, 1, 2>} : (tensor<4x2x4x8xf32>) -> tensor<4x2x4x4xf32>
  %evenk = train.slice %tk {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 4, 2, 4, 8>, strides = array<i64: 1, 1, 1, 2>} : (tensor<4x2x4x8xf32>) -> tensor<4x2x4x4xf32>
  %oddq = train.slice %tq {starts = array<i64: 0, 0, 0, 1>, limits = array<i64: 4, 2, 4, 8>, strides = array<i64: 1, 1, 1, 2>} : (tensor<4x2x4x8xf32>) -> tensor<4x2x4x4xf32>
  %oddk = train.slice %tk {starts = array<i64: 0, 0, 0, 1>, limits = array<i64: 4, 2, 4, 8>, strides = array<i64: 1, 1, 1, 2>} : (tensor<4x2x4x8xf32>) -> tensor<4x2x4x4xf32>
  %nq = train.neg %oddq : tensor<4x2x4x4xf32>
  %nk = train.neg %oddk : tensor<4x2x4x4xf32>
  %eq = train.reshape %evenq : (tensor<4x2x4x4xf32>) -> tensor<4x2x4x4x1xf32>
  %ek = train.reshape %evenk : (tensor<4x2x4x4xf32>) -> tensor<4x2x4x4x1xf32>
  %oq = train.reshape %nq : (tensor<4x2x4x4xf32>) -> tensor<4x2x4x4x1xf32>
  %ok = train.reshape %nk : (tensor<4x2x4x4xf32>) -> tensor<4x2x4x4x1xf32>
  %cq = train.concat %oq, %eq {dim = 4 : i64} : (tensor<4x2x4x4x1xf32>, tensor<4x2x4x4x1xf32>) -> tensor<4x2x4x4x2xf32>
  %ck = train.concat %ok, %ek {dim = 4 : i64} : (tensor<4x2x4x4x1xf32>, tensor<4x2x4x4x1xf32>) -> tensor<4x2x4x4x2xf32>
  %q = train.reshape %cq : (tensor<4x2x4x4x2xf32>) -> tensor<4x2x4x8xf32>
  %k = train.reshape %ck : (tensor<4x2x4x4x2xf32>) -> tensor<4x2x4x8xf32>
  %y, %lse = train.attention %q, %k, %v {causal, scale = 0.5} : (tensor<4x2x4x8xf32>, tensor<4x2x4x8xf32>, tensor<4x2x4x8xf32>) -> (tensor<4x2x4x8xf32>, tensor<4x2x4xf32>)
  return %y : tensor<4x2x4x8xf32>
}
