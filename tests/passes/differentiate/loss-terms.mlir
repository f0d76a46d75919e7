// How the loss of a batch is made of the losses of its parts, which accumulate-gradients relies on.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=output:loss}))' -split-input-file -verify-diagnostics | FileCheck %s
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=mse of=logits}))' -split-input-file 2>/dev/null | FileCheck %s --check-prefix=MSE
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(func.func(add-loss{kind=cross-entropy of=logits}))' -split-input-file 2>/dev/null | FileCheck %s --check-prefix=XENT

// XENT-LABEL: func @counted
// XENT: attributes {train.loss_of_batch = "sum"}

// Divided by a count of the whole batch: a sum. A mean and what is no matter of the batch are divided by the number of parts.
// CHECK-LABEL: func @counted
// CHECK: attributes {train.loss_of_batch = "terms"}
// MSE-LABEL: func @counted
// MSE: attributes {train.loss_of_batch = "mean"}
func.func @counted(%w: tensor<6x5xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3x6xf32> {train.role = "input", train.name = "x"}, %t: tensor<4x3xi32> {train.role = "input", train.name = "t"})
    -> (tensor<f32> {train.role = "output", train.name = "loss"}, tensor<12xf32> {train.role = "output", train.name = "rows"}, tensor<4x3x5xf32> {train.role = "output", train.name = "logits"}) {
  %logits = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<4x3x6xf32>, tensor<6x5xf32>) -> tensor<4x3x5xf32>
  %flat = train.reshape %logits : (tensor<4x3x5xf32>) -> tensor<12x5xf32>
  %targets = train.reshape %t : (tensor<4x3xi32>) -> tensor<12xi32>
  %rows, %lse = train.cross_entropy %flat, %targets : (tensor<12x5xf32>, tensor<12xi32>) -> (tensor<12xf32>, tensor<12xf32>)
  %total = train.reduce sum, %rows {dimensions = array<i64: 0>} : (tensor<12xf32>) -> tensor<f32>
  %n = train.count_valid %targets : (tensor<12xi32>) -> tensor<f32>
  // CHECK: %[[CE:.*]] = train.div
  %ce = train.div %total, %n : tensor<f32>
  // CHECK: %[[SQUARE:.*]] = train.mul %{{.*}}, %{{.*}} : tensor<f32>
  %squares = train.mul %logits, %logits : tensor<4x3x5xf32>
  %sum = train.reduce sum, %squares {dimensions = array<i64: 0, 1, 2>, train.mean} : (tensor<4x3x5xf32>) -> tensor<f32>
  %part = train.constant dense<0.0166666675> : tensor<f32>
  %square = train.mul %sum, %part : tensor<f32>
  // CHECK: %[[ONE:.*]] = train.constant dense<1.000000e+00> : tensor<f32>
  // CHECK: %[[PARTS:.*]] = train.barrier %[[ONE]] {train.micro_batches} : tensor<f32>
  // CHECK: %[[MEAN:.*]] = train.div %[[SQUARE]], %[[PARTS]]
  // CHECK: %[[BOTH:.*]] = train.add %[[CE]], %[[MEAN]]
  %both = train.add %ce, %square : tensor<f32>
  // CHECK: %[[DECAY:.*]] = train.reduce sum, %arg0
  %decay = train.reduce sum, %w {dimensions = array<i64: 0, 1>} : (tensor<6x5xf32>) -> tensor<f32>
  // CHECK: train.barrier %{{.*}} {train.micro_batches}
  // CHECK: %[[OWN:.*]] = train.div %[[DECAY]]
  // CHECK: train.add %[[BOTH]], %[[OWN]]
  %loss = train.add %both, %decay : tensor<f32>
  return %loss, %rows, %logits : tensor<f32>, tensor<12xf32>, tensor<4x3x5xf32>
}

// -----

// Means and parameters: the whole is a mean, nothing is divided.
// CHECK-LABEL: func @means
// CHECK: attributes {train.loss_of_batch = "mean"}
// CHECK-NOT: train.barrier
func.func @means(%w: tensor<6xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x6xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "output", train.name = "loss"}, tensor<4xf32> {train.role = "output", train.name = "rows"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<6xf32>) -> tensor<4x6xf32>
  %y = train.mul %x, %wide : tensor<4x6xf32>
  %rows = train.reduce sum, %y {dimensions = array<i64: 1>} : (tensor<4x6xf32>) -> tensor<4xf32>
  %sum = train.reduce sum, %rows {dimensions = array<i64: 0>, train.mean} : (tensor<4xf32>) -> tensor<f32>
  %quarter = train.constant dense<0.25> : tensor<f32>
  %mean = train.mul %sum, %quarter : tensor<f32>
  %half = train.constant dense<0.5> : tensor<f32>
  %scaled = train.mul %mean, %half : tensor<f32>
  %decay = train.reduce sum, %w {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  %loss = train.sub %scaled, %decay : tensor<f32>
  return %loss, %rows : tensor<f32>, tensor<4xf32>
}

