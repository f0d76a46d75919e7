//===- Passes.td - passes of the lower phase ------------------------------===//

#ifndef TESSERA_PASSES_LOWER
#define TESSERA_PASSES_LOWER

include "mlir/Pass/PassBase.td"

def TileLoss : Pass<"tile-loss", "::mlir::func::FuncOp"> {
  let summary = "Computes the loss of a linear layer for some rows at a time";
  let description = [{
    `linear_cross_entropy` and its gradient become, for one range of rows after the other, the product that the logits are, their
    cross-entropy, the gradient of the logits and the products with it. Only the logits of one range exist at a time, and they
    take at most `bytes`, unless there would be more than 256 ranges. Gradients of the weight are added up in f32, range by range, in the order of the rows. All ranks have the
    same ranges.

    Precondition: local types. Postcondition: none of these ops is left.

    ```mlir
    %loss, %lse = train.linear_cross_entropy %x, %w, %t … : (tensor<8x4xf32>, tensor<10x4xf32>, tensor<8xi32>) -> …
    ```
    becomes, with `bytes=160`,
    ```mlir
    %x0 = train.slice %x …                                  // rows 0 to 3
    %y0 = train.dot_general %x0, %w … -> tensor<4x10xf32>
    %loss0, %lse0 = train.cross_entropy %y0, %t0 …
    …                                                       // rows 4 to 7
    %loss = train.concat %loss0, %loss1 …
    ```
  }];
  let options = [Option<"bytes", "bytes", "int64_t", "268435456", "Bytes of f32 logits at a time, at least one row">];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def TileProducts : Pass<"tile-products", "::mlir::func::FuncOp"> {
  let summary = "Computes what lies between a widening and a narrowing product for some rows at a time";
  let description = [{
    The hidden values of a feed-forward network, or the scores of an attention that is no op of its own, are wider than what goes in and comes out. From a product whose result is
    larger than its operand and than `bytes`, the pass takes all ops that make or read such a value, up to products that make it narrow again or sum over its rows (gradients of
    weights). They are written out for one range of rows after the other: a value of at most `bytes` for each range, unless there would be more than 256. Rows are the first
    dimension that is not 1. Sums over rows are added up in f32, range by range, in the order of the rows. All ranks have the same ranges.

    Not taken, with a remark: values that the backward pass keeps (`--remat full` keeps none of them), that an op needs with all rows (attention, collectives, maxima over
    rows such as one scale for a tensor of 8-bit floats), or that positions or random numbers are counted along.

    Precondition: local types. Postcondition: values are equal up to the order of sums over rows.

    ```mlir
    %h = train.dot_general %x, %w … : (tensor<8x4xf32>, tensor<4x64xf32>) -> tensor<8x64xf32>
    %a = train.tanh %h …
    %y = train.dot_general %a, %v … : (tensor<8x64xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
    ```
    becomes, with `bytes=1024`,
    ```mlir
    %x0 = train.slice %x …                                  // rows 0 to 3
    %h0 = train.dot_general %x0, %w … -> tensor<4x64xf32>
    %a0 = train.tanh %h0 …
    %y0 = train.dot_general %a0, %v … -> tensor<4x4xf32>
    …                                                       // rows 4 to 7
    %y = train.concat %y0, %y1 …
    ```
  }];
  let options = [Option<"bytes", "bytes", "int64_t", "1073741824", "Bytes of a value at a time, at least one row">];
  let dependentDialects = ["::tessera::train::TrainDialect"];
}

def Decompose : Pass<"decompose", "::mlir::func::FuncOp"> {
  let summary = "Turns composite ops into elementwise ops and reductions";
  let description = [{
    Softmax, layer_norm, cross_entropy, count_valid, the optimizer updates and quantisation become what fusion can group.
    Long reductions to few elements become two, over chunks that depend on the shape alone, so that they run in parallel
    and give the same result on any number of threads; with `gpu` the chunks are those of a GPU's blocks, also where
    many columns are left. A scatter into zeros that is added to a value becomes a scatter
    into that value. Products that no library computes become sums of products (f64, integers), f16 is computed in f32, and
    ops that make elements out of a tensor without any no longer read it, and
    an operand of a product whose dimensions do not merge into rows and columns is transposed first. `stop_gradient`, which has done its work, disappears.

    Precondition: none. Postcondition: besides elementwise, layout, index and reduce ops only library ops
    (dot_general, conv2d*, attention*), collectives and regions are left.

    ```mlir
    %y = train.softmax %x {dim = 1 : i64} : tensor<4x8xf32>
    ```
    becomes
    ```mlir
    %max = train.reduce max, %x {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
    %0 = train.broadcast %max {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
    %1 = train.sub %x, %0 : tensor<4x8xf32>
    %2 = train.exp %1 : tensor<4x8xf32>
    %sum = train.reduce sum, %2 {dimensions = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
    %3 = train.broadcast %sum {broadcast_dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4x8xf32>
    %y = train.div %2, %3 : tensor<4x8xf32>
    ```
  }];
  let options = [
    Option<"gpu", "gpu", "bool", "false", "Cut long reductions for the blocks of a GPU, not for a CPU's threads">
  ];
}

def PadRows : Pass<"pad-rows", "::mlir::func::FuncOp"> {
  let summary = "Lets the rows of wide products start on whole cache lines";
  let description = [{
    A product whose rows are no multiple of 16 bytes (logits over 50257 classes) becomes a part of a wider table, whose
    tail is -inf; a cross-entropy reads the table, elementwise ops compute tables of that width, and other readers take the
    part that counts. The product writes into the table and later products read parts of tables, so that nothing is
    copied. Used for GPUs, whose libraries and kernels need aligned rows.

    Precondition: not yet decompose. Postcondition: the same values. The remark says why rows are not padded: something
    reads them that cannot read the table, or label smoothing adds up whole rows.

    ```mlir
    %l = train.dot_general %x, %w … -> tensor<512x5003xbf16>
    %loss, %lse = train.cross_entropy %l, %t : (tensor<512x5003xbf16>, tensor<512xi32>) -> …
    ```
    becomes
    ```mlir
    %l = train.dot_general %x, %w … -> tensor<512x5003xbf16>
    %end = train.constant dense<0xFF80> : tensor<512x53xbf16>
    %table = train.concat %l, %end {dim = 1 : i64} : … -> tensor<512x5056xbf16>
    %loss, %lse = train.cross_entropy %table, %t : (tensor<512x5056xbf16>, tensor<512xi32>) -> …
    ```
  }];
  let options = [
    Option<"bytes", "bytes", "int64_t", "128", "Rows become a multiple of so many bytes">,
    Option<"minLength", "min-length", "int64_t", "1024", "Elements below which rows stay as they are">
  ];
}

def SplitProducts : Pass<"split-products", "::mlir::func::FuncOp"> {
  let summary = "Cuts products of sizes that a GPU's library is slow at";
  let description = [{
    cuBLASLt uses tensor cores well only where each dimension that is contiguous in memory is a multiple of 16 bytes. A
    product of 16-bit floats in which one is not (50257 classes) becomes two: of a part that is a multiple of 256 bytes, and
    of the rest. Parts of the result are joined in place, also into a table that `pad-rows` made of it; parts of what is
    contracted are added in f32 and rounded once.

    Precondition: decomposed; not yet accumulate-products. Postcondition: the same values, but for the order of sums.
    Products in f32, and lengths below `min-length`, stay as they are. Used for GPUs.

    ```mlir
    %l = train.dot_general %x, %w … : (tensor<512x768xbf16>, tensor<768x5003xbf16>) -> tensor<512x5003xbf16>
    ```
    becomes
    ```mlir
    %w0 = train.slice %w … -> tensor<768x4992xbf16>
    %l0 = train.dot_general %x, %w0 … -> tensor<512x4992xbf16>
    %w1 = train.slice %w … -> tensor<768x11xbf16>
    %l1 = train.dot_general %x, %w1 … -> tensor<512x11xbf16>
    %l = train.concat %l0, %l1 {dim = 1 : i64} : … -> tensor<512x5003xbf16>
    ```
  }];
  let dependentDialects = ["::tessera::exec::ExecDialect"];
  let options = [
    Option<"minLength", "min-length", "int64_t", "1024", "Elements below which a dimension is not cut">
  ];
}

def ScaledProducts : Pass<"scaled-products", "::mlir::func::FuncOp"> {
  let summary = "Products of 8-bit floats in the form in which a GPU's library has them";
  let description = [{
    `train.scaled_dot` becomes `exec.scaled_product`: what is contracted becomes innermost in both operands (the only order
    that Hopper has), by a transpose of the bytes where it is not, and scales are laid out as cuBLASLt reads them, with
    padding. Where both operands have one scale along what is contracted each row gets its own, or, where the GPU has no
    scales of rows, they are multiplied with the f32 result. Sums of the forward pass accumulate fast where the library
    can.

    Precondition: not yet decompose. Postcondition: the same values, but for the digits of fast accumulation. The remark
    says why a product is left to `decompose`, which computes it in bf16 or f32: the GPU lacks 8-bit floats or such
    scales, or a size is no multiple of 16.

    ```mlir
    %y = train.scaled_dot %x, %w scaled %sx, %sw {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, power_of_two}
        : (tensor<64x256xf8E4M3FN>, tensor<256x128xf8E4M3FN>, tensor<64x2xf32>, tensor<2x1xf32>) -> tensor<64x128xbf16>
    ```
    becomes for sm_90
    ```mlir
    %wt = train.transpose %w {permutation = array<i64: 1, 0>} : … -> tensor<128x256xf8E4M3FN>
    %0 = train.transpose %sw {permutation = array<i64: 1, 0>} : … -> tensor<1x2xf32>
    %1 = train.transpose %sx {permutation = array<i64: 1, 0>} : … -> tensor<2x64xf32>
    %2 = train.pad %0, … -> tensor<1x4xf32>
    %y = exec.scaled_product %x by %1 block128, %wt by %2 block128x128 : … -> tensor<64x128xbf16>
    ```
  }];
  let options = [Option<"architecture", "architecture", "std::string", "\"sm_90\"", "sm_80, sm_90 or sm_100">];
  let statistics = [Statistic<"numScaled", "scaled", "Products that the library computes in 8 bits">];
  let dependentDialects = ["::tessera::exec::ExecDialect"];
}

def Fuse : Pass<"fuse", "::mlir::func::FuncOp"> {
  let summary = "Groups elementwise ops and reductions into exec.fusion, one generated kernel each";
  let description = [{
    Precondition: `decompose`; no tensor is empty. Postcondition: outside fusions only library ops, collectives, regions, `reshape`,
    `transpose`, `slice`, `concat` and splat constants are left; every fusion has a kernel plan, and carries its `extent`,
    `grain` and `inplace`.

    Ops join the group of their producers when one kernel can compute both, when no op outside the group would have to
    run between them, and when little is computed twice. A group takes the place of one of its ops; it moves only where
    no other op waits for it, so a collective is never started later. Broadcasts, gathers, iotas and constants, and layout
    ops between elementwise ops, become index arithmetic in each kernel that reads them. Reshapes and contiguous slices of
    values from elsewhere, and contiguous concatenations, stay outside: they are views.

    ```mlir
    %0 = train.add %x, %r : tensor<8x64xf32>
    %1 = train.tanh %0 : tensor<8x64xf32>
    ```
    becomes
    ```mlir
    %1 = exec.fusion "elementwise"(%x, %r) {extent = 512 : i64, grain = 8192 : i64, inplace = array<i64: -1>} : … {
    ^bb0(%a: tensor<8x64xf32>, %b: tensor<8x64xf32>):
      %0 = train.add %a, %b : tensor<8x64xf32>
      %1 = train.tanh %0 : tensor<8x64xf32>
      exec.yield %1 : tensor<8x64xf32>
    }
    ```
  }];
  let options = [Option<"gpu", "gpu", "bool", "false",
                        "Plan kernels of a GPU: sums of rows and of columns may be one kernel, and a value and its transpose">,
                 Option<"keepGradients", "keep-gradients", "bool", "false",
                        "No kernel computes ops of the backward pass and others, so that every gradient is in memory">];
  let dependentDialects = ["::tessera::exec::ExecDialect"];
}

def OutlineKernels : Pass<"outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Gives every fusion a kernel; equal fusions share one";
  let description = [{
    Copies the body of each fusion as a function into a nested module `@kernels` and names it on the fusion. Fusions whose
    bodies are equal but for locations (the layers of a model) share one function.

    Precondition: `fuse`. Postcondition: every fusion names a function of `@kernels` with its operand and result types.

    ```mlir
    %y = exec.fusion "elementwise"(%x) … { ^bb0(%a: tensor<4xf32>): %b = train.neg %a … exec.yield %b … }
    ```
    becomes
    ```mlir
    %y = exec.fusion "elementwise" @k0_elementwise_neg(%x) … { … }
    module @kernels {
      func.func @k0_elementwise_neg(%a: tensor<4xf32>) -> tensor<4xf32> { … }
    }
    ```
  }];
}

