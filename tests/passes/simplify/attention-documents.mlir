// Masks that compare ids of documents show a range of keys to each query, where equal ids are known to lie side by side.
// RUN: tessera-opt %s --recognize-attention --canonicalize --cse --verify-diagnostics -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=1e-6 --quiet

// The id counts the tokens that begin a document. A document begins at the last of them; the sums are gone.
// CHECK-LABEL: func @begins
// CHECK-DAG: %[[T:.*]] = train.constant dense<6> : tensor<2x6xi64>
// CHECK-DAG: %[[E:.*]] = train.compare eq, %arg3,
// CHECK: %[[P:.*]] = train.select %[[E]], %{{.*}}, %{{.*}} : tensor<2x6xi1>, tensor<2x6xi64>
// CHECK-NOT: train.reduce sum
// CHECK: %[[B:.*]] = train.reduce max, %{{.*}} {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[B]] to %[[T]]) {causal, scale = 1.000000e+00 : f64}
func.func @begins(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %3 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %4 = train.compare le, %2, %3 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %5 = train.constant dense<0> : tensor<2x6xi64>
  %6 = train.compare eq, %tok, %5 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %7 = train.convert %6 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %8 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %9 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %10 = train.compare le, %8, %9 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %11 = train.broadcast %10 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %12 = train.broadcast %7 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %13 = train.constant dense<0> : tensor<2x6x6xi64>
  %14 = train.select %11, %12, %13 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %15 = train.reduce sum, %14 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %16 = train.broadcast %15 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %17 = train.broadcast %15 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %18 = train.compare eq, %16, %17 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %19 = train.mul %4, %18 : tensor<2x6x6xi1>
  %20 = train.broadcast %19 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %21 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %22 = train.select %20, %1, %21 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  %23 = train.softmax %22 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %24 = train.dot_general %23, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %24 : tensor<2x2x6x4xf32>
}

// The token belongs to the document that it ends: the sums before it. The mask is added.
// CHECK-LABEL: func @ends
// CHECK-DAG: %[[T:.*]] = train.constant dense<6> : tensor<2x6xi64>
// CHECK-NOT: train.reduce sum
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %[[T]]) {causal, scale = 1.000000e+00 : f64}
func.func @ends(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<0> : tensor<2x6xi64>
  %2 = train.compare eq, %tok, %1 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %3 = train.convert %2 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %4 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %5 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %6 = train.compare le, %4, %5 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %7 = train.broadcast %6 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %8 = train.broadcast %3 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %9 = train.constant dense<0> : tensor<2x6x6xi64>
  %10 = train.select %7, %8, %9 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %11 = train.reduce sum, %10 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %12 = train.sub %11, %3 : tensor<2x6xi64>
  %13 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %14 = train.broadcast %12 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %15 = train.broadcast %12 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %16 = train.compare eq, %14, %15 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %17 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %18 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %19 = train.compare le, %17, %18 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %20 = train.mul %16, %19 : tensor<2x6x6xi1>
  %21 = train.constant dense<0.0> : tensor<2x6x6xf32>
  %22 = train.constant dense<-3.40282347E+38> : tensor<2x6x6xf32>
  %23 = train.select %20, %21, %22 : tensor<2x6x6xi1>, tensor<2x6x6xf32>
  %24 = train.broadcast %23 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xf32>) -> tensor<2x2x6x6xf32>
  %25 = train.add %13, %24 : tensor<2x2x6x6xf32>
  %26 = train.softmax %25 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %27 = train.dot_general %26, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %27 : tensor<2x2x6x4xf32>
}

// The same, by a 0 in front of all sums but the last.
// CHECK-LABEL: func @shifted
// CHECK-DAG: %[[T:.*]] = train.constant dense<6> : tensor<2x6xi64>
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %[[T]]) {causal, scale = 1.000000e+00 : f64}
func.func @shifted(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<0> : tensor<2x6xi64>
  %2 = train.compare eq, %tok, %1 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %3 = train.convert %2 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %4 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %5 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %6 = train.compare le, %4, %5 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %7 = train.broadcast %6 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %8 = train.broadcast %3 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %9 = train.constant dense<0> : tensor<2x6x6xi64>
  %10 = train.select %7, %8, %9 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %11 = train.reduce sum, %10 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %12 = train.constant dense<0> : tensor<2x1xi64>
  %13 = train.slice %11 {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (tensor<2x6xi64>) -> tensor<2x5xi64>
  %14 = train.concat %12, %13 {dim = 1 : i64} : (tensor<2x1xi64>, tensor<2x5xi64>) -> tensor<2x6xi64>
  %15 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %16 = train.broadcast %14 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %17 = train.broadcast %14 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %18 = train.compare eq, %16, %17 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %19 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %20 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %21 = train.compare le, %19, %20 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %22 = train.mul %18, %21 : tensor<2x6x6xi1>
  %23 = train.constant dense<0.0> : tensor<2x6x6xf32>
  %24 = train.constant dense<-3.40282347E+38> : tensor<2x6x6xf32>
  %25 = train.select %22, %23, %24 : tensor<2x6x6xi1>, tensor<2x6x6xf32>
  %26 = train.broadcast %25 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xf32>) -> tensor<2x2x6x6xf32>
  %27 = train.add %15, %26 : tensor<2x2x6x6xf32>
  %28 = train.softmax %27 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %29 = train.dot_general %28, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %29 : tensor<2x2x6x4xf32>
}

