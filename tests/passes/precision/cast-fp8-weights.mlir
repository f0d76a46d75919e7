// RUN: tessera-opt %s --cast-fp8 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ROW
// RUN: sed s/rowwise,/tensorwise,/ %s | tessera-opt --cast-fp8 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,TENSOR
// Where weights are quantised: in their unit, if what shares a scale is whole chunks of it; else where they are read.

// Stored as inputs x outputs, so that what shares a scale of an output is a column. The gradient of the input has a scale for
// each input, which is a row.
// CHECK-LABEL: func.func @inputs_outputs
// CHECK-SAME: %[[U:[a-z0-9]+]]: tensor<32768xf32>
// CHECK: %[[CHUNKS:.*]] = train.reshape %[[U]] : (tensor<32768xf32>) -> tensor<256x128xf32>
// ROW: train.quantize_scale down, %{{.*}} {format = f8E4M3FN} : tensor<128x1xf32>
// ROW: train.quantize %[[CHUNKS]], %{{.*}} : (tensor<256x128xf32>, tensor<256x1xf32>)
// ROW-NOT: train.quantize %[[CHUNKS]],
// ROW: train.quantize_scale down, %{{.*}} {format = f8E4M3FN} : tensor<64x1xf32>
// ROW: %[[COLUMNS:.*]] = train.reduce max, %{{.*}} {dimensions = array<i64: 0>} : (tensor<128x256xf32>) -> tensor<256xf32>
// ROW: train.reshape %[[COLUMNS]] : (tensor<256xf32>) -> tensor<1x256xf32>
// ROW: train.quantize %{{.*}} : (tensor<128x256xf32>, tensor<1x256xf32>) -> tensor<128x256xf8E4M3FN>
// TENSOR: train.quantize %[[CHUNKS]], %{{.*}} :
// TENSOR-NOT: (tensor<128x256xf32>,
// CHECK: train.scaled_dot {{.*}} {lhs_contract = array<i64: 1>, {{(power_of_two, )?}}rhs_contract = array<i64: 0>} : (tensor<64x128xf8E4M3FN>, tensor<128x256xf8E4M3FN>, {{.*}} -> tensor<64x256xbf16>
// CHECK: train.scaled_dot {{.*}} {lhs_contract = array<i64: 1>, {{(power_of_two, )?}}rhs_contract = array<i64: 1>, train.backward} : (tensor<64x256xf8E{{.*}}>, tensor<128x256xf8E4M3FN>, {{.*}} -> tensor<64x128xbf16>
func.func @inputs_outputs(%u: tensor<32768xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                                 train.segments = [#train.segment<"w", offset = 0, shape = [128, 256]>]},
                          %x: tensor<64x128xbf16>, %g: tensor<64x256xbf16>) -> (tensor<64x256xbf16>, tensor<64x128xbf16>) {
  %w = train.reshape %u : (tensor<32768xf32>) -> tensor<128x256xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<64x128xbf16>, tensor<128x256xf32>) -> tensor<64x256xbf16>
  %d = train.dot_general %g, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, gradient, weight>, train.backward} : (tensor<64x256xbf16>, tensor<128x256xf32>) -> tensor<64x128xbf16>
  return %y, %d : tensor<64x256xbf16>, tensor<64x128xbf16>
}