// -----

// One sample, transposed and padded on the way; a reduction over a dimension of size 1 is one over the batch.
// CHECK-LABEL: func @one
// CHECK: attributes {train.loss_of_batch = "sum"}
func.func @one(%w: tensor<6xf32> {train.role = "param", train.name = "w"}, %x: tensor<1x6xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "output", train.name = "loss"}, tensor<1xf32> {train.role = "output", train.name = "rows"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<6xf32>) -> tensor<1x6xf32>
  %y = train.mul %x, %wide : tensor<1x6xf32>
  %turned = train.transpose %y {permutation = array<i64: 1, 0>} : (tensor<1x6xf32>) -> tensor<6x1xf32>
  %padded = train.pad %turned {low = array<i64: 1, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<6x1xf32>) -> tensor<7x1xf32>
  %rows = train.reduce max, %padded {dimensions = array<i64: 0>} : (tensor<7x1xf32>) -> tensor<1xf32>
  %loss = train.reduce sum, %rows {dimensions = array<i64: 0>} : (tensor<1xf32>) -> tensor<f32>
  return %loss, %rows : tensor<f32>, tensor<1xf32>
}

// -----

// Not applied because a product of two batch means is not the sum or mean of such products of its parts: no word about it, as
// long as nothing is to be split.
// CHECK-LABEL: func @product
// CHECK-NOT: loss_of_batch
func.func @product(%w: tensor<6xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x6xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "output", train.name = "loss"}, tensor<4xf32> {train.role = "output", train.name = "rows"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<6xf32>) -> tensor<4x6xf32>
  %y = train.mul %x, %wide : tensor<4x6xf32>
  %rows = train.reduce sum, %y {dimensions = array<i64: 1>} : (tensor<4x6xf32>) -> tensor<4xf32>
  %a = train.reduce sum, %y {dimensions = array<i64: 0>, train.mean} : (tensor<4x6xf32>) -> tensor<6xf32>
  %b = train.reduce sum, %y {dimensions = array<i64: 0>, train.mean} : (tensor<4x6xf32>) -> tensor<6xf32>
  %ab = train.mul %a, %b : tensor<6xf32>
  %loss = train.reduce sum, %ab {dimensions = array<i64: 0>} : (tensor<6xf32>) -> tensor<f32>
  return %loss, %rows : tensor<f32>, tensor<4xf32>
}

// -----

// Statistics of a batch normalisation are those of the micro-batch by definition.
// CHECK-LABEL: func @statistics
// CHECK: attributes {train.loss_of_batch = "mean"}
func.func @statistics(%w: tensor<6xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x6xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "output", train.name = "loss"}, tensor<4xf32> {train.role = "output", train.name = "rows"}) {
  %total = train.reduce sum, %x {dimensions = array<i64: 0>, train.statistics} : (tensor<4x6xf32>) -> tensor<6xf32>
  %scale = train.exp %total : tensor<6xf32>
  %both = train.mul %scale, %w : tensor<6xf32>
  %wide = train.broadcast %both {broadcast_dimensions = array<i64: 1>} : (tensor<6xf32>) -> tensor<4x6xf32>
  %y = train.mul %x, %wide : tensor<4x6xf32>
  %rows = train.reduce sum, %y {dimensions = array<i64: 1>} : (tensor<4x6xf32>) -> tensor<4xf32>
  %loss = train.reduce sum, %rows {dimensions = array<i64: 0>, train.mean} : (tensor<4xf32>) -> tensor<f32>
  return %loss, %rows : tensor<f32>, tensor<4xf32>
}

// -----

