// RUN: tessera-opt %s --cast-fp8 --canonicalize --cse -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: sed 's/ attributes {dist.mesh = #dist.mesh<shard = 3>}//' %s | tessera-opt --cast-fp8 --canonicalize --cse -o %t.one.mlir
// RUN: FileCheck %s --check-prefix=ONE --input-file=%t.one.mlir
// The same bits as of blocks that are quantised where they are read; also with scales that are no powers of two, so that
// each bit of the largest values counts.
// RUN: tessera-interp %t.one.mlir --compare %t.mlir --rtol=0 --atol=0 --quiet
// RUN: sed 's/quantize_scale *e8m0/quantize_scale none/' %t.mlir > %t.none.mlir
// RUN: sed 's/quantize_scale *e8m0/quantize_scale none/' %t.one.mlir > %t.one.none.mlir
// RUN: not grep e8m0 %t.none.mlir %t.one.none.mlir
// RUN: tessera-interp %t.one.none.mlir --compare %t.none.mlir --rtol=0 --atol=0 --quiet

// What is in one column of 32 rows shares a scale.
module attributes {dist.mesh = #dist.mesh<shard = 3>} {
// Shards of 4288 elements begin in the middle of rows and blocks: each group of 32 rows is parted. Two weights of one width
// behind each other are cut as one, a third one, which is read transposed, begins behind a gap. All is one table.
// CHECK-LABEL: func.func @two
// CHECK-SAME: %[[U:[a-z0-9]+]]: tensor<12864xf32>
// CHECK: %[[SHARDS:.*]] = train.reshape %[[U]] : (tensor<12864xf32>) -> tensor<3x4288xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 2>} : (tensor<3x3x32x48xf32>) -> tensor<3x3x48xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 2>} : (tensor<3x3x32x48xf32>) -> tensor<3x3x48xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 2>} : (tensor<3x2x32x80xf32>) -> tensor<3x2x80xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 2>} : (tensor<3x2x32x80xf32>) -> tensor<3x2x80xf32>
// CHECK: train.quantize %[[SHARDS]], %{{.*}} : (tensor<3x4288xf32>, tensor<3x4288xf32>) -> tensor<3x4288xf8E4M3FN>
// CHECK-NOT: train.quantize %{{.*}} : (tensor<64x48xf32>
// ONE-LABEL: func.func @two
// ONE: train.quantize %{{.*}} : (tensor<64x48xf32>, tensor<2x48xf32>) -> tensor<64x48xf8E4M3FN>
// ONE: train.quantize %{{.*}} : (tensor<96x48xf32>, tensor<3x48xf32>) -> tensor<96x48xf8E4M3FN>
// ONE: train.quantize %{{.*}} : (tensor<80x64xf32>, tensor<80x2xf32>) -> tensor<80x64xf8E4M3FN>
func.func @two(%u: tensor<12864xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
        train.segments = [#train.segment<"a", offset = 0, shape = [64, 48]>,
                          #train.segment<"b", offset = 3072, shape = [96, 48]>,
                          #train.segment<"c", offset = 7696, shape = [64, 80]>]},
    %x0: tensor<48x64xbf16>, %x1: tensor<48x96xbf16>, %x2: tensor<48x64xbf16>) -> (tensor<48x48xbf16>, tensor<48x48xbf16>, tensor<48x80xbf16>) {
  %s0 = train.slice %u {limits = array<i64: 3072>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<12864xf32>) -> tensor<3072xf32>
  %a = train.reshape %s0 : (tensor<3072xf32>) -> tensor<64x48xf32>
  %y0 = train.dot_general %x0, %a {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x64xbf16>, tensor<64x48xf32>) -> tensor<48x48xbf16>
  %s1 = train.slice %u {limits = array<i64: 7680>, starts = array<i64: 3072>, strides = array<i64: 1>} : (tensor<12864xf32>) -> tensor<4608xf32>
  %b = train.reshape %s1 : (tensor<4608xf32>) -> tensor<96x48xf32>
  %y1 = train.dot_general %x1, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x96xbf16>, tensor<96x48xf32>) -> tensor<48x48xbf16>
  %s2 = train.slice %u {limits = array<i64: 12816>, starts = array<i64: 7696>, strides = array<i64: 1>} : (tensor<12864xf32>) -> tensor<5120xf32>
  %c = train.reshape %s2 : (tensor<5120xf32>) -> tensor<64x80xf32>
  %t2 = train.transpose %c {permutation = array<i64: 1, 0>} : (tensor<64x80xf32>) -> tensor<80x64xf32>
  %y2 = train.dot_general %x2, %t2 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x64xbf16>, tensor<80x64xf32>) -> tensor<48x80xbf16>
  return %y0, %y1, %y2 : tensor<48x48xbf16>, tensor<48x48xbf16>, tensor<48x80xbf16>
}

