// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(narrow-frozen))' -split-input-file -verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(narrow-frozen,canonicalize))' -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=FOLDED

// Frozen parameters are held in bf16 and widened once for each phase; buffers, what is trained, what is computed in f32
// and what has another type stay as they are.

// CHECK-LABEL: func.func @frozen
// CHECK-SAME: %[[W:arg0]]: tensor<4xbf16> {train.model_type = f32, train.name = "w"
// CHECK-SAME: %{{.*}}: tensor<4xf32> {train.init = "given"
// CHECK-SAME: %{{.*}}: tensor<4xf32> {train.compute_type = f32
// CHECK-SAME: %{{.*}}: tensor<4xf64> {train.name = "d"
// CHECK-SAME: %{{.*}}: tensor<4xf32> {train.name = "p"
func.func @frozen(%w: tensor<4xf32> {train.role = "frozen", train.name = "w"},
                  %b: tensor<4xf32> {train.role = "frozen", train.name = "b", train.init = "given"},
                  %k: tensor<4xf32> {train.role = "frozen", train.name = "k", train.compute_type = f32},
                  %d: tensor<4xf64> {train.role = "frozen", train.name = "d"},
                  %p: tensor<4xf32> {train.role = "param", train.name = "p"})
    -> (tensor<4xf32> {train.role = "output", train.name = "y"}, tensor<4xbf16> {train.role = "output", train.name = "z"}) {
  %0 = train.add %p, %k : tensor<4xf32>
  // CHECK: %[[F:.*]] = train.convert %[[W]] : (tensor<4xbf16>) -> tensor<4xf32>
  // CHECK: train.mul %{{.*}}, %[[F]] : tensor<4xf32>
  %1 = train.mul %0, %w : tensor<4xf32>
  // FOLDED: return %{{.*}}, %arg0 : tensor<4xf32>, tensor<4xbf16>
  %z = train.convert %w : (tensor<4xf32>) -> tensor<4xbf16>
  // CHECK: %[[B:.*]] = train.convert %[[W]] {train.backward} : (tensor<4xbf16>) -> tensor<4xf32>
  // CHECK: train.sub %{{.*}}, %[[B]] {train.backward} : tensor<4xf32>
  %2 = train.sub %1, %w {train.backward} : tensor<4xf32>
  return %2, %z : tensor<4xf32>, tensor<4xbf16>
}

// -----

// expected-error @below {{--frozen-dtype bf16: there is no frozen parameter that is f32}}
func.func @none(%p: tensor<4xf32> {train.role = "param", train.name = "p"}) {
  return
}
