// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{kind=adamw weight-decay=0.1 settings=beta1=0.8}))' | FileCheck %s --check-prefix=ADAMW
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{kind=sgd settings=momentum=0.9,nesterov=1}))' | FileCheck %s --check-prefix=SGD
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{kind=sgd}))' | FileCheck %s --check-prefix=PLAIN
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{kind=lion clip-value=0.5}))' | FileCheck %s --check-prefix=LION
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(insert-optimizer{moments=bf16}))' | FileCheck %s --check-prefix=NARROW
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(clip-gradients{max-norm=1.0},insert-optimizer))' | FileCheck %s --check-prefix=CLIP

// ADAMW-LABEL: func @step
// ADAMW-SAME: %[[U:arg0]]: tensor<8xf32>
// ADAMW-SAME: %[[V:arg1]]: tensor<4xf32>
// ADAMW-SAME: %[[UM:arg[0-9]+]]: tensor<8xf32> {train.name = "u.m", train.of = "u", train.role = "state", train.state = "m"}
// ADAMW-SAME: %[[UV:arg[0-9]+]]: tensor<8xf32> {train.name = "u.v", train.of = "u", train.role = "state", train.state = "v"}
// ADAMW-SAME: %[[VM:arg[0-9]+]]: tensor<4xf32> {train.name = "v.m", train.of = "v", train.role = "state", train.state = "m"}
// ADAMW-SAME: %[[VV:arg[0-9]+]]: tensor<4xf32> {train.name = "v.v", train.of = "v", train.role = "state", train.state = "v"}
// ADAMW-SAME: %[[LR:arg[0-9]+]]: tensor<f32> {train.name = "lr", train.role = "hyper"}
// ADAMW-SAME: %[[C1:arg[0-9]+]]: tensor<f32> {train.beta = 8.000000e-01 : f64, train.name = "bias_correction1", train.role = "hyper"}
// ADAMW-SAME: %[[C2:arg[0-9]+]]: tensor<f32> {train.beta = 0.99{{[0-9]+}} : f64, train.name = "bias_correction2", train.role = "hyper"}
// ADAMW-SAME: -> (tensor<f32> {train.role = "loss"}, tensor<8xf32> {train.alias = 0 : i64}, tensor<4xf32> {train.alias = 1 : i64}, tensor<8xf32> {train.alias = 3 : i64}, tensor<8xf32> {train.alias = 4 : i64}, tensor<4xf32> {train.alias = 5 : i64}, tensor<4xf32> {train.alias = 6 : i64})
// ADAMW: %[[P:.*]], %[[M:.*]], %[[W:.*]] = train.adamw_update %[[U]], %[[UM]], %[[UV]], %{{.*}} lr(%[[LR]]) correction(%[[C1]], %[[C2]]) {beta1 = 8.000000e-01 : f64, beta2 = 0.99{{[0-9]+}} : f64, decay_elements = 6 : i64, epsilon = 1.000000e-08 : f64, train.unit = "u", weight_decay = 1.000000e-01 : f64}
// ADAMW: train.adamw_update %[[V]], %[[VM]], %[[VV]]
// ADAMW: return %{{.*}}, %[[P]], %{{.*}}, %[[M]], %[[W]]

// SGD: tensor<8xf32> {train.name = "u.momentum", train.of = "u", train.role = "state", train.state = "momentum"}
// SGD-NOT: bias_correction
// SGD: train.sgd_update %arg0, %{{.*}} buffer(%{{.*}}) lr(%{{.*}}) {decay_elements = 6 : i64, momentum = 9.000000e-01 : f64, nesterov, train.unit = "u", weight_decay = 1.000000e-02 : f64}

// PLAIN-NOT: momentum"
// PLAIN: -> (tensor<f32> {train.role = "loss"}, tensor<8xf32> {train.alias = 0 : i64}, tensor<4xf32> {train.alias = 1 : i64})
// PLAIN: train.sgd_update %arg0, %{{.*}} lr(%{{.*}}) {decay_elements

// LION: tensor<8xf32> {train.name = "u.m", train.of = "u", train.role = "state", train.state = "m"}
// LION-NOT: bias_correction
// LION: train.lion_update %arg0, %{{.*}}, %{{.*}} lr(%{{.*}}) {beta1 = 9.000000e-01 : f64, beta2 = 0.98{{9+[0-9]*}} : f64, clip_value = 5.000000e-01 : f64, decay_elements = 6 : i64, train.unit = "u"

// Units have streams of their own.
// NARROW: tensor<8xbf16> {train.name = "u.m"
// NARROW: %[[SEED:arg[0-9]+]]: tensor<i64> {train.name = "seed", train.role = "hyper"}
// NARROW: train.adamw_update %arg0, {{.*}} seed(%[[SEED]]) {{.*}} rounding_stream = [[STREAM:-?[0-9]+]] : i64
// NARROW-NOT: rounding_stream = [[STREAM]] :
// NARROW: train.adamw_update %arg1, {{.*}} seed(%[[SEED]])

// The clipped gradients are never stored: the update takes the factor.
// CLIP: -> (tensor<f32> {train.role = "loss"}, tensor<f32> {train.name = "grad_norm", train.role = "metric"}, tensor<8xf32> {train.alias = 0 : i64}
// CLIP: %[[G:.*]] = train.mul %arg0, %arg0 {train.backward}
// CLIP: %[[SCALE:.*]] = train.select
// CLIP-NOT: train.broadcast
// CLIP: train.adamw_update %arg0, %{{.*}}, %{{.*}}, %[[G]] lr(%{{.*}}) correction(%{{.*}}, %{{.*}}) scale(%[[SCALE]])
func.func @step(%u: tensor<8xf32> {train.role = "param", train.name = "u", train.decay_elements = 6 : i64, train.segments = [#train.segment<"a", offset = 0, shape = [2, 3]>]},
                %v: tensor<4xf32> {train.role = "param", train.name = "v", train.decay_elements = 0 : i64, train.segments = [#train.segment<"b", offset = 0, shape = [4]>]},
                %x: tensor<f32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<8xf32> {train.role = "grad", train.of = "u"}, tensor<4xf32> {train.role = "grad", train.of = "v"}) {
  %g = train.mul %u, %u {train.backward} : tensor<8xf32>
  %h = train.mul %v, %v {train.backward} : tensor<4xf32>
  return %x, %g, %h : tensor<f32>, tensor<8xf32>, tensor<4xf32>
}
