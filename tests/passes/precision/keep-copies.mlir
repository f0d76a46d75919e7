// RUN: tessera-opt %s --split-input-file --keep-copies --verify-diagnostics | FileCheck %s
// RUN: tessera-opt %s --split-input-file --keep-copies --keep-copies 2>/dev/null | FileCheck %s

// The copy is an argument, whose next value is the parameter's, rounded. It lies where the parameter does.

// CHECK-LABEL: func.func @updated
// CHECK-SAME: (%[[U:[^ :]+]]: tensor<8xf32> {dist.global = tensor<16xf32>, dist.sharding = #dist.sharding<[{"shard"}]>, train.name = "u", train.role = "param"}
// CHECK-SAME: %[[C:[^ :]+]]: tensor<8xbf16> {dist.global = tensor<16xbf16>, dist.sharding = #dist.sharding<[{"shard"}]>, train.name = "u.bf16", train.of = "u", train.role = "derived"})
// CHECK-SAME: -> (tensor<16xbf16> {train.role = "output"}, tensor<16xbf16> {train.role = "output"}, tensor<8xf32> {dist.global = tensor<16xf32>, dist.sharding = #dist.sharding<[{"shard"}]>, train.alias = 0 : i64}, tensor<8xbf16> {dist.global = tensor<16xbf16>, dist.sharding = #dist.sharding<[{"shard"}]>, train.alias = 3 : i64})
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
  func.func @updated(%u: tensor<8xf32> {train.role = "param", train.name = "u", dist.global = tensor<16xf32>, dist.sharding = #dist.sharding<[{"shard"}]>},
                     %g: tensor<8xf32> {train.role = "input", train.name = "g"},
                     %lr: tensor<f32> {train.role = "hyper", train.name = "lr"})
      -> (tensor<16xbf16> {train.role = "output"}, tensor<16xbf16> {train.role = "output"},
          tensor<8xf32> {train.alias = 0 : i64, dist.global = tensor<16xf32>, dist.sharding = #dist.sharding<[{"shard"}]>}) {
    // CHECK-NOT: train.convert %[[U]]
    // CHECK: %[[A:.*]] = dist.all_gather %[[C]] {
    // CHECK: %[[B:.*]] = dist.all_gather %[[C]] {
    %forward = train.convert %u : (tensor<8xf32>) -> tensor<8xbf16>
    %a = dist.all_gather %forward {axes = ["shard"], dim = 0 : i64} : (tensor<8xbf16>) -> tensor<16xbf16>
    %backward = train.convert %u {train.backward} : (tensor<8xf32>) -> tensor<8xbf16>
    %b = dist.all_gather %backward {axes = ["shard"], dim = 0 : i64} : (tensor<8xbf16>) -> tensor<16xbf16>
    // CHECK: %[[NEW:.*]] = train.sgd_update %[[U]]
    // CHECK-NEXT: %[[NEXT:.*]] = train.convert %[[NEW]] : (tensor<8xf32>) -> tensor<8xbf16>
    %new = train.sgd_update %u, %g lr(%lr) {momentum = 0.0 : f64, weight_decay = 0.0 : f64, decay_elements = 0 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    // CHECK: return %[[A]], %[[B]], %[[NEW]], %[[NEXT]]
    return %a, %b, %new : tensor<16xbf16>, tensor<16xbf16>, tensor<8xf32>
  }
}

// -----

// A frozen parameter is converted never again, also in another shape.

// CHECK-LABEL: func.func @frozen
// CHECK-SAME: %[[C:[^ :]+]]: tensor<4x8xbf16> {train.name = "w.bf16", train.of = "w", train.role = "derived"})
// CHECK-SAME: -> (tensor<8x4xbf16> {train.role = "output"}, tensor<4x8xbf16> {train.role = "output"})
func.func @frozen(%w: tensor<4x8xf32> {train.role = "frozen", train.name = "w"})
    -> (tensor<8x4xbf16> {train.role = "output"}, tensor<4x8xbf16> {train.role = "output"}) {
  // CHECK-NEXT: %[[T:.*]] = train.transpose %[[C]] {{.*}} : (tensor<4x8xbf16>) -> tensor<8x4xbf16>
  %turned = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %a = train.convert %turned : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %b = train.convert %w : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  // CHECK-NEXT: return %[[T]], %[[C]]
  return %a, %b : tensor<8x4xbf16>, tensor<4x8xbf16>
}

// -----

// A step that leaves a parameter as it is leaves its copy.

// CHECK-LABEL: func.func @unchanged
// CHECK: (%[[W:[^ :]+]]: tensor<4xf32> {{.*}}, %[[C:[^ :]+]]: tensor<4xbf16>
// CHECK: return %[[C]], %[[W]], %[[C]]
func.func @unchanged(%w: tensor<4xf32> {train.role = "param", train.name = "w"})
    -> (tensor<4xbf16> {train.role = "output"}, tensor<4xf32> {train.alias = 0 : i64}) {
  %a = train.convert %w : (tensor<4xf32>) -> tensor<4xbf16>
  return %a, %w : tensor<4xbf16>, tensor<4xf32>
}

// -----

// No copies: of batches, of other types, of a part, of what is computed.

// CHECK-LABEL: func.func @others
// CHECK-NOT: derived
// CHECK-COUNT-4: train.convert
func.func @others(%x: tensor<4xf32> {train.role = "input", train.name = "x"},
                  %d: tensor<4xf64> {train.role = "param", train.name = "d"},
                  %f: tensor<4xf32> {train.role = "frozen", train.name = "f"})
    -> (tensor<4xbf16> {train.role = "output"}, tensor<4xbf16> {train.role = "output"},
        tensor<2xbf16> {train.role = "output"}, tensor<4xbf16> {train.role = "output"}) {
  %a = train.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
  %b = train.convert %d : (tensor<4xf64>) -> tensor<4xbf16>
  %part = train.slice %f {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %c = train.convert %part : (tensor<2xf32>) -> tensor<2xbf16>
  %sum = train.add %f, %x : tensor<4xf32>
  %e = train.convert %sum : (tensor<4xf32>) -> tensor<4xbf16>
  return %a, %b, %c, %e : tensor<4xbf16>, tensor<4xbf16>, tensor<2xbf16>, tensor<4xbf16>
}

// -----

// A copy is found by its parameter's name.

// CHECK-LABEL: func.func @nameless
// CHECK-NOT: derived
func.func @nameless(%w: tensor<4xf32> {train.role = "frozen"}) -> (tensor<4xbf16> {train.role = "output"}) {
  // expected-remark @+1 {{a parameter without train.name is converted in every step}}
  %a = train.convert %w : (tensor<4xf32>) -> tensor<4xbf16>
  return %a : tensor<4xbf16>
}
