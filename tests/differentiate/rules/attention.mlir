// RUN: tessera-opt %s --check-differentiable --differentiate | FileCheck %s
// RUN: tessera-opt %s --differentiate | tessera-interp - --gradcheck --quiet

// Grouped queries: four query heads, two key heads.
// CHECK-LABEL: func @attention
// CHECK: train.attention_grad %arg0, %arg1, %arg2, %{{.*}}, %{{.*}}, %{{.*}} {{{.*}}train.backward}
func.func @attention(
    %q: tensor<2x4x3x2xf32> {train.role = "param", train.name = "q"},
    %k: tensor<2x2x5x2xf32> {train.role = "param", train.name = "k"},
    %v: tensor<2x2x5x3xf32> {train.role = "param", train.name = "v"},
    %c: tensor<2x4x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.attention %q, %k, %v {scale = 7.0e-01} : (tensor<2x4x3x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x4x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @causal
// CHECK: train.attention_grad {{.*}}causal
func.func @causal(
    %q: tensor<2x4x3x2xf32> {train.role = "param", train.name = "q"},
    %k: tensor<2x2x5x2xf32> {train.role = "param", train.name = "k"},
    %v: tensor<2x2x5x3xf32> {train.role = "param", train.name = "v"},
    %c: tensor<2x4x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.attention %q, %k, %v {causal, scale = 7.0e-01} : (tensor<2x4x3x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x4x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @keys_only
// CHECK: return %{{[^,]*}}, %key_grad
func.func @keys_only(
    %q: tensor<2x4x3x2xf32> {train.role = "input", train.name = "q"},
    %k: tensor<2x2x5x2xf32> {train.role = "param", train.name = "k"},
    %v: tensor<2x2x5x3xf32> {train.role = "input", train.name = "v"},
    %c: tensor<2x4x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.attention %q, %k, %v {scale = 7.0e-01} : (tensor<2x4x3x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x4x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @boolean_mask
// CHECK: train.attention_grad {{.*}} mask(%{{.*}})
func.func @boolean_mask(
    %q: tensor<2x4x3x2xf32> {train.role = "param", train.name = "q"},
    %k: tensor<2x2x5x2xf32> {train.role = "param", train.name = "k"},
    %v: tensor<2x2x5x3xf32> {train.role = "param", train.name = "v"},
    %m: tensor<1x1x3x5xf32> {train.role = "input", train.name = "m"},
    %c: tensor<2x4x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %zero = train.constant dense<-0.5> : tensor<1x1x3x5xf32>
  %mask = train.compare gt, %m, %zero : (tensor<1x1x3x5xf32>, tensor<1x1x3x5xf32>) -> tensor<1x1x3x5xi1>
  %y, %lse = train.attention %q, %k, %v mask(%mask) {scale = 7.0e-01} : (tensor<2x4x3x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>, tensor<1x1x3x5xi1>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x4x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// A mask that is an input takes no gradient.
// CHECK-LABEL: func @additive_mask
// CHECK-NOT: train.softmax
// CHECK: return
func.func @additive_mask(
    %q: tensor<2x4x3x2xf32> {train.role = "param", train.name = "q"},
    %k: tensor<2x2x5x2xf32> {train.role = "param", train.name = "k"},
    %v: tensor<2x2x5x3xf32> {train.role = "param", train.name = "v"},
    %m: tensor<2x1x3x5xf32> {train.role = "input", train.name = "m"},
    %c: tensor<2x4x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.attention %q, %k, %v mask(%m) {scale = 7.0e-01} : (tensor<2x4x3x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>, tensor<2x1x3x5xf32>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x4x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// A learned bias of the scores, such as a relative position, does.
// CHECK-LABEL: func @learned_mask
// CHECK: train.attention_grad
// CHECK: train.softmax
// CHECK: train.reduce sum, %{{.*}} {dimensions = array<i64: 0>, train.backward} : (tensor<2x4x3x5xf32>) -> tensor<4x3x5xf32>
func.func @learned_mask(
    %q: tensor<2x4x3x2xf32> {train.role = "param", train.name = "q"},
    %k: tensor<2x2x5x2xf32> {train.role = "param", train.name = "k"},
    %v: tensor<2x2x5x3xf32> {train.role = "param", train.name = "v"},
    %m: tensor<1x4x3x5xf32> {train.role = "param", train.name = "m"},
    %c: tensor<2x4x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.attention %q, %k, %v mask(%m) {scale = 7.0e-01} : (tensor<2x4x3x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>, tensor<1x4x3x5xf32>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x4x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @learned_causal_mask
// CHECK-NOT: train.attention_grad
// CHECK: train.compare le
func.func @learned_causal_mask(
    %q: tensor<2x4x3x2xf32> {train.role = "input", train.name = "q"},
    %k: tensor<2x2x5x2xf32> {train.role = "input", train.name = "k"},
    %v: tensor<2x2x5x3xf32> {train.role = "input", train.name = "v"},
    %m: tensor<1x1x1x5xf32> {train.role = "param", train.name = "m"},
    %c: tensor<2x4x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.attention %q, %k, %v mask(%m) {causal, scale = 7.0e-01} : (tensor<2x4x3x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>, tensor<1x1x1x5xf32>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x4x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @window
// CHECK: train.attention_grad {{.*}} {causal, scale = {{.*}}, train.backward, window = 2 : i64}
func.func @window(
    %q: tensor<2x4x3x2xf32> {train.role = "param", train.name = "q"},
    %k: tensor<2x2x5x2xf32> {train.role = "param", train.name = "k"},
    %v: tensor<2x2x5x3xf32> {train.role = "param", train.name = "v"},
    %c: tensor<2x4x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.attention %q, %k, %v {causal, window = 2 : i64, scale = 7.0e-01} : (tensor<2x4x3x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x4x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @keys
// The last query of the second sample sees nothing.
// CHECK: train.attention_grad {{.*}} keys(%{{.*}} to %{{.*}}), %{{.*}} {density = 5.000000e-01 : f64, scale = {{.*}}, split = #train<attention_split ring>, train.backward}
func.func @keys(
    %q: tensor<2x4x3x2xf32> {train.role = "param", train.name = "q"},
    %k: tensor<2x2x5x2xf32> {train.role = "param", train.name = "k"},
    %v: tensor<2x2x5x3xf32> {train.role = "param", train.name = "v"},
    %c: tensor<2x4x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %b = train.constant dense<[[0, 1, 3]]> : tensor<1x3xi64>
  %e = train.constant dense<[[2, 5, 4], [5, 4, 3]]> : tensor<2x3xi64>
  %y, %lse = train.attention %q, %k, %v keys(%b to %e) {scale = 7.0e-01, density = 0.5, split = #train<attention_split ring>} : (tensor<2x4x3x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>, tensor<1x3xi64>, tensor<2x3xi64>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x4x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @learned_mask_of_a_window
// CHECK: train.compare le
// CHECK: train.compare gt
func.func @learned_mask_of_a_window(
    %q: tensor<2x4x3x2xf32> {train.role = "input", train.name = "q"},
    %k: tensor<2x2x5x2xf32> {train.role = "input", train.name = "k"},
    %v: tensor<2x2x5x3xf32> {train.role = "input", train.name = "v"},
    %m: tensor<1x4x3x5xf32> {train.role = "param", train.name = "m"},
    %c: tensor<2x4x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %y, %lse = train.attention %q, %k, %v mask(%m) {causal, window = 2 : i64, scale = 7.0e-01} : (tensor<2x4x3x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>, tensor<1x4x3x5xf32>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x4x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @learned_mask_of_keys
// CHECK: train.compare ge
// CHECK: train.compare lt
func.func @learned_mask_of_keys(
    %q: tensor<2x4x3x2xf32> {train.role = "input", train.name = "q"},
    %k: tensor<2x2x5x2xf32> {train.role = "input", train.name = "k"},
    %v: tensor<2x2x5x3xf32> {train.role = "input", train.name = "v"},
    %m: tensor<1x4x3x5xf32> {train.role = "param", train.name = "m"},
    %c: tensor<2x4x3x3xf32> {train.role = "input", train.name = "c"}) -> (tensor<f32> {train.role = "loss"}) {
  %b = train.constant dense<[[0, 1, 3]]> : tensor<1x3xi64>
  %e = train.constant dense<[[2, 5, 4], [5, 4, 3]]> : tensor<2x3xi64>
  %y, %lse = train.attention %q, %k, %v mask(%m) keys(%b to %e) {scale = 7.0e-01} : (tensor<2x4x3x2xf32>, tensor<2x2x5x2xf32>, tensor<2x2x5x3xf32>, tensor<1x4x3x5xf32>, tensor<1x3xi64>, tensor<2x3xi64>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3xf32>)
  %weighted = train.mul %y, %c : tensor<2x4x3x3xf32>
  %loss = train.reduce sum, %weighted {dimensions = array<i64: 0, 1, 2, 3>} : (tensor<2x4x3x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
