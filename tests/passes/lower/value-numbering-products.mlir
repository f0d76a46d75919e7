// RUN: tessera-opt %s --verify-exec=values=true -split-input-file -verify-diagnostics

// Which factors of a product, and in which order, the buffers of its instruction stand for.

// A product is made as it is, or as the transpose of the product of its transposed factors the other way round.
exec.program @direct {
  func.func @direct(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
    %p = train.dot_general %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    return %p : tensor<2x4xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<24xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<48xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<32xi8>
  %x = exec.buffer %x.slot + 0 : memref<24xi8> to memref<2x3xf32>
  %y = exec.buffer %y.slot + 0 : memref<48xi8> to memref<3x4xf32>
  %r = exec.buffer %r.slot + 0 : memref<32xi8> to memref<2x4xf32>
  exec.argument %x : memref<2x3xf32>
  exec.argument %y : memref<3x4xf32>
  exec.gemm %x, %y -> %r : memref<2x3xf32>, memref<3x4xf32> -> memref<2x4xf32>
  exec.result %r : memref<2x4xf32>
}

// -----

// The transposed product gives the transposed result.
exec.program @flipped {
  func.func @flipped(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
    %p = train.dot_general %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    return %p : tensor<2x4xf32>
  }
  exec.arena @state state bytes 256
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<24xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<48xi8>
  %t.slot = exec.slot "t" in @state workspace at 128 : memref<32xi8>
  %r.slot = exec.slot "r" in @state workspace at 192 : memref<32xi8>
  %x = exec.buffer %x.slot + 0 : memref<24xi8> to memref<2x3xf32>
  %xt = exec.buffer %x.slot + 0 : memref<24xi8> to memref<3x2xf32, strided<[1, 3]>>
  %y = exec.buffer %y.slot + 0 : memref<48xi8> to memref<3x4xf32>
  %yt = exec.buffer %y.slot + 0 : memref<48xi8> to memref<4x3xf32, strided<[1, 4]>>
  %t = exec.buffer %t.slot + 0 : memref<32xi8> to memref<4x2xf32>
  %tt = exec.buffer %t.slot + 0 : memref<32xi8> to memref<2x4xf32, strided<[1, 2]>>
  %r = exec.buffer %r.slot + 0 : memref<32xi8> to memref<2x4xf32>
  exec.argument %x : memref<2x3xf32>
  exec.argument %y : memref<3x4xf32>
  exec.gemm %yt, %xt -> %t : memref<4x3xf32, strided<[1, 4]>>, memref<3x2xf32, strided<[1, 3]>> -> memref<4x2xf32>
  exec.copy %tt -> %r : memref<2x4xf32, strided<[1, 2]>> -> memref<2x4xf32>
  exec.result %r : memref<2x4xf32>
}

// -----

// The transpose is not the result itself.
exec.program @flipped_result {
  func.func @flipped_result(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
    %p = train.dot_general %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    return %p : tensor<2x4xf32>
  }
  exec.arena @state state bytes 256
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<24xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<48xi8>
  %t.slot = exec.slot "t" in @state workspace at 128 : memref<32xi8>
  %r.slot = exec.slot "r" in @state workspace at 192 : memref<32xi8>
  %x = exec.buffer %x.slot + 0 : memref<24xi8> to memref<2x3xf32>
  %xt = exec.buffer %x.slot + 0 : memref<24xi8> to memref<3x2xf32, strided<[1, 3]>>
  %y = exec.buffer %y.slot + 0 : memref<48xi8> to memref<3x4xf32>
  %yt = exec.buffer %y.slot + 0 : memref<48xi8> to memref<4x3xf32, strided<[1, 4]>>
  %t = exec.buffer %t.slot + 0 : memref<32xi8> to memref<4x2xf32>
  %straight = exec.buffer %t.slot + 0 : memref<32xi8> to memref<2x4xf32>
  %r = exec.buffer %r.slot + 0 : memref<32xi8> to memref<2x4xf32>
  exec.argument %x : memref<2x3xf32>
  exec.argument %y : memref<3x4xf32>
  exec.gemm %yt, %xt -> %t : memref<4x3xf32, strided<[1, 4]>>, memref<3x2xf32, strided<[1, 3]>> -> memref<4x2xf32>
  exec.copy %straight -> %r : memref<2x4xf32> -> memref<2x4xf32>
  // expected-error @+1 {{expects in slot 'r' element 2 of result 0 of 'train.dot_general' and finds element 1 of result 0 of 'train.dot_general'}}
  exec.result %r : memref<2x4xf32>
}

// -----

// A product reads its operand as it is where it should read the transpose. Sizes do not tell.
exec.program @transposed {
  func.func @transposed(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %p = train.dot_general %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    return %p : tensor<2x2xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<2x2xf32>
  %y = exec.buffer %y.slot + 0 : memref<16xi8> to memref<2x2xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<2x2xf32>
  exec.argument %x : memref<2x2xf32>
  exec.argument %y : memref<2x2xf32>
  // expected-error @+1 {{'exec.gemm' expects in slot 'x' element 2 of argument 0 and finds element 1 of argument 0}}
  exec.gemm %x, %y -> %r : memref<2x2xf32>, memref<2x2xf32> -> memref<2x2xf32>
  exec.result %r : memref<2x2xf32>
}

// -----

// What a product is multiplied by and added to is part of it.
exec.program @alpha {
  func.func @alpha(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
    %p = train.dot_general %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    return %p : tensor<2x4xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<24xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<48xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<32xi8>
  %x = exec.buffer %x.slot + 0 : memref<24xi8> to memref<2x3xf32>
  %y = exec.buffer %y.slot + 0 : memref<48xi8> to memref<3x4xf32>
  %r = exec.buffer %r.slot + 0 : memref<32xi8> to memref<2x4xf32>
  exec.argument %x : memref<2x3xf32>
  exec.argument %y : memref<3x4xf32>
  // expected-error @+1 {{has another epilogue, alpha or beta than result 0 of 'train.dot_general' needs}}
  exec.gemm %x, %y -> %r {alpha = 2.0 : f32} : memref<2x3xf32>, memref<3x4xf32> -> memref<2x4xf32>
  exec.result %r : memref<2x4xf32>
}

// -----

// The sum that a product is added to is where it is written.
exec.program @added {
  func.func @added(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %acc: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %p = exec.add_product %acc, %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    return %p : tensor<2x4xf32>
  }
  exec.arena @state state bytes 256
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<24xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<48xi8>
  %acc.slot = exec.slot "acc" in @state inputs at 128 : memref<32xi8>
  %r.slot = exec.slot "r" in @state workspace at 192 : memref<32xi8>
  %x = exec.buffer %x.slot + 0 : memref<24xi8> to memref<2x3xf32>
  %y = exec.buffer %y.slot + 0 : memref<48xi8> to memref<3x4xf32>
  %acc = exec.buffer %acc.slot + 0 : memref<32xi8> to memref<2x4xf32>
  %r = exec.buffer %r.slot + 0 : memref<32xi8> to memref<2x4xf32>
  exec.argument %x : memref<2x3xf32>
  exec.argument %y : memref<3x4xf32>
  exec.argument %acc : memref<2x4xf32>
  exec.copy %acc -> %r : memref<2x4xf32> -> memref<2x4xf32>
  exec.gemm %x, %y -> %r {beta = 1.0 : f32} : memref<2x3xf32>, memref<3x4xf32> -> memref<2x4xf32>
  exec.result %r : memref<2x4xf32>
}

// -----

// Not applied without a beta of 1: the sum would be dropped.
exec.program @not_added {
  func.func @not_added(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %acc: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %p = exec.add_product %acc, %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    return %p : tensor<2x4xf32>
  }
  exec.arena @state state bytes 256
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<24xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<48xi8>
  %acc.slot = exec.slot "acc" in @state inputs at 128 : memref<32xi8>
  %r.slot = exec.slot "r" in @state workspace at 192 : memref<32xi8>
  %x = exec.buffer %x.slot + 0 : memref<24xi8> to memref<2x3xf32>
  %y = exec.buffer %y.slot + 0 : memref<48xi8> to memref<3x4xf32>
  %acc = exec.buffer %acc.slot + 0 : memref<32xi8> to memref<2x4xf32>
  %r = exec.buffer %r.slot + 0 : memref<32xi8> to memref<2x4xf32>
  exec.argument %x : memref<2x3xf32>
  exec.argument %y : memref<3x4xf32>
  exec.argument %acc : memref<2x4xf32>
  exec.copy %acc -> %r : memref<2x4xf32> -> memref<2x4xf32>
  // expected-error @+1 {{has another epilogue, alpha or beta than result 0 of 'exec.add_product' needs}}
  exec.gemm %x, %y -> %r : memref<2x3xf32>, memref<3x4xf32> -> memref<2x4xf32>
  exec.result %r : memref<2x4xf32>
}

// -----

// The sum has to be there.
exec.program @added_to_zero {
  func.func @added_to_zero(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %acc: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %p = exec.add_product %acc, %x, %y {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<2x4xf32>, tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    return %p : tensor<2x4xf32>
  }
  exec.arena @state state bytes 256
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<24xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<48xi8>
  %acc.slot = exec.slot "acc" in @state inputs at 128 : memref<32xi8>
  %r.slot = exec.slot "r" in @state workspace at 192 : memref<32xi8>
  %x = exec.buffer %x.slot + 0 : memref<24xi8> to memref<2x3xf32>
  %y = exec.buffer %y.slot + 0 : memref<48xi8> to memref<3x4xf32>
  %acc = exec.buffer %acc.slot + 0 : memref<32xi8> to memref<2x4xf32>
  %r = exec.buffer %r.slot + 0 : memref<32xi8> to memref<2x4xf32>
  exec.argument %x : memref<2x3xf32>
  exec.argument %y : memref<3x4xf32>
  exec.argument %acc : memref<2x4xf32>
  exec.fill %r with 0.0 : memref<2x4xf32>
  // expected-error @+1 {{'exec.gemm' expects in slot 'r' element 0 of argument 2 and finds element 0 of the constant 0.000000e+00}}
  exec.gemm %x, %y -> %r {beta = 1.0 : f32} : memref<2x3xf32>, memref<3x4xf32> -> memref<2x4xf32>
  exec.result %r : memref<2x4xf32>
}
