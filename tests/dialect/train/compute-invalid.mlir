// RUN: tessera-opt %s -verify-diagnostics -split-input-file

// train.reduce_c1
func.func @reduce_c1(%a: tensor<2x3x4xf32>) {
  // expected-error@+1 {{dimension is 3, expected at least 0 and less than 3}}
  %0 = train.reduce sum, %a {dimensions = array<i64: 3>} : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

// train.reduce_c2
func.func @reduce_c2(%a: tensor<2x3x4xf32>) {
  // expected-error@+1 {{dimensions [1, 0] are not strictly increasing}}
  %0 = train.reduce sum, %a {dimensions = array<i64: 1, 0>} : (tensor<2x3x4xf32>) -> tensor<4xf32>
  return
}

// -----

// train.reduce_c3
func.func @reduce_c3(%a: tensor<2x3x4xf32>) {
  // expected-error@+1 {{result has type 'tensor<2x3xf32>', expected 'tensor<2x4xf32>'}}
  %0 = train.reduce sum, %a {dimensions = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

// train.argmax_c1
func.func @argmax_c1(%a: tensor<2x3x4xf32>) {
  // expected-error@+1 {{dim is -1, expected at least 0 and less than 3}}
  %0 = train.argmax %a {dim = -1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3xi64>
  return
}

// -----

// train.argmax_c2
func.func @argmax_c2(%a: tensor<2x0xf32>) {
  // expected-error@+1 {{dimension 1 has size 0, expected at least 1}}
  %0 = train.argmax %a {dim = 1 : i64} : (tensor<2x0xf32>) -> tensor<2xi64>
  return
}

// -----

// train.argmax_c3
func.func @argmax_c3(%a: tensor<2x3x4xf32>) {
  // expected-error@+1 {{result has type 'tensor<2x3xi64>', expected 'tensor<3x4xi64>'}}
  %0 = train.argmax %a {dim = 0 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3xi64>
  return
}

// -----

// train.sort_indices_c1
func.func @sort_indices_c1(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{dim is 2, expected at least 0 and less than 2}}
  %0 = train.sort_indices %a {dim = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xi64>
  return
}

// -----

// train.sort_indices_c2
func.func @sort_indices_c2(%a: tensor<129xf32>) {
  // expected-error@+1 {{indices of 129 elements do not fit into 'i8'}}
  %0 = train.sort_indices %a {dim = 0 : i64} : (tensor<129xf32>) -> tensor<129xi8>
  return
}

// -----

// train.sort_indices_c3
func.func @sort_indices_c3(%a: tensor<2x3xf32>) {
  // expected-error@+1 {{result has type 'tensor<2xi64>', expected 'tensor<2x3xi64>'}}
  %0 = train.sort_indices %a {dim = 1 : i64} : (tensor<2x3xf32>) -> tensor<2xi64>
  return
}

// -----

// train.dot_general_c1
func.func @dot_general_c1(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) {
  // expected-error@+1 {{rhs_batch has 0 entries, expected 1}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64: 0>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

// train.dot_general_c2
func.func @dot_general_c2(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) {
  // expected-error@+1 {{rhs_contract has 2 entries, expected 1}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1, 2>} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3xf32>
  return
}

// -----

// train.dot_general_c3
func.func @dot_general_c3(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) {
  // expected-error@+1 {{lhs dimension is 3, expected at least 0 and less than 3}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 3>, rhs_contract = array<i64: 1>} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

// train.dot_general_c4
func.func @dot_general_c4(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) {
  // expected-error@+1 {{rhs dimension 1 is named more than once}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 1>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

// train.dot_general_c5
func.func @dot_general_c5(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) {
  // expected-error@+1 {{batch dimension 2 of rhs has size 5, expected 2}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 2>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x2xf32>
  return
}

// -----

// train.dot_general_c6
func.func @dot_general_c6(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) {
  // expected-error@+1 {{contracted dimension 2 of rhs has size 5, expected 4}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 2>} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x4xf32>
  return
}

// -----

// train.dot_general_c7
func.func @dot_general_c7(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xi32>) {
  // expected-error@+1 {{mixes integers and floating point numbers}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x3x4xf32>, tensor<2x4x5xi32>) -> tensor<2x3x5xf32>
  return
}

// -----

// train.dot_general_c8
func.func @dot_general_c8(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) {
  // expected-error@+1 {{result has type 'tensor<2x5x3xf32>', expected 'tensor<2x3x5xf32>'}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x5x3xf32>
  return
}

// -----

// train.conv2d_c1
func.func @conv2d_c1(%a: tensor<2x5x5xf32>, %b: tensor<4x2x3x3xf32>) {
  // expected-error@+1 {{input has rank 3, expected 4}}
  %0 = train.conv2d %a, %b {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<2x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x3xf32>
  return
}

// -----

// train.conv2d_c2
func.func @conv2d_c2(%a: tensor<1x2x5x5xf32>, %b: tensor<4x2x3x3xf32>) {
  // expected-error@+1 {{padding has 2 entries, expected 4}}
  %0 = train.conv2d %a, %b {strides = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x3xf32>
  return
}

// -----

// train.conv2d_c3
func.func @conv2d_c3(%a: tensor<1x2x5x5xf32>, %b: tensor<4x2x3x3xf32>) {
  // expected-error@+1 {{strides holds 0, expected at least 1}}
  %0 = train.conv2d %a, %b {strides = array<i64: 1, 0>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x3xf32>
  return
}

// -----

// train.conv2d_c4
func.func @conv2d_c4(%a: tensor<1x2x5x5xf32>, %b: tensor<4x2x3x3xf32>) {
  // expected-error@+1 {{has 3 groups, expected a divisor of the filter's 4 output channels}}
  %0 = train.conv2d %a, %b {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 3 : i64} : (tensor<1x2x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x3xf32>
  return
}

// -----

// train.conv2d_c5
func.func @conv2d_c5(%a: tensor<1x2x5x5xf32>, %b: tensor<4x2x3x3xf32>) {
  // expected-error@+1 {{input has 2 channels, expected 4 (2 groups of the filter's 2)}}
  %0 = train.conv2d %a, %b {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<1x2x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x3xf32>
  return
}

// -----

// train.conv2d_c6
func.func @conv2d_c6(%a: tensor<1x2x5x5xf32>, %b: tensor<4x2x3x3xf32>) {
  // expected-error@+1 {{padded input has size 5 along dimension 3, expected at least the filter's 7}}
  %0 = train.conv2d %a, %b {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 3>, groups = 1 : i64} : (tensor<1x2x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x3xf32>
  return
}

// -----

// train.conv2d_c7
func.func @conv2d_c7(%a: tensor<1x2x5x5xf32>, %b: tensor<4x2x3x3xf32>) {
  // expected-error@+1 {{output has type 'tensor<1x4x3x5xf32>', expected 'tensor<1x4x3x3xf32>'}}
  %0 = train.conv2d %a, %b {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x5x5xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x5xf32>
  return
}

// -----

// train.conv2d_c7_input_grad
func.func @conv2d_c7_input_grad(%a: tensor<1x4x2x3xf32>, %b: tensor<4x2x3x3xf32>) {
  // expected-error@+1 {{output has type 'tensor<1x4x2x3xf32>', expected 'tensor<1x4x3x3xf32>'}}
  %0 = train.conv2d_input_grad %a, %b {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x4x2x3xf32>, tensor<4x2x3x3xf32>) -> tensor<1x2x5x5xf32>
  return
}

// -----

// train.conv2d_c7_filter_grad
func.func @conv2d_c7_filter_grad(%a: tensor<1x2x5x5xf32>, %b: tensor<1x4x2x3xf32>) {
  // expected-error@+1 {{output has type 'tensor<1x4x2x3xf32>', expected 'tensor<1x4x3x3xf32>'}}
  %0 = train.conv2d_filter_grad %a, %b {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x2x5x5xf32>, tensor<1x4x2x3xf32>) -> tensor<4x2x3x3xf32>
  return
}

// -----

// train.dot_general_c10
func.func @dot_general_c10_both(%a: tensor<2x8xf32>, %b: tensor<4x8xf32>) {
  // expected-error@+1 {{has both a compute_type and a scaling}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, compute_type = f32, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
  return
}

// -----

// train.dot_general_c10
func.func @dot_general_c10_kinds(%a: tensor<2x8xf32>, %b: tensor<4x8xf32>) {
  // expected-error@+1 {{has #train.scaling<rowwise, weight, weight>, but no product of a linear layer reads these two}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, weight, weight>} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
  return
}

// -----

// train.dot_general_c10
func.func @dot_general_c10_integers(%a: tensor<2x8xi32>, %b: tensor<4x8xi32>) {
  // expected-error@+1 {{has #train.scaling<rowwise, activation, weight>, which is for operands of f32, bf16 or f16, got 'tensor<2x8xi32>'}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<2x8xi32>, tensor<4x8xi32>) -> tensor<2x4xi32>
  return
}

// -----

// train.dot_general_c10
func.func @dot_general_c10_batch(%a: tensor<3x2x8xf32>, %b: tensor<3x4x8xf32>) {
  // expected-error@+1 {{has #train.scaling<mxfp8, gradient, weight>, which is for products without a batch}}
  %0 = train.dot_general %a, %b {lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 2>, scaling = #train.scaling<mxfp8, gradient, weight>} : (tensor<3x2x8xf32>, tensor<3x4x8xf32>) -> tensor<3x2x4xf32>
  return
}
