//===- Passes.td - passes of the lower phase ------------------------------===//

#ifndef TESSERA_PASSES_LOWER
#define TESSERA_PASSES_LOWER

include "mlir/Pass/PassBase.td"

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

    Precondition: outline-kernels has run. Postcondition: an `exec.program` stands in the place of each function; slots have
    no offsets yet.

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
  let dependentDialects = ["::tessera::exec::ExecDialect"];
}

def PlanMemory : Pass<"plan-memory", "::tessera::exec::ProgramOp"> {
  let summary = "Gives every slot its offset and every arena its size";
  let description = [{
    A slot is in use from the first instruction that touches it until the compute stream knows that the last one is over;
    slots whose uses do not meet may share memory. The state arena keeps everything for the whole step.

    Precondition: to-exec has run. Postcondition: every slot has an offset; slots that nothing uses are gone.
    The analysis remark `arena` (category `memory`) gives the size and the lower bound on it.
  }];
  let options = [Option<"alignment", "alignment", "int64_t", "64", "Alignment of slots, in bytes (a multiple of 64)">];
}

def VerifyExec : Pass<"verify-exec", "::tessera::exec::ProgramOp"> {
  let summary = "Proves that planned memory is safe";
  let description = [{
    Every slot lies inside its arena and every buffer inside its slot, in all iterations and on all ranks; slots that share
    memory are used one wholly before the other, in the order that streams and events establish (not just in program
    order); accesses of one slot from two streams are ordered if one of them writes; every event is recorded before it is
    waited for. An error names the slots and the instructions. Changes nothing.

    Precondition: plan-memory has run.
  }];
}

#endif // TESSERA_PASSES_LOWER
