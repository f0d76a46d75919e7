// RUN: tessera-opt %s --verify-exec=values=true -split-input-file -verify-diagnostics

// Which operand of a fusion each buffer of its kernel stands for, and which of them may be one place. Products are in
// value-numbering-products.mlir, other calls in value-numbering-calls.mlir.

// A kernel is the one that the fusion names, and reads what the fusion reads.
exec.program @other_kernel {
  func.func @other_kernel(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = exec.fusion "elementwise" @neg(%x) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>):
      %1 = train.neg %0 : tensor<4xf32>
      exec.yield %1 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  // expected-error @+1 {{launches 'exp' where result 0 of 'exec.fusion' is due, of kernel 'neg'}}
  exec.launch @exp(%x) -> (%r) extent 4 grain 1 : (memref<4xf32>) -> memref<4xf32>
  exec.result %r : memref<4xf32>
}

// -----

// Its operands are in the order of the fusion.
exec.program @other_operand {
  func.func @other_operand(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %a = exec.fusion "elementwise" @sub(%x, %y) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = train.sub %0, %1 : tensor<4xf32>
      exec.yield %2 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 192
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 128 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %y = exec.buffer %y.slot + 0 : memref<16xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.argument %y : memref<4xf32>
  // expected-error @+1 {{'exec.launch' expects in slot 'y' element 0 of argument 0 and finds element 0 of argument 1}}
  exec.launch @sub(%y, %x) -> (%r) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
  exec.result %r : memref<4xf32>
}

// -----

// A kernel may overwrite the operand that its fusion names, and no other.
exec.program @in_place {
  func.func @in_place(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %a = exec.fusion "elementwise" @add(%x, %y) {extent = 4 : i64, grain = 1 : i64, inplace = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = train.add %0, %1 : tensor<4xf32>
      exec.yield %2 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %y.slot = exec.slot "y" in @state inputs at 64 : memref<16xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %y = exec.buffer %y.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  exec.argument %y : memref<4xf32>
  // expected-error @+1 {{'exec.launch' writes to slot 'y' where it still reads}}
  exec.launch @add(%x, %y) -> (%y) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
  exec.result %y : memref<4xf32>
}

// -----

// Nor may two of its results share memory.
exec.program @one_place {
  func.func @one_place(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %a:2 = exec.fusion "elementwise" @both(%x) {extent = 4 : i64, grain = 1 : i64} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    ^bb0(%0: tensor<4xf32>):
      %1 = train.neg %0 : tensor<4xf32>
      %2 = train.exp %0 : tensor<4xf32>
      exec.yield %1, %2 : tensor<4xf32>, tensor<4xf32>
    }
    return %a#0, %a#1 : tensor<4xf32>, tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %x.slot = exec.slot "x" in @state inputs at 0 : memref<16xi8>
  %r.slot = exec.slot "r" in @state workspace at 64 : memref<24xi8>
  %x = exec.buffer %x.slot + 0 : memref<16xi8> to memref<4xf32>
  %r = exec.buffer %r.slot + 0 : memref<24xi8> to memref<4xf32>
  %s = exec.buffer %r.slot + 8 : memref<24xi8> to memref<4xf32>
  exec.argument %x : memref<4xf32>
  // expected-error @+1 {{'exec.launch' writes to slot 'r' where it still reads}}
  exec.launch @both(%x) -> (%r, %s) extent 4 grain 1 : (memref<4xf32>) -> (memref<4xf32>, memref<4xf32>)
  exec.result %r : memref<4xf32>
  exec.result %s : memref<4xf32>
}

// -----

// A kernel that updates a unit has a probe of its gradient before it.
exec.program @probed {
  func.func @probed(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %g: tensor<4xf32>) -> (tensor<4xf32> {train.alias = 0 : i64}) {
    %a = exec.fusion "elementwise" @step(%w, %g) {extent = 4 : i64, grain = 1 : i64, inplace = array<i64: 0>, train.grad_operands = array<i64: 1>, train.units = ["h.0"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = train.sub %0, %1 : tensor<4xf32>
      exec.yield %2 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %w.slot = exec.slot "w" in @state parameters at 0 : memref<16xi8>
  %g.slot = exec.slot "g" in @state inputs at 64 : memref<16xi8>
  %w = exec.buffer %w.slot + 0 : memref<16xi8> to memref<4xf32>
  %g = exec.buffer %g.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %w : memref<4xf32>
  exec.argument %g : memref<4xf32>
  exec.probe %g of "h.0" : memref<4xf32>
  exec.launch @step(%w, %g) -> (%w) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
}

// -----

// Not applied because no probe stands there.
exec.program @not_probed {
  func.func @not_probed(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %g: tensor<4xf32>) -> (tensor<4xf32> {train.alias = 0 : i64}) {
    // expected-error @+1 {{expects 1 gradient probes before it, found 0}}
    %a = exec.fusion "elementwise" @step(%w, %g) {extent = 4 : i64, grain = 1 : i64, inplace = array<i64: 0>, train.grad_operands = array<i64: 1>, train.units = ["h.0"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = train.sub %0, %1 : tensor<4xf32>
      exec.yield %2 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %w.slot = exec.slot "w" in @state parameters at 0 : memref<16xi8>
  %g.slot = exec.slot "g" in @state inputs at 64 : memref<16xi8>
  %w = exec.buffer %w.slot + 0 : memref<16xi8> to memref<4xf32>
  %g = exec.buffer %g.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %w : memref<4xf32>
  exec.argument %g : memref<4xf32>
  exec.launch @step(%w, %g) -> (%w) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
}

// -----

// The probe is of the unit that the kernel updates.
exec.program @other_unit {
  func.func @other_unit(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %g: tensor<4xf32>) -> (tensor<4xf32> {train.alias = 0 : i64}) {
    %a = exec.fusion "elementwise" @step(%w, %g) {extent = 4 : i64, grain = 1 : i64, inplace = array<i64: 0>, train.grad_operands = array<i64: 1>, train.units = ["h.0"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = train.sub %0, %1 : tensor<4xf32>
      exec.yield %2 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %w.slot = exec.slot "w" in @state parameters at 0 : memref<16xi8>
  %g.slot = exec.slot "g" in @state inputs at 64 : memref<16xi8>
  %w = exec.buffer %w.slot + 0 : memref<16xi8> to memref<4xf32>
  %g = exec.buffer %g.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %w : memref<4xf32>
  exec.argument %g : memref<4xf32>
  // expected-error @+1 {{stands where the gradient of "h.0" is due}}
  exec.probe %g of "h.1" : memref<4xf32>
  exec.launch @step(%w, %g) -> (%w) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
}

// -----

// A probe reads the gradient.
exec.program @no_gradient {
  func.func @no_gradient(%w: tensor<4xf32> {train.role = "param", train.name = "w"}, %g: tensor<4xf32>) -> (tensor<4xf32> {train.alias = 0 : i64}) {
    %a = exec.fusion "elementwise" @step(%w, %g) {extent = 4 : i64, grain = 1 : i64, inplace = array<i64: 0>, train.grad_operands = array<i64: 1>, train.units = ["h.0"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>, %1: tensor<4xf32>):
      %2 = train.sub %0, %1 : tensor<4xf32>
      exec.yield %2 : tensor<4xf32>
    }
    return %a : tensor<4xf32>
  }
  exec.arena @state state bytes 128
  %w.slot = exec.slot "w" in @state parameters at 0 : memref<16xi8>
  %g.slot = exec.slot "g" in @state inputs at 64 : memref<16xi8>
  %w = exec.buffer %w.slot + 0 : memref<16xi8> to memref<4xf32>
  %g = exec.buffer %g.slot + 0 : memref<16xi8> to memref<4xf32>
  exec.argument %w : memref<4xf32>
  exec.argument %g : memref<4xf32>
  // expected-error @+1 {{'exec.probe' expects in slot 'w' element 0 of argument 1 and finds element 0 of argument 0}}
  exec.probe %w of "h.0" : memref<4xf32>
  exec.launch @step(%w, %g) -> (%w) extent 4 grain 1 : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
}