// The same behind a transpose: the bytes of the unit are transposed, and the inverses of their scales.
// CHECK-LABEL: func.func @transposed
// CHECK: %[[CHUNKS:.*]] = train.reshape %{{.*}} -> tensor<256x128xf32>
// ROW: %[[INVERSE:.*]] = train.div %{{.*}} : tensor<128x1xf32>
// CHECK: %[[Q:.*]] = train.quantize %[[CHUNKS]], %{{.*}} -> tensor<256x128xf8E4M3FN>
// CHECK: %[[FLAT:.*]] = train.reshape %[[Q]] {train.backward} : {{.*}} -> tensor<128x256xf8E4M3FN>
// CHECK: train.transpose %[[FLAT]] {permutation = array<i64: 1, 0>, train.backward} : (tensor<128x256xf8E4M3FN>) -> tensor<256x128xf8E4M3FN>
// ROW: train.transpose %[[INVERSE]] {permutation = array<i64: 1, 0>, train.backward} : (tensor<128x1xf32>) -> tensor<1x128xf32>
func.func @transposed(%u: tensor<32768xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                             train.segments = [#train.segment<"w", offset = 0, shape = [128, 256]>]},
                      %g: tensor<64x256xbf16>) -> tensor<64x128xbf16> {
  %w = train.reshape %u {train.backward} : (tensor<32768xf32>) -> tensor<128x256xf32>
  %t = train.transpose %w {permutation = array<i64: 1, 0>, train.backward} : (tensor<128x256xf32>) -> tensor<256x128xf32>
  %d = train.dot_general %g, %t {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, gradient, weight>, train.backward} : (tensor<64x256xbf16>, tensor<256x128xf32>) -> tensor<64x128xbf16>
  return %d : tensor<64x128xbf16>
}

// Chunks lie in one row of each weight: of 16 elements, as the second weight begins there. What lies between has the scale 1.
// CHECK-LABEL: func.func @two
// CHECK: %[[CHUNKS:.*]] = train.reshape %{{.*}} : (tensor<6400xf32>) -> tensor<400x16xf32>
// CHECK: %[[AMAX:.*]] = train.reduce max, %{{.*}} {dimensions = array<i64: 1>} : (tensor<400x16xf32>) -> tensor<400xf32>
// CHECK: train.slice %[[AMAX]] {limits = array<i64: 128>, starts = array<i64: 0>, strides = array<i64: 1>}
// CHECK: train.slice %[[AMAX]] {limits = array<i64: 385>, starts = array<i64: 129>, strides = array<i64: 1>}
// CHECK: train.concat %{{.*}} {dim = 0 : i64} : (tensor<128xf32>, tensor<1xf32>, tensor<256xf32>, tensor<15xf32>) -> tensor<400xf32>
// CHECK: %[[Q:.*]] = train.quantize %[[CHUNKS]],
// CHECK: %[[FLAT:.*]] = train.reshape %[[Q]] : (tensor<400x16xf8E4M3FN>) -> tensor<6400xf8E4M3FN>
// CHECK: train.slice %[[FLAT]] {limits = array<i64: 2048>, starts = array<i64: 0>, strides = array<i64: 1>}
// CHECK: train.slice %[[FLAT]] {limits = array<i64: 6160>, starts = array<i64: 2064>, strides = array<i64: 1>}
func.func @two(%u: tensor<6400xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                     train.segments = [#train.segment<"a", offset = 0, shape = [16, 128]>,
                                                       #train.segment<"b", offset = 2064, shape = [32, 128]>]},
               %x: tensor<8x128xbf16>) -> (tensor<8x16xbf16>, tensor<8x32xbf16>) {
  %sa = train.slice %u {starts = array<i64: 0>, limits = array<i64: 2048>, strides = array<i64: 1>} : (tensor<6400xf32>) -> tensor<2048xf32>
  %a = train.reshape %sa : (tensor<2048xf32>) -> tensor<16x128xf32>
  %sb = train.slice %u {starts = array<i64: 2064>, limits = array<i64: 6160>, strides = array<i64: 1>} : (tensor<6400xf32>) -> tensor<4096xf32>
  %b = train.reshape %sb : (tensor<4096xf32>) -> tensor<32x128xf32>
  %0 = train.dot_general %x, %a {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x128xbf16>, tensor<16x128xf32>) -> tensor<8x16xbf16>
  %1 = train.dot_general %x, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x128xbf16>, tensor<32x128xf32>) -> tensor<8x32xbf16>
  return %0, %1 : tensor<8x16xbf16>, tensor<8x32xbf16>
}

// A weight that begins elsewhere, a part of the columns, a parameter that is in no unit: read as they are.
// CHECK-LABEL: func.func @elsewhere
// CHECK-NOT: train.quantize {{.*}}x16xf8E4M3FN>
// CHECK-COUNT-2: train.quantize {{.*}} -> tensor<16x32xf8E4M3FN>
// CHECK: train.quantize {{.*}} -> tensor<16x64xf8E4M3FN>
func.func @elsewhere(%u: tensor<2056xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                           train.segments = [#train.segment<"odd", offset = 8, shape = [16, 64]>,
                                                             #train.segment<"wide", offset = 1032, shape = [16, 64]>]},
                     %p: tensor<16x32xf32> {train.role = "param", train.name = "p", train.compute_type = f8E4M3FN},
                     %x: tensor<8x32xbf16>, %z: tensor<8x64xbf16>) -> (tensor<8x16xbf16>, tensor<8x16xbf16>, tensor<8x16xbf16>) {
  %0 = train.dot_general %x, %p {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x32xbf16>, tensor<16x32xf32>) -> tensor<8x16xbf16>
  %sw = train.slice %u {starts = array<i64: 1032>, limits = array<i64: 2056>, strides = array<i64: 1>} : (tensor<2056xf32>) -> tensor<1024xf32>
  %w = train.reshape %sw : (tensor<1024xf32>) -> tensor<16x64xf32>
  %c = train.slice %w {starts = array<i64: 0, 16>, limits = array<i64: 16, 48>, strides = array<i64: 1, 1>} : (tensor<16x64xf32>) -> tensor<16x32xf32>
  %1 = train.dot_general %x, %c {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x32xbf16>, tensor<16x32xf32>) -> tensor<8x16xbf16>
  %so = train.slice %u {starts = array<i64: 8>, limits = array<i64: 1032>, strides = array<i64: 1>} : (tensor<2056xf32>) -> tensor<1024xf32>
  %o = train.reshape %so : (tensor<1024xf32>) -> tensor<16x64xf32>
  %2 = train.dot_general %z, %o {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x64xbf16>, tensor<16x64xf32>) -> tensor<8x16xbf16>
  return %0, %1, %2 : tensor<8x16xbf16>, tensor<8x16xbf16>, tensor<8x16xbf16>
}

// Weights that overlap are not in one copy of the unit: an element has one scale in each.
// CHECK-LABEL: func.func @overlap
// ROW: %[[CHUNKS:.*]] = train.reshape %{{.*}} -> tensor<64x128xf32>
// ROW: %[[A:.*]] = train.quantize %[[CHUNKS]], %{{.*}} -> tensor<64x128xf8E4M3FN>
// ROW: %[[SCALES:.*]] = train.concat %{{.*}} {dim = 0 : i64} : (tensor<32xf32>, tensor<32xf32>) -> tensor<64xf32>
// ROW: train.reshape %[[SCALES]]
// ROW: %[[B:.*]] = train.quantize %[[CHUNKS]], %{{.*}} -> tensor<64x128xf8E4M3FN>
// ROW: train.scaled_dot %{{.*}}, %[[A]] scaled
// ROW: train.slice
// CHECK: train.scaled_dot {{.*}} (tensor<8x128xf8E4M3FN>, tensor<32x128xf8E4M3FN>
func.func @overlap(%u: tensor<8192xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                         train.segments = [#train.segment<"w", offset = 0, shape = [64, 128]>]},
                   %x: tensor<8x128xbf16>) -> (tensor<8x64xbf16>, tensor<8x32xbf16>) {
  %w = train.reshape %u : (tensor<8192xf32>) -> tensor<64x128xf32>
  %h = train.slice %w {starts = array<i64: 32, 0>, limits = array<i64: 64, 128>, strides = array<i64: 1, 1>} : (tensor<64x128xf32>) -> tensor<32x128xf32>
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x128xbf16>, tensor<64x128xf32>) -> tensor<8x64xbf16>
  %1 = train.dot_general %x, %h {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x128xbf16>, tensor<32x128xf32>) -> tensor<8x32xbf16>
  return %0, %1 : tensor<8x64xbf16>, tensor<8x32xbf16>
}

// Once per step, outside of the loop over micro-batches, which have activations of their own. What is computed again is marked.
// CHECK-LABEL: func.func @accumulated
// CHECK: train.quantize %{{.*}} : (tensor<16x128xf32>, tensor<16x1xf32>) -> tensor<16x128xf8E4M3FN>
// CHECK: train.accumulate
// CHECK-NOT: train.quantize {{.*}} -> tensor<16x128xf8E4M3FN>
// CHECK: train.quantize %{{.*}} {train.backward, train.recompute} : {{.*}} -> tensor<8x128xf8E4M3FN>
// CHECK: train.scaled_dot {{.*}}train.backward, train.recompute
func.func @accumulated(%u: tensor<2048xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                             train.segments = [#train.segment<"w", offset = 0, shape = [16, 128]>]},
                       %x: tensor<4x8x128xbf16>) -> tensor<f32> {
  %s = train.accumulate %x {count = 4 : i64} : (tensor<4x8x128xbf16>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %m: tensor<8x128xbf16>):
    %w = train.reshape %u {train.backward, train.recompute} : (tensor<2048xf32>) -> tensor<16x128xf32>
    %y = train.dot_general %m, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>, train.backward, train.recompute} : (tensor<8x128xbf16>, tensor<16x128xf32>) -> tensor<8x16xbf16>
    %wide = train.convert %y {train.backward} : (tensor<8x16xbf16>) -> tensor<8x16xf32>
    %r = train.reduce sum, %wide {dimensions = array<i64: 0, 1>, train.backward} : (tensor<8x16xf32>) -> tensor<f32>
    train.yield %r : tensor<f32>
  }
  return %s : tensor<f32>
}

// Activations in other layouts: inputs first need no transpose, inputs between two dimensions of tokens do.
// CHECK-LABEL: func.func @layouts
// CHECK: train.scaled_dot {{.*}} {lhs_contract = array<i64: 0>, {{.*}} : (tensor<32x8xf8E4M3FN>, tensor<16x32xf8E4M3FN>,
// CHECK: train.transpose %{{.*}} {permutation = array<i64: 0, 2, 1>} : (tensor<2x32x4xbf16>) -> tensor<2x4x32xbf16>
// CHECK: train.scaled_dot {{.*}} {lhs_contract = array<i64: 1>, {{.*}} : (tensor<8x32xf8E4M3FN>, tensor<16x32xf8E4M3FN>,
// CHECK: train.reshape {{.*}} -> tensor<2x4x16xbf16>
func.func @layouts(%w: tensor<16x32xf32> {train.role = "param", train.name = "w", train.compute_type = f8E4M3FN},
                   %x: tensor<32x8xbf16>, %z: tensor<2x32x4xbf16>) -> (tensor<8x16xbf16>, tensor<2x4x16xbf16>) {
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<32x8xbf16>, tensor<16x32xf32>) -> tensor<8x16xbf16>
  %1 = train.dot_general %z, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<2x32x4xbf16>, tensor<16x32xf32>) -> tensor<2x4x16xbf16>
  return %0, %1 : tensor<8x16xbf16>, tensor<2x4x16xbf16>
}