// The id counts neighbours that differ: one sum less than there are tokens.
// CHECK-LABEL: func @neighbours
// CHECK-DAG: %[[T:.*]] = train.constant dense<6> : tensor<2x6xi64>
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %[[T]]) {causal, scale = 1.000000e+00 : f64}
func.func @neighbours(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.slice %tok {starts = array<i64: 0, 1>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (tensor<2x6xi64>) -> tensor<2x5xi64>
  %2 = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (tensor<2x6xi64>) -> tensor<2x5xi64>
  %3 = train.compare ne, %1, %2 : (tensor<2x5xi64>, tensor<2x5xi64>) -> tensor<2x5xi1>
  %4 = train.convert %3 : (tensor<2x5xi1>) -> tensor<2x5xi64>
  %5 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %6 = train.constant dense<0> : tensor<2x1xi64>
  %7 = train.iota {dim = 0 : i64} : tensor<5x5xi64>
  %8 = train.iota {dim = 1 : i64} : tensor<5x5xi64>
  %9 = train.compare le, %7, %8 : (tensor<5x5xi64>, tensor<5x5xi64>) -> tensor<5x5xi1>
  %10 = train.broadcast %9 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<5x5xi1>) -> tensor<2x5x5xi1>
  %11 = train.broadcast %4 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x5xi64>) -> tensor<2x5x5xi64>
  %12 = train.constant dense<0> : tensor<2x5x5xi64>
  %13 = train.select %10, %11, %12 : tensor<2x5x5xi1>, tensor<2x5x5xi64>
  %14 = train.reduce sum, %13 {dimensions = array<i64: 1>} : (tensor<2x5x5xi64>) -> tensor<2x5xi64>
  %15 = train.concat %6, %14 {dim = 1 : i64} : (tensor<2x1xi64>, tensor<2x5xi64>) -> tensor<2x6xi64>
  %16 = train.broadcast %15 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %17 = train.broadcast %15 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %18 = train.compare eq, %16, %17 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %19 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %20 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %21 = train.compare le, %19, %20 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %22 = train.mul %18, %21 : tensor<2x6x6xi1>
  %23 = train.broadcast %22 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %24 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %25 = train.select %23, %5, %24 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  %26 = train.softmax %25 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %27 = train.dot_general %26, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %27 : tensor<2x2x6x4xf32>
}

// Sums of ones are exact in f32, up to 2^24.
// CHECK-LABEL: func @floats
// CHECK-DAG: %[[T:.*]] = train.constant dense<6> : tensor<2x6xi64>
// CHECK-NOT: train.dot_general
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %[[T]]) {causal, scale = 1.000000e+00 : f64}
func.func @floats(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.constant dense<0> : tensor<2x6xi64>
  %3 = train.compare eq, %tok, %2 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %4 = train.convert %3 : (tensor<2x6xi1>) -> tensor<2x6xf32>
  %5 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %6 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %7 = train.compare le, %5, %6 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %8 = train.convert %7 : (tensor<6x6xi1>) -> tensor<6x6xf32>
  %9 = train.dot_general %4, %8 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x6xf32>, tensor<6x6xf32>) -> tensor<2x6xf32>
  %10 = train.broadcast %9 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xf32>) -> tensor<2x6x6xf32>
  %11 = train.broadcast %9 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xf32>) -> tensor<2x6x6xf32>
  %12 = train.compare eq, %10, %11 : (tensor<2x6x6xf32>, tensor<2x6x6xf32>) -> tensor<2x6x6xi1>
  %13 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %14 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %15 = train.compare le, %13, %14 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %16 = train.mul %12, %15 : tensor<2x6x6xi1>
  %17 = train.broadcast %16 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %18 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %19 = train.select %17, %1, %18 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  %20 = train.softmax %19 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %21 = train.dot_general %20, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %21 : tensor<2x2x6x4xf32>
}

// Keys on both sides of the query: where its document begins, and the next one.
// CHECK-LABEL: func @both_ways
// CHECK-DAG: %[[B:.*]] = train.reduce max,
// CHECK-DAG: %[[L:.*]] = train.reduce max,
// CHECK: %[[E:.*]] = train.sub %{{.*}}, %[[L]] : tensor<2x6xi64>
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%[[B]] to %[[E]]) {scale = 1.000000e+00 : f64}
func.func @both_ways(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.constant dense<0> : tensor<2x6xi64>
  %3 = train.compare eq, %tok, %2 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %4 = train.convert %3 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %5 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %6 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %7 = train.compare le, %5, %6 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %8 = train.broadcast %7 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %9 = train.broadcast %4 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %10 = train.constant dense<0> : tensor<2x6x6xi64>
  %11 = train.select %8, %9, %10 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %12 = train.reduce sum, %11 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %13 = train.broadcast %12 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %14 = train.broadcast %12 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %15 = train.compare eq, %13, %14 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %16 = train.broadcast %15 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %17 = train.constant dense<-1.0e9> : tensor<2x2x6x6xf32>
  %18 = train.select %16, %1, %17 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  %19 = train.softmax %18 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %20 = train.dot_general %19, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %20 : tensor<2x2x6x4xf32>
}

