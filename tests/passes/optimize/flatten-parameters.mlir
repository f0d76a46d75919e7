// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,flatten-parameters{wrap=module pad-multiple=8}))' | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,flatten-parameters{wrap=none no-decay=lm.*|wte}))' | FileCheck %s --check-prefix=NONE
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(differentiate,flatten-parameters{wrap=size:100}))' | FileCheck %s --check-prefix=SIZE
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters))' | FileCheck %s --check-prefix=FORWARD

// Units in the order of first use; decayed parameters first, then vectors, then padding. A frozen parameter makes a unit of
// its own, a buffer stays.
// CHECK-LABEL: func @step
// CHECK-SAME: %[[EMBED:arg0]]: tensor<24xf32> {train.decay_elements = 20 : i64, train.name = "embed", train.role = "param", train.segments = [#train.segment<"wte", offset = 0, shape = [5, 4]>]}
// CHECK-SAME: %[[H0:arg1]]: tensor<24xf32> {train.decay_elements = 16 : i64, train.name = "h.0", train.role = "param", train.segments = [#train.segment<"h.0.w", offset = 0, shape = [4, 4], init = "normal:0.02">, #train.segment<"h.0.b", offset = 16, shape = [4]>]}
// CHECK-SAME: %[[HEAD:arg2]]: tensor<16xf32> {train.decay_elements = 12 : i64, train.name = "head", train.role = "param", train.segments = [#train.segment<"lm.weight", offset = 0, shape = [3, 4]>]}
// CHECK-SAME: tensor<8xf32> {train.module = "root", train.name = "root.frozen", train.role = "frozen", train.segments = [#train.segment<"f", offset = 0, shape = [4]>]}
// CHECK-SAME: tensor<4xf32> {train.init = "given", train.name = "buffer", train.role = "frozen"}
// CHECK-SAME: tensor<2xi32> {train.name = "x", train.role = "input"}
// CHECK-SAME: -> (tensor<f32> {train.role = "loss"}, tensor<24xf32> {train.of = "embed", train.role = "grad"}, tensor<24xf32> {train.of = "h.0", train.role = "grad"}, tensor<16xf32> {train.of = "head", train.role = "grad"})

// The transposed weight is a view, which the backward pass takes of its own copy of the parameter.
// CHECK: %[[S:.*]] = train.slice %[[HEAD]] {limits = array<i64: 12>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<16xf32>) -> tensor<12xf32>
// CHECK: %[[R:.*]] = train.reshape %[[S]] : (tensor<12xf32>) -> tensor<3x4xf32>
// CHECK: %[[T:.*]] = train.transpose %[[R]] {permutation = array<i64: 1, 0>}
// CHECK: train.dot_general %{{.*}}, %[[T]]
// CHECK: %[[SB:.*]] = train.slice %[[HEAD]] {limits = array<i64: 12>, starts = array<i64: 0>, strides = array<i64: 1>, train.backward}
// CHECK: %[[RB:.*]] = train.reshape %[[SB]] {train.backward}
// CHECK: %[[TB:.*]] = train.transpose %[[RB]] {permutation = array<i64: 1, 0>, train.backward}
// CHECK: train.dot_general %{{.*}}, %[[TB]] {{.*}}train.backward

// The unit's gradient is one concat, made as soon as its last part is.
// CHECK: %[[G1:.*]] = train.concat %{{.*}}, %{{.*}} {dim = 0 : i64, train.backward} : (tensor<12xf32>, tensor<4xf32>) -> tensor<16xf32>
// CHECK: %[[ZERO:.*]] = train.constant {train.backward} dense<0.000000e+00> : tensor<4xf32>
// CHECK: %[[G2:.*]] = train.concat %{{.*}}, %{{.*}}, %[[ZERO]] {dim = 0 : i64, train.backward} : (tensor<16xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<24xf32>
// CHECK: train.scatter_add_rows
// CHECK: %[[G0:.*]] = train.concat %{{.*}} : (tensor<20xf32>, tensor<4xf32>) -> tensor<24xf32>
// CHECK: return %{{.*}}, %[[G0]], %[[G2]], %[[G1]]

// NONE: tensor<52xf32> {train.decay_elements = 20 : i64, train.name = "all", train.role = "param", train.segments = [#train.segment<"h.0.b", offset = 0, shape = [4]>, #train.segment<"h.0.w", offset = 4, shape = [4, 4], init = "normal:0.02">, #train.segment<"wte", offset = 20, shape = [5, 4]>, #train.segment<"lm.weight", offset = 40, shape = [3, 4]>]}
// NONE-SAME: -> (tensor<f32> {train.role = "loss"}, tensor<52xf32> {train.of = "all", train.role = "grad"})

// SIZE: tensor<24xf32> {{{.*}}train.name = "unit.0"
// SIZE-SAME: tensor<16xf32> {{{.*}}train.name = "unit.1"
// SIZE-SAME: tensor<12xf32> {{{.*}}train.name = "unit.2"

// FORWARD: -> (tensor<f32> {train.role = "loss"})
func.func @step(%w: tensor<4x4xf32> {train.role = "param", train.name = "h.0.w", train.init = "normal:0.02"},
                %b: tensor<4xf32> {train.role = "param", train.name = "h.0.b"},
                %f: tensor<4xf32> {train.role = "frozen", train.name = "f"},
                %buffer: tensor<4xf32> {train.role = "frozen", train.name = "buffer", train.init = "given"},
                %wte: tensor<5x4xf32> {train.role = "param", train.name = "wte"},
                %lm: tensor<3x4xf32> {train.role = "param", train.name = "lm.weight"},
                %x: tensor<2xi32> {train.role = "input", train.name = "x"}) -> (tensor<f32> {train.role = "loss"}) {
  %e = train.gather_rows %wte, %x : (tensor<5x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
  %bb = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x4xf32>
  %h = train.dot_general %e, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %hb = train.add %h, %bb : tensor<2x4xf32>
  %ff = train.broadcast %f {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x4xf32>
  %fg = train.broadcast %buffer {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x4xf32>
  %hg = train.add %hb, %fg : tensor<2x4xf32>
  %hf = train.mul %hg, %ff : tensor<2x4xf32>
  %t = train.transpose %lm {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %y = train.dot_general %hf, %t {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %s = train.exp %y : tensor<2x3xf32>
  %loss = train.reduce sum, %s {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
