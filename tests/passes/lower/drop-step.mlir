// RUN: tessera-opt %s --pass-pipeline='builtin.module(to-exec{keep-step=true},exec.program(plan-memory,verify-exec{values=true}))' | FileCheck %s --check-prefix=KEPT
// RUN: tessera-opt %s --pass-pipeline='builtin.module(to-exec{keep-step=true},exec.program(plan-memory,verify-exec{values=true},drop-step))' | FileCheck %s
// RUN: tessera-opt %s --pass-pipeline='builtin.module(to-exec,exec.program(drop-step))' | FileCheck %s

// No diagnostic: there is nothing to reject. A program carries its step as its first op, until it is dropped; one that carries none stays as it is.
// KEPT: exec.program @step {
// KEPT-NEXT: func.func @step(%{{.*}}: tensor<4xf32>) -> tensor<4xf32> {
// CHECK: exec.program @step {
// CHECK-NOT: func.func
// CHECK: exec.arena @state
// CHECK: exec.argument
// CHECK: exec.launch @neg
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = exec.fusion "elementwise" @neg(%x) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%0: tensor<4xf32>):
    %1 = train.neg %0 : tensor<4xf32>
    exec.yield %1 : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
