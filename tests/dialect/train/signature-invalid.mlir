// RUN: tessera-opt %s -verify-diagnostics -split-input-file

// train.arg_c1
// expected-error@+1 {{argument 0: train.role expected one of "param", "frozen", "state", "derived", "input", "target", "hyper", "buffer", got "weight"}}
func.func @arg_c1(%w: tensor<4xf32> {train.role = "weight"}) {
  return
}

// -----

// train.arg_c1
// expected-error@+1 {{argument 0: train.role expected one of}}
func.func @arg_c1(%w: tensor<4xf32> {train.role = 3 : i32}) {
  return
}

// -----

// train.arg_c2
// expected-error@+1 {{argument 0: train.state expected the name of a state, of a-z, 0-9 and _, got "N"}}
func.func @arg_c2(%w: tensor<4xf32> {train.state = "N"}) {
  return
}

// -----

// train.arg_c13
// expected-error@+1 {{argument 0: train.beta expected an f64 in [0, 1), got 1.000000e+00 : f64}}
func.func @arg_c13(%c: tensor<f32> {train.beta = 1.0 : f64}) {
  return
}

// -----

// train.arg_c3
// expected-error@+1 {{argument 0: train.name expected a string that is not empty, got ""}}
func.func @arg_c3(%w: tensor<4xf32> {train.name = ""}) {
  return
}

// -----

// train.arg_c3
// expected-error@+1 {{argument 0: train.of expected a string that is not empty, got 1}}
func.func @arg_c3(%w: tensor<4xf32> {train.of = 1 : i64}) {
  return
}

// -----

// train.arg_c4
// expected-error@+1 {{argument 0: train.init expected zeros, constant:<a>, normal:<deviation>, uniform:<a>:<b> or given, got "normal:-1"}}
func.func @arg_c4(%w: tensor<4xf32> {train.init = "normal:-1"}) {
  return
}

// -----

// train.arg_c4
// expected-error@+1 {{argument 0: train.init expected zeros}}
func.func @arg_c4(%w: tensor<4xf32> {train.init = "uniform:1"}) {
  return
}

// -----

// train.arg_c5
// expected-error@+1 {{argument 0: train.decay_elements must not be negative, got -1}}
func.func @arg_c5(%w: tensor<4xf32> {train.decay_elements = -1 : i64}) {
  return
}

// -----

// train.arg_c5
// expected-error@+1 {{argument 0: train.decay_elements is beyond the unit: 5}}
func.func @arg_c5(%w: tensor<4xf32> {train.decay_elements = 5 : i64}) {
  return
}

// -----

// train.arg_c5
// expected-error@+1 {{argument 0: train.index_bound expected an i64}}
func.func @arg_c5(%w: tensor<4xf32> {train.index_bound = 3.0 : f32}) {
  return
}

// -----

// train.arg_c6
// expected-error@+1 {{argument 0: train.ignore_index expected an i64}}
func.func @arg_c6(%w: tensor<4xf32> {train.ignore_index = "x"}) {
  return
}

// -----

// train.arg_c7
// expected-error@+1 {{argument 0: train.segments expected an array on a flat unit}}
func.func @arg_c7(%w: tensor<4xf32> {train.segments = 3 : i64}) {
  return
}

// -----

// train.arg_c7
// expected-error@+1 {{argument 0: train.segments expected an array on a flat unit}}
func.func @arg_c7(%w: tensor<2x2xf32> {train.segments = []}) {
  return
}

// -----

// train.arg_c8
// expected-error@+1 {{argument 0: train.segments expected a #train.segment, got 3 : i64}}
func.func @arg_c8(%w: tensor<4xf32> {train.segments = [3 : i64]}) {
  return
}

// -----