// A block of 10240 elements lies in three shards of 4440.
// CHECK-LABEL: func.func @long
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 2>} : (tensor<3x1x32x320xf32>) -> tensor<3x1x320xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 0>} : (tensor<3x1x320xf32>) -> tensor<1x320xf32>
// CHECK: train.quantize %{{.*}} -> tensor<3x4440xf8E4M3FN>
func.func @long(%u: tensor<13320xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
        train.segments = [#train.segment<"a", offset = 0, shape = [64, 48]>,
                          #train.segment<"b", offset = 3072, shape = [32, 320]>]},
    %x0: tensor<48x64xbf16>, %x1: tensor<48x32xbf16>) -> (tensor<48x48xbf16>, tensor<48x320xbf16>) {
  %s0 = train.slice %u {limits = array<i64: 3072>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<13320xf32>) -> tensor<3072xf32>
  %a = train.reshape %s0 : (tensor<3072xf32>) -> tensor<64x48xf32>
  %y0 = train.dot_general %x0, %a {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x64xbf16>, tensor<64x48xf32>) -> tensor<48x48xbf16>
  %s1 = train.slice %u {limits = array<i64: 13312>, starts = array<i64: 3072>, strides = array<i64: 1>} : (tensor<13320xf32>) -> tensor<10240xf32>
  %b = train.reshape %s1 : (tensor<10240xf32>) -> tensor<32x320xf32>
  %y1 = train.dot_general %x1, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x32xbf16>, tensor<32x320xf32>) -> tensor<48x320xbf16>
  return %y0, %y1 : tensor<48x48xbf16>, tensor<48x320xbf16>
}

// Shards begin with blocks of both weights: nothing is parted, and a shard has a maximum for 32 elements.
// CHECK-LABEL: func.func @even
// CHECK-NOT: train.pad
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 2>} : (tensor<3x2x32x64xf32>) -> tensor<3x2x64xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 2>} : (tensor<3x4x32x32xf32>) -> tensor<3x4x32xf32>
// CHECK: train.max %{{.*}} : tensor<3x128xf32>
// CHECK-NOT: train.reduce
// CHECK: train.quantize %{{.*}} -> tensor<3x4096xf8E4M3FN>
func.func @even(%u: tensor<12288xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
        train.segments = [#train.segment<"a", offset = 0, shape = [96, 64]>,
                          #train.segment<"b", offset = 6144, shape = [192, 32]>]},
    %x0: tensor<48x96xbf16>, %x1: tensor<48x192xbf16>) -> (tensor<48x64xbf16>, tensor<48x32xbf16>) {
  %s0 = train.slice %u {limits = array<i64: 6144>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<12288xf32>) -> tensor<6144xf32>
  %a = train.reshape %s0 : (tensor<6144xf32>) -> tensor<96x64xf32>
  %y0 = train.dot_general %x0, %a {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x96xbf16>, tensor<96x64xf32>) -> tensor<48x64xbf16>
  %s1 = train.slice %u {limits = array<i64: 12288>, starts = array<i64: 6144>, strides = array<i64: 1>} : (tensor<12288xf32>) -> tensor<6144xf32>
  %b = train.reshape %s1 : (tensor<6144xf32>) -> tensor<192x32xf32>
  %t1 = train.transpose %b {permutation = array<i64: 1, 0>} : (tensor<192x32xf32>) -> tensor<32x192xf32>
  %y1 = train.dot_general %x1, %t1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x192xbf16>, tensor<32x192xf32>) -> tensor<48x32xbf16>
  return %y0, %y1 : tensor<48x64xbf16>, tensor<48x32xbf16>
}

