// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(flatten-parameters))' -split-input-file | FileCheck %s

// Names of models in the wild: one unit for each block, whatever follows its number.
// CHECK-LABEL: func @names
// CHECK-SAME: train.name = "transformer.h.3"{{.*}}transformer.h.3.attn.weight{{.*}}transformer.h.3.mlp.0.weight
// CHECK-SAME: train.name = "model.layers.12"
// CHECK-SAME: train.name = "0"
// CHECK-SAME: train.name = "head"{{.*}}"norm.weight"{{.*}}"head2"
func.func @names(%a: tensor<4xf32> {train.role = "param", train.name = "transformer.h.3.attn.weight"},
                 %b: tensor<4xf32> {train.role = "param", train.name = "model.layers.12.q.weight"},
                 %c: tensor<4xf32> {train.role = "param", train.name = "transformer.h.3.mlp.0.weight"},
                 %d: tensor<4xf32> {train.role = "param", train.name = "0.weight"},
                 %e: tensor<4xf32> {train.role = "param", train.name = "norm.weight"},
                 %f: tensor<4xf32> {train.role = "param", train.name = "head2"}) -> tensor<4xf32> {
  %0 = train.add %a, %b : tensor<4xf32>
  %1 = train.add %0, %c : tensor<4xf32>
  %2 = train.add %1, %d : tensor<4xf32>
  %3 = train.add %2, %e : tensor<4xf32>
  %4 = train.add %3, %f : tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// A parameter without a name of its own belongs to the block of the nodes that read it, if they agree.
// CHECK-LABEL: func @anonymous
// CHECK-SAME: train.name = "h.0", {{.*}}"onnx::MatMul_1"
// CHECK-SAME: train.name = "head", {{.*}}"onnx::MatMul_2"
func.func @anonymous(%a: tensor<4xf32> {train.role = "param", train.name = "onnx::MatMul_1"},
                     %b: tensor<4xf32> {train.role = "param", train.name = "onnx::MatMul_2"}) -> tensor<4xf32> {
  %0 = train.exp %a : tensor<4xf32> loc("/h.0/mlp/MatMul")
  %1 = train.add %0, %b : tensor<4xf32> loc("/h.0/mlp/Add")
  %2 = train.add %1, %b : tensor<4xf32> loc("/h.1/mlp/Add")
  return %2 : tensor<4xf32>
}

// -----

// Without blocks there is one unit, but one for each element type.
// CHECK-LABEL: func @root
// CHECK-SAME: tensor<8xf32> {{{.*}}train.name = "root"
// CHECK-SAME: tensor<4xbf16> {{{.*}}train.name = "root.bf16"
func.func @root(%a: tensor<4xf32> {train.role = "param", train.name = "a"}, %b: tensor<4xbf16> {train.role = "param", train.name = "b"},
                %c: tensor<4xf32> {train.role = "param", train.name = "c"}) -> tensor<4xf32> {
  %0 = train.add %a, %c : tensor<4xf32>
  %1 = train.convert %b : (tensor<4xbf16>) -> tensor<4xf32>
  %2 = train.add %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// What is computed in f32 where others are not is a unit of its own, frozen or not.
// CHECK-LABEL: func @compute_types
// CHECK-SAME: {train.compute_type = f32, {{[^}]*}}train.name = "h.0.read_f32", {{[^}]*}}"h.0.router.weight"
// CHECK-SAME: tensor<4xf32> {train.decay_elements = 0 : i64, train.name = "h.0", {{[^}]*}}"h.0.fc.weight"
// CHECK-SAME: {train.compute_type = f32, train.module = "h.0", train.name = "h.0.frozen.read_f32", {{[^}]*}}"h.0.gate.weight"
func.func @compute_types(
    %a: tensor<4xf32> {train.role = "param", train.name = "h.0.router.weight", train.compute_type = f32},
    %b: tensor<4xf32> {train.role = "param", train.name = "h.0.fc.weight"},
    %c: tensor<4xf32> {train.role = "frozen", train.name = "h.0.gate.weight", train.compute_type = f32}) -> tensor<4xf32> {
  %0 = train.add %a, %b : tensor<4xf32>
  %1 = train.add %0, %c : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Axes are told apart by themselves, not by what they are called: "a.b" is not "a" and "b", and one may be called as
// units are.
// CHECK-LABEL: func @axes
// CHECK-SAME: train.name = "h.0.a.b.no_decay", {{[^>]*}}"h.0.one"
// CHECK-SAME: train.name = "h.0.a.b.no_decay.f32", {{[^>]*}}"h.0.two"
// CHECK-SAME: train.name = "h.0.frozen.no_decay", {{[^>]*}}"h.0.three"
func.func @axes(
    %a: tensor<4xf32> {train.role = "param", train.name = "h.0.one", train.placement = #train.placement<dim = 0, axes = ["a.b"], parts = 2>},
    %b: tensor<4xf32> {train.role = "param", train.name = "h.0.two", train.placement = #train.placement<dim = 0, axes = ["a", "b"], parts = 2>},
    %c: tensor<4xf32> {train.role = "param", train.name = "h.0.three", train.placement = #train.placement<dim = 0, axes = ["frozen"], parts = 2>}) -> tensor<4xf32> {
  %0 = train.add %a, %b : tensor<4xf32>
  %1 = train.add %0, %c : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Names that numbers tell apart, however many are taken.
// CHECK-LABEL: func @taken
// CHECK-SAME: train.name = "h.0.a.b", {{[^>]*}}"h.0.three"
// CHECK-SAME: train.name = "h.0.a.b.f32", {{[^>]*}}"h.0.four"
// CHECK-SAME: train.name = "h.0.a.b.f32.2", {{[^>]*}}"h.0.five"
func.func @taken(
    %b: tensor<4x4xf32> {train.role = "param", train.name = "h.0.two", train.placement = #train.placement<dim = 0, axes = ["x"], parts = 2>},
    %c: tensor<4x4xf32> {train.role = "param", train.name = "h.0.three", train.placement = #train.placement<dim = 0, axes = ["a.b"], parts = 2>},
    %d: tensor<4x4xf32> {train.role = "param", train.name = "h.0.four", train.placement = #train.placement<dim = 0, axes = ["a.b.f32"], parts = 2>},
    %e: tensor<4x4xf32> {train.role = "param", train.name = "h.0.five", train.placement = #train.placement<dim = 0, axes = ["a", "b"], parts = 2>}) -> tensor<4x4xf32> {
  %0 = train.add %b, %c : tensor<4x4xf32>
  %1 = train.add %0, %d : tensor<4x4xf32>
  %2 = train.add %1, %e : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