// train.arg_c9
// expected-error@+1 {{argument 0: train.segments segment "b" is placed on other axes than those before it}}
func.func @arg_c9(%w: tensor<8xf32> {train.segments = [#train.segment<"a", offset = 0, shape = [4], placement = <dim = 0, axes = ["tp"], parts = 2>>, #train.segment<"b", offset = 2, shape = [2]>]}) {
  return
}

// -----

// train.arg_c9
// expected-error@+1 {{argument 0: train.segments segment "a" has 3 parts, which do not divide 'tensor<8xf32>'}}
func.func @arg_c9(%w: tensor<8xf32> {train.segments = [#train.segment<"a", offset = 0, shape = [6], placement = <dim = 0, axes = ["tp"], parts = 3>>]}) {
  return
}

// -----

// train.arg_c10
// expected-error@+1 {{argument 0: train.segments segment "b" is at 1, expected at least 2}}
func.func @arg_c10(%w: tensor<4xf32> {train.segments = [#train.segment<"a", offset = 0, shape = [2]>, #train.segment<"b", offset = 1, shape = [2]>]}) {
  return
}

// -----

// train.arg_c11
// expected-error@+1 {{argument 0: train.segments segment "a" ends beyond 'tensor<4xf32>'}}
func.func @arg_c11(%w: tensor<4xf32> {train.segments = [#train.segment<"a", offset = 1, shape = [4]>]}) {
  return
}

// -----

// A row of two ends where the second part begins.
// train.arg_c11
// expected-error@+1 {{argument 0: train.segments segment "a" ends beyond 'tensor<8xf32>'}}
func.func @arg_c11(%w: tensor<8xf32> {train.segments = [#train.segment<"a", offset = 1, shape = [8], placement = <dim = 0, axes = ["tp"], parts = 2>>]}) {
  return
}

// -----

// train.arg_c12
// expected-error@+1 {{argument 0: train.placement expected a #train.placement whose parts divide the dimension}}
func.func @arg_c12(%w: tensor<4x6xf32> {train.placement = #train.placement<dim = 1, axes = ["tp"], parts = 4>}) {
  return
}

// -----

// train.arg_c15
// expected-error@+1 {{argument 0: train.decay_elements is 4, expected 0 or all 8 elements of a unit in parts}}
func.func @arg_c15(%w: tensor<8xf32> {train.decay_elements = 4 : i64, train.segments = [#train.segment<"a", offset = 0, shape = [8], placement = <dim = 0, axes = ["tp"], parts = 2>>]}) {
  return
}

// -----

// train.arg_c16
// expected-error@+1 {{argument 0: train.compute_type expected f32 or f8E4M3FN on a parameter of f32, got bf16 on 'tensor<8xf32>'}}
func.func @arg_c16(%w: tensor<8xf32> {train.compute_type = bf16, train.role = "param"}) {
  return
}

// -----

// train.arg_c16
// expected-error@+1 {{argument 0: train.compute_type expected f32 or f8E4M3FN on a parameter of f32, got f32 on 'tensor<8xbf16>'}}
func.func @arg_c16_element(%w: tensor<8xbf16> {train.compute_type = f32, train.role = "frozen"}) {
  return
}

// -----

// train.arg_c17
// expected-error@+1 {{argument 0: train.compute_type is only for parameters}}
func.func @arg_c17(%x: tensor<8xf32> {train.compute_type = f32, train.role = "input"}) {
  return
}

// -----

// train.arg_c20
// expected-error@+1 {{argument 0: train.has_runs expected a unit on an input or target of integers, got unit on 'tensor<2x8xf32>'}}
func.func @arg_c20_element(%x: tensor<2x8xf32> {train.dims = #train.dims<[sample, position]>, train.has_runs, train.role = "input"}) {
  return
}

// -----

// train.arg_c20
// expected-error@+1 {{argument 0: train.has_runs expected a unit on an input or target of integers, got unit on 'tensor<2x8xi64>'}}
func.func @arg_c20_role(%w: tensor<2x8xi64> {train.has_runs, train.role = "frozen"}) {
  return
}

// -----

// train.arg_c20
// expected-error@+1 {{argument 0: train.has_runs expected a unit on an input or target of integers, got 1 : i64 on 'tensor<2x8xi64>'}}
func.func @arg_c20_unit(%x: tensor<2x8xi64> {train.dims = #train.dims<[sample, position]>, train.has_runs = 1 : i64, train.role = "input"}) {
  return
}

// -----

// train.arg_c20
// expected-error@+1 {{argument 0: train.has_runs expected positions along the last dimension}}
func.func @arg_c20_dims(%x: tensor<8x2xi64> {train.dims = #train.dims<[position, sample]>, train.has_runs, train.role = "input"}) {
  return
}

// -----

// train.arg_c20
// expected-error@+1 {{argument 0: train.has_runs expected positions along the last dimension}}
func.func @arg_c20_no_dims(%x: tensor<2x8xi64> {train.has_runs, train.role = "input"}) {
  return
}

// -----

// train.arg_c18
// expected-error@+1 {{argument 0: train.model_type expected f32 on a frozen parameter of bf16 or f16, got f32 on 'tensor<8xbf16>'}}
func.func @arg_c18(%w: tensor<8xbf16> {train.model_type = f32, train.role = "param"}) {
  return
}

// -----

// train.arg_c18
// expected-error@+1 {{argument 0: train.model_type expected f32 on a frozen parameter of bf16 or f16, got bf16 on 'tensor<8xf32>'}}
func.func @arg_c18_narrower(%w: tensor<8xf32> {train.model_type = bf16, train.role = "frozen"}) {
  return
}

// -----

// train.placement_c1
// expected-error@+1 {{a placement splits dimension -1, expected at least 0}}
func.func @placement_c1(%w: tensor<4xf32> {train.placement = #train.placement<dim = -1, axes = ["tp"], parts = 2>}) {
  return
}

// -----

// train.placement_c2
// expected-error@+1 {{a placement has 1 parts, expected at least 2}}
func.func @placement_c2(%w: tensor<4xf32> {train.placement = #train.placement<dim = 0, axes = ["tp"], parts = 1>}) {
  return
}

// -----

// train.placement_c3
// expected-error@+1 {{a placement is on ["tp", "tp"], expected names of axes, each once}}
func.func @placement_c3(%w: tensor<4xf32> {train.placement = #train.placement<dim = 0, axes = ["tp", "tp"], parts = 2>}) {
  return
}

// -----

// train.segment_c1
// expected-error@+1 {{segment '' at 0: expected a name, and an offset of at least 0}}
func.func @segment_c1(%w: tensor<4xf32> {train.segments = [#train.segment<"", offset = 0, shape = [4]>]}) {
  return
}

// -----

// train.segment_c2
// expected-error@+1 {{segment 'a' has a shape that is negative or too large}}
func.func @segment_c2(%w: tensor<4xf32> {train.segments = [#train.segment<"a", offset = 0, shape = [4611686018427387904, 4]>]}) {
  return
}

// -----

// train.segment_c3
// expected-error@+1 {{segment 'a': expected zeros}}
func.func @segment_c3(%w: tensor<4xf32> {train.segments = [#train.segment<"a", offset = 0, shape = [4], init = "ones">]}) {
  return
}

// -----

// train.segment_c4
// expected-error@+1 {{segment 'a': its shape [4] has no dimension 1 that divides into 2 parts}}
func.func @segment_c4(%w: tensor<4xf32> {train.segments = [#train.segment<"a", offset = 0, shape = [4], placement = <dim = 1, axes = ["tp"], parts = 2>>]}) {
  return
}

// -----

// expected-error@+1 {{expected init or placement, once each}}
func.func @segment_syntax(%w: tensor<4xf32> {train.segments = [#train.segment<"a", offset = 0, shape = [4], split = 3>]}) {
  return
}

// -----

// train.arg_c13
// expected-error@+1 {{argument 0: train.dims expected a #train.dims with a role for each of 2 dimensions, got #train.dims<[sample]>}}
func.func @arg_c13(%x: tensor<4x2xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample]>}) {
  return
}

// -----

// train.dims_c1
// expected-error@+1 {{two dimensions have the role sample, expected one at most}}
func.func @dims_c1(%x: tensor<4x2xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, sample]>}) {
  return
}

// -----

// train.dims_c2
// expected-error@+1 {{dimension 1 counts micro-batches, expected dimension 0}}
func.func @dims_c2(%x: tensor<4x2xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample, micro_batch]>}) {
  return
}

// -----

// train.step_c1
// expected-error@+1 {{step function needs a body of one block}}
func.func @step_c1(%w: tensor<4xf32> {train.role = "param", train.name = "w"}) {
  return
^bb1:
  return
}

// -----

// train.step_c2
// expected-error@+1 {{argument 0: train.role needs a tensor of static shape, got 'tensor<?xf32>'}}
func.func @step_c2(%x: tensor<?xf32> {train.role = "input"}) {
  return
}

// -----

// train.step_c2
// expected-error@+1 {{argument 1 needs a tensor of static shape, got 'i32'}}
func.func @step_c2(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: i32) {
  return
}

// -----

// train.step_c3
// expected-error@+1 {{argument 0: a parameter needs train.name}}
func.func @step_c3(%w: tensor<4xf32> {train.role = "param"}) {
  return
}

// -----

// train.step_c4
// expected-error@+1 {{two parameters are called "w"}}
func.func @step_c4(%a: tensor<4xf32> {train.role = "param", train.name = "w"}, %b: tensor<4xf32> {train.role = "param", train.name = "w"}) {
  return
}

// -----

// train.step_c5
// expected-error@+1 {{argument 1: a state needs train.of}}
func.func @step_c5(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %m: tensor<4xf32> {train.role = "state", train.name = "w.m", train.state = "m"}) {
  return
}

// -----

// train.step_c6
// expected-error@+1 {{argument 1: there is no parameter "v"}}
func.func @step_c6(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %m: tensor<4xf32> {train.role = "state", train.name = "w.m", train.of = "v", train.state = "m"}) {
  return
}

// -----

// train.step_c7
// expected-error@+1 {{result 0 needs a tensor of static shape, got 'i32'}}
func.func @step_c7(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<f32>) -> i32 {
  %0 = arith.constant 1 : i32
  return %0 : i32
}

// -----

// train.step_c8
// expected-error@+1 {{result 0: a gradient needs train.of = the name of a parameter}}
func.func @step_c8(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<f32>) -> (tensor<4xf32> {train.role = "grad"}) {
  return %w : tensor<4xf32>
}

// -----

// train.step_c8
// expected-error@+1 {{result 0: a gradient needs train.of = the name of a parameter}}
func.func @step_c8(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<f32>) -> (tensor<4xf32> {train.role = "grad", train.of = "v"}) {
  return %w : tensor<4xf32>
}

// -----

// train.step_c9
// expected-error@+1 {{result 0: the gradient of "w" has type 'tensor<f32>', expected 'tensor<4xf32>'}}
func.func @step_c9(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<f32>) -> (tensor<f32> {train.role = "grad", train.of = "w"}) {
  return %x : tensor<f32>
}

// -----

// train.step_c10
// expected-error@+1 {{result 1: "w" already has a gradient}}
func.func @step_c10(%w: tensor<4xf32> {train.role = "param", train.name = "w"}) -> (tensor<4xf32> {train.role = "grad", train.of = "w"}, tensor<4xf32> {train.role = "grad", train.of = "w"}) {
  return %w, %w : tensor<4xf32>, tensor<4xf32>
}

// -----

// train.step_c11
// expected-error@+1 {{argument 1: a derived argument needs train.of = the name of a parameter before it}}
func.func @step_c11(%x: tensor<4xf32> {train.role = "input", train.name = "w"}, %c: tensor<4xbf16> {train.role = "derived", train.name = "w.bf16", train.of = "w"}) {
  return
}

// -----

// train.step_c11
// expected-error@+1 {{argument 1: a derived argument needs train.of = the name of a parameter before it}}
func.func @step_c11_unnamed(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %c: tensor<4xbf16> {train.role = "derived", train.name = "w.bf16"}) {
  return
}

// -----

// train.step_c12
// expected-error@+1 {{argument 1 is derived from "w" of type 'tensor<4xf32>', expected the same shape, of bf16 made from f32, got 'tensor<4xf16>'}}
func.func @step_c12(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %c: tensor<4xf16> {train.role = "derived", train.name = "w.f16", train.of = "w"}) {
  return
}

// -----

// train.step_c12
// expected-error@+1 {{argument 1 is derived from "w" of type 'tensor<4xf64>', expected the same shape, of bf16 made from f32, got 'tensor<4xbf16>'}}
func.func @step_c12_source(%w: tensor<4xf64> {train.role = "frozen", train.name = "w"}, %c: tensor<4xbf16> {train.role = "derived", train.name = "w.bf16", train.of = "w"}) {
  return
}

// -----

// train.step_c13
// expected-error@+1 {{argument 1 is derived from "w": both need a next value, or neither}}
func.func @step_c13(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %c: tensor<4xbf16> {train.role = "derived", train.name = "w.bf16", train.of = "w"}) -> (tensor<4xf32> {train.alias = 0 : i64}) {
  return %w : tensor<4xf32>
}

// -----

// train.step_c14
// expected-error@+1 {{argument 0: train.dims describes an input or a target}}
func.func @step_c14(%w: tensor<4xf32> {train.role = "param", train.name = "w", train.dims = #train.dims<[sample]>}) {
  return
}

// -----

// train.step_c15
// expected-error@+1 {{argument 1 has 3 samples (dimension 1), argument 0 has 4}}
func.func @step_c15(%x: tensor<4xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[sample]>}, %y: tensor<4x3xf32> {train.role = "input", train.name = "y", train.dims = #train.dims<[position, sample]>}) {
  return
}

// -----

// train.result_c1
// expected-error@+1 {{result 0: train.role expected one of "loss", "metric", "updated", "output", "grad", "index_check", "loss_sum", "loss_count", "evaluated", "metric_sum", "metric_count", got "param"}}
func.func @result_c1(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<f32>) -> (tensor<4xf32> {train.role = "param"}) {
  return %w : tensor<4xf32>
}

// -----

// train.result_c3
// expected-error@+1 {{result 0: train.at_least expected a finite f64, got 0x7FF0000000000000 : f64}}
func.func @result_c3(%w: tensor<f32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.at_least = 0x7FF0000000000000 : f64, train.role = "loss_count"}) {
  return %w : tensor<f32>
}

// -----

// train.result_c3
// expected-error@+1 {{result 0: train.plus expected a finite f64, got 1 : i64}}
func.func @result_c3_plus(%w: tensor<f32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.plus = 1 : i64, train.role = "loss_count"}) {
  return %w : tensor<f32>
}

// -----

// train.result_c4
// expected-error@+1 {{result 0: train.at_least is only for a loss_count or metric_count}}
func.func @result_c4(%w: tensor<f32> {train.role = "param", train.name = "w"}) -> (tensor<f32> {train.at_least = 1.0 : f64, train.role = "loss"}) {
  return %w : tensor<f32>
}

// -----

// train.result_c2
// expected-error@+1 {{result 0: train.name expected a string that is not empty, got 1}}
func.func @result_c2(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<f32>) -> (tensor<4xf32> {train.name = 1 : i64}) {
  return %w : tensor<4xf32>
}

// -----

// train.alias_c1
// expected-error@+1 {{result 0: train.alias expected an i64, got "w"}}
func.func @alias_c1(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<f32>) -> (tensor<4xf32> {train.alias = "w"}) {
  return %w : tensor<4xf32>
}

// -----

// train.alias_c2
// expected-error@+1 {{result 0: train.alias is 2, the function has 2 arguments}}
func.func @alias_c2(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<f32>) -> (tensor<4xf32> {train.alias = 2 : i64}) {
  return %w : tensor<4xf32>
}

// -----

// train.alias_c2
// expected-error@+1 {{result 0: train.alias is -1, the function has 2 arguments}}
func.func @alias_c2(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<f32>) -> (tensor<4xf32> {train.alias = -1 : i64}) {
  return %w : tensor<4xf32>
}

// -----

// train.alias_c3
// expected-error@+1 {{result 0: train.alias is argument 1 of type 'tensor<f32>', the result has 'tensor<4xf32>'}}
func.func @alias_c3(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %x: tensor<f32>) -> (tensor<4xf32> {train.alias = 1 : i64}) {
  return %w : tensor<4xf32>
}

// -----

// train.alias_c4
// expected-error@+1 {{result 2: train.alias is argument 0, whose next value is result 0 already}}
func.func @alias_c4(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %v: tensor<4xf32>)
    -> (tensor<4xf32> {train.alias = 0 : i64}, tensor<4xf32> {train.alias = 1 : i64}, tensor<4xf32> {train.alias = 0 : i64}) {
  return %w, %v, %v : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// train.op_c1
func.func @op_c1(%w: tensor<4xf32>) {
  // expected-error@+1 {{train.unit expected a string that is not empty, got 3}}
  %0 = train.neg %w {train.unit = 3 : i64} : tensor<4xf32>
  return
}

// -----

// train.op_c2
func.func @op_c2(%w: tensor<4xf32>) {
  // expected-error@+1 {{train.units expected an array of strings, got}}
  %0 = train.neg %w {train.units = [3 : i64]} : tensor<4xf32>
  return
}

// -----

// train.op_c3
func.func @op_c3(%w: tensor<4xf32>) {
  // expected-error@+1 {{train.grad_operands expected numbers of operands, got}}
  %0 = train.neg %w {train.grad_operands = array<i64: 1>} : tensor<4xf32>
  return
}

// -----

// train.op_c4
// expected-error@+1 {{train.tensors expected an array of #train.tensor, got}}
module attributes {train.tensors = ["w"]} {
}

// -----

// train.op_c5
// expected-error@+1 {{train.tensors expected tensors of static shape, got #train.tensor<"w", tensor<?xf32>, param, "--parameters">}}
module attributes {train.tensors = [#train.tensor<"w", tensor<?xf32>, param, "--parameters">]} {
}

// -----

// train.op_c6
func.func @op_c6(%w: tensor<4xf32>) {
  // expected-error@+1 {{train.backward expected a unit attribute, got false}}
  %0 = train.neg %w {train.backward = false} : tensor<4xf32>
  return
}

// -----

// train.op_c6
// expected-error@+1 {{train.samples_meet expected a unit attribute, got 1}}
func.func @op_c6_samples_meet() attributes {train.samples_meet = 1 : i64} {
  return
}

// -----

// train.op_c7
// expected-error@+1 {{train.adapters expected an array of #train.adapter, got "fc.weight"}}
module attributes {train.adapters = "fc.weight"} {
}

// -----

// train.op_c8
// expected-error@+1 {{train.loss_of_batch expected one of "sum", "mean", "terms", got "median"}}
func.func @op_c8() attributes {train.loss_of_batch = "median"} {
  return
}

// -----

// train.op_c9
func.func @op_c9(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{train.of_batch expected one of "sum", "mean", got "terms"}}
  %0 = train.barrier %x {train.of_batch = "terms"} : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// train.op_c9
func.func @op_c9_barrier(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{train.of_batch is only for barriers}}
  %0 = train.neg %x {train.of_batch = "sum"} : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// train.op_c9
func.func @op_c9_micro_batches(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{train.micro_batches is only for barriers}}
  %0 = train.neg %x {train.micro_batches} : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// train.op_c10
// expected-error@+1 {{train.num_of_batch must not be negative, got -1}}
func.func @op_c10() attributes {train.num_of_batch = -1 : i64} {
  return
}

// -----

// train.op_c11
// expected-error@+1 {{train.batch_groups must be at least 1}}
func.func @op_c11() attributes {train.batch_groups = 0 : i64} {
  return
}

// -----

func.func @op_c12(%x: tensor<4xf32>) -> tensor<2x2xf32> {
  // train.op_c12
  // expected-error@+1 {{train.grows expected a dimension of the result of a reshape, slice or concat, got 2}}
  %y = train.reshape %x {train.grows = 2 : i64} : (tensor<4xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

func.func @op_c13(%x: tensor<f32>) -> tensor<f32> {
  // train.op_c13
  // expected-error@+1 {{train.of_batch_number expected a number, got "7"}}
  %y = train.barrier %x {train.of_batch_number = "7"} : tensor<f32>
  return %y : tensor<f32>
}

// -----

func.func @op_c14(%x: tensor<4xf32>) -> tensor<2x2xf32> {
  // train.op_c14
  // expected-error@+1 {{train.own_rows is only for gather_rows}}
  %y = train.reshape %x {train.own_rows} : (tensor<4xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

func.func @op_c15(%x: tensor<4xf32>) -> tensor<2x2xf32> {
  // train.op_c15
  // expected-error@+1 {{train.running is only for sums with train.statistics}}
  %y = train.reshape %x {train.running = "b"} : (tensor<4xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

func.func @op_c16(%x: tensor<4xf32>) -> tensor<2x2xf32> {
  // train.op_c16
  // expected-error@+1 {{train.by_place is only for constants and their barriers}}
  %y = train.reshape %x {train.by_place} : (tensor<4xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// train.step_c16
// expected-error@+1 {{argument 0: a buffer needs train.name of its own}}
func.func @step_c16(%b: tensor<4xf32> {train.role = "buffer"}) {
  return
}

// -----

// train.step_c16
// expected-error@+1 {{argument 1: a buffer needs train.name of its own}}
func.func @step_c16_twice(%a: tensor<4xf32> {train.role = "buffer", train.name = "b"}, %b: tensor<4xf32> {train.role = "buffer", train.name = "b"}) {
  return
}

// -----

// train.op_c17
// expected-error@+1 {{train.weight_map expected a #train.weight_map, got "here"}}
module attributes {train.weight_map = "here"} {
}

// -----

// train.piece_c1
// expected-error@+1 {{the piece of 't': expected one stride of the parameter and of the tensor for each loop}}
module attributes {test.map = #train.piece<"t", shape = [4], sizes = [4], offset = 0, strides = [1, 1], tensor_offset = 0, tensor_strides = [1]>} {
}

// -----

// train.piece_c2
// expected-error@+1 {{the piece of 't': expected sizes of at least 1 and nothing that is negative}}
module attributes {test.map = #train.piece<"t", shape = [4], sizes = [0], offset = 0, strides = [1], tensor_offset = 0, tensor_strides = [1]>} {
}

// -----

// train.stored_c1
// expected-error@+1 {{'w': expected pieces that are #train.piece and others that are names}}
module attributes {test.map = #train.stored<"w", pieces = ["t"], others = []>} {
}

// -----

// train.weight_map_c1
// expected-error@+1 {{expected parameters that are #train.stored and unread tensors that are names}}
module attributes {test.map = #train.weight_map<root = "", prefix = "", parameters = ["w"], unread = [], refused = "">} {
}

// -----

// train.weight_map_c2
// expected-error@+1 {{'w' is there twice}}
module attributes {test.map = #train.weight_map<root = "", prefix = "", parameters = [#train.stored<"w", pieces = [], others = []>, #train.stored<"w", pieces = [], others = []>], unread = [], refused = "">} {
}