// The divisor of a weighted mean follows from data alone: it is that of the whole batch. A clamp of it is, too, and what is
// multiplied with the quotient is no matter of the batch's size.
// CHECK-LABEL: func @weighted
// CHECK: attributes {train.loss_of_batch = "sum", train.num_of_batch = 1 : i64}
// CHECK: %[[COUNT:.*]] = train.reduce sum, %arg2
// CHECK: %[[WHOLE:.*]] = train.barrier %[[COUNT]] {train.of_batch = "sum"}
// CHECK: %[[MOST:.*]] = train.max %[[WHOLE]]
// CHECK: train.div %{{.*}}, %[[MOST]]
func.func @weighted(%w: tensor<6xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x6xf32> {train.role = "input", train.name = "x"}, %m: tensor<4xf32> {train.role = "input", train.name = "m"})
    -> (tensor<f32> {train.role = "output", train.name = "loss"}, tensor<4xf32> {train.role = "output", train.name = "rows"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<6xf32>) -> tensor<4x6xf32>
  %y = train.mul %x, %wide : tensor<4x6xf32>
  %rows = train.reduce max, %y {dimensions = array<i64: 1>} : (tensor<4x6xf32>) -> tensor<4xf32>
  %masked = train.mul %rows, %m : tensor<4xf32>
  %total = train.reduce sum, %masked {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %count = train.reduce sum, %m {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %one = train.constant dense<1.0> : tensor<f32>
  %most = train.max %count, %one : tensor<f32>
  %mean = train.div %total, %most : tensor<f32>
  %half = train.constant dense<0.5> : tensor<f32>
  %loss = train.mul %mean, %half : tensor<f32>
  return %loss, %rows : tensor<f32>, tensor<4xf32>
}

// -----

// Labels that were shifted in the model: their count is written out as a sum of the whole batch.
// CHECK-LABEL: func @shifted
// CHECK: attributes {train.loss_of_batch = "sum", train.num_of_batch = 1 : i64}
// CHECK-NOT: train.count_valid
// CHECK: train.compare ne
// CHECK: %[[SUM:.*]] = train.reduce sum, %{{.*}} {dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
// CHECK: %[[WHOLE:.*]] = train.barrier %[[SUM]] {train.of_batch = "sum"}
// CHECK: train.max %[[WHOLE]]
func.func @shifted(%w: tensor<6x5xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x3x6xf32> {train.role = "input", train.name = "x"}, %t: tensor<4x3xi32> {train.role = "input", train.name = "t"})
    -> (tensor<f32> {train.role = "output", train.name = "loss"}, tensor<8xf32> {train.role = "output", train.name = "rows"}) {
  %logits = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<4x3x6xf32>, tensor<6x5xf32>) -> tensor<4x3x5xf32>
  %front = train.slice %logits {starts = array<i64: 0, 0, 0>, limits = array<i64: 4, 2, 5>, strides = array<i64: 1, 1, 1>} : (tensor<4x3x5xf32>) -> tensor<4x2x5xf32>
  %back = train.slice %t {starts = array<i64: 0, 1>, limits = array<i64: 4, 3>, strides = array<i64: 1, 1>} : (tensor<4x3xi32>) -> tensor<4x2xi32>
  %flat = train.reshape %front : (tensor<4x2x5xf32>) -> tensor<8x5xf32>
  %targets = train.reshape %back : (tensor<4x2xi32>) -> tensor<8xi32>
  %rows, %lse = train.cross_entropy %flat, %targets {ignore_index = -100 : i64} : (tensor<8x5xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  %total = train.reduce sum, %rows {dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
  %n = train.count_valid %targets {ignore_index = -100 : i64} : (tensor<8xi32>) -> tensor<f32>
  %loss = train.div %total, %n : tensor<f32>
  return %loss, %rows : tensor<f32>, tensor<8xf32>
}

// -----

// Not applied because the divisor depends on a parameter.
// CHECK-LABEL: func @trained_weights
// CHECK-NOT: loss_of_batch
// CHECK-NOT: train.barrier
func.func @trained_weights(%w: tensor<6xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x6xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "output", train.name = "loss"}, tensor<4xf32> {train.role = "output", train.name = "rows"}) {
  %wide = train.broadcast %w {broadcast_dimensions = array<i64: 1>} : (tensor<6xf32>) -> tensor<4x6xf32>
  %y = train.mul %x, %wide : tensor<4x6xf32>
  %rows = train.reduce max, %y {dimensions = array<i64: 1>} : (tensor<4x6xf32>) -> tensor<4xf32>
  %total = train.reduce sum, %rows {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %sum = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<4x6xf32>) -> tensor<f32>
  %loss = train.div %total, %sum : tensor<f32>
  return %loss, %rows : tensor<f32>, tensor<4xf32>
}