// transformers: positions that do not count on begin a document, and in each of them positions are compared.
// CHECK-LABEL: func @positions
// CHECK-DAG: %[[T:.*]] = train.constant dense<6> : tensor<2x6xi64>
// CHECK-NOT: train.reduce sum
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %[[T]]) {causal, scale = 1.000000e+00 : f64, window = 3 : i64}
func.func @positions(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.constant dense<1> : tensor<2x1xi64>
  %3 = train.slice %tok {starts = array<i64: 0, 0>, limits = array<i64: 2, 1>, strides = array<i64: 1, 1>} : (tensor<2x6xi64>) -> tensor<2x1xi64>
  %4 = train.sub %3, %2 : tensor<2x1xi64>
  %5 = train.concat %4, %tok {dim = 1 : i64} : (tensor<2x1xi64>, tensor<2x6xi64>) -> tensor<2x7xi64>
  %6 = train.slice %5 {starts = array<i64: 0, 0>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (tensor<2x7xi64>) -> tensor<2x6xi64>
  %7 = train.sub %tok, %6 : tensor<2x6xi64>
  %8 = train.constant dense<1> : tensor<2x6xi64>
  %9 = train.compare eq, %7, %8 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %10 = train.constant dense<false> : tensor<2x6xi1>
  %11 = train.compare eq, %9, %10 : (tensor<2x6xi1>, tensor<2x6xi1>) -> tensor<2x6xi1>
  %12 = train.convert %11 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %13 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %14 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %15 = train.compare le, %13, %14 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %16 = train.broadcast %15 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %17 = train.broadcast %12 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %18 = train.constant dense<0> : tensor<2x6x6xi64>
  %19 = train.select %16, %17, %18 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %20 = train.reduce sum, %19 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %21 = train.broadcast %20 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %22 = train.broadcast %20 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %23 = train.compare eq, %21, %22 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %24 = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %25 = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %26 = train.compare le, %24, %25 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %27 = train.mul %23, %26 : tensor<2x6x6xi1>
  %28 = train.constant dense<3> : tensor<2x6xi64>
  %29 = train.sub %tok, %28 : tensor<2x6xi64>
  %30 = train.broadcast %29 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %31 = train.compare gt, %24, %30 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %32 = train.mul %27, %31 : tensor<2x6x6xi1>
  %33 = train.constant dense<0.0> : tensor<2x6x6xf32>
  %34 = train.constant dense<-3.40282347E+38> : tensor<2x6x6xf32>
  %35 = train.select %32, %33, %34 : tensor<2x6x6xi1>, tensor<2x6x6xf32>
  %36 = train.broadcast %35 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xf32>) -> tensor<2x2x6x6xf32>
  %37 = train.add %1, %36 : tensor<2x2x6x6xf32>
  // expected-remark@+1 {{positions that the mask of documents compares are taken not to be beyond 2^30}}
  %38 = train.softmax %37 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %39 = train.dot_general %38, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %39 : tensor<2x2x6x4xf32>
}

// What is hidden where ids differ, or behind the query.
// CHECK-LABEL: func @hidden_where_either
// CHECK-DAG: %[[T:.*]] = train.constant dense<6> : tensor<2x6xi64>
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %[[T]]) {causal, scale = 1.000000e+00 : f64}
func.func @hidden_where_either(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<0> : tensor<2x6xi64>
  %2 = train.compare eq, %tok, %1 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %3 = train.convert %2 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %4 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %5 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %6 = train.compare le, %4, %5 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %7 = train.broadcast %6 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %8 = train.broadcast %3 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %9 = train.constant dense<0> : tensor<2x6x6xi64>
  %10 = train.select %7, %8, %9 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %11 = train.reduce sum, %10 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %12 = train.broadcast %11 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %13 = train.broadcast %11 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %14 = train.compare ne, %12, %13 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %15 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %16 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %17 = train.compare gt, %15, %16 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %18 = train.max %14, %17 : tensor<2x6x6xi1>
  %19 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %20 = train.broadcast %18 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %21 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %22 = train.select %20, %21, %19 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  %23 = train.softmax %22 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %24 = train.dot_general %23, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %24 : tensor<2x2x6x4xf32>
}

// Two masks that are added, by a finite number: a query sees its own key in both.
// CHECK-LABEL: func @two_masks
// CHECK-DAG: %[[T:.*]] = train.constant dense<6> : tensor<2x6xi64>
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %[[T]]) {causal, scale = 1.000000e+00 : f64}
func.func @two_masks(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %3 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %4 = train.compare le, %2, %3 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %5 = train.constant dense<0.0> : tensor<2x6x6xf32>
  %6 = train.constant dense<-3.40282347E+38> : tensor<2x6x6xf32>
  %7 = train.select %4, %5, %6 : tensor<2x6x6xi1>, tensor<2x6x6xf32>
  %8 = train.broadcast %7 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xf32>) -> tensor<2x2x6x6xf32>
  %9 = train.add %1, %8 : tensor<2x2x6x6xf32>
  %10 = train.constant dense<0> : tensor<2x6xi64>
  %11 = train.compare eq, %tok, %10 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %12 = train.convert %11 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %13 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %14 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %15 = train.compare le, %13, %14 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %16 = train.broadcast %15 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %17 = train.broadcast %12 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %18 = train.constant dense<0> : tensor<2x6x6xi64>
  %19 = train.select %16, %17, %18 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %20 = train.reduce sum, %19 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %21 = train.broadcast %20 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %22 = train.broadcast %20 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %23 = train.compare eq, %21, %22 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %24 = train.constant dense<0.0> : tensor<2x6x6xf32>
  %25 = train.constant dense<-3.40282347E+38> : tensor<2x6x6xf32>
  %26 = train.select %23, %24, %25 : tensor<2x6x6xi1>, tensor<2x6x6xf32>
  %27 = train.broadcast %26 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xf32>) -> tensor<2x2x6x6xf32>
  %28 = train.add %9, %27 : tensor<2x2x6x6xf32>
  %29 = train.softmax %28 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %30 = train.dot_general %29, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %30 : tensor<2x2x6x4xf32>
}

