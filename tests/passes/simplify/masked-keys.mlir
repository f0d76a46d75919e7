// Masks of attention that is whole already: what is a range of keys for each query is said so.
// RUN: tessera-opt %s --recognize-attention --canonicalize --cse | FileCheck %s
// RUN: tessera-opt %s --recognize-attention -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: tessera-opt %s --recognize-attention -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --atol=1e-6 --quiet

// CHECK-LABEL: func.func @causal
// CHECK:         train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64}
func.func @causal(%q: tensor<2x2x4x3xf32>, %k: tensor<2x2x4x3xf32>, %v: tensor<2x2x4x3xf32>) -> tensor<2x2x4x3xf32> {
  %i = train.iota {dim = 2 : i64} : tensor<1x1x4x4xi64>
  %j = train.iota {dim = 3 : i64} : tensor<1x1x4x4xi64>
  %m = train.compare ge, %i, %j : (tensor<1x1x4x4xi64>, tensor<1x1x4x4xi64>) -> tensor<1x1x4x4xi1>
  %o, %lse = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (tensor<2x2x4x3xf32>, tensor<2x2x4x3xf32>, tensor<2x2x4x3xf32>, tensor<1x1x4x4xi1>) -> (tensor<2x2x4x3xf32>, tensor<2x2x4xf32>)
  return %o : tensor<2x2x4x3xf32>
}

// Keys of the query's place and of the one before.
// CHECK-LABEL: func.func @window
// CHECK:         train.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64, window = 2 : i64}
func.func @window(%q: tensor<2x2x4x3xf32>, %k: tensor<2x2x4x3xf32>, %v: tensor<2x2x4x3xf32>) -> tensor<2x2x4x3xf32> {
  %i = train.iota {dim = 2 : i64} : tensor<1x1x4x4xi64>
  %j = train.iota {dim = 3 : i64} : tensor<1x1x4x4xi64>
  %d = train.sub %i, %j : tensor<1x1x4x4xi64>
  %zero = train.constant dense<0> : tensor<1x1x4x4xi64>
  %two = train.constant dense<2> : tensor<1x1x4x4xi64>
  %a = train.compare ge, %d, %zero : (tensor<1x1x4x4xi64>, tensor<1x1x4x4xi64>) -> tensor<1x1x4x4xi1>
  %b = train.compare lt, %d, %two : (tensor<1x1x4x4xi64>, tensor<1x1x4x4xi64>) -> tensor<1x1x4x4xi1>
  %m = train.mul %a, %b : tensor<1x1x4x4xi1>
  %o, %lse = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (tensor<2x2x4x3xf32>, tensor<2x2x4x3xf32>, tensor<2x2x4x3xf32>, tensor<1x1x4x4xi1>) -> (tensor<2x2x4x3xf32>, tensor<2x2x4xf32>)
  return %o : tensor<2x2x4x3xf32>
}

// A mask that shows all keys is none.
// CHECK-LABEL: func.func @nothing
// CHECK:         train.attention %arg0, %arg1, %arg2 {scale = 5.000000e-01 : f64}
func.func @nothing(%q: tensor<2x2x4x3xf32>, %k: tensor<2x2x4x3xf32>, %v: tensor<2x2x4x3xf32>) -> tensor<2x2x4x3xf32> {
  %m = train.constant dense<true> : tensor<1x1x4x4xi1>
  %o, %lse = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (tensor<2x2x4x3xf32>, tensor<2x2x4x3xf32>, tensor<2x2x4x3xf32>, tensor<1x1x4x4xi1>) -> (tensor<2x2x4x3xf32>, tensor<2x2x4xf32>)
  return %o : tensor<2x2x4x3xf32>
}

// One row stands for all queries: it is not that of the last one, which a causal mask of one row would be.
// CHECK-LABEL: func.func @row
// CHECK:         train.attention %arg0, %arg1, %arg2 mask(%{{.*}}) {scale
// REMARK: remark: the mask stays a mask: it is no range of keys that is known for each query
func.func @row(%q: tensor<2x2x4x3xf32>, %k: tensor<2x2x4x3xf32>, %v: tensor<2x2x4x3xf32>) -> tensor<2x2x4x3xf32> {
  %m = train.constant dense<[[[[true, true, true, false]]]]> : tensor<1x1x1x4xi1>
  %o, %lse = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (tensor<2x2x4x3xf32>, tensor<2x2x4x3xf32>, tensor<2x2x4x3xf32>, tensor<1x1x1x4xi1>) -> (tensor<2x2x4x3xf32>, tensor<2x2x4xf32>)
  return %o : tensor<2x2x4x3xf32>
}

// What data says is a mask.
// CHECK-LABEL: func.func @data
// CHECK:         train.attention %arg0, %arg1, %arg2 mask(%arg3)
func.func @data(%q: tensor<2x2x4x3xf32>, %k: tensor<2x2x4x3xf32>, %v: tensor<2x2x4x3xf32>, %m: tensor<2x1x4x4xf32>) -> tensor<2x2x4x3xf32> {
  %o, %lse = train.attention %q, %k, %v mask(%m) {scale = 0.5 : f64} : (tensor<2x2x4x3xf32>, tensor<2x2x4x3xf32>, tensor<2x2x4x3xf32>, tensor<2x1x4x4xf32>) -> (tensor<2x2x4x3xf32>, tensor<2x2x4xf32>)
  return %o : tensor<2x2x4x3xf32>
}