def JoinWaits : Pass<"join-waits", "::mlir::func::FuncOp"> {
  let summary = "Waits once for what was started once";
  let description = [{
    Collectives or copies may become equal only here, when what told their operands apart is gone (a `stop_gradient`, an op
    that is decomposed). CSE then makes one start of them, whose future has several waits, as these say why each is where it
    is. The first of a block takes the place of the others in it.

    Precondition: none. Postcondition: a future that is waited for in one block has one `dist.done`.

    ```mlir
    %f = dist.all_reduce_start %x … -> !dist.future<tensor<f32>>
    %a = dist.done %f {schedule.reason = "right after its start"} : (!dist.future<tensor<f32>>) -> tensor<f32>
    %b = dist.done %f {schedule.reason = "before its first use"} : (!dist.future<tensor<f32>>) -> tensor<f32>
    %y = train.div %a, %b : tensor<f32>
    ```
    becomes
    ```mlir
    %f = dist.all_reduce_start %x … -> !dist.future<tensor<f32>>
    %a = dist.done %f {schedule.reason = "right after its start"} : (!dist.future<tensor<f32>>) -> tensor<f32>
    %y = train.div %a, %a : tensor<f32>
    ```
  }];
}

def LowerAccumulate : Pass<"lower-accumulate", "::mlir::func::FuncOp"> {
  let summary = "Turns train.accumulate into a repetition with explicit accumulators";
  let description = [{
    `train.accumulate` says that results are sums over iterations; `exec.repeat` carries the sums, so that the memory plan
    sees them as buffers and fusion sees the additions.

    Precondition: none. Postcondition: no `train.accumulate` is left.

    ```mlir
    %loss = train.accumulate %tokens {count = 4 : i64} : (tensor<4x8xi32>) -> tensor<f32> {
    ^bb0(%i: tensor<i64>, %micro: tensor<8xi32>):
      train.yield %l : tensor<f32>
    }
    ```
    becomes
    ```mlir
    %zero = train.constant dense<0.0> : tensor<f32>
    %loss = exec.repeat count = 4 batch(%tokens) init(%zero) : (tensor<4x8xi32>, tensor<f32>) -> tensor<f32> {
    ^bb0(%i: tensor<i64>, %micro: tensor<8xi32>, %acc: tensor<f32>):
      %next = train.add %acc, %l : tensor<f32>
      exec.yield %next : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::tessera::exec::ExecDialect"];
}

def AccumulateProducts : Pass<"accumulate-products", "::mlir::func::FuncOp"> {
  let summary = "Lets products add to sums by themselves";
  let description = [{
    A product whose only use is an addition to another product, or to the sum that a repetition carries, becomes
    `exec.add_product`: no kernel reads and writes the sum once more. The addition to a carried unit gradient, which is a
    concatenation, becomes additions to its parts where at least one of them is such a product, so that the unit's gradient of
    one micro-batch never exists as a whole. Reshapes, transposes and scatters (the gradient of a tied embedding) between
    product and addition are looked through.

    Precondition: lower-accumulate; not yet fuse. Postcondition: the same values, up to the order in which a sum is added up.

    ```mlir
    ^bb0(%i: tensor<i64>, %x: tensor<2x4xf32>, %g: tensor<2x4xf32>, %acc: tensor<20xf32>):
      %w = train.dot_general %x, %g {lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>, …} : … -> tensor<4x4xf32>
      %b = train.reduce sum, %g {dimensions = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<4xf32>
      %w1 = train.reshape %w : (tensor<4x4xf32>) -> tensor<16xf32>
      %c = train.concat %w1, %b {dim = 0 : i64} : (tensor<16xf32>, tensor<4xf32>) -> tensor<20xf32>
      %next = train.add %acc, %c : tensor<20xf32>
    ```
    becomes
    ```mlir
      %aw = train.slice %acc … -> tensor<16xf32>
      %aw1 = train.reshape %aw … -> tensor<4x4xf32>
      %w = exec.add_product %aw1, %x, %g … -> tensor<4x4xf32>
      %ab = train.slice %acc … -> tensor<4xf32>
      %b = train.reduce sum, %g …
      %b1 = train.add %ab, %b : tensor<4xf32>
      %w1 = train.reshape %w …
      %next = train.concat %w1, %b1 {dim = 0 : i64} : (tensor<16xf32>, tensor<4xf32>) -> tensor<20xf32>
    ```
  }];
  let dependentDialects = ["::tessera::exec::ExecDialect"];
}

def FuseEpilogues : Pass<"fuse-epilogues", "::mlir::func::FuncOp"> {
  let summary = "Lets products add a bias, apply GELU or its gradient, and sum bias gradients";
  let description = [{
    What cuBLASLt does while it writes a product becomes part of it, as `exec.epilogue_product`: the result is not written and read
    once more by a kernel. Of the forms of `train.gelu` only `tanh`, which the library has, is fused. The pre-activation that the backward pass reads is the second result of the forward product. A bias alone is fused
    where a library call reads the sum, since a kernel that reads it adds it for nothing. A bias gradient is fused into the
    product that makes its terms with GELU's gradient, or into a product that contracts them (the gradient of the weight), where
    the product's result has the sum's type: a bias gradient in f32 is not rounded to bf16.

    With bf16, sums are rounded once, where separate ops round the product first.

    Precondition: `decompose`, `accumulate-products`; not yet fuse. Postcondition: the same values but for rounding; what a product
    could nearly take is told by a remark.

    ```mlir
    %p = train.dot_general %x, %w {lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>, …} : … -> tensor<8x256xf32>
    %b = train.broadcast %bias {broadcast_dimensions = array<i64: 1>} : (tensor<256xf32>) -> tensor<8x256xf32>
    %z = train.add %p, %b : tensor<8x256xf32>
    %y = train.gelu tanh, %z : tensor<8x256xf32>
    ```
    becomes
    ```mlir
    %y, %z = exec.epilogue_product gelu_aux_bias %x, %w with %bias {…} : … -> (tensor<8x256xf32>, tensor<8x256xf32>)
    ```
  }];
  let options = [Option<"kinds", "kinds", "std::string", "\"all\"",
                        "none, bias (biases and their gradients) or all (GELU and its gradient too)">];
  let dependentDialects = ["::tessera::exec::ExecDialect"];
}

def ToExec : Pass<"to-exec", "::mlir::ModuleOp"> {
  let summary = "Turns the lowered step into an exec program: slots, buffers, instructions, events";
  let description = [{
    Every tensor becomes a strided view of a slot. A reshape, a transpose, a slice and a rank's part of a value are views
    of their operand as long as their readers can use the strides; a producer writes straight into the part of a
    concatenation (a gradient into its place in the gradient of its unit) or the transposed layout that its consumer wants; a
    fusion or an all-reduce overwrites an operand that dies, and the next value of an argument or of a loop's accumulator its
    old one. What remains is an `exec.copy` and a remark (category `buffers`).

    Gathers run on stream 1 and reductions on stream 2. A collective waits for everything that the compute stream was given
    before it, and its `done` makes the compute stream wait for it; waits that follow from earlier ones are left out.

    Precondition: outline-kernels has run; library calls (products, convolutions, attention) are in f32. Postcondition: an `exec.program` stands in the place of each function; slots have
    no offsets yet. With `keep-step` the function is the first op of the program, for `verify-exec` to hold it against.

    ```mlir
    func.func @step(%w: tensor<8xf32> {train.role = "param", train.name = "w"}) -> (tensor<8xf32> {train.alias = 0 : i64}) {
      %0 = exec.fusion "elementwise" @k0(%w) {extent = 8 : i64, grain = 1 : i64, inplace = array<i64: 0>} : … { … }
      return %0 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    exec.program @step {
      exec.arena @state state bytes 0
      …
      %w.slot = exec.slot "w" in @state parameters : memref<32xi8>
      %w = exec.buffer %w.slot + 0 : memref<32xi8> to memref<8xf32>
      exec.argument %w {train.role = "param", train.name = "w"} : memref<8xf32>
      exec.launch @k0(%w) -> (%w) extent 8 grain 1 : (memref<8xf32>) -> memref<8xf32>
    }
    ```
  }];
  let options = [Option<"keepStep", "keep-step", "bool", "false", "Leave the function in the program that carries it out">];
  let dependentDialects = ["::tessera::exec::ExecDialect"];
}

def PlanMemory : Pass<"plan-memory", "::tessera::exec::ProgramOp"> {
  let summary = "Gives every slot its offset and every arena its size";
  let description = [{
    A slot is in use from the first instruction that touches it until the compute stream knows that the last one is over;
    slots whose uses do not meet may share memory. The state arena keeps everything for the whole step. Slots of more than
    2^56 bytes together are an error: here, and not for values of the whole model, sizes have a limit.

    Precondition: to-exec has run. Postcondition: every slot has an offset; slots that nothing uses are gone.
    The analysis remark `arena` (category `memory`) gives the size and the lower bound on it.

    ```mlir
    // before: two slots that are never in use together
    %a = exec.slot "a" in @work activations : memref<1024xi8>
    %b = exec.slot "b" in @work activations : memref<512xi8>
    // after
    %a = exec.slot "a" in @work activations at 0 : memref<1024xi8>
    %b = exec.slot "b" in @work activations at 0 : memref<512xi8>
    ```
  }];
  let options = [Option<"alignment", "alignment", "int64_t", "64", "Alignment of slots, in bytes (a multiple of 64)">];
}

def ShareState : Pass<"share-state", "::mlir::ModuleOp"> {
  let summary = "Gives the state of all programs one place";
  let description = [{
    Parameters and states of a program after the first get the places that they have in the first one, which trains. What
    else such a program has in an arena that holds arguments of the first (its batch, its results) lies behind those, since
    they must outlive it; in other arenas programs lie over each other. With one program nothing changes.

    Precondition: plan-memory. Postcondition: arguments of one name and role lie in one place, and no other slot of another
    program touches them; an error names an argument that the first program lacks or has elsewhere. `verify-exec` comes after.

    ```mlir
    // before: two programs with a parameter "w", each at an offset of its own
    exec.program @step { … exec.slot "w" in @state parameters at 64 … }
    exec.program @evaluate attributes {train.program = "evaluate"} { … exec.slot "w" in @state parameters at 0 … }
    // after: both at 64
    ```
  }];
}

def VerifyExec : Pass<"verify-exec", "::tessera::exec::ProgramOp"> {
  let summary = "Proves that planned memory is safe";
  let description = [{
    Every slot lies inside its arena and every buffer inside its slot, in all iterations and on all ranks; slots that share
    memory are used one wholly before the other, in the order that streams and events establish (not just in program
    order); accesses of the same bytes from two streams are ordered if one of them writes; every event is recorded before it is
    waited for. An error names the slots and the instructions. Changes nothing.

    If the program still carries its step (`to-exec{keep-step=true}`), value numbering follows both side by side: each
    operand of each instruction holds, element by element, the SSA value of the step that it stands for, whatever was
    written in place, part by part, or into the same memory before; so do gradient probes, results and the next values of
    arguments at the end. The expectation is read off the step alone, not off what planning knew. With `values` a program without its
    step is an error.

    Precondition: plan-memory has run. Postcondition: an error at the program, or the above holds.

    ```
    error: shares memory with 'b', and their uses are not ordered
    error: internal compiler error: 'exec.gemm' expects in slot 'h' element 0 of 'fc1' (result 0 of 'exec.fusion') and finds element 0 of 'ln' (result 0 of 'exec.fusion')
    ```
  }];
  let options = [Option<"values", "values", "bool", "false", "Require that the program carries its step">];
}

def DropStep : Pass<"drop-step", "::tessera::exec::ProgramOp"> {
  let summary = "Erases the step that a program carries for its proof";
  let description = [{
    Precondition: verify-exec has run. Postcondition: the program holds no function. What is written to an artifact has been
    proved, and need not be carried along.

    ```mlir
    exec.program @step {
      func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> { … }
      exec.arena @state state bytes 64
      …
    }
    ```
    becomes
    ```mlir
    exec.program @step {
      exec.arena @state state bytes 64
      …
    }
    ```
  }];
}

#endif // TESSERA_PASSES_LOWER
