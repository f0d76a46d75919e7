// Results are written by name and read back as arguments.
// RUN: tessera-interp %s --function=make --dump=%t.safetensors --quiet
// RUN: tessera-interp %s --function=use --inputs=%t.safetensors | FileCheck %s
// RUN: not tessera-interp %s --function=wrong --inputs=%t.safetensors 2>&1 | FileCheck %s --check-prefix=WRONG
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

// BAD: error: {{.*}}files.mlir