// Two positions that the whole document sees, and two kinds of documents.
// CHECK-LABEL: func @prefix
// CHECK-NOT: mask(
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {density
func.func @prefix(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<0> : tensor<2x6xi64>
  %2 = train.compare eq, %tok, %1 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %3 = train.convert %2 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %4 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %5 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %6 = train.compare le, %4, %5 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %7 = train.broadcast %6 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %8 = train.broadcast %3 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %9 = train.constant dense<0> : tensor<2x6x6xi64>
  %10 = train.select %7, %8, %9 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %11 = train.reduce sum, %10 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %12 = train.constant dense<1> : tensor<2x6xi64>
  %13 = train.compare eq, %tok, %12 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %14 = train.convert %13 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %15 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %16 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %17 = train.compare le, %15, %16 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %18 = train.broadcast %17 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %19 = train.broadcast %14 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %20 = train.constant dense<0> : tensor<2x6x6xi64>
  %21 = train.select %18, %19, %20 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %22 = train.reduce sum, %21 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %23 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %24 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %25 = train.compare le, %23, %24 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %26 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %27 = train.constant dense<2> : tensor<2x6x6xi64>
  %28 = train.compare lt, %26, %27 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %29 = train.max %25, %28 : tensor<2x6x6xi1>
  %30 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %31 = train.broadcast %11 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %32 = train.broadcast %11 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %33 = train.compare eq, %31, %32 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %34 = train.mul %29, %33 : tensor<2x6x6xi1>
  %35 = train.broadcast %22 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %36 = train.broadcast %22 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %37 = train.compare eq, %35, %36 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %38 = train.mul %34, %37 : tensor<2x6x6xi1>
  %39 = train.broadcast %38 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %40 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %41 = train.select %39, %30, %40 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  %42 = train.softmax %41 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %43 = train.dot_general %42, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %43 : tensor<2x2x6x4xf32>
}

// Selected by two numbers, one of them infinite.
// CHECK-LABEL: func @two_numbers
// CHECK-DAG: %[[T:.*]] = train.constant dense<6> : tensor<2x6xi64>
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %[[T]]) {causal, scale = 1.000000e+00 : f64}
func.func @two_numbers(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %3 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %4 = train.compare le, %2, %3 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %5 = train.broadcast %4 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %6 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %7 = train.select %5, %1, %6 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  %8 = train.constant dense<0> : tensor<2x6xi64>
  %9 = train.compare eq, %tok, %8 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %10 = train.convert %9 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %11 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %12 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %13 = train.compare le, %11, %12 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %14 = train.broadcast %13 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %15 = train.broadcast %10 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %16 = train.constant dense<0> : tensor<2x6x6xi64>
  %17 = train.select %14, %15, %16 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %18 = train.reduce sum, %17 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %19 = train.broadcast %18 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %20 = train.broadcast %18 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %21 = train.compare eq, %19, %20 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %22 = train.broadcast %21 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %23 = train.constant dense<-1.0e9> : tensor<2x2x6x6xf32>
  %24 = train.select %22, %7, %23 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  %25 = train.softmax %24 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %26 = train.dot_general %25, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %26 : tensor<2x2x6x4xf32>
}

// Sums in f32 behind a 0.
// CHECK-LABEL: func @floats_in_front
// CHECK-DAG: %[[T:.*]] = train.constant dense<6> : tensor<2x6xi64>
// CHECK-NOT: train.dot_general
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %[[T]]) {causal, scale = 1.000000e+00 : f64}
func.func @floats_in_front(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<0.0> : tensor<2x1xf32>
  %2 = train.constant dense<0> : tensor<2x6xi64>
  %3 = train.compare eq, %tok, %2 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %4 = train.convert %3 : (tensor<2x6xi1>) -> tensor<2x6xf32>
  %5 = train.slice %4 {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<2x5xf32>
  %6 = train.concat %1, %5 {dim = 1 : i64} : (tensor<2x1xf32>, tensor<2x5xf32>) -> tensor<2x6xf32>
  %7 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %8 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %9 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %10 = train.compare le, %8, %9 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %11 = train.convert %10 : (tensor<6x6xi1>) -> tensor<6x6xf32>
  %12 = train.dot_general %6, %11 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x6xf32>, tensor<6x6xf32>) -> tensor<2x6xf32>
  %13 = train.broadcast %12 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xf32>) -> tensor<2x6x6xf32>
  %14 = train.broadcast %12 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xf32>) -> tensor<2x6x6xf32>
  %15 = train.compare eq, %13, %14 : (tensor<2x6x6xf32>, tensor<2x6x6xf32>) -> tensor<2x6x6xi1>
  %16 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %17 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %18 = train.compare le, %16, %17 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %19 = train.mul %15, %18 : tensor<2x6x6xi1>
  %20 = train.broadcast %19 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %21 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %22 = train.select %20, %7, %21 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  %23 = train.softmax %22 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %24 = train.dot_general %23, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %24 : tensor<2x2x6x4xf32>
}

