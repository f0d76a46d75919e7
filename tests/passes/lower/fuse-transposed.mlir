// On a GPU a kernel stores a value in both orientations; on a CPU each has its own.
// RUN: tessera-opt %s --fuse=gpu=true | FileCheck %s
// RUN: tessera-opt %s --fuse=gpu=true --outline-kernels | kernel-check --gpu
// RUN: tessera-opt %s --fuse | FileCheck %s --check-prefix=CPU

// What is quantised for two products, with scales of its rows and of its columns, is read once.
// CHECK-LABEL: @quantised_twice
// CHECK: exec.fusion "elementwise"
// CHECK-NOT: exec.fusion
// CHECK: return
// CPU-LABEL: @quantised_twice
// CPU-COUNT-2: exec.fusion "elementwise"
// CPU: return
func.func @quantised_twice(%x: tensor<200x136xbf16>, %r: tensor<200xf32>, %c: tensor<136xf32>)
    -> (tensor<200x136xf8E4M3FN>, tensor<136x200xf8E4M3FN>) {
  %w = train.convert %x : (tensor<200x136xbf16>) -> tensor<200x136xf32>
  %rb = train.broadcast %r {broadcast_dimensions = array<i64: 0>} : (tensor<200xf32>) -> tensor<200x136xf32>
  %rv = train.mul %w, %rb : tensor<200x136xf32>
  %q = train.convert %rv : (tensor<200x136xf32>) -> tensor<200x136xf8E4M3FN>
  %t = train.transpose %x {permutation = array<i64: 1, 0>} : (tensor<200x136xbf16>) -> tensor<136x200xbf16>
  %v = train.convert %t : (tensor<136x200xbf16>) -> tensor<136x200xf32>
  %cb = train.broadcast %c {broadcast_dimensions = array<i64: 0>} : (tensor<136xf32>) -> tensor<136x200xf32>
  %cv = train.mul %v, %cb : tensor<136x200xf32>
  %p = train.convert %cv : (tensor<136x200xf32>) -> tensor<136x200xf8E4M3FN>
  return %q, %p : tensor<200x136xf8E4M3FN>, tensor<136x200xf8E4M3FN>
}

// The transpose of a widened value, which both readers widen for themselves.
// CHECK-LABEL: @widened
// CHECK: exec.fusion "elementwise"
// CHECK-NOT: exec.fusion
// CHECK: return
func.func @widened(%x: tensor<200x136xbf16>) -> (tensor<200x136xf32>, tensor<136x200xf32>) {
  %w = train.convert %x : (tensor<200x136xbf16>) -> tensor<200x136xf32>
  %y = train.exp %w : tensor<200x136xf32>
  %t = train.transpose %w {permutation = array<i64: 1, 0>} : (tensor<200x136xf32>) -> tensor<136x200xf32>
  %z = train.neg %t : tensor<136x200xf32>
  return %y, %z : tensor<200x136xf32>, tensor<136x200xf32>
}
