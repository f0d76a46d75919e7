// RUN: tessera-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: @fusion
// CHECK:         exec.fusion "elementwise" @k0(%{{.*}}) {extent = 4 : i64, grain = 1 : i64, inplace = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32> {
func.func @fusion(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = exec.fusion "elementwise" @k0(%x) {extent = 4 : i64, grain = 1 : i64, inplace = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = train.neg %a : tensor<4xf32>
    exec.yield %b : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @fusion_yield(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{body yields 0 values, expected 1}}
  %0 = exec.fusion "elementwise"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    exec.yield
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @fusion_arguments(%x: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{body argument 0 is 'tensor<3xf32>', expected 'tensor<4xf32>'}}
  %0 = exec.fusion "elementwise"(%x) : (tensor<4xf32>) -> tensor<3xf32> {
  ^bb0(%a: tensor<3xf32>):
    exec.yield %a : tensor<3xf32>
  }
  return %0 : tensor<3xf32>
}

// -----

func.func @fusion_inplace(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'inplace' entry 0 is 1, expected -1 or an operand number below 1}}
  %0 = exec.fusion "elementwise"(%x) {inplace = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    exec.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @repeat_batch(%x: tensor<3x4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{batch operand is 'tensor<3x4xf32>', expected a leading dimension of 2}}
  %0 = exec.repeat count = 2 batch(%x) init(%z) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %m: tensor<4xf32>, %acc: tensor<4xf32>):
    exec.yield %acc : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @repeat_types(%z: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{body argument 1 is 'tensor<3xf32>', expected 'tensor<4xf32>'}}
  %0 = exec.repeat count = 2 init(%z) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %acc: tensor<3xf32>):
    exec.yield %z : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @repeat_count(%z: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{count is -1, expected at least 1}}
  %0 = exec.repeat count = -1 init(%z) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %acc: tensor<4xf32>):
    exec.yield %acc : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: @add_product
// CHECK:         exec.add_product %{{.*}}, %{{.*}}, %{{.*}} {{.*}} : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
func.func @add_product(%a: tensor<2x3xf32>, %x: tensor<2x4xf32>, %w: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %0 = exec.add_product %a, %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @add_product_shape(%a: tensor<3x2xf32>, %x: tensor<2x4xf32>, %w: tensor<4x3xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{result has type}}
  %0 = exec.add_product %a, %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<3x2xf32>, tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----

func.func @add_product_accumulator(%a: tensor<2xf32>, %x: tensor<2x4xf32>, %w: tensor<4x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{failed to verify that all of {accumulator, result} have same type}}
  %0 = exec.add_product %a, %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2xf32>, tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @epilogue_product
// CHECK:         exec.epilogue_product bias %{{.*}}, %{{.*}} with %{{.*}}
// CHECK:         exec.epilogue_product bias_grad_a %{{.*}}, %{{.*}} plus %{{.*}}
func.func @epilogue_product(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>, %z: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>) {
  %0 = exec.epilogue_product bias %x, %w with %b {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1, %2 = exec.epilogue_product bias_grad_a %x, %w plus %z {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  return %0, %1, %2 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>
}

// -----

func.func @no_epilogue(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{needs an epilogue}}
  %0 = exec.epilogue_product none %x, %w {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @epilogue_input(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{bias needs an input and no output}}
  %0 = exec.epilogue_product bias %x, %w {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @epilogue_output(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{gelu_aux needs no input and an output}}
  %0 = exec.epilogue_product gelu_aux %x, %w {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @epilogue_bias(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{input is 'tensor<2x3xf32>', expected 'tensor<3xf32>'}}
  %0 = exec.epilogue_product bias %x, %w with %z {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @epilogue_bias_grad(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{output is 'tensor<3xf32>', expected 'tensor<2xf32>'}}
  %0, %1 = exec.epilogue_product bias_grad_a %x, %w {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  return %0 : tensor<2x3xf32>
}

// -----

func.func @epilogue_accumulator(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{as bias_grad_a or bias_grad_b only}}
  %0 = exec.epilogue_product gelu %x, %w plus %z {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @epilogue_shape(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %b: tensor<3xf32>, %z: tensor<2x3xf32>) -> tensor<3x3xf32> {
  // expected-error @+1 {{result has type}}
  %0 = exec.epilogue_product gelu %x, %w {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}
