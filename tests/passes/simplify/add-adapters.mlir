// RUN: tessera-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(add-adapters{rank=2 alpha=4 targets=fc|proj|wte|norm|mix|conv})' | FileCheck %s
// RUN: not tessera-opt %s --split-input-file --pass-pipeline='builtin.module(add-adapters{rank=2 alpha=4 targets=fc train=head})' 2>/dev/null | FileCheck %s --check-prefix=TRAIN
// RUN: not tessera-opt %s --split-input-file --pass-pipeline='builtin.module(add-adapters{rank=2 alpha=4 targets=absent})' 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not tessera-opt %s --split-input-file --pass-pipeline='builtin.module(add-adapters{rank=0 alpha=4 targets=fc})' 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not tessera-opt %s --split-input-file --pass-pipeline='builtin.module(add-adapters{rank=2 alpha=4 targets=(})' 2>&1 | FileCheck %s --check-prefix=REGEX
// RUN: not tessera-opt %s --split-input-file --pass-pipeline='builtin.module(add-adapters{rank=2 alpha=4 targets=fc train=absent})' 2>&1 | FileCheck %s --check-prefix=TRAINED

// RUN: not tessera-opt %s --split-input-file --pass-pipeline='builtin.module(add-adapters{rank=2 alpha=4 targets=fc|proj train=proj})' 2>&1 | FileCheck %s --check-prefix=BOTH

// BOTH: error: --lora: both targets and train match 'proj.weight', which is trained itself or has an adapter
// ABSENT: error: --lora: targets: no matrix that multiplies activations matches 'absent'; nearest: '{{.*}}'
// RANK: error: --lora: rank must be at least 1, got 0
// REGEX: error: --lora: targets: '(' is not a regular expression
// TRAINED: error: --lora: train: no trained parameter matches 'absent'; nearest: '

