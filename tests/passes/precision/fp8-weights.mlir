// Where weights are quantised: in their unit, if what shares a scale is whole chunks of it; else where they are read, with a
// remark that says why.
// RUN: rm -rf %t && split-file %s %t
// RUN: tessera-opt %t/held.mlir --cast-fp8 -o %t/row.mlir 2>/dev/null
// RUN: tessera-opt %t/row.mlir --canonicalize --cse | FileCheck %t/held.mlir --check-prefixes=CHECK,ROW
// RUN: sed s/rowwise,/tensorwise,/ %t/held.mlir | tessera-opt --cast-fp8 -o %t/tensor.mlir
// RUN: tessera-opt %t/tensor.mlir --canonicalize --cse | FileCheck %t/held.mlir --check-prefixes=CHECK,TENSOR
// RUN: tessera-opt %t/read.mlir --split-input-file --cast-fp8 --verify-diagnostics -o %t/read.cast.mlir
// RUN: FileCheck %t/read.mlir --input-file=%t/read.cast.mlir

// Where they are quantised changes no value: without segments there is no unit, and all are quantised where they are read.
// RUN: sed -z 's/,[ \n]*train\.segments = [^}]*}/}/g' %t/held.mlir > %t/parameters.mlir
// RUN: tessera-opt %t/parameters.mlir --cast-fp8 -o %t/row.read.mlir 2>/dev/null
// RUN: sed 's/, train\.segments = [^}]*}/}/g' %t/row.mlir > %t/row.held.mlir
// RUN: tessera-interp %t/row.held.mlir --compare=%t/row.read.mlir --rtol=0 --atol=0 --quiet
// RUN: sed s/rowwise,/tensorwise,/ %t/parameters.mlir | tessera-opt --cast-fp8 -o %t/tensor.read.mlir 2>/dev/null
// RUN: sed 's/, train\.segments = [^}]*}/}/g' %t/tensor.mlir > %t/tensor.held.mlir
// RUN: tessera-interp %t/tensor.held.mlir --compare=%t/tensor.read.mlir --rtol=0 --atol=0 --quiet

//--- held.mlir
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

//--- read.mlir
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
  // expected-remark@+1 {{the weight of '' is quantised where it is read: it does not lie in a unit as a matrix}}
  %0 = train.dot_general %x, %p {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x32xbf16>, tensor<16x32xf32>) -> tensor<8x16xbf16>
  %sw = train.slice %u {starts = array<i64: 1032>, limits = array<i64: 2056>, strides = array<i64: 1>} : (tensor<2056xf32>) -> tensor<1024xf32>
  %w = train.reshape %sw : (tensor<1024xf32>) -> tensor<16x64xf32>
  %c = train.slice %w {starts = array<i64: 0, 16>, limits = array<i64: 16, 48>, strides = array<i64: 1, 1>} : (tensor<16x64xf32>) -> tensor<16x32xf32>
  // expected-remark@+1 {{the weight of '' is quantised where it is read: it does not lie in a unit as a matrix}}
  %1 = train.dot_general %x, %c {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x32xbf16>, tensor<16x32xf32>) -> tensor<8x16xbf16>
  %so = train.slice %u {starts = array<i64: 8>, limits = array<i64: 1032>, strides = array<i64: 1>} : (tensor<2056xf32>) -> tensor<1024xf32>
  %o = train.reshape %so : (tensor<1024xf32>) -> tensor<16x64xf32>
  // expected-remark@+1 {{the weight of '' is quantised where it is read: it does not begin at a multiple of 16 elements of its unit}}
  %2 = train.dot_general %z, %o {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x64xbf16>, tensor<16x64xf32>) -> tensor<8x16xbf16>
  return %0, %1, %2 : tensor<8x16xbf16>, tensor<8x16xbf16>, tensor<8x16xbf16>
}

// -----

