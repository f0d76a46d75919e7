// RUN: tessera-opt %s --split-input-file --cast-fp8 --canonicalize --cse | FileCheck %s

// Places in a unit are counted in 32 bits as long as sums of two of them have room there, else in 64.
module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// CHECK-LABEL: func.func @short
// CHECK-NOT: train.iota {{.*}}xi64>
// CHECK: train.iota {{.*}} : tensor<2x536870910xi32>
// CHECK-NOT: train.iota {{.*}}xi64>
// CHECK: train.quantize %{{.*}} -> tensor<2x536870910xf8E4M3FN>
func.func @short(%u: tensor<1073741820xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
    train.segments = [#train.segment<"w", offset = 0, shape = [32752, 32768]>]}, %x: tensor<48x32752xbf16>) -> tensor<48x32768xbf16> {
  %ws = train.slice %u {limits = array<i64: 1073217536>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<1073741820xf32>) -> tensor<1073217536xf32>
  %w = train.reshape %ws : (tensor<1073217536xf32>) -> tensor<32752x32768xf32>
  %a = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<48x32752xbf16>, tensor<32752x32768xf32>) -> tensor<48x32768xbf16>
  return %a : tensor<48x32768xbf16>
}

// CHECK-LABEL: func.func @long
// CHECK-NOT: train.iota {{.*}}xi32>
// CHECK: train.iota {{.*}} : tensor<2x536870912xi64>
// CHECK-NOT: train.iota {{.*}}xi32>
// CHECK: train.quantize %{{.*}} -> tensor<2x536870912xf8E4M3FN>
func.func @long(%u: tensor<1073741824xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
    train.segments = [#train.segment<"w", offset = 0, shape = [32752, 32768]>]}, %x: tensor<48x32752xbf16>) -> tensor<48x32768xbf16> {
  %ws = train.slice %u {limits = array<i64: 1073217536>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<1073741824xf32>) -> tensor<1073217536xf32>
  %w = train.reshape %ws : (tensor<1073217536xf32>) -> tensor<32752x32768xf32>
  %a = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<48x32752xbf16>, tensor<32752x32768xf32>) -> tensor<48x32768xbf16>
  return %a : tensor<48x32768xbf16>
}
}

// -----

// The table of all shards' columns is longer than the unit: places in it count, too.
// CHECK-LABEL: func.func @many_columns
// CHECK: train.gather_rows %{{.*}}, %{{.*}} : (tensor<4294967296xf32>, tensor<128x33554432xi64>)
module attributes {dist.mesh = #dist.mesh<shard = 128>} {
func.func @many_columns(%u: tensor<536870912xf32> {train.role = "param", train.name = "u", train.compute_type = f8E4M3FN,
    train.segments = [#train.segment<"w", offset = 0, shape = [16, 33554432]>]}, %x: tensor<48x16xbf16>) -> tensor<48x33554432xbf16> {
  %w = train.reshape %u : (tensor<536870912xf32>) -> tensor<16x33554432xf32>
  %a = train.dot_general %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, scaling = #train.scaling<rowwise, activation, weight>} : (tensor<48x16xbf16>, tensor<16x33554432xf32>) -> tensor<48x33554432xbf16>
  return %a : tensor<48x33554432xbf16>
}
}
