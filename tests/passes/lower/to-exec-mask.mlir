// RUN: tessera-opt %s -to-exec | FileCheck %s

// A mask may be boolean; everything else that a library call reads is f32.
// CHECK: exec.attention
// CHECK-SAME: memref<1x1x4x4xi1>
func.func @step(%q: tensor<1x2x4x8xf32> {train.role = "input", train.name = "q"},
                %m: tensor<1x1x4x4xi1> {train.role = "input", train.name = "m"})
    -> (tensor<1x2x4x8xf32> {train.role = "output", train.name = "y"}) {
  %y, %lse = train.attention %q, %q, %q mask(%m) {scale = 0.5 : f64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x1x4x4xi1>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4xf32>)
  return %y : tensor<1x2x4x8xf32>
}
