// RUN: tessera-opt %s --cast-fp8 --canonicalize --cse -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: sed 's/ attributes {dist.mesh = #dist.mesh<shard = 3>}//' %s | tessera-opt --cast-fp8 --canonicalize --cse -o %t.one.mlir
// RUN: FileCheck %s --check-prefix=ONE --input-file=%t.one.mlir
// The same bits as of columns that are quantised where they are read.
// RUN: tessera-interp %t.one.mlir --compare %t.mlir --rtol=0 --atol=0 --quiet

// Two weights whose inputs share a scale of an output each: columns, of 48 and of 80. Shards of 960 elements begin in the
// middle of rows. Largest values are taken for each shard, as one table; the unit is quantised in shards.
module attributes {dist.mesh = #dist.mesh<shard = 3>} {
// CHECK-LABEL: func.func @two
// CHECK-SAME: %[[U:[a-z0-9]+]]: tensor<2880xf32>
// CHECK: %[[SHARDS:.*]] = train.reshape %[[U]] : (tensor<2880xf32>) -> tensor<3x960xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 1>} : (tensor<3x20x48xf32>) -> tensor<3x48xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 1>} : (tensor<3x12x80xf32>) -> tensor<3x80xf32>
// CHECK: train.concat {{.*}} -> tensor<3x128xf32>
// CHECK: train.quantize %[[SHARDS]], %{{.*}} : (tensor<3x960xf32>, tensor<3x960xf32>) -> tensor<3x960xf8E4M3FN>
// CHECK-NOT: train.quantize %{{.*}} : (tensor<32x48xf32>
// ONE-LABEL: func.func @two
// ONE: train.quantize %{{.*}} : (tensor<32x48xf32>, tensor<1x48xf32>) -> tensor<32x48xf8E4M3FN>
// ONE: train.quantize %{{.*}} : (tensor<16x80xf32>, tensor<1x80xf32>) -> tensor<16x80xf8E4M3FN>
func.func @two(%u: tensor<2880xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                     train.segments = [#train.segment<"w", offset = 0, shape = [32, 48]>,
                                                       #train.segment<"v", offset = 1536, shape = [16, 80]>]},
               %x: tensor<48x32xbf16>, %y: tensor<48x16xbf16>) -> (tensor<48x48xbf16>, tensor<48x80xbf16>) {
  %s = train.slice %u {limits = array<i64: 1536>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<2880xf32>) -> tensor<1536xf32>
  %w = train.reshape %s : (tensor<1536xf32>) -> tensor<32x48xf32>
  %t = train.slice %u {limits = array<i64: 2816>, starts = array<i64: 1536>, strides = array<i64: 1>} : (tensor<2880xf32>) -> tensor<1280xf32>
  %v = train.reshape %t : (tensor<1280xf32>) -> tensor<16x80xf32>
  %a = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<48x32xbf16>, tensor<32x48xf32>) -> tensor<48x48xbf16>
  %b = train.dot_general %y, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<48x16xbf16>, tensor<16x80xf32>) -> tensor<48x80xbf16>
  return %a, %b : tensor<48x48xbf16>, tensor<48x80xbf16>
}

// Whole columns of two weights of one width share no scale: each has its own maxima. Shards begin with rows of both. What
// is between the weights and behind them has the scale 1.
// CHECK-LABEL: func.func @alike
// CHECK: %[[UNSCALED:.*]] = train.constant dense<1.000000e+00> : tensor<1xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 1>} : (tensor<3x22x48xf32>) -> tensor<3x48xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 1>} : (tensor<3x22x48xf32>) -> tensor<3x48xf32>
// CHECK: train.concat {{.*}} -> tensor<3x96xf32>
// CHECK: train.concat %{{.*}}, %{{.*}}, %[[UNSCALED]] {dim = 0 : i64} : (tensor<48xf32>, tensor<48xf32>, tensor<1xf32>) -> tensor<97xf32>
// CHECK: train.quantize %{{.*}} -> tensor<3x1056xf8E4M3FN>
func.func @alike(%u: tensor<3168xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                       train.segments = [#train.segment<"w", offset = 0, shape = [32, 48]>,
                                                         #train.segment<"v", offset = 1584, shape = [32, 48]>]},
                 %x: tensor<48x32xbf16>, %y: tensor<48x32xbf16>) -> (tensor<48x48xbf16>, tensor<48x48xbf16>) {
  %ws = train.slice %u {limits = array<i64: 1536>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<3168xf32>) -> tensor<1536xf32>
  %w = train.reshape %ws : (tensor<1536xf32>) -> tensor<32x48xf32>
  %vs = train.slice %u {limits = array<i64: 3120>, starts = array<i64: 1584>, strides = array<i64: 1>} : (tensor<3168xf32>) -> tensor<1536xf32>
  %v = train.reshape %vs : (tensor<1536xf32>) -> tensor<32x48xf32>
  %a = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<48x32xbf16>, tensor<32x48xf32>) -> tensor<48x48xbf16>
  %b = train.dot_general %y, %v {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<48x32xbf16>, tensor<32x48xf32>) -> tensor<48x48xbf16>
  return %a, %b : tensor<48x48xbf16>, tensor<48x48xbf16>
}

// Not applied over units: each has a table of its own.
// CHECK-LABEL: func.func @two_units
// CHECK-NOT: -> tensor<3x96xf32>
// CHECK: train.quantize %{{.*}} -> tensor<3x512xf8E4M3FN>
// CHECK-NOT: -> tensor<3x96xf32>
// CHECK: train.quantize %{{.*}} -> tensor<3x512xf8E4M3FN>
func.func @two_units(%u: tensor<1536xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
                                           train.segments = [#train.segment<"w", offset = 0, shape = [32, 48]>]},
                     %v: tensor<1536xf32> {train.role = "param", train.name = "v", train.compute_type = f8E4M3FN,
                                           train.segments = [#train.segment<"o", offset = 0, shape = [32, 48]>]},
                     %x: tensor<48x32xbf16>) -> (tensor<48x48xbf16>, tensor<48x48xbf16>) {
  %w = train.reshape %u : (tensor<1536xf32>) -> tensor<32x48xf32>
  %o = train.reshape %v : (tensor<1536xf32>) -> tensor<32x48xf32>
  %a = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<48x32xbf16>, tensor<32x48xf32>) -> tensor<48x48xbf16>
  %b = train.dot_general %x, %o {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<48x32xbf16>, tensor<32x48xf32>) -> tensor<48x48xbf16>
  return %a, %b : tensor<48x48xbf16>, tensor<48x48xbf16>
}
}
