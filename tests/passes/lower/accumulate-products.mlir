// RUN: tessera-opt %s --accumulate-products | FileCheck %s
// RUN: tessera-opt %s --accumulate-products -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --rtol=1e-5 --atol=1e-6 --quiet
// RUN: tessera-opt %s --decompose --accumulate-products --fuse --outline-kernels --to-exec | FileCheck %s --check-prefix=EXEC
// No diagnostic: a product that stays apart costs one more addition and nothing else.

// The gradient of a unit: the weight's product adds to its part of the sum, the bias' kernel to its own, padding stays.
// All of it happens in the sum's memory.
// CHECK-LABEL: func.func @unit
// CHECK:         ^bb0(%{{.*}}: tensor<i64>, %[[X:.*]]: tensor<2x4xf32>, %[[G:.*]]: tensor<2x4xf32>, %[[SUM:.*]]: tensor<24xf32>):
// CHECK:           %[[PART:.*]] = train.slice %[[SUM]] {limits = array<i64: 16>, starts = array<i64: 0>
// CHECK:           %[[OLD:.*]] = train.reshape %[[PART]]
// CHECK:           %[[W:.*]] = exec.add_product %[[OLD]], %[[X]], %[[G]]
// CHECK:           %[[RED:.*]] = train.reduce sum, %[[G]]
// CHECK:           %[[BIAS:.*]] = train.slice %[[SUM]] {limits = array<i64: 20>, starts = array<i64: 16>
// CHECK:           %[[B:.*]] = train.add %[[BIAS]], %[[RED]]
// CHECK:           %[[W1:.*]] = train.reshape %[[W]]
// CHECK:           %[[PAD:.*]] = train.slice %[[SUM]] {limits = array<i64: 24>, starts = array<i64: 20>
// CHECK:           %[[NEXT:.*]] = train.concat %[[W1]], %[[B]], %[[PAD]]
// CHECK:           exec.yield %[[NEXT]]
// EXEC-LABEL: exec.program @unit
// EXEC:         %[[SUM:.*]] = exec.buffer %[[SLOT:.*]] + 0 : memref<96xi8> to memref<24xf32>
// EXEC:         %[[W:.*]] = exec.buffer %[[SLOT]] + 0 : memref<96xi8> to memref<4x4xf32>
// EXEC:         %[[B:.*]] = exec.buffer %[[SLOT]] + 64 : memref<96xi8> to memref<4xf32>
// EXEC:         exec.fill %[[SUM]] with 0.000000e+00
// EXEC:         exec.loop 3 {
// EXEC-NEXT:      exec.gemm %{{.*}}, %{{.*}} -> %[[W]] {beta = 1.000000e+00 : f32}
// EXEC-NEXT:      exec.launch @{{.*}}(%{{.*}}, %[[B]]) -> (%[[B]])
// EXEC-NEXT:    }
func.func @unit(%x: tensor<3x2x4xf32>, %g: tensor<3x2x4xf32>) -> tensor<24xf32> {
  %zero = train.constant dense<0.0> : tensor<24xf32>
  %0 = exec.repeat count = 3 batch(%x, %g) init(%zero) : (tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<24xf32>) -> tensor<24xf32> {
  ^bb0(%i: tensor<i64>, %mx: tensor<2x4xf32>, %mg: tensor<2x4xf32>, %sum: tensor<24xf32>):
    %w = train.dot_general %mx, %mg {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %b = train.reduce sum, %mg {dimensions = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<4xf32>
    %w1 = train.reshape %w : (tensor<4x4xf32>) -> tensor<16xf32>
    %pad = train.constant dense<0.0> : tensor<4xf32>
    %c = train.concat %w1, %b, %pad {dim = 0 : i64} : (tensor<16xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<24xf32>
    %next = train.add %sum, %c : tensor<24xf32>
    exec.yield %next : tensor<24xf32>
  }
  return %0 : tensor<24xf32>
}

// A tied embedding: the product of the output layer adds to the sum, then rows are added where it wrote.
// CHECK-LABEL: func.func @tied
// CHECK:           %[[OLD:.*]] = train.reshape
// CHECK:           %[[P:.*]] = exec.add_product %[[OLD]]
// CHECK:           train.scatter_add_rows %[[P]]
// EXEC-LABEL: exec.program @tied
// EXEC:         exec.loop 2 {
// EXEC-NEXT:      exec.gemm %{{.*}}, %{{.*}} -> %[[TABLE:.*]] {beta = 1.000000e+00 : f32}
// EXEC-NEXT:      exec.launch @{{.*}}(%[[TABLE]], {{.*}}) -> (%[[TABLE]])
// EXEC-NEXT:    }
func.func @tied(%x: tensor<2x3x4xf32>, %g: tensor<2x3x5xf32>, %rows: tensor<2x3xi32>, %zero: tensor<20xf32>) -> tensor<20xf32> {
  %0 = exec.repeat count = 2 batch(%x, %g, %rows) init(%zero) : (tensor<2x3x4xf32>, tensor<2x3x5xf32>, tensor<2x3xi32>, tensor<20xf32>) -> tensor<20xf32> {
  ^bb0(%i: tensor<i64>, %mx: tensor<3x4xf32>, %mg: tensor<3x5xf32>, %index: tensor<3xi32>, %sum: tensor<20xf32>):
    %p = train.dot_general %mg, %mx {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<3x5xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
    %t = train.scatter_add_rows %p, %index, %mx : (tensor<5x4xf32>, tensor<3xi32>, tensor<3x4xf32>) -> tensor<5x4xf32>
    %u = train.reshape %t : (tensor<5x4xf32>) -> tensor<20xf32>
    %next = train.add %sum, %u : tensor<20xf32>
    exec.yield %next : tensor<20xf32>
  }
  return %0 : tensor<20xf32>
}

// Without a loop too: the later of two products adds to the earlier one's place.
// CHECK-LABEL: func.func @pair
// CHECK:         %[[A:.*]] = train.dot_general
// CHECK:         %[[B:.*]] = exec.add_product %[[A]]
// CHECK:         %[[C:.*]] = exec.add_product %[[B]]
// CHECK-NOT:     train.add
// CHECK:         return %[[C]]
// EXEC-LABEL: exec.program @pair
// EXEC:         exec.gemm %{{.*}}, %{{.*}} -> %[[Y:.*]] : memref
// EXEC-NEXT:    exec.gemm %{{.*}}, %{{.*}} -> %[[Y]] {beta = 1.000000e+00 : f32}
// EXEC-NEXT:    exec.gemm %{{.*}}, %{{.*}} -> %[[Y]] {beta = 1.000000e+00 : f32}
func.func @pair(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %a = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %b = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %s = train.add %b, %a : tensor<2x3xf32>
  %c = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %t = train.add %s, %c : tensor<2x3xf32>
  return %t : tensor<2x3xf32>
}

// Not applied: the product is read by something else too.
// CHECK-LABEL: func.func @read_twice
// CHECK-NOT:     exec.add_product
// CHECK:         train.add
func.func @read_twice(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %a = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %b = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %s = train.add %a, %b : tensor<2x3xf32>
  return %s, %b : tensor<2x3xf32>, tensor<2x3xf32>
}

// Not applied: a collective stands between the products and the sum, which is of another size.
// CHECK-LABEL: func.func @no_product
// CHECK-NOT:     exec.add_product
// CHECK:         %[[N:.*]] = train.add
// CHECK:         exec.yield %[[N]]
func.func @no_product(%x: tensor<2x4xf32>) -> tensor<4xf32> {
  %zero = train.constant dense<0.0> : tensor<4xf32>
  %0 = exec.repeat count = 2 batch(%x) init(%zero) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4xf32>, %sum: tensor<4xf32>):
    %e = train.exp %m : tensor<4xf32>
    %next = train.add %sum, %e : tensor<4xf32>
    exec.yield %next : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// The old sum is read again after the product would have overwritten it: the new one is made elsewhere, then copied.
// EXEC-LABEL: exec.program @read_later
// EXEC:         exec.loop 2 {
// EXEC-NEXT:      exec.copy %[[SUM:.*]] -> %[[NEW:.*]] :
// EXEC-NEXT:      exec.gemm %{{.*}}, %{{.*}} -> %[[NEW]] {beta = 1.000000e+00 : f32}
// EXEC-NEXT:      exec.gemm %[[SUM]], %{{.*}} -> %
// EXEC:           exec.copy %[[NEW]] -> %[[SUM]]
func.func @read_later(%x: tensor<2x4x4xf32>, %zero: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0:2 = exec.repeat count = 2 batch(%x) init(%zero, %zero) : (tensor<2x4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  ^bb0(%i: tensor<i64>, %m: tensor<4x4xf32>, %sum: tensor<4x4xf32>, %other: tensor<4x4xf32>):
    %next = exec.add_product %sum, %m, %m {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %late = train.dot_general %sum, %m {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    exec.yield %next, %late : tensor<4x4xf32>, tensor<4x4xf32>
  }
  return %0#0, %0#1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// Slices of one packed weight multiply different inputs: its gradient is a join within the join of the unit, and made
// before what else the unit holds.
// CHECK-LABEL: func.func @packed
// CHECK:         ^bb0(%{{.*}}: tensor<i64>, %{{.*}}: tensor<2x4xf32>, %{{.*}}: tensor<2x4xf32>, %[[SUM:.*]]: tensor<40xf32>):
// CHECK:           %[[A:.*]] = exec.add_product
// CHECK:           %[[B:.*]] = exec.add_product
// CHECK:           %[[W:.*]] = train.concat %[[A]], %[[B]]
// CHECK:           %[[FLAT:.*]] = train.reshape %[[W]]
// CHECK:           %[[BIAS:.*]] = train.add
// CHECK:           %[[PAD:.*]] = train.slice %[[SUM]] {limits = array<i64: 40>, starts = array<i64: 36>
// CHECK:           train.concat %[[FLAT]], %[[BIAS]], %[[PAD]]
// EXEC-LABEL: exec.program @packed
// EXEC:         exec.loop 3 {
// EXEC-NEXT:      exec.gemm %{{.*}}, %{{.*}} -> %{{.*}} {beta = 1.000000e+00 : f32}
// EXEC-NEXT:      exec.gemm %{{.*}}, %{{.*}} -> %{{.*}} {beta = 1.000000e+00 : f32}
// EXEC-NEXT:      exec.launch
// EXEC-NEXT:    }
func.func @packed(%x: tensor<3x2x4xf32>, %g: tensor<3x2x4xf32>) -> tensor<40xf32> {
  %zero = train.constant dense<0.0> : tensor<40xf32>
  %0 = exec.repeat count = 3 batch(%x, %g) init(%zero) : (tensor<3x2x4xf32>, tensor<3x2x4xf32>, tensor<40xf32>) -> tensor<40xf32> {
  ^bb0(%i: tensor<i64>, %mx: tensor<2x4xf32>, %mg: tensor<2x4xf32>, %sum: tensor<40xf32>):
    %a = train.dot_general %mx, %mg {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %b = train.dot_general %mg, %mx {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
    %w = train.concat %a, %b {dim = 0 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %flat = train.reshape %w : (tensor<8x4xf32>) -> tensor<32xf32>
    %bias = train.reduce sum, %mg {dimensions = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<4xf32>
    %pad = train.constant dense<0.0> : tensor<4xf32>
    %c = train.concat %flat, %bias, %pad {dim = 0 : i64} : (tensor<32xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<40xf32>
    %next = train.add %sum, %c : tensor<40xf32>
    exec.yield %next : tensor<40xf32>
  }
  return %0 : tensor<40xf32>
}