// Not applied: ids of data may be equal and apart.
// CHECK-LABEL: func @given
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @given(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %3 = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %4 = train.compare eq, %2, %3 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %5 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %6 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %7 = train.compare le, %5, %6 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %8 = train.mul %4, %7 : tensor<2x6x6xi1>
  %9 = train.broadcast %8 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %10 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %11 = train.select %9, %1, %10 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  // expected-remark@+1 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  %12 = train.softmax %11 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %13 = train.dot_general %12, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %13 : tensor<2x2x6x4xf32>
}

// Not applied: sums of numbers that may be negative.
// CHECK-LABEL: func @falling
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @falling(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %3 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %4 = train.compare le, %2, %3 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %5 = train.broadcast %4 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %6 = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %7 = train.constant dense<0> : tensor<2x6x6xi64>
  %8 = train.select %5, %6, %7 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %9 = train.reduce sum, %8 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %10 = train.broadcast %9 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %11 = train.broadcast %9 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %12 = train.compare eq, %10, %11 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %13 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %14 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %15 = train.compare le, %13, %14 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %16 = train.mul %12, %15 : tensor<2x6x6xi1>
  %17 = train.broadcast %16 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %18 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %19 = train.select %17, %1, %18 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  // expected-remark@+1 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  %20 = train.softmax %19 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %21 = train.dot_general %20, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %21 : tensor<2x2x6x4xf32>
}

// Not applied: sums of numbers up to 127 do not fit in their type.
// CHECK-LABEL: func @wrapping
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @wrapping(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<0> : tensor<2x6xi64>
  %2 = train.compare eq, %tok, %1 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %3 = train.convert %2 : (tensor<2x6xi1>) -> tensor<2x6xi8>
  %4 = train.convert %3 : (tensor<2x6xi8>) -> tensor<2x6xi8>
  %5 = train.constant dense<100> : tensor<2x6xi8>
  %6 = train.mul %4, %5 : tensor<2x6xi8>
  %7 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %8 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %9 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %10 = train.compare le, %8, %9 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %11 = train.broadcast %10 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %12 = train.broadcast %6 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi8>) -> tensor<2x6x6xi8>
  %13 = train.constant dense<0> : tensor<2x6x6xi8>
  %14 = train.select %11, %12, %13 : tensor<2x6x6xi1>, tensor<2x6x6xi8>
  %15 = train.reduce sum, %14 {dimensions = array<i64: 1>} : (tensor<2x6x6xi8>) -> tensor<2x6xi8>
  %16 = train.broadcast %15 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi8>) -> tensor<2x6x6xi8>
  %17 = train.broadcast %15 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi8>) -> tensor<2x6x6xi8>
  %18 = train.compare eq, %16, %17 : (tensor<2x6x6xi8>, tensor<2x6x6xi8>) -> tensor<2x6x6xi1>
  %19 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %20 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %21 = train.compare le, %19, %20 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %22 = train.mul %18, %21 : tensor<2x6x6xi1>
  %23 = train.broadcast %22 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %24 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %25 = train.select %23, %7, %24 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  // expected-remark@+1 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  %26 = train.softmax %25 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %27 = train.dot_general %26, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %27 : tensor<2x2x6x4xf32>
}

// Not applied: the first token may have the id of a later document.
// CHECK-LABEL: func @one_in_front
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @one_in_front(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<0> : tensor<2x6xi64>
  %2 = train.compare eq, %tok, %1 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %3 = train.convert %2 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %4 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %5 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %6 = train.compare le, %4, %5 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %7 = train.broadcast %6 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %8 = train.broadcast %3 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %9 = train.constant dense<0> : tensor<2x6x6xi64>
  %10 = train.select %7, %8, %9 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %11 = train.reduce sum, %10 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %12 = train.constant dense<1> : tensor<2x1xi64>
  %13 = train.slice %11 {starts = array<i64: 0, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (tensor<2x6xi64>) -> tensor<2x5xi64>
  %14 = train.concat %12, %13 {dim = 1 : i64} : (tensor<2x1xi64>, tensor<2x5xi64>) -> tensor<2x6xi64>
  %15 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %16 = train.broadcast %14 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %17 = train.broadcast %14 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %18 = train.compare eq, %16, %17 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %19 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %20 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %21 = train.compare le, %19, %20 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %22 = train.mul %18, %21 : tensor<2x6x6xi1>
  %23 = train.broadcast %22 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %24 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %25 = train.select %23, %15, %24 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  // expected-remark@+1 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  %26 = train.softmax %25 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %27 = train.dot_general %26, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %27 : tensor<2x2x6x4xf32>
}

// Not applied: tokens that are hidden as keys.
// CHECK-LABEL: func @padding
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @padding(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<2> : tensor<2x6xi64>
  %2 = train.compare ne, %tok, %1 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %3 = train.broadcast %2 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi1>) -> tensor<2x6x6xi1>
  %4 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %5 = train.constant dense<0> : tensor<2x6xi64>
  %6 = train.compare eq, %tok, %5 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %7 = train.convert %6 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %8 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %9 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %10 = train.compare le, %8, %9 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %11 = train.broadcast %10 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %12 = train.broadcast %7 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %13 = train.constant dense<0> : tensor<2x6x6xi64>
  %14 = train.select %11, %12, %13 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %15 = train.reduce sum, %14 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %16 = train.broadcast %15 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %17 = train.broadcast %15 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %18 = train.compare eq, %16, %17 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %19 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %20 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %21 = train.compare le, %19, %20 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %22 = train.mul %18, %21 : tensor<2x6x6xi1>
  %23 = train.mul %22, %3 : tensor<2x6x6xi1>
  %24 = train.broadcast %23 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %25 = train.constant dense<-1.0e9> : tensor<2x2x6x6xf32>
  %26 = train.select %24, %4, %25 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  // expected-remark@+1 {{documents are masked for all pairs of queries and keys: another condition of the mask is not a range of keys}}
  %27 = train.softmax %26 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %28 = train.dot_general %27, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %28 : tensor<2x2x6x4xf32>
}

