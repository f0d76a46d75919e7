// RUN: tessera-opt %s --fuse | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: tessera-opt %s --fuse=gpu=true | FileCheck %s --check-prefixes=CHECK,GPU
// RUN: tessera-opt %s --fuse -o %t.mlir
// RUN: tessera-interp %t.mlir --compare=%s --rtol=1e-6 --atol=1e-6 --quiet
// RUN: tessera-opt %s --fuse=gpu=true -o %t.gpu.mlir
// RUN: tessera-interp %t.gpu.mlir --compare=%s --rtol=1e-6 --atol=1e-6 --quiet

// What a kernel of some ops reads and stores.

// Rows of what is in memory lie there behind each other: the kernel reads them as they are, in any shape.
// CHECK-LABEL: func.func @rows
// CHECK:         %[[S:.*]] = train.slice %arg0
// CHECK:         %[[R:.*]] = train.reshape %[[S]]
// CHECK:         exec.fusion "elementwise"(%[[R]]) {{.*}} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
func.func @rows(%x: tensor<6x8xf32>) -> tensor<4x4xf32> {
  %s = train.slice %x {starts = array<i64: 2, 0>, limits = array<i64: 4, 8>, strides = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<2x8xf32>
  %r = train.reshape %s : (tensor<2x8xf32>) -> tensor<4x4xf32>
  %y = train.exp %r : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// So does a part of one row.
// CHECK-LABEL: func.func @part_of_row
// CHECK:         %[[S:.*]] = train.slice %arg0
// CHECK:         exec.fusion "elementwise"(%[[S]])
func.func @part_of_row(%x: tensor<6x8xf32>) -> tensor<1x3xf32> {
  %s = train.slice %x {starts = array<i64: 2, 1>, limits = array<i64: 3, 4>, strides = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<1x3xf32>
  %y = train.exp %s : tensor<1x3xf32>
  return %y : tensor<1x3xf32>
}

// Not applied because there are gaps between parts of several rows: the kernel has the slice in it.
// CHECK-LABEL: func.func @columns
// CHECK-NEXT:    exec.fusion "elementwise"(%arg0)
// CHECK:           train.slice
// CHECK-NEXT:      train.exp
func.func @columns(%x: tensor<6x8xf32>) -> tensor<6x4xf32> {
  %s = train.slice %x {starts = array<i64: 0, 2>, limits = array<i64: 6, 6>, strides = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<6x4xf32>
  %y = train.exp %s : tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}

// Nor for every second row.
// CHECK-LABEL: func.func @steps
// CHECK-NEXT:    exec.fusion "elementwise"(%arg0)
// CHECK:           train.slice
// CHECK-NEXT:      train.exp
func.func @steps(%x: tensor<6x8xf32>) -> tensor<3x8xf32> {
  %s = train.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 2, 1>} : (tensor<6x8xf32>) -> tensor<3x8xf32>
  %y = train.exp %s : tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// Not applied because the kernel itself computes what it is a view of: that is in no memory.
// CHECK-LABEL: func.func @of_member
// CHECK-NEXT:    exec.fusion "elementwise"(%arg0, %arg1)
// CHECK:           train.exp
// CHECK-NEXT:      train.slice
// CHECK-NEXT:      train.reshape
// CHECK-NEXT:      train.add
// CHECK-NEXT:      exec.yield %{{[0-9]+}} : tensor<4x4xf32>
func.func @of_member(%x: tensor<6x8xf32>, %z: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = train.exp %x : tensor<6x8xf32>
  %s = train.slice %e {starts = array<i64: 2, 0>, limits = array<i64: 4, 8>, strides = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<2x8xf32>
  %r = train.reshape %s : (tensor<2x8xf32>) -> tensor<4x4xf32>
  %y = train.add %r, %z : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// Of three members the kernel stores the last one and the one that a library call reads through a view; the first is
// nobody else's.
// CHECK-LABEL: func.func @stored
// CHECK:         %[[F:.*]]:2 = exec.fusion "elementwise"(%arg0)
// CHECK:           %[[B:.*]] = train.tanh
// CHECK:           %[[C:.*]] = train.sin
// CHECK:           exec.yield %[[B]], %[[C]]
// CHECK:         train.transpose %[[F]]#0
// CHECK:         return %[[F]]#1
func.func @stored(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = train.exp %x : tensor<4x4xf32>
  %b = train.tanh %a : tensor<4x4xf32>
  %c = train.sin %b : tensor<4x4xf32>
  %t = train.transpose %b {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = train.dot_general %t, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %c, %p : tensor<4x4xf32>, tensor<4x4xf32>
}

// What a loop reads is stored, though a kernel of the loop reads it: the two are no one kernel.
// CHECK-LABEL: func.func @loop
// CHECK:         %[[F:.*]]:2 = exec.fusion "elementwise"(%arg0)
// CHECK:           %[[A:.*]] = train.exp
// CHECK:           %[[B:.*]] = train.tanh
// CHECK:           exec.yield %[[A]], %[[B]]
// CHECK:         exec.repeat
// CHECK:           exec.fusion "elementwise"(%{{.*}}, %[[F]]#0)
func.func @loop(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = train.exp %x : tensor<4xf32>
  %b = train.tanh %a : tensor<4xf32>
  %sum = exec.repeat count = 3 init(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %acc: tensor<4xf32>):
    %next = train.add %acc, %a : tensor<4xf32>
    exec.yield %next : tensor<4xf32>
  }
  return %b, %sum : tensor<4xf32>, tensor<4xf32>
}

// A broadcast that a library call reads, through a transpose that needs no kernel, is written out by a kernel; so what it
// is of is stored. One that only kernels read is nowhere.
// CHECK-LABEL: func.func @broadcasts
// CHECK-NEXT:    %[[F:.*]]:2 = exec.fusion "elementwise"(%arg0, %arg1)
// CHECK:           %[[A:.*]] = train.exp
// CHECK-NEXT:      %[[B:.*]] = train.broadcast
// CHECK-NEXT:      %[[C:.*]] = train.mul %[[A]], %[[B]]
// CHECK-NEXT:      exec.yield %[[A]], %[[C]]
// CHECK:         %[[D:.*]] = exec.fusion "elementwise"(%[[F]]#0)
// CHECK:           train.broadcast
// CHECK-NEXT:      exec.yield
// CHECK:         train.transpose %[[D]]
func.func @broadcasts(%x: tensor<4x4xf32>, %y: tensor<4xf32>) -> (tensor<4x4xf32>, tensor<2x4x4xf32>) {
  %a = train.exp %x : tensor<4x4xf32>
  %b = train.broadcast %y {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<4x4xf32>
  %c = train.mul %a, %b : tensor<4x4xf32>
  %d = train.broadcast %a {broadcast_dimensions = array<i64: 1, 2>} : (tensor<4x4xf32>) -> tensor<2x4x4xf32>
  %t = train.transpose %d {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %p = train.dot_general %t, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<2x4x4xf32>, tensor<4x4xf32>) -> tensor<2x4x4xf32>
  return %c, %p : tensor<4x4xf32>, tensor<2x4x4xf32>
}

// On a GPU an input in two shapes is one, so that a thread holds its elements once.
// CHECK-LABEL: func.func @shapes
// GPU-NEXT:      exec.fusion "elementwise"(%arg0, %arg1) {{.*}} : (tensor<4x16xf32>, tensor<64xf32>)
// GPU:             train.reshape
// CPU-NEXT:      %[[R:.*]] = train.reshape %arg0
// CPU-NEXT:      exec.fusion "elementwise"(%arg0, %[[R]], %arg1)
func.func @shapes(%x: tensor<4x16xf32>, %z: tensor<64xf32>) -> tensor<4x16xf32> {
  %a = train.exp %x : tensor<4x16xf32>
  %r = train.reshape %x : (tensor<4x16xf32>) -> tensor<64xf32>
  %b = train.mul %r, %z : tensor<64xf32>
  %c = train.reshape %b : (tensor<64xf32>) -> tensor<4x16xf32>
  %y = train.add %a, %c : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
