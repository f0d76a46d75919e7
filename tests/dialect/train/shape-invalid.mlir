// RUN: tessera-opt %s -verify-diagnostics -split-input-file

// train.iota_c1
func.func @iota_c1() {
  // expected-error@+1 {{dim is 1, expected at least 0 and less than 1}}
  %0 = train.iota {dim = 1 : i64} : tensor<3xi32>
  return
}

// -----

// train.rng_uniform_c1
func.func @rng_uniform_c1(%s: tensor<i64>) {
  // expected-error@+1 {{has 1 offsets, expected none or 2}}
  %0 = train.rng_uniform %s offsets(%s) {stream = 0 : i64, global_shape = array<i64: 2, 3>} : (tensor<i64>, tensor<i64>) -> tensor<2x3xf32>
  return
}

// -----

// train.rng_uniform_c2
func.func @rng_uniform_c2(%s: tensor<i64>) {
  // expected-error@+1 {{needs both offsets and global_shape, or neither}}
  %0 = train.rng_uniform %s offsets(%s) {stream = 0 : i64} : (tensor<i64>, tensor<i64>) -> tensor<2xf32>
  return
}

// -----

// train.rng_uniform_c3
func.func @rng_uniform_c3(%s: tensor<i64>) {
  // expected-error@+1 {{global_shape has 2 entries, expected 1}}
  %0 = train.rng_uniform %s offsets(%s) {stream = 0 : i64, global_shape = array<i64: 2, 3>} : (tensor<i64>, tensor<i64>) -> tensor<2xf32>
  return
}

// -----

// train.rng_uniform_c4
func.func @rng_uniform_c4(%s: tensor<i64>) {
  // expected-error@+1 {{result dimension 0 has size 2, expected at most 1 as in global_shape}}
  %0 = train.rng_uniform %s offsets(%s) {stream = 0 : i64, global_shape = array<i64: 1>} : (tensor<i64>, tensor<i64>) -> tensor<2xf32>
  return
}

// -----

// train.reshape_c1
func.func @reshape_c1(%x: tensor<4xf32>) {
  // expected-error@+1 {{result has element type 'f64', expected 'f32'}}
  %0 = train.reshape %x : (tensor<4xf32>) -> tensor<2x2xf64>
  return
}

// -----

// train.reshape_c2
func.func @reshape_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{result has 6 elements, expected 4}}
  %0 = train.reshape %x : (tensor<4xf32>) -> tensor<2x3xf32>
  return
}

// -----