// Not applied: positions that do not count in documents of these ids.
// CHECK-LABEL: func @other_positions
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @other_positions(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<0> : tensor<2x6xi64>
  %2 = train.compare eq, %tok, %1 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %3 = train.convert %2 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %4 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %5 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %6 = train.compare le, %4, %5 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %7 = train.broadcast %6 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %8 = train.broadcast %3 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %9 = train.constant dense<0> : tensor<2x6x6xi64>
  %10 = train.select %7, %8, %9 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %11 = train.reduce sum, %10 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %12 = train.broadcast %11 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %13 = train.broadcast %11 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %14 = train.compare eq, %12, %13 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %15 = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %16 = train.broadcast %tok {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %17 = train.compare le, %15, %16 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %18 = train.mul %14, %17 : tensor<2x6x6xi1>
  %19 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %20 = train.broadcast %18 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %21 = train.constant dense<-1.0e9> : tensor<2x2x6x6xf32>
  %22 = train.select %20, %19, %21 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  // expected-remark@+1 {{documents are masked for all pairs of queries and keys: positions are compared that are not known to count in each document}}
  %23 = train.softmax %22 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %24 = train.dot_general %23, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %24 : tensor<2x2x6x4xf32>
}

// Not applied: keys before the query alone, hidden by a finite number, which counts where there is none.
// CHECK-LABEL: func @before
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @before(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<0> : tensor<2x6xi64>
  %2 = train.compare eq, %tok, %1 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %3 = train.convert %2 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %4 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %5 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %6 = train.compare le, %4, %5 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %7 = train.broadcast %6 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %8 = train.broadcast %3 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %9 = train.constant dense<0> : tensor<2x6x6xi64>
  %10 = train.select %7, %8, %9 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %11 = train.reduce sum, %10 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %12 = train.broadcast %11 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %13 = train.broadcast %11 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %14 = train.compare eq, %12, %13 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %15 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %16 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %17 = train.compare lt, %15, %16 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %18 = train.mul %14, %17 : tensor<2x6x6xi1>
  %19 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %20 = train.constant dense<0.0> : tensor<2x6x6xf32>
  %21 = train.constant dense<-1.0e9> : tensor<2x6x6xf32>
  %22 = train.select %18, %20, %21 : tensor<2x6x6xi1>, tensor<2x6x6xf32>
  %23 = train.broadcast %22 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xf32>) -> tensor<2x2x6x6xf32>
  %24 = train.add %19, %23 : tensor<2x2x6x6xf32>
  %25 = train.softmax %24 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %26 = train.dot_general %25, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %26 : tensor<2x2x6x4xf32>
}

// Not applied: sums of up to 12 times 2048 are not exact in f16.
// CHECK-LABEL: func @half_floats
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @half_floats(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<0> : tensor<2x6xi64>
  %2 = train.compare eq, %tok, %1 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %3 = train.convert %2 : (tensor<2x6xi1>) -> tensor<2x6xf16>
  %4 = train.constant dense<2048.0> : tensor<2x6xf16>
  %5 = train.mul %3, %4 : tensor<2x6xf16>
  %6 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %7 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %8 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %9 = train.compare le, %7, %8 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %10 = train.convert %9 : (tensor<6x6xi1>) -> tensor<6x6xf16>
  %11 = train.dot_general %5, %10 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x6xf16>, tensor<6x6xf16>) -> tensor<2x6xf16>
  %12 = train.broadcast %11 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xf16>) -> tensor<2x6x6xf16>
  %13 = train.broadcast %11 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xf16>) -> tensor<2x6x6xf16>
  %14 = train.compare eq, %12, %13 : (tensor<2x6x6xf16>, tensor<2x6x6xf16>) -> tensor<2x6x6xi1>
  %15 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %16 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %17 = train.compare le, %15, %16 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %18 = train.mul %14, %17 : tensor<2x6x6xi1>
  %19 = train.broadcast %18 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %20 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %21 = train.select %19, %6, %20 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  // expected-remark@+1 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  %22 = train.softmax %21 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %23 = train.dot_general %22, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %23 : tensor<2x2x6x4xf32>
}

