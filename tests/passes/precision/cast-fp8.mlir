// RUN: sed s/RECIPE/tensorwise/ %s | tessera-opt --cast-fp8 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,TENSOR
// RUN: sed s/RECIPE/rowwise/ %s | tessera-opt --cast-fp8 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ROW
// RUN: sed s/RECIPE/rowwise_hp/ %s | tessera-opt --cast-fp8 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,HP
// RUN: sed s/RECIPE/block128/ %s | tessera-opt --cast-fp8 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,BLOCK
// RUN: sed s/RECIPE/mxfp8/ %s | tessera-opt --cast-fp8 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,MX
// RUN: sed s/RECIPE/tensorwise/ %s | tessera-opt --cast-fp8="groups=2 nonfinite=scale1" --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,GROUPS
// RUN: sed -e s/RECIPE/block128/ -e s/2x128x/2x32x/g %s | not tessera-opt --cast-fp8 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: sed -e s/RECIPE/block128/ -e "1i module attributes {dist.mesh = #dist.mesh<shard = 4>} {" -e "$ a }" %s | not tessera-opt --cast-fp8 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: sed s/RECIPE/mxfp8/ %s | not tessera-opt --cast-fp8=groups=16 2>&1 | FileCheck %s --check-prefix=PARTS

// The products of a linear layer with 128 inputs and 384 outputs, on 2 x 128 tokens. The weight is a part of a unit.
// TOKENS: error: recipe block128 needs a multiple of 128 tokens in a micro-batch on each rank, got 64 on 1 rank
// RANKS: error: recipe block128 needs a multiple of 128 tokens in a micro-batch on each rank, got 256 on 4 ranks
// PARTS: error: --fp8-amax local: a micro-batch of 2 samples cannot be 16 equal groups

// The unit is quantised at the beginning of the step, by the maxima of chunks; what no product reads has the scale 1.
// CHECK-LABEL: func.func @layer
// CHECK: %[[CHUNKS:.*]] = train.reshape %{{.*}} : (tensor<49280xf32>) -> tensor<[[N:385|1540]]x[[C:128|32]]xf32>
// CHECK: train.abs %[[CHUNKS]]
// CHECK: %[[AMAX:.*]] = train.reduce max, %{{.*}} {dimensions = array<i64: 1>}
// CHECK: train.slice %[[AMAX]]
// ROW: train.quantize_scale down, %{{.*}} {format = f8E4M3FN} : tensor<384x1xf32>
// HP: train.quantize_scale down, %{{.*}} {format = f8E4M3FN} : tensor<384x1xf32>
// TENSOR: train.quantize_scale none, %{{.*}} {format = f8E4M3FN} : tensor<1x1xf32>
// BLOCK: train.quantize_scale down, %{{.*}} {format = f8E4M3FN} : tensor<3x1xf32>
// MX: train.quantize_scale e8m0, %{{.*}} {format = f8E4M3FN} : tensor<384x4xf32>
// CHECK: train.concat {{.*}} -> tensor<[[N]]xf32>
// CHECK: train.quantize %[[CHUNKS]], %{{.*}} : (tensor<[[N]]x[[C]]xf32>, tensor<[[N]]x1xf32>) -> tensor<[[N]]x[[C]]xf8E4M3FN>
// HP: train.quantize_scale down, %{{.*}} {format = f8E4M3FN, train.backward} : tensor<1x1xf32>
// HP: train.quantize %[[CHUNKS]], %{{.*}} {train.backward} : {{.*}} -> tensor<[[N]]x[[C]]xf8E4M3FN>

// The output.
// TENSOR: train.quantize_scale none, %{{.*}} {format = f8E4M3FN} : tensor<1x1xf32>
// GROUPS: train.quantize_scale none, %{{.*}} {format = f8E4M3FN, one_if_not_finite} : tensor<2x1xf32>
// ROW: train.quantize_scale down, %{{.*}} {format = f8E4M3FN} : tensor<256x1xf32>
// BLOCK: train.quantize_scale down, %{{.*}} {format = f8E4M3FN} : tensor<256x1xf32>
// MX: train.quantize_scale e8m0, %{{.*}} {format = f8E4M3FN} : tensor<256x4xf32>
// CHECK: train.scaled_dot {{.*}} {lhs_contract = array<i64: 1>, {{(power_of_two, )?}}rhs_contract = array<i64: 1>} : (tensor<256x128xf8E4M3FN>, tensor<384x128xf8E4M3FN>,
// CHECK-SAME: -> tensor<256x384xbf16>
// CHECK: train.reshape {{.*}} -> tensor<2x128x384xbf16>

