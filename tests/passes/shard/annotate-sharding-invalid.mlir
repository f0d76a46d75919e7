// RUN: tessera-opt %s --annotate-sharding=strategy=zero3 -split-input-file -verify-diagnostics
// RUN: not tessera-opt %s --annotate-sharding="strategy=zero3 keep-gathered=(" -split-input-file 2>&1 | FileCheck %s --check-prefix=REGEX
// REGEX: --keep-gathered: '(' is not a regular expression of RE2: missing ): (
// RUN: not tessera-opt %s --annotate-sharding="strategy=zero3 keep-gathered=^w$" -split-input-file 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: --keep-gathered: no unit matches '{{.*}}'; nearest: 'u'

module attributes {dist.mesh = #dist.mesh<shard = 3>} {
// expected-error @below {{unit 'u' has 8 elements, which 3 ranks do not divide; flatten with a padding multiple of 3}}
func.func @padding(%u: tensor<8xf32> {train.role = "param", train.name = "u"}) {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// expected-error @below {{'w' is not a flat unit, so its parameters cannot be sharded; run flatten-parameters first}}
func.func @not_flat(%w: tensor<8x2xf32> {train.role = "param", train.name = "w"}) {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<replicate = 2, shard = 2>} {
// expected-error @below {{a batch of 'x' has 6 samples (dimension 0), expected a multiple of the number of data-parallel ranks, 4}}
func.func @batch(%x: tensor<6x2xf32> {train.role = "input", train.name = "x"}) {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// expected-error @below {{a micro-batch of 'x' has 3 samples (dimension 1), expected a multiple of the number of data-parallel ranks, 2}}
func.func @micro_batch(%x: tensor<2x3xf32> {train.role = "input", train.name = "x"}) {
  %g = train.accumulate %x {count = 2 : i64} : (tensor<2x3xf32>) -> tensor<3xf32> {
  ^bb0(%i: tensor<i64>, %b: tensor<3xf32>):
    train.yield %b : tensor<3xf32>
  }
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<shard = 2>} {
// expected-remark @below {{argument 'ids' is not split: none of its dimensions counts samples}}
func.func @other_size(%x: tensor<4x2xf32> {train.role = "input", train.name = "x"}, %p: tensor<1x2xf32> {train.role = "input", train.name = "ids"}) {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<replicate = 2>} {
// expected-remark @below {{nothing is sharded: mesh #dist.mesh<replicate = 2> has no axis larger than 1 that state is split over}}
func.func @no_shard_axis(%u: tensor<8xf32> {train.role = "param", train.name = "u"}) {
  return
}
}

// -----

// What has no samples is not split; those of the second input are in its second dimension.
module attributes {dist.mesh = #dist.mesh<nodes : replica = 2, gpus : data = 2>} {
// expected-remark @below {{argument 'x' is not split: none of its dimensions counts samples}}
func.func @place(%x: tensor<2xf32> {train.role = "input", train.name = "x", train.dims = #train.dims<[none]>},
                 // expected-error @below {{a batch of 'z' has 6 samples (dimension 1), expected a multiple of the number of data-parallel ranks, 4}}
                 %z: tensor<3x6xf32> {train.role = "input", train.name = "z", train.dims = #train.dims<[position, sample]>}) {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<fsdp = 2, cp = 2>} {
// expected-error @below {{axis 'cp' splits positions, but no dimension of an input counts them; --dim-role says which does}}
func.func @no_pass(%u: tensor<8xf32> {train.role = "param", train.name = "u"}) {
  return
}
}
