// RUN: tessera-opt %s -annotate-index-bounds=check=clamp -split-input-file -verify-diagnostics | FileCheck %s
// What is known of computed indices: numbers that leave their type wrap around, and each tensor is looked at once.

// 200 positions in i8 end below zero.
// CHECK-LABEL: func.func @wrapped_positions
// CHECK: %[[I:.*]] = train.iota
// CHECK: train.max %[[I]]
func.func @wrapped_positions(%t: tensor<201x4xf32>) -> tensor<200x4xf32> {
  %i = train.iota {dim = 0 : i64} : tensor<200xi8>
  // expected-remark @+1 {{indices are computed from data and not known to be in [0, 201): those outside count as the nearest one inside}}
  %0 = train.gather_rows %t, %i : (tensor<201x4xf32>, tensor<200xi8>) -> tensor<200x4xf32>
  return %0 : tensor<200x4xf32>
}

// -----

// They fit ui8 and i16.
// CHECK-LABEL: func.func @positions_that_fit
// CHECK-NOT: train.max
func.func @positions_that_fit(%t: tensor<201x4xf32>) -> (tensor<200x4xf32>, tensor<200x4xf32>) {
  %i = train.iota {dim = 0 : i64} : tensor<200xui8>
  %j = train.iota {dim = 0 : i64} : tensor<200xi16>
  %0 = train.gather_rows %t, %i : (tensor<201x4xf32>, tensor<200xui8>) -> tensor<200x4xf32>
  %1 = train.gather_rows %t, %j : (tensor<201x4xf32>, tensor<200xi16>) -> tensor<200x4xf32>
  return %0, %1 : tensor<200x4xf32>, tensor<200x4xf32>
}

// -----

// Converted to a type that does not hold them.
// CHECK-LABEL: func.func @narrowed
// CHECK: train.max
func.func @narrowed(%t: tensor<201x4xf32>) -> tensor<200x4xf32> {
  %i = train.iota {dim = 0 : i64} : tensor<200xi64>
  %j = train.convert %i : (tensor<200xi64>) -> tensor<200xi8>
  // expected-remark @+1 {{not known to be in [0, 201)}}
  %0 = train.gather_rows %t, %j : (tensor<201x4xf32>, tensor<200xi8>) -> tensor<200x4xf32>
  return %0 : tensor<200x4xf32>
}

// -----