// The gradient of the input. A scale of columns of the weight is made where the weight is read.
// TENSOR: train.quantize_scale none, %{{.*}} {format = f8E5M2, train.backward} : tensor<1x1xf32>
// TENSOR: train.scaled_dot {{.*}} (tensor<256x384xf8E5M2>, tensor<384x128xf8E4M3FN>, tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<256x128xbf16>
// ROW: train.quantize_scale down, %{{.*}} {format = f8E4M3FN, train.backward} : tensor<256x1xf32>
// ROW: train.reduce max, %{{.*}} {dimensions = array<i64: 0>, train.backward} : (tensor<384x128xf32>) -> tensor<128xf32>
// ROW: train.scaled_dot {{.*}}power_of_two{{.*}} (tensor<256x384xf8E4M3FN>, tensor<384x128xf8E4M3FN>, tensor<256x1xf32>, tensor<1x128xf32>) -> tensor<256x128xbf16>
// HP: train.scaled_dot {{.*}}power_of_two{{.*}} (tensor<256x384xf8E4M3FN>, tensor<384x128xf8E4M3FN>, tensor<256x1xf32>, tensor<1x1xf32>) -> tensor<256x128xbf16>
// BLOCK: train.scaled_dot {{.*}}power_of_two{{.*}} (tensor<256x384xf8E4M3FN>, tensor<384x128xf8E4M3FN>, tensor<256x3xf32>, tensor<3x1xf32>) -> tensor<256x128xbf16>
// MX: train.scaled_dot {{.*}}power_of_two{{.*}} (tensor<256x384xf8E4M3FN>, tensor<384x128xf8E4M3FN>, tensor<256x12xf32>, tensor<12x128xf32>) -> tensor<256x128xbf16>

// The gradient of the weight, in f32.
// TENSOR: train.scaled_dot {{.*}} {lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, train.backward} : (tensor<256x384xf8E5M2>, tensor<256x128xf8E4M3FN>, tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<384x128xf32>
// GROUPS: train.scaled_dot {{.*}} (tensor<256x384xf8E5M2>, tensor<256x128xf8E4M3FN>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<384x128xf32>
// ROW: train.scaled_dot {{.*}} (tensor<256x384xf8E4M3FN>, tensor<256x128xf8E4M3FN>, tensor<1x384xf32>, tensor<1x128xf32>) -> tensor<384x128xf32>
// HP: train.dot_general {{.*}} : (tensor<2x128x384xbf16>, tensor<2x128x128xbf16>) -> tensor<384x128xf32>
// BLOCK: train.scaled_dot {{.*}} (tensor<256x384xf8E4M3FN>, tensor<256x128xf8E4M3FN>, tensor<2x384xf32>, tensor<2x128xf32>) -> tensor<384x128xf32>
// MX: train.scaled_dot {{.*}} (tensor<256x384xf8E4M3FN>, tensor<256x128xf8E4M3FN>, tensor<8x384xf32>, tensor<8x128xf32>) -> tensor<384x128xf32>
// CHECK-NOT: scaling
func.func @layer(%x: tensor<2x128x128xbf16> {train.role = "input", train.name = "x"}, %p: tensor<2x128x128xbf16> {train.role = "param", train.name = "p"},
                 %u: tensor<49280xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                        train.segments = [#train.segment<"w", offset = 128, shape = [384, 128]>]},
                 %g: tensor<2x128x384xbf16> {train.role = "input", train.name = "g"})
    -> (tensor<f32> {train.role = "loss"}, tensor<2x128x384xbf16> {train.role = "output", train.name = "y"},
        tensor<2x128x128xbf16> {train.role = "grad", train.of = "p"}, tensor<49280xf32> {train.role = "grad", train.of = "u"}) {
  %s = train.slice %u {starts = array<i64: 128>, limits = array<i64: 49280>, strides = array<i64: 1>} : (tensor<49280xf32>) -> tensor<49152xf32>
  %w = train.reshape %s : (tensor<49152xf32>) -> tensor<384x128xf32>
  %y = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>, scaling = #train.scaling<RECIPE, activation, weight>} : (tensor<2x128x128xbf16>, tensor<384x128xf32>) -> tensor<2x128x384xbf16>
  %wide = train.convert %y : (tensor<2x128x384xbf16>) -> tensor<2x128x384xf32>
  %loss = train.reduce sum, %wide {dimensions = array<i64: 0, 1, 2>} : (tensor<2x128x384xf32>) -> tensor<f32>
  %sb = train.slice %u {starts = array<i64: 128>, limits = array<i64: 49280>, strides = array<i64: 1>, train.backward} : (tensor<49280xf32>) -> tensor<49152xf32>
  %wb = train.reshape %sb {train.backward} : (tensor<49152xf32>) -> tensor<384x128xf32>
  %dx = train.dot_general %g, %wb {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>, scaling = #train.scaling<RECIPE, gradient, weight>, train.backward} : (tensor<2x128x384xbf16>, tensor<384x128xf32>) -> tensor<2x128x128xbf16>
  %dw = train.dot_general %g, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0, 1>, rhs_contract = array<i64: 0, 1>, scaling = #train.scaling<RECIPE, gradient, activation>, train.backward} : (tensor<2x128x384xbf16>, tensor<2x128x128xbf16>) -> tensor<384x128xf32>
  %zeros = train.constant {train.backward} dense<0.0> : tensor<128xf32>
  %flat = train.reshape %dw {train.backward} : (tensor<384x128xf32>) -> tensor<49152xf32>
  %du = train.concat %zeros, %flat {dim = 0 : i64, train.backward} : (tensor<128xf32>, tensor<49152xf32>) -> tensor<49280xf32>
  return %loss, %y, %dx, %du : tensor<f32>, tensor<2x128x384xbf16>, tensor<2x128x128xbf16>, tensor<49280xf32>
}
