// RUN: tessera-opt %s -split-input-file -fuse -verify-diagnostics

// expected-error @+1 {{argument of type 'tensor<0x4xf32>' has no elements}}
func.func @argument(%x: tensor<0x4xf32>) -> tensor<4xf32> {
  %0 = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<0x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @result() -> tensor<0xf32> {
  // expected-error @+1 {{result of type 'tensor<0xf32>' has no elements}}
  %0 = train.constant dense<0.0> : tensor<0xf32>
  return %0 : tensor<0xf32>
}
