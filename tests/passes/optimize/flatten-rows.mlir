// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,canonicalize,cse,flatten-parameters{wrap=none},canonicalize,cse))' | FileCheck %s

// The gradient of a parameter of which rows are read is that of the rows, between zeros, and no padded value: it is in memory,
// part by part, where --dump finds it.
// CHECK-LABEL: func @rows
// CHECK-NOT: train.pad
// CHECK-DAG: %[[BEFORE:.*]] = train.constant {{.*}}dense<0.000000e+00> : tensor<4xf32>
// CHECK-DAG: %[[AFTER:.*]] = train.constant {{.*}}dense<0.000000e+00> : tensor<8xf32>
// CHECK-DAG: %[[ROWS:.*]] = train.reshape %{{.*}} : (tensor<3x4xf32>) -> tensor<12xf32>
// CHECK: %[[G:.*]] = train.concat %[[BEFORE]], %[[ROWS]], %[[AFTER]]
// CHECK: return %{{.*}}, %[[G]] :
func.func @rows(%p: tensor<6x4xf32> {train.role = "param", train.name = "p"},
                %x: tensor<3x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %0 = train.slice %p {starts = array<i64: 1, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<3x4xf32>
  %1 = train.mul %0, %x : tensor<3x4xf32>
  %2 = train.reduce sum, %1 {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// Not of columns, and not of every second row: these are padded.
// CHECK-LABEL: func @columns
// CHECK: %[[C:.*]] = train.pad {{.*}} -> tensor<6x4xf32>
// CHECK: %[[F:.*]] = train.reshape %[[C]]
// CHECK: return %{{.*}}, %[[F]] :
func.func @columns(%p: tensor<6x4xf32> {train.role = "param", train.name = "p"},
                   %x: tensor<6x3xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %0 = train.slice %p {starts = array<i64: 0, 1>, limits = array<i64: 6, 4>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<6x3xf32>
  %1 = train.mul %0, %x : tensor<6x3xf32>
  %2 = train.reduce sum, %1 {dimensions = array<i64: 0, 1>} : (tensor<6x3xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// CHECK-LABEL: func @even_rows
// CHECK: %[[E:.*]] = train.pad {{.*}} -> tensor<6x4xf32>
// CHECK: %[[F:.*]] = train.reshape %[[E]]
// CHECK: return %{{.*}}, %[[F]] :
func.func @even_rows(%p: tensor<6x4xf32> {train.role = "param", train.name = "p"},
                     %x: tensor<3x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %0 = train.slice %p {starts = array<i64: 0, 0>, limits = array<i64: 6, 4>, strides = array<i64: 2, 1>} : (tensor<6x4xf32>) -> tensor<3x4xf32>
  %1 = train.mul %0, %x : tensor<3x4xf32>
  %2 = train.reduce sum, %1 {dimensions = array<i64: 0, 1>} : (tensor<3x4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
