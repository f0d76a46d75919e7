// On a GPU a kernel stores a value in both orientations; on a CPU each has its own.
// RUN: tessera-opt %s --fuse=gpu=true | FileCheck %s
// RUN: tessera-opt %s --fuse=gpu=true --outline-kernels | kernel-check --gpu
// RUN: tessera-opt %s --fuse | FileCheck %s --check-prefix=CPU
// RUN: tessera-opt %s --scaled-products=architecture=sm_90 --decompose=gpu=true --fuse=gpu=true | FileCheck %s --check-prefix=PRODUCTS
// RUN: tessera-opt %s --scaled-products=architecture=sm_90 --decompose=gpu=true --fuse=gpu=true --outline-kernels | kernel-check --gpu

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

// The gradients of a linear layer: what flows back is an operand in both orientations, x in one.
// PRODUCTS-LABEL: @gradients
// PRODUCTS: exec.fusion "elementwise"{{.*}} -> (tensor<64x128xf8E5M2>, tensor<128x64xf8E5M2>)
// PRODUCTS: exec.fusion "elementwise"{{.*}} -> tensor<96x64xf8E4M3FN>
// PRODUCTS-NOT: exec.fusion{{.*}}f8E
// PRODUCTS: return
func.func @gradients(%g: tensor<64x128xbf16>, %x: tensor<64x96xbf16>, %w: tensor<96x128xf8E4M3FN>, %s: tensor<f32>)
    -> (tensor<64x96xbf16>, tensor<128x96xbf16>) {
  %i = train.constant dense<0.25> : tensor<f32>
  %qg = train.quantize %g, %s : (tensor<64x128xbf16>, tensor<f32>) -> tensor<64x128xf8E5M2>
  %qx = train.quantize %x, %s : (tensor<64x96xbf16>, tensor<f32>) -> tensor<64x96xf8E4M3FN>
  %dx = train.scaled_dot %qg, %w scaled %i, %i {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>, power_of_two} : (tensor<64x128xf8E5M2>, tensor<96x128xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<64x96xbf16>
  %dw = train.scaled_dot %qg, %qx scaled %i, %i {lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, power_of_two} : (tensor<64x128xf8E5M2>, tensor<64x96xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<128x96xbf16>
  return %dx, %dw : tensor<64x96xbf16>, tensor<128x96xbf16>
}
