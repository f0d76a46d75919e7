// Ids of documents that are an input: a range of keys for each query, and a promise that each batch is checked for.
// RUN: tessera-opt %s --recognize-attention --canonicalize --cse --verify-diagnostics -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: tessera-interp %t --compare=%s --rtol=1e-5 --atol=1e-6 --quiet
// RUN: tessera-opt %s --recognize-attention=document-ids=any --canonicalize --cse | FileCheck %s --check-prefix=ANY
// RUN: tessera-opt %t --recognize-attention --canonicalize --cse -o %t.twice
// RUN: diff %t %t.twice
// RUN: not tessera-opt %s --recognize-attention=document-ids=sorted 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: unknown document-ids 'sorted', expected contiguous or any

// With any ids all pairs are masked, and nothing is promised.
// ANY-NOT: train.has_runs
// ANY-NOT: keys(
// ANY: train.attention %arg0, %arg1, %arg2 mask(
// ANY-NOT: train.has_runs
// ANY-NOT: keys(

// Each query sees its document up to itself.
// CHECK-LABEL: func @causal
// CHECK-SAME: %arg3: tensor<2x6xi64> {train.dims = #train.dims<[sample, position]>, train.has_runs,
// CHECK-DAG: %[[LATER:.*]] = train.slice %arg3 {limits = array<i64: 2, 6>, starts = array<i64: 0, 1>
// CHECK-DAG: %[[EARLIER:.*]] = train.slice %arg3 {limits = array<i64: 2, 5>, starts = array<i64: 0, 0>
// CHECK: train.compare ne, %[[LATER]], %[[EARLIER]]
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {causal,
func.func @causal(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %ids: tensor<2x6xi64> {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %3 = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %4 = train.compare eq, %2, %3 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %5 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %6 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %7 = train.compare le, %5, %6 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %8 = train.mul %4, %7 : tensor<2x6x6xi1>
  %9 = train.broadcast %8 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %10 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %11 = train.select %9, %1, %10 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %12 = train.softmax %11 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %13 = train.dot_general %12, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %13 : tensor<2x2x6x4xf32>
}

// It sees all of its document.
// CHECK-LABEL: func @both_ways
// CHECK-SAME: train.has_runs
// CHECK: train.attention %arg0, %arg1, %arg2 keys(%{{.*}} to %{{.*}}) {scale
func.func @both_ways(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %ids: tensor<2x6xi32> {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi32>) -> tensor<2x6x6xi32>
  %3 = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi32>) -> tensor<2x6x6xi32>
  %4 = train.compare eq, %2, %3 : (tensor<2x6x6xi32>, tensor<2x6x6xi32>) -> tensor<2x6x6xi1>
  %5 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %6 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %7 = train.compare le, %5, %6 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %9 = train.broadcast %4 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %10 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %11 = train.select %9, %1, %10 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %12 = train.softmax %11 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %13 = train.dot_general %12, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %13 : tensor<2x2x6x4xf32>
}

// A wider type keeps ids apart.
// CHECK-LABEL: func @wider
// CHECK-SAME: train.has_runs
// CHECK: train.attention %arg0, %arg1, %arg2 keys(
func.func @wider(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %ids: tensor<2x6xi32> {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %w = train.convert %ids : (tensor<2x6xi32>) -> tensor<2x6xi64>
  %2 = train.broadcast %w {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %3 = train.broadcast %w {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %4 = train.compare eq, %2, %3 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %5 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %6 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %7 = train.compare le, %5, %6 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %8 = train.mul %4, %7 : tensor<2x6x6xi1>
  %9 = train.broadcast %8 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %10 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %11 = train.select %9, %1, %10 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  // expected-remark@+1 {{equal ids of documents are taken to lie side by side in 'docs'; a batch where they do not is refused}}
  %12 = train.softmax %11 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %13 = train.dot_general %12, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %13 : tensor<2x2x6x4xf32>
}

// Not applied: a narrower type may make different ids equal.
// CHECK-LABEL: func @narrower
// CHECK-NOT: train.has_runs
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @narrower(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %ids: tensor<2x6xi64> {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %w = train.convert %ids : (tensor<2x6xi64>) -> tensor<2x6xi32>
  %2 = train.broadcast %w {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi32>) -> tensor<2x6x6xi32>
  %3 = train.broadcast %w {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi32>) -> tensor<2x6x6xi32>
  %4 = train.compare eq, %2, %3 : (tensor<2x6x6xi32>, tensor<2x6x6xi32>) -> tensor<2x6x6xi1>
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

// Not applied: so may rounding.
// CHECK-LABEL: func @rounded
// CHECK-NOT: train.has_runs
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @rounded(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %ids: tensor<2x6xi64> {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %w = train.convert %ids : (tensor<2x6xi64>) -> tensor<2x6xf32>
  %2 = train.broadcast %w {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xf32>) -> tensor<2x6x6xf32>
  %3 = train.broadcast %w {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xf32>) -> tensor<2x6x6xf32>
  %4 = train.compare eq, %2, %3 : (tensor<2x6x6xf32>, tensor<2x6x6xf32>) -> tensor<2x6x6xi1>
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

// Not applied: what the input counts is not known to be positions.
// CHECK-LABEL: func @not_positions
// CHECK-NOT: train.has_runs
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @not_positions(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %ids: tensor<2x6xi64> {train.dims = #train.dims<[sample, none]>, train.name = "docs", train.role = "input"}) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %3 = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
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

// Not applied: what follows from ids may be equal where they are not.
// CHECK-LABEL: func @computed
// CHECK-NOT: train.has_runs
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @computed(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %ids: tensor<2x6xi64> {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %w = train.mul %ids, %ids : tensor<2x6xi64>
  %2 = train.broadcast %w {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %3 = train.broadcast %w {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
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

// Not applied: another condition follows from data.
// CHECK-LABEL: func @beside_padding
// CHECK-NOT: train.has_runs
// CHECK: train.attention %arg0, %arg1, %arg2 mask(
func.func @beside_padding(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %ids: tensor<2x6xi64> {train.dims = #train.dims<[sample, position]>, train.name = "docs", train.role = "input"}) -> tensor<2x2x6x4xf32> {
  %1 = train.dot_general %q, %k {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 3>} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x6xf32>
  %2 = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 1>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %3 = train.broadcast %ids {broadcast_dimensions = array<i64: 0, 2>} : (tensor<2x6xi64>) -> tensor<2x6x6xi64>
  %4 = train.compare eq, %2, %3 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %5 = train.iota {dim = 2 : i64} : tensor<2x6x6xi64>
  %6 = train.iota {dim = 1 : i64} : tensor<2x6x6xi64>
  %7 = train.compare le, %5, %6 : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %zero = train.constant dense<100> : tensor<2x6x6xi64>
  %real = train.compare ne, %3, %zero : (tensor<2x6x6xi64>, tensor<2x6x6xi64>) -> tensor<2x6x6xi1>
  %8 = train.mul %4, %real : tensor<2x6x6xi1>
  %9 = train.broadcast %8 {broadcast_dimensions = array<i64: 0, 2, 3>} : (tensor<2x6x6xi1>) -> tensor<2x2x6x6xi1>
  %10 = train.constant dense<0xFF800000> : tensor<2x2x6x6xf32>
  %11 = train.select %9, %1, %10 : tensor<2x2x6x6xi1>, tensor<2x2x6x6xf32>
  // expected-remark@+1 {{documents are masked for all pairs of queries and keys: another condition of the mask is not a range of keys}}
  %12 = train.softmax %11 {dim = 3 : i64} : tensor<2x2x6x6xf32>
  %13 = train.dot_general %12, %v {lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 2>} : (tensor<2x2x6x6xf32>, tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %13 : tensor<2x2x6x4xf32>
}
