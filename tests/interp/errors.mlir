// RUN: not tessera-interp %s --function=gather 2>&1 | FileCheck %s --check-prefix=GATHER
// RUN: not tessera-interp %s --function=division 2>&1 | FileCheck %s --check-prefix=DIVISION
// RUN: not tessera-interp %s --function=target 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not tessera-interp %s --function=linear_target 2>&1 | FileCheck %s --check-prefix=LINEAR
// RUN: not tessera-interp %s --function=linear_target_grad 2>&1 | FileCheck %s --check-prefix=LINEAR
// RUN: not tessera-interp %s --function=expect 2>&1 | FileCheck %s --check-prefix=EXPECT
// RUN: not tessera-interp %s --function=mesh 2>&1 | FileCheck %s --check-prefix=MESH
// RUN: not tessera-interp %s --function=future 2>&1 | FileCheck %s --check-prefix=FUTURE
// RUN: not tessera-interp %s --function=resource 2>&1 | FileCheck %s --check-prefix=RESOURCE
// RUN: not tessera-interp %s --function=missing 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not tessera-interp %t-absent.mlir 2>&1 | FileCheck %s --check-prefix=ABSENT

// MISSING: error: there is no function 'missing'
// ABSENT: error: cannot open input file

// GATHER: error: index at [1] is 3, expected at least 0 and less than 3
func.func @gather(%table: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %i = train.constant dense<[0, 3]> : tensor<2xi32>
  %r = train.gather_rows %table, %i : (tensor<3x2xf32>, tensor<2xi32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

// DIVISION: error: integer division by zero at [1]
func.func @division() -> tensor<2xi32> {
  %a = train.constant dense<[4, 3]> : tensor<2xi32>
  %b = train.constant dense<[2, 0]> : tensor<2xi32>
  %r = train.div %a, %b : tensor<2xi32>
  return %r : tensor<2xi32>
}

// TARGET: error: target at [0] is 5, expected at least 0 and less than 3
func.func @target(%x: tensor<1x3xf32>) -> tensor<1xf32> {
  %t = train.constant dense<5> : tensor<1xi32>
  %loss, %lse = train.cross_entropy %x, %t : (tensor<1x3xf32>, tensor<1xi32>) -> (tensor<1xf32>, tensor<1xf32>)
  return %loss : tensor<1xf32>
}

// LINEAR: error: target at [1] is 5, expected at least 0 and less than 5
func.func @linear_target(%x: tensor<2x4xf32>, %w: tensor<5x4xf32>) -> tensor<2xf32> {
  %t = train.constant dense<[4, 5]> : tensor<2xi32>
  %loss, %lse = train.linear_cross_entropy %x, %w, %t {weight_dim = 1 : i64} : (tensor<2x4xf32>, tensor<5x4xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %loss : tensor<2xf32>
}
func.func @linear_target_grad(%x: tensor<2x4xf32>, %w: tensor<5x4xf32>, %g: tensor<2xf32>) -> tensor<2x4xf32> {
  %t = train.constant dense<[4, 5]> : tensor<2xi32>
  %loss, %lse, %dx, %dw = train.linear_cross_entropy_grad %x, %w, %t, %g {weight_dim = 1 : i64} : (tensor<2x4xf32>, tensor<5x4xf32>, tensor<2xi32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2x4xf32>, tensor<5x4xf32>)
  return %dx : tensor<2x4xf32>
}

// EXPECT: error: 'check.expect_eq' op failed on rank 0 at [0, 1]: got 2, expected 3 (1 of 2 elements differ)
func.func @expect() {
  %a = train.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %b = train.constant dense<[[1.0, 3.0]]> : tensor<1x2xf32>
  check.expect_eq %a, %b : tensor<1x2xf32>
  return
}

// MESH: error: needs the module attribute 'dist.mesh'
func.func @mesh(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = dist.all_reduce %x {axes = ["shard"]} : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// FUTURE: error: returns a value of type '!dist.future<tensor<2xf32>>', expected a tensor
func.func @future(%x: tensor<2xf32>) -> !dist.future<tensor<2xf32>> {
  %f = dist.all_reduce_start %x {axes = ["shard"]} : (tensor<2xf32>) -> !dist.future<tensor<2xf32>>
  return %f : !dist.future<tensor<2xf32>>
}

// RESOURCE: error: cannot evaluate a constant whose elements are not in the module
func.func @resource() -> tensor<2xf32> {
  %x = train.constant dense_resource<absent> : tensor<2xf32>
  return %x : tensor<2xf32>
}