// In its unit for one product, where it is read for two others: columns lie in pieces on whatever rank has them, and a parameter
// that is in no unit.
// CHECK-LABEL: func.func @one_of_three
// CHECK: train.quantize {{.*}} -> tensor<32x64xf8E4M3FN>
// CHECK: train.quantize {{.*}}, tensor<1x64xf32>) -> tensor<32x64xf8E4M3FN>
// CHECK: train.quantize {{.*}}, tensor<32x1xf32>) -> tensor<32x64xf8E4M3FN>
func.func @one_of_three(%u: tensor<2048xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                              train.segments = [#train.segment<"w", offset = 0, shape = [32, 64]>]},
                        %x: tensor<8x64xbf16>, %g: tensor<8x32xbf16>, %p: tensor<32x64xf32>) -> (tensor<8x32xbf16>, tensor<8x64xbf16>, tensor<8x32xbf16>) {
  %w = train.reshape %u : (tensor<2048xf32>) -> tensor<32x64xf32>
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x64xbf16>, tensor<32x64xf32>) -> tensor<8x32xbf16>
  // expected-remark@+1 {{the weight of '' is quantised where it is read: what shares a scale is spread over its unit}}
  %1 = train.dot_general %g, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, gradient, weight>} : (tensor<8x32xbf16>, tensor<32x64xf32>) -> tensor<8x64xbf16>
  // expected-remark@+1 {{the weight of '' is quantised where it is read: it does not lie in a unit as a matrix}}
  %2 = train.dot_general %x, %p {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x64xbf16>, tensor<32x64xf32>) -> tensor<8x32xbf16>
  return %0, %1, %2 : tensor<8x32xbf16>, tensor<8x64xbf16>, tensor<8x32xbf16>
}

// -----

// Where model axes split the unit, it is in parts that are no matrices.
// CHECK-LABEL: func.func @placed
// CHECK: train.quantize {{.*}} -> tensor<32x64xf8E4M3FN>
func.func @placed(%u: tensor<2048xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                        train.segments = [#train.segment<"w", offset = 0, shape = [32, 64], placement = <dim = 0, axes = ["tp"], parts = 2>>]},
                  %x: tensor<8x64xbf16>) -> tensor<8x32xbf16> {
  %w = train.reshape %u : (tensor<2048xf32>) -> tensor<32x64xf32>
  // expected-remark@+1 {{the weight of '' is quantised where it is read: model axes split its unit}}
  %0 = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x64xbf16>, tensor<32x64xf32>) -> tensor<8x32xbf16>
  return %0 : tensor<8x32xbf16>
}

// -----

// Every other row, and what a reshape makes of a transpose: no rows that lie behind each other.
// CHECK-LABEL: func.func @gaps
// CHECK-COUNT-2: train.quantize {{.*}}32xf8E4M3FN>
func.func @gaps(%u: tensor<2048xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                      train.segments = [#train.segment<"w", offset = 0, shape = [64, 32]>]},
                %x: tensor<8x32xbf16>) -> (tensor<8x32xbf16>, tensor<8x64xbf16>) {
  %w = train.reshape %u : (tensor<2048xf32>) -> tensor<64x32xf32>
  %even = train.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 64, 32>, strides = array<i64: 2, 1>} : (tensor<64x32xf32>) -> tensor<32x32xf32>
  // expected-remark@+1 {{the weight of '' is quantised where it is read: it does not lie in a unit as a matrix}}
  %0 = train.dot_general %x, %even {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x32xbf16>, tensor<32x32xf32>) -> tensor<8x32xbf16>
  %t = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<64x32xf32>) -> tensor<32x64xf32>
  %flat = train.reshape %t : (tensor<32x64xf32>) -> tensor<64x32xf32>
  // expected-remark@+1 {{the weight of '' is quantised where it is read: it does not lie in a unit as a matrix}}
  %1 = train.dot_general %x, %flat {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<8x32xbf16>, tensor<64x32xf32>) -> tensor<8x64xbf16>
  return %0, %1 : tensor<8x32xbf16>, tensor<8x64xbf16>
}
