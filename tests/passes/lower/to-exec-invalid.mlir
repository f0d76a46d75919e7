// RUN: tessera-opt %s -split-input-file -to-exec -verify-diagnostics

func.func @step(%x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4xf32> {train.role = "output"}) {
  // expected-error @+1 {{'train.exp' is left over: neither fused into a kernel nor a library call}}
  %0 = train.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @step(%x: tensor<4xf32> {train.role = "input", train.name = "x"}) -> (tensor<4xf32> {train.role = "output"}) {
  // expected-error @+1 {{fusion has no kernel yet: outline-kernels has not run}}
  %0 = exec.fusion "elementwise" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    exec.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
  func.func @step(%x: tensor<4x2xf32> {train.role = "input", train.name = "x"}) -> (tensor<4x4xf32> {train.role = "output"}) {
    // expected-error @+1 {{works along dimension 1; only dimension 0 is contiguous in memory}}
    %0 = dist.all_gather %x {axes = ["shard"], dim = 1 : i64} : (tensor<4x2xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}

// -----

func.func @step(%x: tensor<2x8xf64> {train.role = "input", train.name = "x"},
                %w: tensor<8x4xf64> {train.role = "param", train.name = "w"}) -> (tensor<2x4xf64> {train.role = "output"}) {
  // expected-error @+1 {{'train.dot_general' has an operand of element type 'f64'; the CPU's library calls compute in f32}}
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x8xf64>, tensor<8x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

// -----

// A fill takes a double, which rounds integers from 2^53 on.
func.func @step(%x: tensor<4xi64> {train.role = "input", train.name = "x"}) -> (tensor<8xi64> {train.role = "output"}) {
  // expected-error @+1 {{a constant of 9007199254740993 : i64, which no double holds exactly, can only be used inside a kernel}}
  %c = train.constant dense<9007199254740993> : tensor<4xi64>
  // expected-remark @below {{a value is copied: part of a concatenation could not be made in its place}}
  %0 = train.concat %x, %c {dim = 0 : i64} : (tensor<4xi64>, tensor<4xi64>) -> tensor<8xi64>
  return %0 : tensor<8xi64>
}
