// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(recognize-functions,canonicalize))' | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(recognize-functions,canonicalize))' > %t.mlir
// RUN: tessera-interp %s --compare=%t.mlir --function=log_sigmoid --rtol=1e-5 --atol=1e-6 --quiet
// RUN: tessera-interp %s --compare=%t.mlir --function=log_one_minus_sigmoid --rtol=1e-5 --atol=1e-6 --quiet
// RUN: tessera-interp %s --compare=%t.mlir --function=sums --rtol=1e-5 --atol=1e-6 --quiet
// RUN: tessera-interp %s --compare=%t.mlir --function=differences --rtol=1e-5 --atol=1e-6 --quiet
// No diagnostic: other numbers than 1 are ordinary arithmetic, which stays as it is.

// CHECK-LABEL: func @log_sigmoid
// CHECK-NEXT: %[[N:.*]] = train.neg %arg0
// CHECK-NEXT: %[[P:.*]] = train.softplus %[[N]]
// CHECK-NEXT: %[[Y:.*]] = train.neg %[[P]]
// CHECK-NEXT: return %[[Y]]
func.func @log_sigmoid(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = train.sigmoid %x : tensor<8xf32>
  %y = train.log %s : tensor<8xf32>
  return %y : tensor<8xf32>
}

// As newer exporters write it.
// CHECK-LABEL: func @log_one_plus_minus_sigmoid
// CHECK-NEXT: %[[P:.*]] = train.softplus %arg0
// CHECK-NEXT: %[[Y:.*]] = train.neg %[[P]]
// CHECK-NEXT: return %[[Y]]
func.func @log_one_plus_minus_sigmoid(%x: tensor<8xf32>) -> tensor<8xf32> {
  %one = train.constant dense<1.0> : tensor<8xf32>
  %s = train.sigmoid %x : tensor<8xf32>
  %n = train.neg %s : tensor<8xf32>
  %d = train.add %n, %one : tensor<8xf32>
  %y = train.log %d : tensor<8xf32>
  return %y : tensor<8xf32>
}

// The number may be repeated, and the sigmoid of the negation is the one of the operand again.
// CHECK-LABEL: func @log_one_minus_sigmoid
// CHECK-NEXT: %[[P:.*]] = train.softplus %arg0
// CHECK-NEXT: %[[Y:.*]] = train.neg %[[P]]
// CHECK-NEXT: return %[[Y]]
func.func @log_one_minus_sigmoid(%x: tensor<8xf32>) -> tensor<8xf32> {
  %one = train.constant dense<1.0> : tensor<f32>
  %ones = train.broadcast %one {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<8xf32>
  %s = train.sigmoid %x : tensor<8xf32>
  %d = train.sub %ones, %s : tensor<8xf32>
  %y = train.log %d : tensor<8xf32>
  return %y : tensor<8xf32>
}

// log(1 + exp x), log(1 + x^2), log(1 - x) and log(exp x + exp y).
// CHECK-LABEL: func @sums
// CHECK-DAG: train.softplus %arg0
// CHECK-DAG: %[[SQUARE:.*]] = train.mul %arg0, %arg0
// CHECK-DAG: train.log1p %[[SQUARE]]
// CHECK-DAG: %[[MINUS:.*]] = train.neg %arg1
// CHECK-DAG: train.log1p %[[MINUS]]
// CHECK-DAG: %[[D:.*]] = train.sub %arg0, %arg1
// CHECK-DAG: %[[A:.*]] = train.abs %[[D]]
// CHECK-DAG: %[[N:.*]] = train.neg %[[A]]
// CHECK-DAG: %[[S:.*]] = train.softplus %[[N]]
// CHECK-DAG: %[[TOP:.*]] = train.max %arg0, %arg1
// CHECK-DAG: train.add %[[TOP]], %[[S]]
// CHECK-NOT: train.log %
// CHECK: return
func.func @sums(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %one = train.constant dense<1.0> : tensor<8xf32>
  %ex = train.exp %x : tensor<8xf32>
  %ey = train.exp %y : tensor<8xf32>
  %0 = train.add %ex, %one : tensor<8xf32>
  %a = train.log %0 : tensor<8xf32>
  %square = train.mul %x, %x : tensor<8xf32>
  %1 = train.add %one, %square : tensor<8xf32>
  %b = train.log %1 : tensor<8xf32>
  %2 = train.sub %one, %y : tensor<8xf32>
  %c = train.log %2 : tensor<8xf32>
  %3 = train.add %ex, %ey : tensor<8xf32>
  %d = train.log %3 : tensor<8xf32>
  return %a, %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func @differences
// CHECK-DAG: %[[E:.*]] = train.expm1 %arg0
// CHECK-DAG: train.expm1 %arg0
// CHECK-DAG: %[[N:.*]] = train.neg %arg0
// CHECK-DAG: train.sigmoid %[[N]]
// CHECK-NOT: train.exp %
// CHECK: return
func.func @differences(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %one = train.constant dense<1.0> : tensor<8xf32>
  %minus = train.constant dense<-1.0> : tensor<8xf32>
  %e = train.exp %x : tensor<8xf32>
  %a = train.sub %e, %one : tensor<8xf32>
  %b = train.add %e, %minus : tensor<8xf32>
  %c = train.sub %one, %e : tensor<8xf32>
  %s = train.sigmoid %x : tensor<8xf32>
  %d = train.sub %one, %s : tensor<8xf32>
  %1 = train.add %one, %e : tensor<8xf32>
  %f = train.div %one, %1 : tensor<8xf32>
  return %a, %b, %c, %d, %f : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func @other_numbers
// CHECK: train.sigmoid
// CHECK: train.sub
// CHECK: train.log %
func.func @other_numbers(%x: tensor<8xf32>) -> tensor<8xf32> {
  %two = train.constant dense<2.0> : tensor<8xf32>
  %s = train.sigmoid %x : tensor<8xf32>
  %d = train.sub %two, %s : tensor<8xf32>
  %y = train.log %d : tensor<8xf32>
  return %y : tensor<8xf32>
}
