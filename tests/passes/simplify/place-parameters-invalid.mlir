// RUN: tessera-opt %s --place-parameters="rules={weight=1}" -split-input-file -verify-diagnostics
// RUN: not tessera-opt %S/place-parameters.mlir --place-parameters="rules=up" -split-input-file 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not tessera-opt %S/place-parameters.mlir --place-parameters="rules={up=-1}" -split-input-file 2>&1 | FileCheck %s --check-prefix=SIGN
// RUN: not tessera-opt %S/place-parameters.mlir --place-parameters="rules=*up=0" -split-input-file 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: not tessera-opt %S/place-parameters.mlir --place-parameters="rules={up=0:ep}" -split-input-file 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not tessera-opt %S/place-parameters.mlir --place-parameters="rules={up=0},{up.bias=0}" -split-input-file 2>&1 | FileCheck %s --check-prefix=SHADOWED
// SHADOWED: error: --place: rules before it match all that is matched by 'up.bias=0'
// AXIS: error: --place: 'up=0:ep' names the axis 'ep', which is no model axis larger than 1 of the mesh, or is named twice
// FORM: error: --place: expected <regex>=<dimension> or <regex>=<dimension>:<axis>, got 'up'
// SIGN: error: --place: expected <regex>=<dimension> or <regex>=<dimension>:<axis>, got 'up=-1'
// REGEX: error: --place: '*up' is not a regular expression

module attributes {dist.mesh = #dist.mesh<tp = 2>} {
// expected-error@below {{--place: 'weight' cannot be split: it has rank 1, so it has no dimension 1}}
func.func @rank(%w: tensor<8xf32> {train.role = "param", train.name = "weight"}) -> (tensor<8xf32> {train.role = "output"}) {
  return %w : tensor<8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2>} {
// expected-error@below {{--place: 'weight' cannot be split: dimension 1 has size 3, which 2 ranks do not divide}}
func.func @size(%w: tensor<8x3xf32> {train.role = "param", train.name = "weight"}) -> (tensor<8x3xf32> {train.role = "output"}) {
  return %w : tensor<8x3xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2>} {
// expected-error@below {{--place: 'weight' cannot be split: it is a buffer of the model, which each rank has as a whole}}
func.func @buffer(%w: tensor<8x4xf32> {train.role = "frozen", train.name = "weight", train.init = "given"}) -> (tensor<8x4xf32> {train.role = "output"}) {
  return %w : tensor<8x4xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 2>} {
// expected-error@below {{--place: no parameter matches 'weight'}}
func.func @none(%w: tensor<8x4xf32> {train.role = "param", train.name = "w"}) -> (tensor<8x4xf32> {train.role = "output"}) {
  return %w : tensor<8x4xf32>
}
}

// -----

// expected-error@below {{--place needs a mesh with a model axis larger than 1, such as tp=2}}
func.func @mesh(%w: tensor<8x4xf32> {train.role = "param", train.name = "weight"}) -> (tensor<8x4xf32> {train.role = "output"}) {
  return %w : tensor<8x4xf32>
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2, tp = 1>} {
// expected-error@below {{--place needs a mesh with a model axis larger than 1, such as tp=2}}
func.func @axis(%w: tensor<8x4xf32> {train.role = "param", train.name = "weight"}) -> (tensor<8x4xf32> {train.role = "output"}) {
  return %w : tensor<8x4xf32>
}
}