// A bias that is called like its matrix has none. A Linear ([outputs, inputs]) and a Conv1D ([inputs, outputs]) get adapters; the rest is frozen.
// CHECK: #train.adapter<"fc.weight", a = "fc.lora_A.weight", b = "fc.lora_B.weight", rank = 2, input_dim = 1, scale = 2.000000e+00 : f64>
// CHECK-SAME: #train.adapter<"proj.weight", a = "proj.lora_A.weight", b = "proj.lora_B.weight", rank = 2, input_dim = 0, scale = 2.000000e+00 : f64>
// CHECK-SAME: #train.tensor<"fc.weight", tensor<8x4xf32>, frozen, "--lora trains adapters only">
// CHECK-SAME: #train.tensor<"fc.lora_A.weight", tensor<2x4xf32>, param, "added by --lora">
// CHECK-LABEL: func @step
// CHECK-SAME: %[[FC:.*]]: tensor<8x4xf32> {train.name = "fc.weight", train.role = "frozen"}
// CHECK-SAME: %[[PROJ:.*]]: tensor<8x3xf32> {train.name = "proj.weight", train.role = "frozen"}
// CHECK-SAME: {train.name = "head.weight", train.role = "frozen"}
// CHECK-SAME: {train.name = "fc.bias", train.role = "frozen"}
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<2x4xf32> {train.name = "x"
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<2x4xf32> {train.init = "uniform:-0.500000000:0.500000000", train.name = "fc.lora_A.weight", train.role = "param"}
// CHECK-SAME: %[[B:[a-z0-9]*]]: tensor<8x2xf32> {train.init = "zeros", train.name = "fc.lora_B.weight", train.role = "param"}
// CHECK-SAME: tensor<2x8xf32> {train.init = "uniform:-0.353553391:0.353553391", train.name = "proj.lora_A.weight"
// CHECK-SAME: tensor<3x2xf32> {train.init = "zeros", train.name = "proj.lora_B.weight"
// CHECK: %[[Y:.*]] = train.dot_general %[[X]], %[[FC]]
// CHECK: %[[LOW:.*]] = train.dot_general %[[X]], %[[A]] {{.*}}lhs_contract = array<i64: 1>{{.*}}rhs_contract = array<i64: 1>
// CHECK: %[[PART:.*]] = train.dot_general %[[LOW]], %[[B]] {{.*}}rhs_contract = array<i64: 1>
// CHECK: %[[SCALED:.*]] = train.mul %[[PART]]
// CHECK: %[[SUM:.*]] = train.add %[[Y]], %[[SCALED]]
// CHECK: train.dot_general %[[SUM]], %[[PROJ]]
// With `train` a parameter stays one.
// TRAIN-LABEL: func @step
// TRAIN-SAME: {train.name = "proj.weight", train.role = "frozen"}
// TRAIN-SAME: {train.name = "head.weight", train.role = "param"}
module attributes {train.tensors = [#train.tensor<"fc.weight", tensor<8x4xf32>, param, "given">]} {
  func.func @step(%fc: tensor<8x4xf32> {train.role = "param", train.name = "fc.weight"},
                  %proj: tensor<8x3xf32> {train.role = "param", train.name = "proj.weight"},
                  %head: tensor<5x3xf32> {train.role = "param", train.name = "head.weight"},
                  %bias: tensor<8xf32> {train.role = "param", train.name = "fc.bias"},
                  %x: tensor<2x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<2x5xf32> {train.role = "output", train.name = "y"}) {
    %y = train.dot_general %x, %fc {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
    %z = train.dot_general %y, %proj {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x8xf32>, tensor<8x3xf32>) -> tensor<2x3xf32>
    %o = train.dot_general %z, %head {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x3xf32>, tensor<5x3xf32>) -> tensor<2x5xf32>
    return %o : tensor<2x5xf32>
  }
}

// -----

// Beside narrow weights adapters are f32, and a matrix on the left, read through its transpose, keeps its place.
// CHECK-LABEL: func @step
// CHECK-SAME: tensor<2x4xf32> {train.init = {{.*}} train.name = "fc.lora_A.weight"
// CHECK: %[[Y:.*]] = train.dot_general %{{[a-z0-9]*}}, %[[X:[a-z0-9]*]] {{.*}} -> tensor<8x2xbf16>
// CHECK: %[[WX:.*]] = train.convert %[[X]] : {{.*}} -> tensor<2x4xf32>
// CHECK: %[[LOW:.*]] = train.dot_general %[[WX]], {{.*}} -> tensor<2x2xf32>
// CHECK: train.dot_general %{{.*}}, %[[LOW]] {{.*}} -> tensor<8x2xf32>
// CHECK: %[[SUM:.*]] = train.add
// CHECK: %[[O:.*]] = train.convert %[[SUM]] : {{.*}} -> tensor<8x2xbf16>
// CHECK: return %[[O]]
func.func @step(%fc: tensor<4x8xbf16> {train.role = "param", train.name = "fc.weight"},
                %x: tensor<2x4xbf16> {train.role = "input", train.name = "x"}) -> (tensor<8x2xbf16> {train.role = "output", train.name = "y"}) {
  %t = train.transpose %fc {permutation = array<i64: 1, 0>} : (tensor<4x8xbf16>) -> tensor<8x4xbf16>
  %y = train.dot_general %t, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x4xbf16>, tensor<2x4xbf16>) -> tensor<8x2xbf16>
  return %y : tensor<8x2xbf16>
}

// -----

// An embedding that is tied to the head is read by a lookup, too.
func.func @step(
    // expected-error @below {{--lora: 'wte.weight' cannot have an adapter: it is read by train.gather_rows}}
    %w: tensor<8x4xf32> {train.role = "param", train.name = "wte.weight"},
    %ids: tensor<2xi32> {train.role = "input", train.name = "ids"}) -> (tensor<2x8xf32> {train.role = "output", train.name = "y"}) {
  %rows = train.gather_rows %w, %ids : (tensor<8x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
  %y = train.dot_general %rows, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

func.func @step(
    // expected-error @below {{--lora: 'conv.weight' cannot have an adapter: it is 'tensor<2x2x2xf32>', not a matrix}}
    %w: tensor<2x2x2xf32> {train.role = "param", train.name = "conv.weight"},
    %x: tensor<2x2x2xf32> {train.role = "input", train.name = "x"}) -> (tensor<2x2x2xf32> {train.role = "output", train.name = "y"}) {
  %y = train.mul %w, %x : tensor<2x2x2xf32>
  return %y : tensor<2x2x2xf32>
}

// -----

func.func @step(
    // expected-error @below {{--lora: 'mix.weight' cannot have an adapter: products read both it and its transpose, so that neither dimension is its input}}
    %w: tensor<4x4xf32> {train.role = "param", train.name = "mix.weight"},
    %x: tensor<2x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<2x4xf32> {train.role = "output", train.name = "y"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %z = train.dot_general %y, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

// -----

func.func @step(
    // expected-error @below {{--lora: the model has a parameter 'fc.lora_A.weight' already}}
    %w: tensor<4x4xf32> {train.role = "param", train.name = "fc.weight"},
                %a: tensor<4x4xf32> {train.role = "param", train.name = "fc.lora_A.weight"},
                %x: tensor<2x4xf32> {train.role = "input", train.name = "x"}) -> (tensor<2x4xf32> {train.role = "output", train.name = "y"}) {
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
