// Three blocks, one unit each, on two ranks; sizes in bytes: a unit is 64, what a block keeps 64.
// DEFINE: %{strategy} = zero3
// DEFINE: %{offload} =
// DEFINE: %{optimizer} = --insert-optimizer
// DEFINE: %{out} = %t
// DEFINE: %{compile} = tessera-opt %s --differentiate --cse --canonicalize --flatten-parameters %{optimizer} --cse --canonicalize --annotate-sharding=strategy=%{strategy} --propagate-sharding --insert-reshards --localize --cse --canonicalize --split-async --prefetch %{offload} --verify-schedule -o %{out}

// REDEFINE: %{out} = %t.none
// RUN: %{compile}
// REDEFINE: %{offload} = --offload="optimizer=true"
// REDEFINE: %{out} = %t.optimizer
// RUN: %{compile}
// RUN: FileCheck %s --check-prefix=OPT --input-file=%t.optimizer
// RUN: tessera-interp %t.optimizer --compare=%t.none --rtol=0 --atol=0 --quiet
// REDEFINE: %{offload} = --offload="parameters=true"
// REDEFINE: %{out} = %t.parameters
// RUN: %{compile}
// RUN: FileCheck %s --check-prefix=PARAM --input-file=%t.parameters
// RUN: tessera-interp %t.parameters --compare=%t.none --rtol=0 --atol=0 --quiet
// REDEFINE: %{offload} = --offload="activations=true"
// REDEFINE: %{out} = %t.small
// RUN: %{compile} 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: FileCheck %s --check-prefix=SMALL --input-file=%t.small
// REDEFINE: %{optimizer} = --insert-optimizer="kind=sgd"
// REDEFINE: %{offload} = --offload="optimizer=true"
// REDEFINE: %{out} = %t.stateless
// RUN: %{compile} 2>&1 | FileCheck %s --check-prefix=STATELESS
// RUN: FileCheck %s --check-prefix=SMALL --input-file=%t.stateless

// State is on the host. The next unit's starts to come where the update of this one begins; what was updated goes back.
// OPT: dist.memory = "host"{{.*}}train.name = "h.0.m"
// OPT: dist.copy_start %{{.*}} to "device" {origin = #dist.origin<update, ["h.0.m"]>, schedule.reason = "when the backward pass is over: no unit comes before"}
// OPT: dist.copy_start %{{.*}} to "device" {origin = #dist.origin<update, ["h.0.v"]>
// OPT: dist.copy_start %{{.*}} to "device" {origin = #dist.origin<update, ["h.1.m"]>, schedule.reason = "one unit ahead"}
// OPT: %[[M:.*]] = dist.done {{.*}}schedule.reason = "at the first use"
// OPT: %[[V:.*]] = dist.done
// OPT: %{{.*}}, %[[NEW:.*]], %{{.*}} = train.adamw_update %{{.*}}, %[[M]], %[[V]]
// OPT: %[[F:.*]] = dist.copy_start %[[NEW]] to "host" {origin = #dist.origin<update, ["h.0.m"]>, schedule.reason = "when it is computed"}
// OPT: dist.copy_start %{{.*}} to "device" {origin = #dist.origin<update, ["h.2.m"]>
// OPT: train.adamw_update
// OPT: %[[BACK:.*]] = dist.done %[[F]] {schedule.reason = "two units later"}
// OPT: train.adamw_update
// OPT: return {{.*}}%[[BACK]]

// Gathers of forward and backward read copies; so do updates.
// PARAM: %[[F0:.*]] = dist.copy_start %{{.*}} to "device" {origin = #dist.origin<forward, ["h.0"]>, schedule.reason = "at the beginning: no unit comes before"}
// PARAM: dist.copy_start %{{.*}} to "device" {origin = #dist.origin<forward, ["h.1"]>, schedule.reason = "one unit ahead"}
// PARAM: %[[P0:.*]] = dist.done %[[F0]]
// PARAM: dist.all_gather_start %[[P0]] {{.*}}origin = #dist.origin<forward, ["h.0"]>
// PARAM: dist.copy_start %{{.*}} to "device" {origin = #dist.origin<backward, ["h.1"]>, schedule.reason = "one unit ahead", train.backward}
// PARAM: dist.all_gather_start %{{.*}} {{.*}}origin = #dist.origin<backward, ["h.1"]>
// PARAM: train.adamw_update
// PARAM: dist.copy_start %{{.*}} to "host" {origin = #dist.origin<update, ["h.0"]>

// NONE: remark: no activation moves to the host: the backward pass reads values of at least 4096 bytes from fewer than two blocks

// Plain gradient descent keeps nothing.
// STATELESS: remark: no optimizer state moves to the host: the optimizer has none

// Values of fewer bytes than the default are not worth a copy.
// SMALL-NOT: dist.copy_start

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
func.func @step(%w0: tensor<4x4xf32> {train.role = "param", train.name = "h.0.w"}, %w1: tensor<4x4xf32> {train.role = "param", train.name = "h.1.w"},
                %w2: tensor<4x4xf32> {train.role = "param", train.name = "h.2.w"}, %x: tensor<8x4xf32> {train.role = "input", train.name = "x"})
    -> (tensor<f32> {train.role = "loss"}) {
  %a0 = train.dot_general %x, %w0 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("h.0/dot")
  %h0 = train.tanh %a0 : tensor<8x4xf32> loc("h.0/tanh")
  %a1 = train.dot_general %h0, %w1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("h.1/dot")
  %h1 = train.tanh %a1 : tensor<8x4xf32> loc("h.1/tanh")
  %a2 = train.dot_general %h1, %w2 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("h.2/dot")
  %h2 = train.tanh %a2 : tensor<8x4xf32> loc("h.2/tanh")
  %loss = train.reduce sum, %h2 {dimensions = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32> loc("loss")
  return %loss : tensor<f32>
}
}