// Not applied, and no word of documents: ids are positions, beside tokens that are hidden as keys.
// CHECK-LABEL: func @chunks
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @chunks(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.iota {dim = 1 : i64} : tensor<2x6xi64>
  %2 = train.constant dense<2> : tensor<2x6xi64>
  %3 = train.compare ne, %tok, %2 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %4 = train.broadcast %3 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi1>) -> tensor<2x6x6xi1>
  %5 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %6 = train.broadcast %1 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %7 = train.broadcast %1 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %8 = train.compare eq, %6, %7 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %9 = train.mul %8, %4 : tensor<2x6x6xi1>
  %10 = train.broadcast %9 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %11 = train.constant dense<-1.0e9> : tensor<2x2x6x6xf32>
  %12 = train.select %10, %5, %11 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  %13 = train.softmax %12 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %14 = train.dot_general %13, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %14 : tensor<2x2x6x4xf32>
}

// Not applied: keys of the document before.
// CHECK-LABEL: func @neighbouring_ids
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @neighbouring_ids(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %tok: tensor<2x6xi64>) -> tensor<2x2x6x4xf32> {
  %1 = train.constant dense<0> : tensor<2x6xi64>
  %2 = train.compare eq, %tok, %1 : (tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6xi1>
  %3 = train.convert %2 : (tensor<2x6xi1>) -> tensor<2x6xi64>
  %4 = train.iota {dim = 0 : i64} : tensor<6x6xi64>
  %5 = train.iota {dim = 1 : i64} : tensor<6x6xi64>
  %6 = train.compare le, %4, %5 : (tensor<6x6xi64>, tensor<6x6xi64>) -> tensor<6x6xi1>
  %7 = train.broadcast %6 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<6x6xi1>) -> tensor<2x6x6xi1>
  %8 = train.broadcast %3 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %9 = train.constant dense<0> : tensor<2x6x6xi64>
  %10 = train.select %7, %8, %9 : tensor<2x6x6xi1>, tensor<2x6x6xi64>
  %11 = train.reduce sum, %10 {dimensions = array<i64: 1>} : (tensor<2x6x6xi64>) -> tensor<2x6xi64>
  %12 = train.constant dense<1> : tensor<2x6xi64>
  %13 = train.add %11, %12 : tensor<2x6xi64>
  %14 = train.broadcast %13 {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %15 = train.broadcast %11 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %16 = train.compare eq, %14, %15 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %17 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %18 = train.broadcast %16 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %19 = train.constant dense<-1.0e9> : tensor<2x2x6x6xf32>
  %20 = train.select %18, %17, %19 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  %21 = train.softmax %20 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %22 = train.dot_general %21, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %22 : tensor<2x2x6x4xf32>
}

// Not applied: bf16 counts exactly to 256 only, so the triangle takes in places that lie ahead.
// CHECK-LABEL: func @rounded_places
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @rounded_places(%q: tensor<1x1x300x2xf32>, %k: tensor<1x1x300x2xf32>, %v: tensor<1x1x300x2xf32>, %tok: tensor<1x300xi64>) -> tensor<1x1x300x2xf32> {
  %scores = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x1x300x2xf32>, tensor<1x1x300x2xf32>) -> tensor<1x1x300x300xf32>
  %zero = train.constant dense<0> : tensor<1x300xi64>
  %ends = train.compare eq, %tok, %zero : (tensor<1x300xi64>, tensor<1x300xi64>) -> tensor<1x300xi1>
  %steps = train.convert %ends : (tensor<1x300xi1>) -> tensor<1x300xf32>
  %triangle_from = train.iota {dim = 0 : i64} : tensor<300x300xbf16>
  %triangle_to = train.iota {dim = 1 : i64} : tensor<300x300xbf16>
  %triangle_takes = train.compare le, %triangle_from, %triangle_to : (tensor<300x300xbf16>, tensor<300x300xbf16>) -> tensor<300x300xi1>
  %triangle = train.convert %triangle_takes : (tensor<300x300xi1>) -> tensor<300x300xf32>
  %ids = train.dot_general %steps, %triangle {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1x300xf32>, tensor<300x300xf32>) -> tensor<1x300xf32>
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (tensor<1x300xf32>) -> tensor<1x1x300x300xf32>
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (tensor<1x300xf32>) -> tensor<1x1x300x300xf32>
  %same = train.compare eq, %there, %here : (tensor<1x1x300x300xf32>, tensor<1x1x300x300xf32>) -> tensor<1x1x300x300xi1>
  %hidden = train.constant dense<0xFF800000> : tensor<1x1x300x300xf32>
  %masked = train.select %same, %scores, %hidden : tensor<1x1x300x300xi1>, tensor<1x1x300x300xf32>
  // expected-remark@+1 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  %p = train.softmax %masked {dim = 3 : i64} : tensor<1x1x300x300xf32>
  %o = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x1x300x300xf32>, tensor<1x1x300x2xf32>) -> tensor<1x1x300x2xf32>
  return %o : tensor<1x1x300x2xf32>
}

