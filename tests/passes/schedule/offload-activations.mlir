// What the backward pass reads of the forward pass waits on the host: which values, when they go, and when they come back.
// RUN: tessera-opt %s --offload="activations=true min-bytes=64" --verify-schedule -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --implicit-check-not=dist.copy_start
// RUN: tessera-interp %t.mlir --compare=%s --rtol=0 --atol=0 --quiet
// RUN: tessera-opt %s --offload="activations=true min-bytes=128" | FileCheck %s --implicit-check-not=dist.copy_start
// RUN: tessera-opt %s --offload="activations=true min-bytes=129" 2>&1 | FileCheck %s --check-prefix=SMALL --implicit-check-not=dist.copy_start
// RUN: sed -e 's/loc("h[.][0-9]/loc("h/' %s | tessera-opt --offload="activations=true min-bytes=64" | FileCheck %s --check-prefix=NAMES
// RUN: sed -e 's/loc("h[.][0-9]/loc("h.0/' %s | tessera-opt --offload="activations=true min-bytes=64" 2>&1 | FileCheck %s --check-prefix=ONE --implicit-check-not=dist.copy_start

// A copy to the host ends where the first of the next block but one starts.
// CHECK-LABEL: func.func @step
// CHECK: %[[P0:.*]] = dist.copy_start %{{.*}} to "host" {origin = #dist.origin<forward, ["h.0/mul"]>, schedule.reason = "when it is computed"}
// CHECK: %[[H0:.*]] = dist.copy_start %{{.*}} to "host" {origin = #dist.origin<forward, ["h.0/tanh"]>
// CHECK: %[[H1:.*]] = dist.copy_start %{{.*}} to "host" {origin = #dist.origin<forward, ["h.1/exp"]>
// CHECK: train.tanh
// CHECK-NEXT: %[[AWAY_P0:.*]] = dist.done %[[P0]] {schedule.reason = "two units later"}
// CHECK-NEXT: %[[AWAY_H0:.*]] = dist.done %[[H0]] {schedule.reason = "two units later"}
// CHECK-NEXT: %[[H2:.*]] = dist.copy_start %{{.*}} to "host" {origin = #dist.origin<forward, ["h.2/tanh"]>
// CHECK: %[[AWAY_H1:.*]] = dist.done %[[H1]] {schedule.reason = "two units later"}
// CHECK-NEXT: %[[H3:.*]] = dist.copy_start %{{.*}} to "host" {origin = #dist.origin<forward, ["h.3/tanh"]>
// What is read first stays, and so do constants, few bytes, and what is computed behind the first reader. The next block's
// starts to come when the first one's is read.
// CHECK: %[[H4:.*]] = train.tanh
// CHECK-NEXT: %[[AWAY_H3:.*]] = dist.done %[[H3]] {schedule.reason = "before it comes back"}
// CHECK-NEXT: %[[COME_H3:.*]] = dist.copy_start %[[AWAY_H3]] to "device" {origin = #dist.origin<backward, ["h.3/tanh"]>, schedule.reason = "one unit ahead", train.backward}
// CHECK-NEXT: train.mul %[[H4]], %{{.*}} {train.backward}
// CHECK: %[[LATE:.*]] = train.neg %[[H4]] :
// CHECK: %[[BACK_H3:.*]] = dist.done %[[COME_H3]] {schedule.reason = "at the first use", train.backward}
// CHECK-NEXT: %[[AWAY_H2:.*]] = dist.done %[[H2]] {schedule.reason = "before it comes back"}
// CHECK-NEXT: %[[COME_H2:.*]] = dist.copy_start %[[AWAY_H2]] to "device" {origin = #dist.origin<backward, ["h.2/tanh"]>
// CHECK-NEXT: train.mul %[[BACK_H3]],
// CHECK-NEXT: train.mul %{{.*}}, %[[LATE]] {train.backward}
// CHECK-NEXT: %[[BACK_H2:.*]] = dist.done %[[COME_H2]]
// CHECK-NEXT: %[[COME_H1:.*]] = dist.copy_start %[[AWAY_H1]] to "device" {origin = #dist.origin<backward, ["h.1/exp"]>
// CHECK-NEXT: train.mul %{{.*}}, %[[BACK_H2]] {train.backward}
// A view is repeated on what came back.
// CHECK: %[[BACK_H1:.*]] = dist.done %[[COME_H1]]
// CHECK-NEXT: %[[VIEW:.*]] = train.reshape %[[BACK_H1]] {train.backward}
// What one block keeps comes back together.
// CHECK-NEXT: %[[COME_H0:.*]] = dist.copy_start %[[AWAY_H0]] to "device" {origin = #dist.origin<backward, ["h.0/tanh"]>
// CHECK-NEXT: %[[COME_P0:.*]] = dist.copy_start %[[AWAY_P0]] to "device" {origin = #dist.origin<backward, ["h.0/mul"]>
// CHECK-NEXT: train.mul %{{.*}}, %[[VIEW]] {train.backward}
// CHECK: %[[BACK_H0:.*]] = dist.done %[[COME_H0]]
// CHECK-NEXT: train.mul %{{.*}}, %[[BACK_H0]]
// CHECK-NEXT: %[[BACK_P0:.*]] = dist.done %[[COME_P0]]
// CHECK-NEXT: train.mul %{{.*}}, %[[BACK_P0]]

