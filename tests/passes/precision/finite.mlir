// Finite numbers that bf16 would round to infinity are held at its largest number where they are rounded; infinities stay.
// RUN: tessera-opt %s --split-input-file --cast-precision | FileCheck %s
// RUN: grep -v ^// %s > %t.mlir
// RUN: tessera-opt %t.mlir --cast-precision -o %t.cast.mlir
// RUN: tessera-interp %t.cast.mlir --compare=%t.mlir --function=hidden --rtol=0.05 --atol=0.1 --quiet
// RUN: tessera-interp %t.cast.mlir --function=edges --quiet
// RUN: tessera-interp %t.cast.mlir --function=padded --quiet

// The fill of scores: what is added to it later is of f32 still, what is stored is held.
// CHECK-LABEL: func.func @hidden
// CHECK:         %[[FILLED:.*]] = train.select
// CHECK:         %[[LIMIT:.*]] = train.constant dense<3.39617753E+38>
// CHECK:         %[[BEYOND:.*]] = train.compare ge, %{{.*}}, %[[LIMIT]]
// CHECK:         %[[HELD:.*]] = train.select %[[BEYOND]]
// CHECK:         %[[ROUNDED:.*]] = train.convert %[[HELD]] : (tensor<2x4xf32>) -> tensor<2x4xbf16>
// CHECK:         train.softmax %[[ROUNDED]]
func.func @hidden(%u: tensor<16xf32> {train.role = "param", train.name = "u"}, %x: tensor<2x4xf32> {train.role = "input", train.name = "x"},
                  %keep: tensor<2x4xi1> {train.role = "input", train.name = "keep"})
    -> (tensor<2x4xf32> {train.role = "output", train.name = "p"}) {
  %w = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %smallest = train.constant dense<-3.40282347E+38> : tensor<2x4xf32>
  %s = train.select %keep, %y, %smallest : tensor<2x4xi1>, tensor<2x4xf32>
  %p = train.softmax %s {dim = 1 : i64} : tensor<2x4xf32>
  return %p : tensor<2x4xf32>
}

// -----

// Half a unit beyond the largest is the first that rounds to infinity: it and all finite numbers beyond become the largest; what
// rounds to that anyway, infinities and others stay. A constant is rounded so where it is joined with data.
// CHECK-LABEL: func.func @edges
func.func @edges(%u: tensor<16xf32> {train.role = "param", train.name = "u"}, %x: tensor<1x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<1x12xf32> {train.role = "output", train.name = "j"}) {
  %w = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  %edges = train.constant dense<[[0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7F7F8000, 0x7F7F7FFF, 0xFF7F0000, 0x3F800000]]> : tensor<1x8xf32>
  // CHECK: %[[J:.*]] = train.concat {{.*}} -> tensor<1x12xbf16>
  %j = train.concat %edges, %y {dim = 1 : i64} : (tensor<1x8xf32>, tensor<1x4xf32>) -> tensor<1x12xf32>
  %got = train.slice %j {starts = array<i64: 0, 0>, limits = array<i64: 1, 8>, strides = array<i64: 1, 1>} : (tensor<1x12xf32>) -> tensor<1x8xf32>
  %want = train.constant dense<[[0x7F7F0000, 0xFF7F0000, 0x7F800000, 0xFF800000, 0x7F7F0000, 0x7F7F0000, 0xFF7F0000, 0x3F800000]]> : tensor<1x8xf32>
  check.expect_eq %got, %want : tensor<1x8xf32>
  return %j : tensor<1x12xf32>
}

// -----

// Padding, too; that by an infinity stays.
// CHECK-LABEL: func.func @padded
// CHECK:         train.pad {{.*}}value = -3.38953{{[0-9]*}}E+38 : f64{{.*}} -> tensor<1x5xbf16>
// CHECK:         train.pad {{.*}}value = 0xFFF0000000000000 : f64{{.*}} -> tensor<1x5xbf16>
func.func @padded(%u: tensor<16xf32> {train.role = "param", train.name = "u"}, %x: tensor<1x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<1x5xf32> {train.role = "output", train.name = "p"}, tensor<1x5xf32> {train.role = "output", train.name = "q"}) {
  %w = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  %p = train.pad %y {low = array<i64: 0, 0>, high = array<i64: 0, 1>, interior = array<i64: 0, 0>, value = -3.4028234663852886E+38 : f64} : (tensor<1x4xf32>) -> tensor<1x5xf32>
  %q = train.pad %y {low = array<i64: 0, 0>, high = array<i64: 0, 1>, interior = array<i64: 0, 0>, value = 0xFFF0000000000000 : f64} : (tensor<1x4xf32>) -> tensor<1x5xf32>
  %got = train.slice %p {starts = array<i64: 0, 4>, limits = array<i64: 1, 5>, strides = array<i64: 1, 1>} : (tensor<1x5xf32>) -> tensor<1x1xf32>
  %want = train.constant dense<0xFF7F0000> : tensor<1x1xf32>
  check.expect_eq %got, %want : tensor<1x1xf32>
  return %p, %q : tensor<1x5xf32>, tensor<1x5xf32>
}

// -----

// A mask that is an input is added to scores: what is stored of the sum is held. Not so an input that a product reads: it is
// rounded to nearest.
// CHECK-LABEL: func.func @given
// CHECK-NOT:     train.select
// CHECK:         train.convert %arg1
// CHECK:         %[[SUM:.*]] = train.add
// CHECK:         %[[HELD:.*]] = train.select
// CHECK:         train.convert %[[HELD]]
// CHECK:         train.softmax
// What softmax gives is no such number.
// CHECK-NOT:     train.select
// CHECK:         return
func.func @given(%u: tensor<16xf32> {train.role = "param", train.name = "u"}, %x: tensor<2x4xf32> {train.role = "input", train.name = "x"},
                 %mask: tensor<2x4xf32> {train.role = "input", train.name = "mask"})
    -> (tensor<2x4xf32> {train.role = "output", train.name = "p"}) {
  %w = train.reshape %u : (tensor<16xf32>) -> tensor<4x4xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %s = train.add %y, %mask : tensor<2x4xf32>
  %p = train.softmax %s {dim = 1 : i64} : tensor<2x4xf32>
  %e = train.exp %p : tensor<2x4xf32>
  %z = train.dot_general %e, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}
