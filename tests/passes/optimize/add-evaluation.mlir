// RUN: tessera-opt %s --add-evaluation --split-input-file --verify-diagnostics | FileCheck %s

// The step stays as it is. Its evaluation has the sum and the count, no gradient, no dropout, and no seed.
// CHECK-LABEL: func.func @step
// CHECK: train.rng_uniform
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: train.name = "w", train.role = "param"
// CHECK-SAME: train.name = "targets", train.role = "target"
// CHECK-NOT: train.name = "seed"
// CHECK-SAME: -> (tensor<f32> {train.name = "loss_sum", train.role = "loss_sum"}, tensor<f32> {train.name = "loss_count", train.of = "targets", train.role = "loss_count"})
// CHECK-SAME: attributes {train.program = "evaluate"}
// CHECK-NOT: train.rng_uniform
// CHECK: %[[Z:.*]] = train.mul
// CHECK: %[[LOSS:.*]], %{{.*}} = train.cross_entropy %[[Z]], %[[T:arg[0-9]+]]
// CHECK: %[[SUM:.*]] = train.reduce sum, %[[LOSS]]
// CHECK: %[[COUNTED:.*]] = train.compare ne, %[[T]]
// CHECK: %[[ONES:.*]] = train.convert %[[COUNTED]]
// CHECK: %[[COUNT:.*]] = train.reduce sum, %[[ONES]]
// CHECK: return %[[SUM]], %[[COUNT]]
func.func @step(%w: tensor<4x8xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4x8xf32> {train.role = "input", train.name = "x"},
                %targets: tensor<4xi32> {train.role = "target", train.name = "targets"},
                %seed: tensor<i64> {train.role = "hyper", train.name = "seed"})
    -> (tensor<f32> {train.role = "loss"}, tensor<4x8xf32> {train.role = "grad", train.of = "w"})
    attributes {train.loss_of_batch = "sum"} {
  %zero = train.constant dense<0.0> : tensor<4x8xf32>
  %scale = train.constant dense<2.0> : tensor<4x8xf32>
  %half = train.constant dense<0.5> : tensor<4x8xf32>
  %z = train.mul %x, %w : tensor<4x8xf32>
  %random = train.rng_uniform %seed {stream = 0 : i64, train.dropout} : (tensor<i64>) -> tensor<4x8xf32>
  %keep = train.compare ge, %random, %half : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %more = train.mul %z, %scale : tensor<4x8xf32>
  %y = train.select %keep, %more, %zero : tensor<4x8xi1>, tensor<4x8xf32>
  %loss, %lse = train.cross_entropy %y, %targets {ignore_index = -100 : i64} : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %sum = train.reduce sum, %loss {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %count = train.count_valid %targets {ignore_index = -100 : i64} : (tensor<4xi32>) -> tensor<f32>
  %mean = train.div %sum, %count : tensor<f32>
  %grad = train.mul %more, %x {train.backward} : tensor<4x8xf32>
  return %mean, %grad : tensor<f32>, tensor<4x8xf32>
}

// -----

// Dropout of whole channels: one number for each row.
// CHECK-LABEL: func.func @evaluate(
// CHECK-NOT: train.rng_uniform
// CHECK: %[[Z:.*]] = train.mul
// CHECK: train.cross_entropy %[[Z]]
func.func @step(%w: tensor<4x8xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4x8xf32> {train.role = "input", train.name = "x"},
                %targets: tensor<4xi32> {train.role = "target", train.name = "targets"},
                %seed: tensor<i64> {train.role = "hyper", train.name = "seed"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "sum"} {
  %zero = train.constant dense<0.0> : tensor<4x8xf32>
  %scale = train.constant dense<2.0> : tensor<4x8xf32>
  %half = train.constant dense<0.5> : tensor<4x1xf32>
  %z = train.mul %x, %w : tensor<4x8xf32>
  %random = train.rng_uniform %seed {stream = 0 : i64, train.dropout} : (tensor<i64>) -> tensor<4x1xf32>
  %keep = train.compare ge, %random, %half : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xi1>
  %wide = train.broadcast %keep {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xi1>) -> tensor<4x8xi1>
  %more = train.mul %z, %scale : tensor<4x8xf32>
  %y = train.select %wide, %more, %zero : tensor<4x8xi1>, tensor<4x8xf32>
  %loss, %lse = train.cross_entropy %y, %targets {ignore_index = -100 : i64} : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %sum = train.reduce sum, %loss {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %count = train.count_valid %targets {ignore_index = -100 : i64} : (tensor<4xi32>) -> tensor<f32>
  %mean = train.div %sum, %count : tensor<f32>
  return %mean : tensor<f32>
}

// -----

// Noise that is added is no dropout.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %seed: tensor<i64> {train.role = "hyper", train.name = "seed"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  // expected-error@+1 {{the model cannot be evaluated: it uses random numbers otherwise than dropout that writes zeros}}
  %random = train.rng_uniform %seed {stream = 0 : i64, train.dropout} : (tensor<i64>) -> tensor<4xf32>
  %y = train.add %x, %random : tensor<4xf32>
  %z = train.mul %y, %w : tensor<4xf32>
  %loss = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A mask that the model draws by itself looks like dropout, and is none.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %seed: tensor<i64> {train.role = "hyper", train.name = "seed"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  %zero = train.constant dense<0.0> : tensor<4xf32>
  %two = train.constant dense<2.0> : tensor<4xf32>
  %half = train.constant dense<0.5> : tensor<4xf32>
  %z = train.mul %x, %w : tensor<4xf32>
  // expected-error@+1 {{it draws random numbers other than those of dropout, and the step does not say whether the model draws them in evaluation, too}}
  %random = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<4xf32>
  %keep = train.compare ge, %random, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %more = train.mul %z, %two : tensor<4xf32>
  %y = train.select %keep, %more, %zero : tensor<4xi1>, tensor<4xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nor is a mask whose values are not scaled by what it drops.
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                %seed: tensor<i64> {train.role = "hyper", train.name = "seed"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  %zero = train.constant dense<0.0> : tensor<4xf32>
  %scale = train.constant dense<3.0> : tensor<4xf32>
  %half = train.constant dense<0.5> : tensor<4xf32>
  %z = train.mul %x, %w : tensor<4xf32>
  // expected-error@+1 {{it uses random numbers otherwise than dropout that writes zeros}}
  %random = train.rng_uniform %seed {stream = 0 : i64, train.dropout} : (tensor<i64>) -> tensor<4xf32>
  %keep = train.compare ge, %random, %half : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %more = train.mul %z, %scale : tensor<4xf32>
  %y = train.select %keep, %more, %zero : tensor<4xi1>, tensor<4xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  // expected-error@+1 {{it normalises by statistics of the batch, and has no running ones for evaluation}}
  %sum = train.reduce sum, %x {dimensions = array<i64: 0>, train.statistics} : (tensor<4xf32>) -> tensor<f32>
  %mean = train.broadcast %sum {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  %y = train.sub %x, %mean : tensor<4xf32>
  %z = train.mul %y, %w : tensor<4xf32>
  %loss = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@+1 {{its loss depends on 'lr', which only training sets}}
func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %lr: tensor<f32> {train.role = "hyper", train.name = "lr"},
                %x: tensor<4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  %r = train.broadcast %lr {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  %y = train.mul %x, %r : tensor<4xf32>
  %z = train.mul %y, %w : tensor<4xf32>
  %loss = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@+1 {{there is a function @evaluate already}}
func.func @step(%w: tensor<f32> {train.role = "param", train.name = "w"})
    -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
  return %w : tensor<f32>
}
func.func @evaluate(%w: tensor<f32> {train.role = "param", train.name = "w"}) attributes {train.program = "evaluate"} {
  return
}

// -----

// expected-error@+1 {{train.program must be "evaluate" or absent, got "dream"}}
func.func @step(%w: tensor<f32> {train.role = "param", train.name = "w"}) attributes {train.program = "dream"} {
  return
}

// -----

// A sum that names its running buffer is that buffer, times the number of terms.
// CHECK-LABEL: func.func @evaluate(
// CHECK-SAME: %[[RUNNING:arg[0-9]+]]: tensor<2xf32> {train.name = "norm.running_mean", train.role = "buffer"}
// CHECK-NOT: train.statistics
// CHECK: %[[TERMS:.*]] = train.constant dense<4.000000e+00> : tensor<2xf32>
// CHECK: train.mul %[[RUNNING]], %[[TERMS]] : tensor<2xf32>
func.func @step(%w: tensor<2xf32> {train.role = "param", train.name = "w"}, %x: tensor<4x2xf32> {train.role = "input", train.name = "x"},
                %running: tensor<2xf32> {train.role = "buffer", train.name = "norm.running_mean"})
    -> (tensor<f32> {train.role = "loss"}, tensor<2xf32> {train.alias = 2 : i64}) attributes {train.loss_of_batch = "mean"} {
  %sum = train.reduce sum, %x {dimensions = array<i64: 0>, train.running = "norm.running_mean", train.statistics} : (tensor<4x2xf32>) -> tensor<2xf32>
  %y = train.mul %sum, %w : tensor<2xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %next = train.add %running, %sum : tensor<2xf32>
  return %loss, %next : tensor<f32>, tensor<2xf32>
}

// -----

// What the module does after eval() is something else, by the file that it was imported from.
// expected-error@+1 {{the model cannot be evaluated: after eval() the module computes something else: net.py:7: if self.training:; to evaluate what was trained}}
module attributes {train.mode = "training", train.evaluation_differs = "net.py:7: if self.training:"} {
  func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                  %x: tensor<4xf32> {train.role = "input", train.name = "x"})
      -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
    %y = train.mul %x, %w : tensor<4xf32>
    %loss = train.reduce sum, %y {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// In evaluation mode, no random number is left out.
module attributes {train.mode = "evaluation"} {
  func.func @step(%w: tensor<4xf32> {train.role = "param", train.name = "w"},
                  %x: tensor<4xf32> {train.role = "input", train.name = "x"},
                  %seed: tensor<i64> {train.role = "hyper", train.name = "seed"})
      -> (tensor<f32> {train.role = "loss"}) attributes {train.loss_of_batch = "mean"} {
    // expected-error@+1 {{it draws random numbers in evaluation mode, too, and an evaluation has none}}
    %random = train.rng_uniform %seed {stream = 0 : i64} : (tensor<i64>) -> tensor<4xf32>
    %y = train.add %x, %random : tensor<4xf32>
    %z = train.mul %y, %w : tensor<4xf32>
    %loss = train.reduce sum, %z {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{train.mode expected one of "training", "evaluation", got 3 : i64}}
module attributes {train.mode = 3 : i64} {}
