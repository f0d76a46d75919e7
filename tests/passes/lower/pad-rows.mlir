// Rows of products that are no multiple of 16 bytes.
// RUN: tessera-opt %s --pad-rows=min-length=16 --canonicalize | FileCheck %s
// RUN: tessera-opt %s --pad-rows=min-length=16 -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: tessera-opt %s --pad-rows=min-length=16 -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --atol=1e-5 --quiet
// RUN: tessera-opt %s --pad-rows=min-length=16 --decompose=gpu=true --canonicalize --cse --fuse --outline-kernels --to-exec | FileCheck %s --check-prefix=EXEC

// Logits of 37 classes: rows of 64 floats. The loss and the gradient see the whole table, the products the part that
// counts.
// CHECK-LABEL: func.func @loss
// CHECK:         %[[L:.*]] = train.dot_general %arg0, %arg1 {{.*}} -> tensor<8x37xf32>
// CHECK:         %[[T:.*]] = train.concat %[[L]], %{{.*}} {dim = 1 : i64} : (tensor<8x37xf32>, tensor<8x27xf32>) -> tensor<8x64xf32>
// CHECK:         train.cross_entropy %[[T]], %arg2
// CHECK:         train.iota {dim = 1 : i64} : tensor<8x64xi32>
// CHECK:         %[[G:.*]] = train.sub %{{.*}} : tensor<8x64xf32>
// CHECK:         %[[A:.*]] = train.slice %[[G]] {{.*}} -> tensor<8x37xf32>
// CHECK:         train.dot_general %{{.*}}, %arg1
// The product writes into the table, and products read rows of 64: nothing is copied.
// EXEC-LABEL: exec.program @loss
// EXEC:         exec.gemm {{.*}} -> memref<8x37xf32, strided<[64, 1]>>
// EXEC:         exec.fill %{{.*}} with 0xFFF0000000000000
// EXEC:         exec.launch @{{.*}}exp({{.*}}memref<8x64xf32>
// EXEC-NOT:     exec.copy
// EXEC:         exec.gemm {{.*}}memref<8x37xf32, strided<[64, 1]>>
// EXEC:         exec.gemm {{.*}}memref<37x8xf32, strided<[1, 64]>>
// EXEC-NOT:     exec.copy
func.func @loss(%x: tensor<8x16xf32>, %w: tensor<37x16xf32>, %t: tensor<8xi32> {train.index_bound = 37 : i64}) -> (tensor<8xf32>, tensor<8x16xf32>, tensor<37x16xf32>) {
  %l = train.dot_general %x, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<37x16xf32>) -> tensor<8x37xf32>
  %loss, %lse = train.cross_entropy %l, %t : (tensor<8x37xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  %b = train.broadcast %lse {broadcast_dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<8x37xf32>
  %d = train.sub %l, %b : tensor<8x37xf32>
  %p = train.exp %d : tensor<8x37xf32>
  %i = train.iota {dim = 1 : i64} : tensor<8x37xi32>
  %tb = train.broadcast %t {broadcast_dimensions = array<i64: 0>} : (tensor<8xi32>) -> tensor<8x37xi32>
  %c = train.compare eq, %i, %tb : (tensor<8x37xi32>, tensor<8x37xi32>) -> tensor<8x37xi1>
  %one = train.constant dense<1.0> : tensor<8x37xf32>
  %zero = train.constant dense<0.0> : tensor<8x37xf32>
  %h = train.select %c, %one, %zero : tensor<8x37xi1>, tensor<8x37xf32>
  %g = train.sub %p, %h : tensor<8x37xf32>
  %dx = train.dot_general %g, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<8x37xf32>, tensor<37x16xf32>) -> tensor<8x16xf32>
  %dw = train.dot_general %g, %x {lhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<8x37xf32>, tensor<8x16xf32>) -> tensor<37x16xf32>
  return %loss, %dx, %dw : tensor<8xf32>, tensor<8x16xf32>, tensor<37x16xf32>
}

// Rows of 32 floats are whole cache lines, and 9 are too few to matter.
// CHECK-LABEL: func.func @aligned
// CHECK-NOT:     train.concat
func.func @aligned(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %v: tensor<16x9xf32>) -> (tensor<8x32xf32>, tensor<8x9xf32>) {
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = train.dot_general %x, %v {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<8x16xf32>, tensor<16x9xf32>) -> tensor<8x9xf32>
  %2 = train.neg %0 : tensor<8x32xf32>
  %3 = train.neg %1 : tensor<8x9xf32>
  return %2, %3 : tensor<8x32xf32>, tensor<8x9xf32>
}

// A result of the step has its own shape.
// CHECK-LABEL: func.func @returned
// CHECK-NOT:     train.concat
// REMARK: remark: rows of {{[0-9]+}} elements are not padded: it is read by func.return
func.func @returned(%x: tensor<8x16xf32>, %w: tensor<16x37xf32>) -> tensor<8x37xf32> {
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<8x16xf32>, tensor<16x37xf32>) -> tensor<8x37xf32>
  return %0 : tensor<8x37xf32>
}

// The tail would count.
// CHECK-LABEL: func.func @smoothing
// CHECK-NOT:     train.concat
// REMARK: remark: rows of {{[0-9]+}} elements are not padded: label smoothing adds up whole rows
func.func @smoothing(%x: tensor<8x16xf32>, %w: tensor<16x37xf32>, %t: tensor<8xi32> {train.index_bound = 37 : i64}) -> tensor<8xf32> {
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<8x16xf32>, tensor<16x37xf32>) -> tensor<8x37xf32>
  %loss, %lse = train.cross_entropy %0, %t {label_smoothing = 0.1 : f64} : (tensor<8x37xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %loss : tensor<8xf32>
}

// A mask of the whole width cannot be made wider for nothing.
// CHECK-LABEL: func.func @other_operand
// CHECK-NOT:     train.concat
// REMARK: remark: rows of {{[0-9]+}} elements are not padded: another operand of train.add cannot be made wider
func.func @other_operand(%x: tensor<8x16xf32>, %w: tensor<16x37xf32>, %m: tensor<8x37xf32>) -> tensor<8x37xf32> {
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_batch = array<i64>, rhs_contract = array<i64: 0>} : (tensor<8x16xf32>, tensor<16x37xf32>) -> tensor<8x37xf32>
  %1 = train.add %0, %m : tensor<8x37xf32>
  return %1 : tensor<8x37xf32>
}