// 200 in ui8 is 200, not -56: targets that are 200 do not count, and are 0 here.
// CHECK-LABEL: func.func @unsigned_number
// CHECK-NOT: train.max
func.func @unsigned_number(%t: tensor<10x4xf32>, %ids: tensor<8xui8> {train.index_bound = 10 : i64, train.ignore_index = 200 : i64}) -> tensor<8x4xf32> {
  %none = train.constant dense<200> : tensor<8xui8>
  %zero = train.constant dense<0> : tensor<8xui8>
  %counts = train.compare ne, %ids, %none : (tensor<8xui8>, tensor<8xui8>) -> tensor<8xi1>
  %in = train.select %counts, %ids, %zero : tensor<8xi1>, tensor<8xui8>
  %0 = train.gather_rows %t, %in : (tensor<10x4xf32>, tensor<8xui8>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// The number of paths doubles with each sum.
// CHECK-LABEL: func.func @doubled
// CHECK: train.max
func.func @doubled(%t: tensor<16x4xf32>, %0: tensor<2xi64>) -> tensor<2x4xf32> {
  %1 = train.add %0, %0 : tensor<2xi64>
  %2 = train.add %1, %1 : tensor<2xi64>
  %3 = train.add %2, %2 : tensor<2xi64>
  %4 = train.add %3, %3 : tensor<2xi64>
  %5 = train.add %4, %4 : tensor<2xi64>
  %6 = train.add %5, %5 : tensor<2xi64>
  %7 = train.add %6, %6 : tensor<2xi64>
  %8 = train.add %7, %7 : tensor<2xi64>
  %9 = train.add %8, %8 : tensor<2xi64>
  %10 = train.add %9, %9 : tensor<2xi64>
  %11 = train.add %10, %10 : tensor<2xi64>
  %12 = train.add %11, %11 : tensor<2xi64>
  %13 = train.add %12, %12 : tensor<2xi64>
  %14 = train.add %13, %13 : tensor<2xi64>
  %15 = train.add %14, %14 : tensor<2xi64>
  %16 = train.add %15, %15 : tensor<2xi64>
  %17 = train.add %16, %16 : tensor<2xi64>
  %18 = train.add %17, %17 : tensor<2xi64>
  %19 = train.add %18, %18 : tensor<2xi64>
  %20 = train.add %19, %19 : tensor<2xi64>
  %21 = train.add %20, %20 : tensor<2xi64>
  %22 = train.add %21, %21 : tensor<2xi64>
  %23 = train.add %22, %22 : tensor<2xi64>
  %24 = train.add %23, %23 : tensor<2xi64>
  %25 = train.add %24, %24 : tensor<2xi64>
  %26 = train.add %25, %25 : tensor<2xi64>
  %27 = train.add %26, %26 : tensor<2xi64>
  %28 = train.add %27, %27 : tensor<2xi64>
  %29 = train.add %28, %28 : tensor<2xi64>
  %30 = train.add %29, %29 : tensor<2xi64>
  %31 = train.add %30, %30 : tensor<2xi64>
  %32 = train.add %31, %31 : tensor<2xi64>
  %33 = train.add %32, %32 : tensor<2xi64>
  %34 = train.add %33, %33 : tensor<2xi64>
  %35 = train.add %34, %34 : tensor<2xi64>
  %36 = train.add %35, %35 : tensor<2xi64>
  %37 = train.add %36, %36 : tensor<2xi64>
  %38 = train.add %37, %37 : tensor<2xi64>
  %39 = train.add %38, %38 : tensor<2xi64>
  %40 = train.add %39, %39 : tensor<2xi64>
  %41 = train.add %40, %40 : tensor<2xi64>
  %42 = train.add %41, %41 : tensor<2xi64>
  %43 = train.add %42, %42 : tensor<2xi64>
  %44 = train.add %43, %43 : tensor<2xi64>
  %45 = train.add %44, %44 : tensor<2xi64>
  // expected-remark @+1 {{not known to be in [0, 16)}}
  %e = train.gather_rows %t, %45 : (tensor<16x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %e : tensor<2x4xf32>
}

// -----

// 1 doubled 62 times, less 2^62 - 4, is 4, however long the chain.
// CHECK-LABEL: func.func @long_chain
// CHECK-NOT: train.max
func.func @long_chain(%t: tensor<16x4xf32>) -> tensor<2x4xf32> {
  %0 = train.constant dense<1> : tensor<2xi64>
  %1 = train.add %0, %0 : tensor<2xi64>
  %2 = train.add %1, %1 : tensor<2xi64>
  %3 = train.add %2, %2 : tensor<2xi64>
  %4 = train.add %3, %3 : tensor<2xi64>
  %5 = train.add %4, %4 : tensor<2xi64>
  %6 = train.add %5, %5 : tensor<2xi64>
  %7 = train.add %6, %6 : tensor<2xi64>
  %8 = train.add %7, %7 : tensor<2xi64>
  %9 = train.add %8, %8 : tensor<2xi64>
  %10 = train.add %9, %9 : tensor<2xi64>
  %11 = train.add %10, %10 : tensor<2xi64>
  %12 = train.add %11, %11 : tensor<2xi64>
  %13 = train.add %12, %12 : tensor<2xi64>
  %14 = train.add %13, %13 : tensor<2xi64>
  %15 = train.add %14, %14 : tensor<2xi64>
  %16 = train.add %15, %15 : tensor<2xi64>
  %17 = train.add %16, %16 : tensor<2xi64>
  %18 = train.add %17, %17 : tensor<2xi64>
  %19 = train.add %18, %18 : tensor<2xi64>
  %20 = train.add %19, %19 : tensor<2xi64>
  %21 = train.add %20, %20 : tensor<2xi64>
  %22 = train.add %21, %21 : tensor<2xi64>
  %23 = train.add %22, %22 : tensor<2xi64>
  %24 = train.add %23, %23 : tensor<2xi64>
  %25 = train.add %24, %24 : tensor<2xi64>
  %26 = train.add %25, %25 : tensor<2xi64>
  %27 = train.add %26, %26 : tensor<2xi64>
  %28 = train.add %27, %27 : tensor<2xi64>
  %29 = train.add %28, %28 : tensor<2xi64>
  %30 = train.add %29, %29 : tensor<2xi64>
  %31 = train.add %30, %30 : tensor<2xi64>
  %32 = train.add %31, %31 : tensor<2xi64>
  %33 = train.add %32, %32 : tensor<2xi64>
  %34 = train.add %33, %33 : tensor<2xi64>
  %35 = train.add %34, %34 : tensor<2xi64>
  %36 = train.add %35, %35 : tensor<2xi64>
  %37 = train.add %36, %36 : tensor<2xi64>
  %38 = train.add %37, %37 : tensor<2xi64>
  %39 = train.add %38, %38 : tensor<2xi64>
  %40 = train.add %39, %39 : tensor<2xi64>
  %41 = train.add %40, %40 : tensor<2xi64>
  %42 = train.add %41, %41 : tensor<2xi64>
  %43 = train.add %42, %42 : tensor<2xi64>
  %44 = train.add %43, %43 : tensor<2xi64>
  %45 = train.add %44, %44 : tensor<2xi64>
  %46 = train.add %45, %45 : tensor<2xi64>
  %47 = train.add %46, %46 : tensor<2xi64>
  %48 = train.add %47, %47 : tensor<2xi64>
  %49 = train.add %48, %48 : tensor<2xi64>
  %50 = train.add %49, %49 : tensor<2xi64>
  %51 = train.add %50, %50 : tensor<2xi64>
  %52 = train.add %51, %51 : tensor<2xi64>
  %53 = train.add %52, %52 : tensor<2xi64>
  %54 = train.add %53, %53 : tensor<2xi64>
  %55 = train.add %54, %54 : tensor<2xi64>
  %56 = train.add %55, %55 : tensor<2xi64>
  %57 = train.add %56, %56 : tensor<2xi64>
  %58 = train.add %57, %57 : tensor<2xi64>
  %59 = train.add %58, %58 : tensor<2xi64>
  %60 = train.add %59, %59 : tensor<2xi64>
  %61 = train.add %60, %60 : tensor<2xi64>
  %62 = train.add %61, %61 : tensor<2xi64>
  %c = train.constant dense<4611686018427387900> : tensor<2xi64>
  %i = train.sub %62, %c : tensor<2xi64>
  %e = train.gather_rows %t, %i : (tensor<16x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %e : tensor<2x4xf32>
}

// -----

// What is put in front or around counts as well.
// CHECK-LABEL: func.func @joined
// CHECK-NOT: train.max
func.func @joined(%t: tensor<10x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xf32>) {
  %i = train.iota {dim = 0 : i64} : tensor<8xi64>
  %nine = train.constant dense<9> : tensor<1xi64>
  %j = train.concat %nine, %i {dim = 0 : i64} : (tensor<1xi64>, tensor<8xi64>) -> tensor<9xi64>
  %p = train.pad %i {low = array<i64: 1>, high = array<i64: 0>, interior = array<i64: 0>, value = 9.0 : f64} : (tensor<8xi64>) -> tensor<9xi64>
  %0 = train.gather_rows %t, %j : (tensor<10x4xf32>, tensor<9xi64>) -> tensor<9x4xf32>
  %1 = train.gather_rows %t, %p : (tensor<10x4xf32>, tensor<9xi64>) -> tensor<9x4xf32>
  return %0, %1 : tensor<9x4xf32>, tensor<9x4xf32>
}

// -----

// CHECK-LABEL: func.func @joined_beyond
// CHECK: train.max
func.func @joined_beyond(%t: tensor<10x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xf32>) {
  %i = train.iota {dim = 0 : i64} : tensor<8xi64>
  %ten = train.constant dense<10> : tensor<1xi64>
  %j = train.concat %i, %ten {dim = 0 : i64} : (tensor<8xi64>, tensor<1xi64>) -> tensor<9xi64>
  %p = train.pad %i {low = array<i64: 1>, high = array<i64: 0>, interior = array<i64: 0>, value = -1.0 : f64} : (tensor<8xi64>) -> tensor<9xi64>
  // expected-remark @+1 {{not known to be in [0, 10)}}
  %0 = train.gather_rows %t, %j : (tensor<10x4xf32>, tensor<9xi64>) -> tensor<9x4xf32>
  // expected-remark @+1 {{not known to be in [0, 10)}}
  %1 = train.gather_rows %t, %p : (tensor<10x4xf32>, tensor<9xi64>) -> tensor<9x4xf32>
  return %0, %1 : tensor<9x4xf32>, tensor<9x4xf32>
}
