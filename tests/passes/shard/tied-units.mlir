// RUN: tessera-opt %s --annotate-sharding=strategy=zero3 -split-input-file -verify-diagnostics | FileCheck %s

// %u computes at both ends of the forward pass and begins the backward pass: one gather serves all of it. %v, between, is
// gathered for each phase.
// CHECK-LABEL: func @tied
// CHECK: %[[U:.*]] = dist.constrain %arg0 <[{}]> {origin = #dist.origin<forward, ["u"]>}
// CHECK: train.mul %{{.*}}, %[[U]] : tensor<4xf32>
// CHECK: dist.constrain %arg1 <[{}]> {origin = #dist.origin<forward, ["v"]>}
// CHECK: train.mul %{{.*}}, %[[U]] : tensor<4xf32>
// CHECK: train.mul %{{.*}}, %[[U]] {train.backward}
// CHECK: dist.constrain %arg1 <[{}]> {origin = #dist.origin<backward, ["v"]>, train.backward}
// CHECK: train.mul %{{.*}}, %[[U]] {train.backward}
// CHECK: return
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// expected-remark @below {{unit 'u' is not gathered again for backward, which begins with it}}
func.func @tied(%u: tensor<4xf32> {train.role = "param", train.name = "u"}, %v: tensor<4xf32> {train.role = "param", train.name = "v"},
                %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = train.mul %x, %u : tensor<4xf32>
  %b = train.mul %a, %v : tensor<4xf32>
  %c = train.mul %b, %u : tensor<4xf32>
  %d = train.mul %c, %u {train.backward} : tensor<4xf32>
  %e = train.mul %d, %v {train.backward} : tensor<4xf32>
  %f = train.mul %e, %u {train.backward} : tensor<4xf32>
  return %c, %f : tensor<4xf32>, tensor<4xf32>
}
}

// -----

// Computing %v's part again for the gradient of %u does not count: backward still begins with %u.
// CHECK-LABEL: func @recomputed
// CHECK: %[[U:.*]] = dist.constrain %arg0 <[{}]> {origin = #dist.origin<forward, ["u"]>}
// CHECK: dist.constrain %arg1 <[{}]> {origin = #dist.origin<backward, ["v"]>, train.backward}
// CHECK-NOT: "backward:u"
// CHECK: return
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// expected-remark @below {{unit 'u' is not gathered again for backward, which begins with it}}
func.func @recomputed(%u: tensor<4xf32> {train.role = "param", train.name = "u"}, %v: tensor<4xf32> {train.role = "param", train.name = "v"},
                      %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = train.mul %x, %u : tensor<4xf32>
  %b = train.mul %a, %v : tensor<4xf32>
  %c = train.mul %b, %u : tensor<4xf32>
  %k = train.barrier %a {train.backward, train.recompute} : tensor<4xf32>
  %r = train.mul %k, %v {train.backward, train.recompute} : tensor<4xf32>
  %g = train.mul %c, %r {train.backward} : tensor<4xf32>
  %d = train.mul %c, %u {train.backward} : tensor<4xf32>
  %e = train.mul %d, %v {train.backward} : tensor<4xf32>
  return %c, %e, %g : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
}

// -----

// Not applied to a unit that only the end of the forward pass computes with: it need not be whole before.
// CHECK-LABEL: func @last
// CHECK: dist.constrain %arg0 <[{}]> {origin = #dist.origin<forward, ["u"]>}
// CHECK: dist.constrain %arg0 <[{}]> {origin = #dist.origin<backward, ["u"]>, train.backward}
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
func.func @last(%u: tensor<4xf32> {train.role = "param", train.name = "u"}, %v: tensor<4xf32> {train.role = "param", train.name = "v"},
                %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = train.mul %x, %v : tensor<4xf32>
  %b = train.mul %a, %u : tensor<4xf32>
  %c = train.mul %b, %u {train.backward} : tensor<4xf32>
  %d = train.mul %c, %v {train.backward} : tensor<4xf32>
  return %b, %d : tensor<4xf32>, tensor<4xf32>
}
}

// -----

// Not applied where another unit begins the backward pass: the copy would be held meanwhile.
// CHECK-LABEL: func @not_first
// CHECK: dist.constrain %arg0 <[{}]> {origin = #dist.origin<forward, ["u"]>}
// CHECK: dist.constrain %arg0 <[{}]> {origin = #dist.origin<backward, ["u"]>, train.backward}
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
func.func @not_first(%u: tensor<4xf32> {train.role = "param", train.name = "u"}, %v: tensor<4xf32> {train.role = "param", train.name = "v"},
                     %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = train.mul %x, %u : tensor<4xf32>
  %b = train.mul %a, %v : tensor<4xf32>
  %c = train.mul %b, %u : tensor<4xf32>
  %d = train.mul %c, %v {train.backward} : tensor<4xf32>
  %e = train.mul %d, %u {train.backward} : tensor<4xf32>
  return %c, %e : tensor<4xf32>, tensor<4xf32>
}
}