// Without the names of blocks each value comes back for itself.
// NAMES: %[[COME_P0:.*]] = dist.copy_start %{{.*}} to "device" {origin = #dist.origin<backward, ["h/mul"]>
// NAMES-NEXT: train.mul
// NAMES-NEXT: dist.done %[[COME_P0]]

// Not applied: all values are small, or of one block, which is read first.
// SMALL: remark: no activation moves to the host: the backward pass reads values of at least 129 bytes from fewer than two blocks
// ONE: remark: no activation moves to the host: the backward pass reads values of at least 64 bytes from fewer than two blocks
func.func @step(%x: tensor<8x4xf32> {train.role = "input", train.name = "x"}, %w: tensor<8x4xf32> {train.role = "param", train.name = "w"})
    -> (tensor<f32> {train.role = "loss"}, tensor<8x4xf32> {train.role = "grad", train.of = "w"}) {
  %c = train.constant dense<0.5> : tensor<8x4xf32> loc("h.0/half")
  %p0 = train.mul %x, %w : tensor<8x4xf32> loc("h.0/mul")
  %h0 = train.tanh %p0 : tensor<8x4xf32> loc("h.0/tanh")
  %n0 = train.reduce max, %h0 {dimensions = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8xf32> loc("h.0/max")
  %h1 = train.exp %h0 : tensor<8x4xf32> loc("h.1/exp")
  %v1 = train.reshape %h1 : (tensor<8x4xf32>) -> tensor<32xf32> loc("h.1/flat")
  %h2 = train.tanh %h1 : tensor<8x4xf32> loc("h.2/tanh")
  %h3 = train.tanh %h2 : tensor<8x4xf32> loc("h.3/tanh")
  %h4 = train.tanh %h3 : tensor<8x4xf32> loc("h.4/tanh")
  %b4 = train.mul %h4, %c {train.backward} : tensor<8x4xf32> loc("h.4/back")
  %late = train.neg %h4 : tensor<8x4xf32> loc("h.2/late")
  %max = train.broadcast %n0 {broadcast_dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<8x4xf32> loc("h.0/wide")
  %sum = train.add %late, %max : tensor<8x4xf32>
  %loss = train.reduce sum, %sum {dimensions = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32> loc("loss")
  %b3 = train.mul %h3, %b4 {train.backward} : tensor<8x4xf32> loc("h.3/back")
  %l2 = train.mul %b3, %late {train.backward} : tensor<8x4xf32> loc("h.2/back_late")
  %b2 = train.mul %l2, %h2 {train.backward} : tensor<8x4xf32> loc("h.2/back")
  %f1 = train.reshape %b2 {train.backward} : (tensor<8x4xf32>) -> tensor<32xf32> loc("h.1/back_flat")
  %m1 = train.mul %f1, %v1 {train.backward} : tensor<32xf32> loc("h.1/back")
  %b1 = train.reshape %m1 {train.backward} : (tensor<32xf32>) -> tensor<8x4xf32> loc("h.1/back_rows")
  %w0 = train.broadcast %n0 {broadcast_dimensions = array<i64: 0>, train.backward} : (tensor<8xf32>) -> tensor<8x4xf32> loc("h.0/back_wide")
  %a0 = train.mul %b1, %w0 {train.backward} : tensor<8x4xf32> loc("h.0/back_max")
  %b0 = train.mul %a0, %h0 {train.backward} : tensor<8x4xf32> loc("h.0/back")
  %q0 = train.mul %b0, %p0 {train.backward} : tensor<8x4xf32> loc("h.0/back_mul")
  return %loss, %q0 : tensor<f32>, tensor<8x4xf32>
}