// They do with those of the first and the last of three weights.
// CHECK-LABEL: func.func @mixed
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 2>} : (tensor<3x2x32x64xf32>) -> tensor<3x2x64xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 2>} : (tensor<3x2x32x80xf32>) -> tensor<3x2x80xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 2>} : (tensor<3x2x32x80xf32>) -> tensor<3x2x80xf32>
// CHECK: train.reduce max, %{{.*}} {dimensions = array<i64: 2>} : (tensor<3x4x32x32xf32>) -> tensor<3x4x32xf32>
// CHECK: train.quantize %{{.*}} -> tensor<3x4096xf8E4M3FN>
func.func @mixed(%u: tensor<12288xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
        train.segments = [#train.segment<"a", offset = 0, shape = [96, 64]>,
                          #train.segment<"b", offset = 6144, shape = [64, 80]>,
                          #train.segment<"c", offset = 11264, shape = [32, 32]>]},
    %x0: tensor<48x96xbf16>, %x1: tensor<48x64xbf16>, %x2: tensor<48x32xbf16>) -> (tensor<48x64xbf16>, tensor<48x80xbf16>, tensor<48x32xbf16>) {
  %s0 = train.slice %u {limits = array<i64: 6144>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<12288xf32>) -> tensor<6144xf32>
  %a = train.reshape %s0 : (tensor<6144xf32>) -> tensor<96x64xf32>
  %y0 = train.dot_general %x0, %a {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x96xbf16>, tensor<96x64xf32>) -> tensor<48x64xbf16>
  %s1 = train.slice %u {limits = array<i64: 11264>, starts = array<i64: 6144>, strides = array<i64: 1>} : (tensor<12288xf32>) -> tensor<5120xf32>
  %b = train.reshape %s1 : (tensor<5120xf32>) -> tensor<64x80xf32>
  %y1 = train.dot_general %x1, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x64xbf16>, tensor<64x80xf32>) -> tensor<48x80xbf16>
  %s2 = train.slice %u {limits = array<i64: 12288>, starts = array<i64: 11264>, strides = array<i64: 1>} : (tensor<12288xf32>) -> tensor<1024xf32>
  %c = train.reshape %s2 : (tensor<1024xf32>) -> tensor<32x32xf32>
  %y2 = train.dot_general %x2, %c {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x32xbf16>, tensor<32x32xf32>) -> tensor<48x32xbf16>
  return %y0, %y1, %y2 : tensor<48x64xbf16>, tensor<48x80xbf16>, tensor<48x32xbf16>
}

// Without room between them, the last maxima of one weight in the second shard would lie where the first ones of the other
// do.
// CHECK-LABEL: func.func @room
// CHECK: %[[FIRST:.*]] = train.reshape %{{.*}} : (tensor<3x2x32xf32>) -> tensor<3x64xf32>
// CHECK: %[[A:.*]] = train.pad %[[FIRST]] {high = array<i64: 0, 16>, {{.*}}low = array<i64: 0, 0>
// CHECK: train.pad %{{.*}} {high = array<i64: 0, 0>, {{.*}}low = array<i64: 0, 32>
// CHECK: train.max %[[A]], %{{.*}} : tensor<3x80xf32>
func.func @room(%u: tensor<2064xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
        train.segments = [#train.segment<"a", offset = 0, shape = [32, 32]>,
                          #train.segment<"b", offset = 1024, shape = [64, 16]>]},
    %x0: tensor<48x32xbf16>, %x1: tensor<48x64xbf16>) -> (tensor<48x32xbf16>, tensor<48x16xbf16>) {
  %s0 = train.slice %u {limits = array<i64: 1024>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<2064xf32>) -> tensor<1024xf32>
  %a = train.reshape %s0 : (tensor<1024xf32>) -> tensor<32x32xf32>
  %y0 = train.dot_general %x0, %a {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x32xbf16>, tensor<32x32xf32>) -> tensor<48x32xbf16>
  %s1 = train.slice %u {limits = array<i64: 2048>, starts = array<i64: 1024>, strides = array<i64: 1>} : (tensor<2064xf32>) -> tensor<1024xf32>
  %b = train.reshape %s1 : (tensor<1024xf32>) -> tensor<64x16xf32>
  %y1 = train.dot_general %x1, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<mxfp8, activation, weight>} : (tensor<48x64xbf16>, tensor<64x16xf32>) -> tensor<48x16xbf16>
  return %y0, %y1 : tensor<48x32xbf16>, tensor<48x16xbf16>
}
}
