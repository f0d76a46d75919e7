// RUN: tessera-opt %s --decompose --fuse | FileCheck %s --check-prefix=FUSED
// RUN: tessera-opt %s --decompose --fuse=keep-gradients | FileCheck %s
// RUN: tessera-opt %s --decompose --fuse=keep-gradients -o %t.mlir
// RUN: tessera-interp %s --compare %t.mlir --rtol=1e-4 --atol=1e-5 --quiet

// The gradient is a function of each element. One kernel would compute and use it; kept, the update's kernel reads it.
// What is not of the backward pass (the clipped gradient) still is part of that kernel.
// FUSED-LABEL: func.func @update
// FUSED: exec.fusion
// FUSED-NOT: exec.fusion
// CHECK-LABEL: func.func @update
// CHECK: %[[GRAD:.*]] = exec.fusion
// CHECK-NEXT: ^bb0
// CHECK-NEXT: train.mul
// CHECK-NEXT: exec.yield
// CHECK: exec.fusion{{.*}}%[[GRAD]]{{.*}}train.grad_operands = array<i64: {{[0-9]}}>, train.units = ["w"]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: train.mul
// CHECK-NEXT: train.sub
// CHECK-NEXT: exec.yield
func.func @update(%w: tensor<32xf32> {train.role = "param", train.name = "w"}, %x: tensor<32xf32>, %clip: tensor<32xf32>)
    -> (tensor<32xf32> {train.alias = 0 : i64}) {
  %grad = train.mul %w, %x {train.backward} : tensor<32xf32>
  %clipped = train.mul %grad, %clip : tensor<32xf32>
  %new = train.sub %w, %clipped {train.unit = "w"} : tensor<32xf32>
  return %new : tensor<32xf32>
}
