// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(clip-gradients{max-norm=0.5}))' | tessera-interp - --digest | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(clip-gradients{max-norm=20.0}))' | tessera-interp - --digest | FileCheck %s --check-prefix=WITHIN

// The norm over both gradients is 13; the factor is 0.5 / 13.000001, or 1 within the limit.
// CHECK: grad_norm: {{.*}}= [13]
// CHECK: grad u: {{.*}}= [0.1153846, 0.1538461]
// CHECK: grad v: {{.*}}= [-0.4615384]
// WITHIN: grad_norm: {{.*}}= [13]
// WITHIN: grad u: {{.*}}= [3, 4]
// WITHIN: grad v: {{.*}}= [-12]
func.func @step(%u: tensor<2xf32> {train.role = "param", train.name = "u"}, %v: tensor<1xf32> {train.role = "param", train.name = "v"}, %x: tensor<f32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}, tensor<2xf32> {train.role = "grad", train.of = "u"}, tensor<1xf32> {train.role = "grad", train.of = "v"}) {
  %a = train.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %b = train.constant dense<[-12.0]> : tensor<1xf32>
  return %x, %a, %b : tensor<f32>, tensor<2xf32>, tensor<1xf32>
}