// train.transpose_c1
func.func @transpose_c1(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{permutation [1, 1] does not name each of 2 dimensions once}}
  %0 = train.transpose %x {permutation = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

// train.transpose_c2
func.func @transpose_c2(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{result has type 'tensor<2x3xf32>', expected 'tensor<3x2xf32>'}}
  %0 = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// train.broadcast_c1
func.func @broadcast_c1(%x: tensor<3xf32>) {
  // expected-error@+1 {{result has element type 'f64', expected 'f32'}}
  %0 = train.broadcast %x {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<2x3xf64>
  return
}

// -----

// train.broadcast_c2
func.func @broadcast_c2(%x: tensor<3xf32>) {
  // expected-error@+1 {{broadcast_dimensions has 2 entries, expected 1}}
  %0 = train.broadcast %x {broadcast_dimensions = array<i64: 0, 1>} : (tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// train.broadcast_c3
func.func @broadcast_c3(%x: tensor<3xf32>) {
  // expected-error@+1 {{broadcast dimension is 2, expected at least 0 and less than 2}}
  %0 = train.broadcast %x {broadcast_dimensions = array<i64: 2>} : (tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// train.broadcast_c4
func.func @broadcast_c4(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{broadcast_dimensions [1, 0] are not strictly increasing}}
  %0 = train.broadcast %x {broadcast_dimensions = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

// train.broadcast_c5
func.func @broadcast_c5(%x: tensor<2xf32>) {
  // expected-error@+1 {{operand has size 2 along result dimension 1, expected 1 or 3}}
  %0 = train.broadcast %x {broadcast_dimensions = array<i64: 1>} : (tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

// train.slice_c1
func.func @slice_c1(%x: tensor<4xf32>) {
  // expected-error@+1 {{limits has 2 entries, expected 1}}
  %0 = train.slice %x {starts = array<i64: 0>, limits = array<i64: 2, 2>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

// train.slice_c2
func.func @slice_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{stride of dimension 0 is 0, expected at least 1}}
  %0 = train.slice %x {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 0>} : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

// train.slice_c3
func.func @slice_c3(%x: tensor<4xf32>) {
  // expected-error@+1 {{box [3, 5) of dimension 0 is not inside [0, 4)}}
  %0 = train.slice %x {starts = array<i64: 3>, limits = array<i64: 5>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

// train.slice_c4
func.func @slice_c4(%x: tensor<4xf32>) {
  // expected-error@+1 {{result has type 'tensor<3xf32>', expected 'tensor<2xf32>'}}
  %0 = train.slice %x {starts = array<i64: 0>, limits = array<i64: 3>, strides = array<i64: 2>} : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

// train.pad_c1
func.func @pad_c1(%x: tensor<4xf32>) {
  // expected-error@+1 {{low has 2 entries, expected 1}}
  %0 = train.pad %x {low = array<i64: 0, 0>, high = array<i64: 1>, interior = array<i64: 0>} : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

// train.pad_c2
func.func @pad_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{padding of dimension 0 is negative (low -1, high 1, interior 0)}}
  %0 = train.pad %x {low = array<i64: -1>, high = array<i64: 1>, interior = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// train.pad_c3
func.func @pad_c3(%x: tensor<4xf32>) {
  // expected-error@+1 {{result has type 'tensor<9xf32>', expected 'tensor<8xf32>'}}
  %0 = train.pad %x {low = array<i64: 0>, high = array<i64: 1>, interior = array<i64: 1>} : (tensor<4xf32>) -> tensor<9xf32>
  return
}

// -----

// train.concat_c1
func.func @concat_c1() {
  // expected-error@+1 {{needs at least one operand}}
  %0 = "train.concat"() {dim = 0 : i64} : () -> tensor<4xf32>
  return
}

// -----

// train.concat_c2
func.func @concat_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{dim is 1, expected at least 0 and less than 1}}
  %0 = train.concat %x {dim = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// train.concat_c3
func.func @concat_c3(%x: tensor<2x4xf32>, %y: tensor<3x5xf32>) {
  // expected-error@+1 {{operand 1 has type 'tensor<3x5xf32>', expected 'tensor<2x4xf32>' but for dimension 0}}
  %0 = train.concat %x, %y {dim = 0 : i64} : (tensor<2x4xf32>, tensor<3x5xf32>) -> tensor<5x4xf32>
  return
}

// -----

// train.concat_c4
func.func @concat_c4(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{result has type 'tensor<5x4xf32>', expected 'tensor<4x4xf32>'}}
  %0 = train.concat %x, %x {dim = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
  return
}

// -----

// train.dynamic_slice_c1
func.func @dynamic_slice_c1(%x: tensor<2x4xf32>, %i: tensor<i64>) {
  // expected-error@+1 {{starts has 1 entries, expected 2}}
  %0 = train.dynamic_slice %x[%i] {sizes = array<i64: 1, 1>} : (tensor<2x4xf32>, tensor<i64>) -> tensor<1x1xf32>
  return
}

// -----

// train.dynamic_slice_c2
func.func @dynamic_slice_c2(%x: tensor<4xf32>, %i: tensor<i64>) {
  // expected-error@+1 {{sizes has 2 entries, expected 1}}
  %0 = train.dynamic_slice %x[%i] {sizes = array<i64: 1, 1>} : (tensor<4xf32>, tensor<i64>) -> tensor<1xf32>
  return
}

// -----

// train.dynamic_slice_c3
func.func @dynamic_slice_c3(%x: tensor<4xf32>, %i: tensor<i64>) {
  // expected-error@+1 {{size of dimension 0 is 5, expected at most 4}}
  %0 = train.dynamic_slice %x[%i] {sizes = array<i64: 5>} : (tensor<4xf32>, tensor<i64>) -> tensor<5xf32>
  return
}

// -----

// train.dynamic_slice_c4
func.func @dynamic_slice_c4(%x: tensor<4xf32>, %i: tensor<i64>) {
  // expected-error@+1 {{result has type 'tensor<3xf32>', expected 'tensor<2xf32>'}}
  %0 = train.dynamic_slice %x[%i] {sizes = array<i64: 2>} : (tensor<4xf32>, tensor<i64>) -> tensor<3xf32>
  return
}

// -----

// train.dynamic_update_slice_c1
func.func @dynamic_update_slice_c1(%x: tensor<2x4xf32>, %i: tensor<i64>) {
  // expected-error@+1 {{starts has 1 entries, expected 2}}
  %0 = train.dynamic_update_slice %x, %x[%i] : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<i64>) -> tensor<2x4xf32>
  return
}

// -----

// train.dynamic_update_slice_c2
func.func @dynamic_update_slice_c2(%x: tensor<4xf32>, %u: tensor<1x1xf32>, %i: tensor<i64>) {
  // expected-error@+1 {{update has type 'tensor<1x1xf32>', expected the rank and element type of 'tensor<4xf32>'}}
  %0 = train.dynamic_update_slice %x, %u[%i] : (tensor<4xf32>, tensor<1x1xf32>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

// train.dynamic_update_slice_c3
func.func @dynamic_update_slice_c3(%x: tensor<4xf32>, %u: tensor<5xf32>, %i: tensor<i64>) {
  // expected-error@+1 {{update has size 5 along dimension 0, expected at most 4}}
  %0 = train.dynamic_update_slice %x, %u[%i] : (tensor<4xf32>, tensor<5xf32>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

// train.gather_rows_c1
func.func @gather_rows_c1(%t: tensor<f32>, %i: tensor<3xi32>) {
  // expected-error@+1 {{table has rank 0, expected at least 1}}
  %0 = train.gather_rows %t, %i : (tensor<f32>, tensor<3xi32>) -> tensor<3xf32>
  return
}

// -----

// train.gather_rows_c2
func.func @gather_rows_c2(%t: tensor<5x2xf32>, %i: tensor<3xi32>) {
  // expected-error@+1 {{result has type 'tensor<2x3xf32>', expected 'tensor<3x2xf32>'}}
  %0 = train.gather_rows %t, %i : (tensor<5x2xf32>, tensor<3xi32>) -> tensor<2x3xf32>
  return
}

// -----

// train.gather_rows_c3
func.func @gather_rows_c3(%t: tensor<5x2xf32>, %i: tensor<3xi32>) {
  // expected-error@+1 {{padding_index is 5, the table has 5 rows}}
  %0 = train.gather_rows %t, %i {padding_index = 5 : i64} : (tensor<5x2xf32>, tensor<3xi32>) -> tensor<3x2xf32>
  return
}

// -----

// train.gather_rows_c3
func.func @gather_rows_c3_negative(%t: tensor<5x2xf32>, %i: tensor<3xi32>) {
  // expected-error@+1 {{padding_index is -1, the table has 5 rows}}
  %0 = train.gather_rows %t, %i {padding_index = -1 : i64} : (tensor<5x2xf32>, tensor<3xi32>) -> tensor<3x2xf32>
  return
}

// -----

// train.scatter_add_rows_c1
func.func @scatter_add_rows_c1(%t: tensor<f32>, %i: tensor<3xi32>, %u: tensor<3xf32>) {
  // expected-error@+1 {{init has rank 0, expected at least 1}}
  %0 = train.scatter_add_rows %t, %i, %u : (tensor<f32>, tensor<3xi32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

// train.scatter_add_rows_c2
func.func @scatter_add_rows_c2(%t: tensor<5x2xf32>, %i: tensor<3xi32>, %u: tensor<3x3xf32>) {
  // expected-error@+1 {{updates has type 'tensor<3x3xf32>', expected 'tensor<3x2xf32>'}}
  %0 = train.scatter_add_rows %t, %i, %u : (tensor<5x2xf32>, tensor<3xi32>, tensor<3x3xf32>) -> tensor<5x2xf32>
  return
}
