// Results are written by name and read back as arguments.
// RUN: tessera-interp %s --function=make --dump=%t.safetensors --quiet
// RUN: tessera-interp %s --function=use --inputs=%t.safetensors | FileCheck %s
// RUN: not tessera-interp %s --function=wrong --inputs=%t.safetensors 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: tessera-interp %s --function=ids --dump=%t.ids.safetensors --quiet
// RUN: tessera-interp %s --function=together --inputs=%t.ids.safetensors | FileCheck %s --check-prefix=TOGETHER
// RUN: not tessera-interp %s --function=apart --inputs=%t.ids.safetensors 2>&1 | FileCheck %s --check-prefix=APART
// RUN: not tessera-interp %s --function=use --inputs=%s 2>&1 | FileCheck %s --check-prefix=BAD

func.func @make() -> (tensor<2xf32> {train.name = "x"}, tensor<2xi32> {train.name = "i"}) {
  %x = train.constant dense<[1.5, -2.0]> : tensor<2xf32>
  %i = train.constant dense<[7, -1]> : tensor<2xi32>
  return %x, %i : tensor<2xf32>, tensor<2xi32>
}

// CHECK: result 0: tensor<2x1xf64> = [1.5, -2]
// CHECK: result 1: tensor<2xi32> = [7, -1]
func.func @use(%x: tensor<2x1xf64> {train.name = "x"}, %i: tensor<2xi32> {train.name = "i"}) -> (tensor<2x1xf64>, tensor<2xi32>) {
  return %x, %i : tensor<2x1xf64>, tensor<2xi32>
}

// WRONG: error: argument 0 'x' has type 'tensor<3xf32>', got a value of type 'tensor<2xf32>'
func.func @wrong(%x: tensor<3xf32> {train.name = "x"}) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}

func.func @ids() -> (tensor<2x4xi64> {train.name = "together"}, tensor<2x4xi64> {train.name = "apart"}) {
  %0 = train.constant dense<[[7, 7, -3, 0], [0, 7, 7, 7]]> : tensor<2x4xi64>
  %1 = train.constant dense<[[7, 7, -3, 0], [5, 9, 9, 5]]> : tensor<2x4xi64>
  return %0, %1 : tensor<2x4xi64>, tensor<2x4xi64>
}

// Each sample counts alone: a value may be in two of them.
// TOGETHER: result 0: tensor<2x4xi64> = [7, 7, -3, 0, 0, 7, 7, 7]
func.func @together(%ids: tensor<2x4xi64> {train.dims = #train.dims<[sample, position]>, train.has_runs, train.name = "together", train.role = "input"}) -> tensor<2x4xi64> {
  return %ids : tensor<2x4xi64>
}

// APART: error: argument 0 'apart': element 7 is 5, which has come before, but not right before; equal ones must lie side by side
func.func @apart(%ids: tensor<2x4xi64> {train.dims = #train.dims<[sample, position]>, train.has_runs, train.name = "apart", train.role = "input"}) -> tensor<2x4xi64> {
  return %ids : tensor<2x4xi64>
}

// BAD: error: {{.*}}files.mlir