// Not applied: sums in blocks that are not those of one sample run on from sample to sample.
// CHECK-LABEL: func @on_from_row_to_row
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @on_from_row_to_row(%q: tensor<4x1x8x2xf32>, %k: tensor<4x1x8x2xf32>, %v: tensor<4x1x8x2xf32>, %tok: tensor<4x8xi64>) -> tensor<4x1x8x2xf32> {
  %scores = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<4x1x8x2xf32>, tensor<4x1x8x2xf32>) -> tensor<4x1x8x8xf32>
  %zero = train.constant dense<0> : tensor<4x8xi64>
  %ends = train.compare eq, %tok, %zero : (tensor<4x8xi64>, tensor<4x8xi64>) -> tensor<4x8xi1>
  %steps = train.convert %ends : (tensor<4x8xi1>) -> tensor<4x8xf32>
  %rows = train.reshape %steps : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
  %triangle_from = train.iota {dim = 0 : i64} : tensor<8x8xi64>
  %triangle_to = train.iota {dim = 1 : i64} : tensor<8x8xi64>
  %triangle_takes = train.compare le, %triangle_from, %triangle_to : (tensor<8x8xi64>, tensor<8x8xi64>) -> tensor<8x8xi1>
  %triangle = train.convert %triangle_takes : (tensor<8x8xi1>) -> tensor<8x8xf32>
  %within = train.dot_general %rows, %triangle {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<2x2x8xf32>, tensor<8x8xf32>) -> tensor<2x2x8xf32>
  %totals = train.reduce sum, %rows {dimensions = array<i64: 2>} : (tensor<2x2x8xf32>) -> tensor<2x2xf32>
  %earlier_from = train.iota {dim = 0 : i64} : tensor<2x2xi64>
  %earlier_to = train.iota {dim = 1 : i64} : tensor<2x2xi64>
  %earlier_takes = train.compare lt, %earlier_from, %earlier_to : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi1>
  %earlier = train.convert %earlier_takes : (tensor<2x2xi1>) -> tensor<2x2xf32>
  %before = train.dot_general %totals, %earlier {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %repeated = train.broadcast %before {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x2xf32>) -> tensor<2x2x8xf32>
  %all = train.add %within, %repeated : tensor<2x2x8xf32>
  %ids = train.reshape %all : (tensor<2x2x8xf32>) -> tensor<4x8xf32>
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (tensor<4x8xf32>) -> tensor<4x1x8x8xf32>
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (tensor<4x8xf32>) -> tensor<4x1x8x8xf32>
  %same = train.compare eq, %there, %here : (tensor<4x1x8x8xf32>, tensor<4x1x8x8xf32>) -> tensor<4x1x8x8xi1>
  %hidden = train.constant dense<0xFF800000> : tensor<4x1x8x8xf32>
  %masked = train.select %same, %scores, %hidden : tensor<4x1x8x8xi1>, tensor<4x1x8x8xf32>
  // expected-remark@+1 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  %p = train.softmax %masked {dim = 3 : i64} : tensor<4x1x8x8xf32>
  %o = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<4x1x8x8xf32>, tensor<4x1x8x2xf32>) -> tensor<4x1x8x2xf32>
  return %o : tensor<4x1x8x2xf32>
}

// Not applied: a triangle of one pair that is repeated is none.
// CHECK-LABEL: func @one_pair_repeated
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @one_pair_repeated(%q: tensor<1x1x6x2xf32>, %k: tensor<1x1x6x2xf32>, %v: tensor<1x1x6x2xf32>, %tok: tensor<1x6xi64>) -> tensor<1x1x6x2xf32> {
  %scores = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<1x1x6x2xf32>, tensor<1x1x6x2xf32>) -> tensor<1x1x6x6xf32>
  %zero = train.constant dense<0> : tensor<1x6xi64>
  %ends = train.compare eq, %tok, %zero : (tensor<1x6xi64>, tensor<1x6xi64>) -> tensor<1x6xi1>
  %steps = train.convert %ends : (tensor<1x6xi1>) -> tensor<1x6xf32>
  %from = train.iota {dim = 0 : i64} : tensor<1x1xi64>
  %to = train.iota {dim = 1 : i64} : tensor<1x1xi64>
  %pair = train.compare le, %from, %to : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi1>
  %takes = train.broadcast %pair {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x1xi1>) -> tensor<6x6xi1>
  %all = train.convert %takes : (tensor<6x6xi1>) -> tensor<6x6xf32>
  %ids = train.dot_general %steps, %all {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1x6xf32>, tensor<6x6xf32>) -> tensor<1x6xf32>
  %there = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (tensor<1x6xf32>) -> tensor<1x1x6x6xf32>
  %here = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 3>} : (tensor<1x6xf32>) -> tensor<1x1x6x6xf32>
  %same = train.compare eq, %there, %here : (tensor<1x1x6x6xf32>, tensor<1x1x6x6xf32>) -> tensor<1x1x6x6xi1>
  %hidden = train.constant dense<0xFF800000> : tensor<1x1x6x6xf32>
  %masked = train.select %same, %scores, %hidden : tensor<1x1x6x6xi1>, tensor<1x1x6x6xf32>
  // expected-remark@+1 {{documents are masked for all pairs of queries and keys: equal ids are not known to lie side by side}}
  %p = train.softmax %masked {dim = 3 : i64} : tensor<1x1x6x6xf32>
  %o = train.dot_general %p, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<1x1x6x6xf32>, tensor<1x1x6x2xf32>) -> tensor<1x1x6x2xf32>
  return %o : tensor<1x1x6x2xf32>
}
