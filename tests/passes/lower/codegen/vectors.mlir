// The loops of each kind of kernel become vector code of the widest kind that the target has.
// RUN: kernel-check %s --target-cpu=x86-64-v4 --shared-object=%t.v4.so
// RUN: llvm-objdump -d --no-show-raw-insn %t.v4.so | FileCheck %s --check-prefixes=CHECK,V4
// RUN: kernel-check %s --target-cpu=x86-64-v3 --shared-object=%t.v3.so
// RUN: llvm-objdump -d --no-show-raw-insn %t.v3.so | FileCheck %s --check-prefixes=CHECK,V3

// GELU with a bias, with the polynomial of tanh.
// CHECK-LABEL: <elementwise>:
// V4:          vaddps {{.*}}%zmm
// V4:          vfmadd{{.*}}ps {{.*}}%zmm
// V3:          vaddps {{.*}}%ymm
// V3:          vfmadd{{.*}}ps {{.*}}%ymm
func.func @elementwise(%x: tensor<64x768xf32>, %b: tensor<768xf32>) -> tensor<64x768xf32> {
  %bias = train.broadcast %b {broadcast_dimensions = array<i64: 1>} : (tensor<768xf32>) -> tensor<64x768xf32>
  %0 = train.add %x, %bias : tensor<64x768xf32>
  %1 = train.tanh %0 : tensor<64x768xf32>
  %2 = train.mul %0, %1 : tensor<64x768xf32>
  return %2 : tensor<64x768xf32>
}

// Which of two products would be contracted could depend on the rest of a kernel: neither is.
// CHECK-LABEL: <products>:
// CHECK-NOT:   vfm
// V4:          vmulps {{.*}}%zmm
// V4-NOT:      vfm
// V4:          vaddps {{.*}}%zmm
// V3:          vmulps {{.*}}%ymm
// V3-NOT:      vfm
// V3:          vaddps {{.*}}%ymm
func.func @products(%x: tensor<64x768xf32>, %y: tensor<64x768xf32>, %z: tensor<64x768xf32>) -> tensor<64x768xf32> {
  %0 = train.mul %x, %y : tensor<64x768xf32>
  %1 = train.mul %y, %z : tensor<64x768xf32>
  %2 = train.add %0, %1 : tensor<64x768xf32>
  return %2 : tensor<64x768xf32>
}

// A sum of squares of each row and what is divided by it.
// CHECK-LABEL: <row>:
// V4:          vfmadd{{.*}}ps {{.*}}%zmm
// V4:          {{vmulps|vdivps}} {{.*}}%zmm
// V3:          vfmadd{{.*}}ps {{.*}}%ymm
// V3:          {{vmulps|vdivps}} {{.*}}%ymm
func.func @row(%x: tensor<64x768xf32>) -> tensor<64x768xf32> {
  %0 = train.mul %x, %x : tensor<64x768xf32>
  %1 = train.reduce sum, %0 {dimensions = array<i64: 1>} : (tensor<64x768xf32>) -> tensor<64xf32>
  %2 = train.broadcast %1 {broadcast_dimensions = array<i64: 0>} : (tensor<64xf32>) -> tensor<64x768xf32>
  %3 = train.div %x, %2 : tensor<64x768xf32>
  return %3 : tensor<64x768xf32>
}

// Short rows too, whose loop LLVM would unroll before it looks for vectors.
// CHECK-LABEL: <short>:
// V4:          vfmadd{{.*}}ps {{.*}}%zmm
// V3:          vfmadd{{.*}}ps {{.*}}%ymm
func.func @short(%table: tensor<256x64xf32>, %tokens: tensor<48xi64>) -> tensor<48xf32> {
  %0 = train.gather_rows %table, %tokens : (tensor<256x64xf32>, tensor<48xi64>) -> tensor<48x64xf32>
  %1 = train.mul %0, %0 : tensor<48x64xf32>
  %2 = train.reduce sum, %1 {dimensions = array<i64: 1>} : (tensor<48x64xf32>) -> tensor<48xf32>
  return %2 : tensor<48xf32>
}

// Sums of columns.
// CHECK-LABEL: <column>:
// V4:          {{vaddps|vfmadd.*ps}} {{.*}}%zmm
// V3:          {{vaddps|vfmadd.*ps}} {{.*}}%ymm
func.func @column(%x: tensor<64x768xf32>, %y: tensor<64x768xf32>) -> tensor<768xf32> {
  %0 = train.mul %x, %y : tensor<64x768xf32>
  %1 = train.reduce sum, %0 {dimensions = array<i64: 0>} : (tensor<64x768xf32>) -> tensor<768xf32>
  return %1 : tensor<768xf32>
}

// AdamW: roots and divisions too.
// CHECK-LABEL: <update>:
// V4:          vsqrtps {{.*}}%zmm
// V4:          vdivps {{.*}}%zmm
// V3:          vsqrtps {{.*}}%ymm
// V3:          vdivps {{.*}}%ymm
func.func @update(%p: tensor<8192xf32>, %m: tensor<8192xf32>, %v: tensor<8192xf32>) -> tensor<8192xf32> {
  %0 = train.sqrt %v : tensor<8192xf32>
  %1 = train.div %m, %0 : tensor<8192xf32>
  %2 = train.sub %p, %1 : tensor<8192xf32>
  return %2 : tensor<8192xf32>
}

// Which part an element comes from is a mask, not a branch.
// CHECK-LABEL: <pad>:
// V4:          vmovups {{.*}}%zmm{{[0-9]+}} {%k
// V3:          vmaskmovps {{.*}}%ymm
func.func @pad(%x: tensor<64x700xf32>) -> tensor<64x768xf32> {
  %0 = train.mul %x, %x : tensor<64x700xf32>
  %1 = train.pad %0 {low = array<i64: 0, 4>, high = array<i64: 0, 64>, interior = array<i64: 0, 0>, value = 0.0 : f64} : (tensor<64x700xf32>) -> tensor<64x768xf32>
  return %1 : tensor<64x768xf32>
}

// CHECK-LABEL: <concat>:
// V4:          vmovups {{.*}}%zmm{{[0-9]+}} {%k
// V3:          vmaskmovps {{.*}}%ymm
func.func @concat(%x: tensor<64x512xf32>, %y: tensor<64x256xf32>) -> tensor<64x768xf32> {
  %0 = train.mul %x, %x : tensor<64x512xf32>
  %1 = train.concat %0, %y {dim = 1 : i64} : (tensor<64x512xf32>, tensor<64x256xf32>) -> tensor<64x768xf32>
  return %1 : tensor<64x768xf32>
}
